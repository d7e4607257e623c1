//! A disk that is full or read-only: writes are refused by name, and what can be read is read.

use serde_json::json;

use crate::env::Env;
use crate::outages::with_mounts;

/// Runs every reader, a command that writes, `doctor`, and the hook after a compaction.
const READ_AND_WRITE: &str = r#"
    for verb in status history; do "$1" goal $verb --session s1 > "$3/$verb" 2>&1 || echo "exit $?" >> "$3/$verb"; done
    "$1" goal start another --session s9 > "$3/start" 2>&1 || echo "exit $?" >> "$3/start"
    "$1" doctor > "$3/doctor" 2>&1 || echo "exit $?" >> "$3/doctor"
    printf %s "$4" | $CLIENT "$1" hook claude > "$3/compact" 2>&1 || echo "exit $?" >> "$3/compact""#;

fn check(spoil: &str, repair: &str, named: &str) {
    let env = Env::new();
    env.start(&["keep the old objective"]);
    let out = env.path("out");
    std::fs::create_dir(&out).unwrap();
    let event = json!({"hook_event_name": "SessionStart", "source": "compact", "session_id": "s1",
        "cwd": env.project(), "transcript_path": env.transcript("s1")});
    let script = format!("{spoil}\n{READ_AND_WRITE}\n{repair}");
    let Some(output) = with_mounts(&env, &script, &[out.to_str().unwrap(), &event.to_string()]) else { return };
    assert_eq!(output.code, 0, "{output:?}");
    let said = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
    for name in ["status", "history"] {
        assert!(
            said(name).contains("keep the old objective") && !said(name).contains("exit"),
            "{name}: {}",
            said(name)
        );
    }
    let named = format!("{named}{}", env.store().display());
    assert!(
        said("start").starts_with(&format!("error: {named}")) && said("start").contains("exit 4"),
        "{}",
        said("start")
    );
    assert!(said("doctor").contains(&named) && said("doctor").contains("exit 4"), "{}", said("doctor"));
    assert!(!said("doctor").contains("`steadfast doctor`"), "{}", said("doctor"));
    assert!(!said("doctor").contains("journal mode is"), "it is not known: {}", said("doctor"));
    assert!(said("compact").contains("keep the old objective"), "the model keeps its goal: {}", said("compact"));
    assert!(said("compact").contains("systemMessage") && !said("compact").contains("exit"), "{}", said("compact"));
    assert_eq!(env.status()["status"], "active");
}

#[test]
fn a_full_disk_is_named_and_its_store_is_read() {
    let fill = r#"cat /dev/zero > "$2/ballast" 2> /dev/null || true"#;
    check(fill, r#"rm "$2/ballast""#, "disk full: ");
}

#[test]
fn a_read_only_disk_is_named_and_its_store_is_read() {
    check(r#"mount -o remount,ro "$2""#, r#"mount -o remount,rw "$2""#, "the store ");
}

/// Copies, imports and files of `setup` name what is full, and the hint says what to do about that.
#[test]
fn each_command_that_writes_names_the_full_disk() {
    let (env, other) = (Env::new(), Env::new());
    for env in [&env, &other] {
        env.start(&["keep"]);
    }
    let out = env.path("out");
    std::fs::create_dir(&out).unwrap();
    let script = r#"cat /dev/zero > "$2/ballast" 2> /dev/null || true
        "$1" db backup > "$3/backup" 2>&1 || echo "exit $?" >> "$3/backup"
        "$1" db import "$4" > "$3/import" 2>&1 || echo "exit $?" >> "$3/import"
        "$1" setup claude --yes > "$3/setup" 2>&1 || echo "exit $?" >> "$3/setup"
        rm "$2/ballast""#;
    let arguments = [out.to_str().unwrap(), other.store().to_str().unwrap()].map(str::to_owned);
    let Some(output) = with_mounts(&env, script, &arguments.each_ref().map(String::as_str)) else { return };
    assert_eq!(output.code, 0, "{output:?}");
    for name in ["backup", "import", "setup"] {
        let said = std::fs::read_to_string(out.join(name)).unwrap();
        assert!(said.contains("free some space there") && said.contains("exit 4"), "{name}: {said}");
        assert!(said.contains(env.home().to_str().unwrap()), "{name} names the path: {said}");
    }
}
