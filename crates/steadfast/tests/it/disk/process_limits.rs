//! Limits of the process and odd paths: each is named with the path, exit 4, and `doctor` says the same.

use std::process::Command;

use serde_json::{Value, json};

use crate::client;
use crate::env::{Env, Output, finish};
use crate::outages::skipped;

/// Runs a script with the environment of the test; `$1` is the program.
fn script(env: &Env, script: &str, arguments: &[&str]) -> Output {
    let plain = env.command(&[]);
    let mut command = Command::new("bash");
    command.args(["-c", script, "bash"]).arg(plain.get_program()).args(arguments).env_clear();
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env("CLIENT", client::one_shot()).current_dir(env.project());
    finish(&mut command, b"")
}

fn is_vague(output: &Output) -> bool {
    ["disk I/O error", "unable to open database file"].iter().any(|text| output.stderr.contains(text))
}

#[test]
fn too_many_open_files_are_named() {
    let env = Env::new();
    env.start(&["x"]);
    let mut named = 0;
    for files in 4..12 {
        let output = script(&env, &format!("ulimit -n {files}; exec \"$1\" goal pause --session s1"), &[]);
        assert!(!is_vague(&output), "{files}: {output:?}");
        if output.code != 0 {
            let is_named = output.stderr.to_lowercase().contains("too many open files");
            assert!(output.code == 4 && is_named || output.code == 3, "{files}: {output:?}");
            named += usize::from(is_named);
        }
    }
    assert!(named > 0, "no limit was low enough");
    assert_eq!(env.status()["status"], "paused");
}

#[test]
fn a_limit_on_the_size_of_files_ends_neither_hooks_nor_commands() {
    let env = Env::new();
    env.start(&["x"]);
    let limited = "ulimit -f 1; ";
    let output = script(&env, &format!("{limited} exec \"$1\" goal pause --session s1"), &[]);
    output.fails_with(4, "file size limit reached: ");
    assert!(output.stderr.contains("ulimit -f") && output.stderr.contains("goals.db"), "{output:?}");
    let event = json!({"hook_event_name": "UserPromptSubmit", "prompt": "hello", "session_id": "s1",
        "cwd": env.project(), "transcript_path": env.transcript("s1")});
    let output =
        script(&env, &format!("{limited} printf %s \"$2\" | $CLIENT \"$1\" hook claude"), &[&event.to_string()]);
    assert_eq!(output.code, 0, "{output:?}");
    let reply: Value = output.json();
    assert!(reply["systemMessage"].as_str().unwrap().contains("file size limit reached"), "{reply}");
    assert_eq!(env.status()["status"], "active");
}

#[test]
fn a_path_that_cannot_be_a_store_is_named_alike_by_commands_and_doctor() {
    let env = Env::new();
    let file = env.path("file");
    std::fs::write(&file, "").unwrap();
    let long = env.path(&"x".repeat(300)).display().to_string();
    let below = file.join("goals.db").display().to_string();
    let directory = env.project().display().to_string();
    for (path, what) in [
        (&long, "file name too long: "),
        (&below, "a part of the path is not a directory: "),
        (&directory, "is a directory, not a file: "),
    ] {
        let said = format!("{what}{path}");
        env.run(&["--db", path, "goal", "start", "x", "--session", "s1"]).fails_with(4, &said);
        if path == &directory {
            let doctor = env.run(&["--db", path, "doctor"]);
            assert!(doctor.code == 4 && doctor.stdout.contains(&said), "{doctor:?}");
        }
    }
}

/// As a user without the rights of root.
#[test]
fn a_home_that_may_not_be_written_is_named_and_read() {
    use std::os::unix::fs::PermissionsExt as _;
    if !rustix::process::geteuid().is_root() {
        skipped("only root can become another user");
        return;
    }
    let env = Env::new();
    env.start(&["x"]);
    let root = env.path("");
    std::fs::set_permissions(&root, std::fs::Permissions::from_mode(0o755)).unwrap();
    let run = |verb: &str| {
        let all = format!("exec setpriv --reuid 65534 --regid 65534 --clear-groups \"$1\" {verb}");
        script(&env, &format!("chown -R 65534 \"$STEADFAST_HOME\"; chmod 500 \"$STEADFAST_HOME\"; {all}"), &[])
    };
    let tried = run("--version");
    if tried.code != 0 {
        skipped(&format!("another user cannot run the program here: {tried:?}"));
        return;
    }
    assert!(run("goal status --session s1").succeeds().stdout.contains('x'));
    let refused = run("goal pause --session s1");
    refused.fails_with(4, &format!("permission denied: {}", env.store().display()));
    let doctor = run("doctor");
    assert!(doctor.code == 4 && doctor.stdout.contains("permission denied: "), "{doctor:?}");
}
