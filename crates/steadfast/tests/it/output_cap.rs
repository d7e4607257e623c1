//! What an agent prints is kept within a cap: its beginning and its end. The agent does not notice.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::outages::skipped;
use crate::runs::World;

const EVENT: &str =
    r#"{"type":"result","result":"All done.","total_cost_usd":0.5,"usage":{"input_tokens":7,"output_tokens":3}}"#;

/// A world whose agents may print 2 MiB.
fn world(agents: &str) -> World {
    let world = World::new();
    world.loop_type("work", "completion: fixed-n\nmax: 1");
    let path = world.env.home().join("config.toml");
    let config = std::fs::read_to_string(&path).unwrap().replace("[runs]\n", "[runs]\noutput_mb = 2\n");
    std::fs::write(path, format!("{config}{agents}")).unwrap();
    world
}

/// Prints 20 MB between its first and its last words.
fn prints(last: &str) -> String {
    format!("cat > /dev/null; echo first words; yes 'a line of work' | head -c 20000000; echo; echo '{last}'")
}

/// The file of the only output, its bytes on disk, and its length; `None` where the file system makes no holes.
fn output_file(world: &World) -> Option<(std::path::PathBuf, u64, u64)> {
    let file = world.run(&["loop", "logs", "a", "--json"]).succeeds().json()["file"].clone();
    let file = std::path::PathBuf::from(file.as_str().unwrap());
    let log = std::fs::read_to_string(file.with_file_name("keeper.log")).unwrap_or_default();
    let metadata = std::fs::metadata(&file).unwrap();
    if log.contains("cannot be capped") {
        assert!(!can_punch_holes(&file), "the file system makes holes: {log}");
        skipped("outputs with a cap: the file system makes no holes");
        return None;
    }
    Some((file, metadata.blocks() * 512, metadata.len()))
}

fn can_punch_holes(file: &Path) -> bool {
    let mut command = Command::new("fallocate");
    let done = command.args(["--punch-hole", "--offset", "0", "--length", "4096"]).arg(file).output();
    done.is_ok_and(|done| done.status.success())
}

#[test]
fn the_beginning_and_the_end_of_a_long_output_are_kept() {
    let world = world("");
    let agent = world.agent(&prints("last words"));
    world.run(&["loop", "run", "work", "a", "--agent", &agent]).succeeds();
    let Some((file, on_disk, length)) = output_file(&world) else { return };
    assert!(on_disk <= 4 << 20 && length > 20_000_000, "{on_disk} of {length} bytes are on the disk");
    let logs = world.run(&["loop", "logs", "a", "-n", "1"]).succeeds().stdout.clone();
    assert_eq!(logs.trim(), "last words");
    // As far back as is read.
    let followed = world.run(&["loop", "logs", "a", "-f", "-n", "10000000"]).succeeds().stdout.clone();
    assert!(followed.len() < 4 << 20 && !followed.contains('\0'), "{} bytes", followed.len());
    assert_eq!(followed.lines().last(), Some("last words"));
    let kept = std::fs::read(file).unwrap();
    let is_hole = |byte: &u8| *byte == 0;
    let (begin, end) = (kept.iter().position(is_hole).unwrap(), kept.iter().rposition(is_hole).unwrap());
    let [head, tail] = [&kept[..begin], &kept[end + 1..]].map(|part| String::from_utf8(part.to_owned()).unwrap());
    assert!(head.starts_with("first words\na line of work\n"), "{}", &head[..100]);
    assert!(tail.ends_with("\nlast words\n") && tail.contains("\na line of work\n"));
    // About half of the cap each.
    assert!([head.len(), tail.len()].iter().all(|part| (900_000..2_000_000).contains(part)), "{begin} {end}");
    assert_eq!(world.status("loop", "a")["tokens"], Value::Null, "a client's event may be in what was left out");
}

#[test]
fn the_final_event_of_a_client_is_read_behind_a_hole() {
    let stub = World::new();
    let path = stub.env.path("claude");
    stub.write(&path, &format!("#!/bin/sh\n{}\n", prints(EVENT)));
    Command::new("chmod").arg("+x").arg(&path).status().unwrap();
    let world = world(&format!("[agents.claude]\nprogram = \"{}\"\n", path.display()));
    world.run(&["loop", "run", "work", "a", "--agent", "claude"]).succeeds();
    let status = world.status("loop", "a");
    let told = (&status["tokens"], &status["cost_usd"], &status["history"][0]["summary"]);
    assert_eq!(told, (&json!(10), &json!(0.5), &json!("All done.")), "{status:#}");
}
