//! A store that is busy or full for a while, and a broken configuration, delay a goal or a run and nothing more.

mod engines;

use std::process::Command;

use serde_json::{Value, json};

use crate::client;
use crate::env::{Env, Output, finish};

/// Keeps the store locked for writers until it is dropped.
pub(crate) struct Lock(rusqlite::Connection);

impl Lock {
    pub(crate) fn of(store: &std::path::Path) -> Self {
        let db = rusqlite::Connection::open(store).unwrap();
        db.busy_timeout(std::time::Duration::from_secs(30)).unwrap();
        db.execute_batch("BEGIN IMMEDIATE").unwrap();
        Self(db)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        self.0.execute_batch("ROLLBACK").unwrap();
    }
}

fn prompt(env: &Env, session: &str) -> Value {
    env.hook(session, &json!({"hook_event_name": "UserPromptSubmit", "prompt": "hello"}))
}

fn message(reply: &Value) -> &str {
    reply["systemMessage"].as_str().unwrap_or_else(|| panic!("no message: {reply}"))
}

const BROKEN: &str = "[memory]\nenabled = false\n[limits]\ndaily_usd = [\n";

fn break_config(env: &Env) {
    std::fs::create_dir_all(env.home()).unwrap();
    std::fs::write(env.home().join("config.toml"), BROKEN).unwrap();
}

#[test]
fn a_broken_configuration_pauses_the_goal_and_is_reported_once() {
    let env = Env::new();
    env.start(&["x"]);
    break_config(&env);
    let reply = env.stop("s1", "hi", false);
    let said = message(&reply);
    assert!(reply.get("decision").is_none(), "{reply}");
    for part in ["config.toml", "line 4", "fix that line", "The goal is paused", "/goal-resume"] {
        assert!(said.contains(part), "{part} in {said}");
    }
    assert_eq!(env.sql("SELECT turn_since_ms FROM sessions"), [["NULL"]], "the turn is over");
    assert_eq!(env.stop("s1", "hi", false), Value::Null);
    assert_eq!(prompt(&env, "s1"), Value::Null);
    assert!(env.goal(&["status"]).succeeds().stderr.contains("line 4"));
    env.goal(&["resume"]).fails_with(4, "line 4");

    std::fs::write(env.home().join("config.toml"), "").unwrap();
    let goal = env.status();
    assert_eq!((&goal["status"], &goal["paused_reason"]), (&json!("paused"), &json!("degraded")));
    let cause = env.sql("SELECT payload FROM goal_events WHERE kind = 'paused_degraded'");
    assert!(cause[0][0].contains("config.toml") && cause.len() == 1, "{cause:?}");
    env.goal(&["resume"]).succeeds();
    env.stop("s1", "hi", false);
    assert_eq!(env.status()["status"], "active");
}

/// A link to itself cannot be opened, not even by root.
#[test]
fn a_configuration_that_cannot_be_opened_is_reported_once() {
    let env = Env::new();
    env.start(&["x"]);
    env.hook("s2", &json!({"hook_event_name": "SessionStart", "source": "startup"}));
    let config = env.home().join("config.toml");
    let _ = std::fs::remove_file(&config);
    std::os::unix::fs::symlink(&config, &config).unwrap();
    let reply = env.stop("s1", "hi", false);
    for part in ["config.toml", "The goal is paused", "/goal-resume"] {
        assert!(message(&reply).contains(part), "{part} in {reply}");
    }
    assert_eq!(env.stop("s1", "hi", false), Value::Null);
    assert_eq!(prompt(&env, "s1"), Value::Null);
    let reply = prompt(&env, "s2");
    assert!(message(&reply).contains("config.toml") && !message(&reply).contains("paused"), "{reply}");
    assert_eq!(prompt(&env, "s2"), Value::Null);
}

#[test]
fn a_broken_configuration_holds_a_goal_within_a_turn() {
    let env = Env::new();
    env.start(&["x"]);
    break_config(&env);
    let tool = json!({"tool_name": "Bash", "tool_input": {"command": "false"}, "tool_use_id": "t1"});
    let mut event = json!({"hook_event_name": "PostToolUse", "tool_response": {"stdout": "", "stderr": ""}});
    for (key, value) in tool.as_object().unwrap() {
        event[key] = value.clone();
    }
    assert_eq!(env.hook("s1", &event), Value::Null, "hooks that only remember say nothing");
    let reply = env.hook("s1", &json!({"hook_event_name": "PostToolBatch", "tool_calls": []}));
    assert!(message(&reply).contains("The goal is paused"), "{reply}");
    assert_eq!(env.hook("s1", &json!({"hook_event_name": "PostToolBatch", "tool_calls": []})), Value::Null);
}

#[test]
fn each_session_hears_of_a_broken_configuration_and_remembers_nothing() {
    let env = Env::new();
    env.hook("s1", &json!({"hook_event_name": "SessionStart", "source": "startup"}));
    break_config(&env);
    let start = json!({"hook_event_name": "SessionStart", "source": "startup"});
    for reply in [prompt(&env, "s1"), env.hook("s2", &start), env.hook("s2", &start)] {
        assert!(message(&reply).contains("line 4") && !message(&reply).contains("paused"), "{reply}");
    }
    assert_eq!(prompt(&env, "s1"), Value::Null);
    std::fs::write(env.home().join("config.toml"), BROKEN).unwrap();
    assert!(message(&prompt(&env, "s1")).contains("line 4"), "the file changed and is still broken");
    let status = json!({"hook_event_name": "UserPromptExpansion", "command_name": "goal-status", "command_args": ""});
    let answer = env.hook("s1", &status);
    assert!(answer["reason"].as_str().unwrap().contains("line 4"), "{answer}");
    assert_eq!(env.sql("SELECT session_id FROM sessions"), [["s1"]]);
    assert_eq!(env.sql("SELECT * FROM session_events"), Vec::<Vec<String>>::new());
}

#[test]
fn a_broken_configuration_still_names_the_store() {
    let env = Env::new();
    let elsewhere = env.path("elsewhere.db");
    let config = format!("db = {:?}\n", elsewhere.display().to_string());
    std::fs::create_dir_all(env.home()).unwrap();
    std::fs::write(env.home().join("config.toml"), &config).unwrap();
    env.start(&["x"]);
    std::fs::write(env.home().join("config.toml"), format!("{config}[limits]\ndaily_usd = [\n")).unwrap();
    assert!(message(&env.stop("s1", "hi", false)).contains("The goal is paused"));
    assert!(elsewhere.exists() && !env.store().exists());
}

#[test]
fn a_busy_store_leaves_the_goal_alone() {
    let env = Env::new();
    env.start(&["x"]);
    env.says("s1", "m1", "hi", 100);
    let lock = Lock::of(&env.store());
    let start = json!({"hook_event_name": "SessionStart", "source": "startup"});
    let seen = json!({"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_use_id": "t1",
        "tool_input": {"command": "cargo test"}, "tool_response": {"stdout": "ok", "stderr": ""}});
    let [stopped, started, remembered] = std::thread::scope(|scope| {
        let calls = [
            scope.spawn(|| env.stop("s1", "hi", false)),
            scope.spawn(|| env.hook("s2", &start)),
            scope.spawn(|| env.hook("s1", &seen)),
        ];
        calls.map(|call| call.join().unwrap())
    });
    assert_eq!(stopped, json!({"systemMessage": "steadfast: the store is busy; the goal continues when it is free"}));
    assert_eq!(started, json!({"systemMessage": "steadfast: the store is busy"}));
    assert_eq!(remembered, Value::Null);
    drop(lock);
    let goal = env.status();
    assert_eq!((&goal["status"], &goal["tokens_used"]), (&json!("active"), &json!(0)));
    assert!(!env.event_kinds().contains(&"paused_degraded".to_owned()));
    env.stop("s1", "hi", false);
    let goal = env.status();
    assert_eq!((&goal["status"], &goal["tokens_used"]), (&json!("active"), &json!(100)));
    let log = std::fs::read_to_string(env.home().join("log/hooks.log")).unwrap();
    assert_eq!(log.matches("the store is busy").count(), 3, "{log}");
}

/// Records that a test did nothing. A test runner hides what a passing test prints, so `./test` prints this file in the
/// end.
#[expect(clippy::print_stderr, reason = "a test that does nothing says so")]
pub(crate) fn skipped(why: &str) {
    use std::io::Write as _;
    let thread = std::thread::current();
    let line = format!("SKIPPED {}: {why}\n", thread.name().unwrap_or("a test").replace('\n', " "));
    eprint!("{line}");
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("skipped.txt");
    let mut file = std::fs::File::options().create(true).append(true).open(file).unwrap();
    file.write_all(line.as_bytes()).unwrap();
}

/// Runs a script in a mount namespace of its own, with the binary as `$1`, the home as `$2`, and a client
/// that runs one hook as `$CLIENT`. `None` where mounting is
/// not allowed.
pub(crate) fn with_mounts(env: &Env, script: &str, arguments: &[&str]) -> Option<Output> {
    let apart = |script: &str| {
        let mut command = Command::new("unshare");
        command
            .args(["--user", "--map-root-user", "--mount", "sh", "-euc", script, "sh"])
            .arg(env!("CARGO_BIN_EXE_steadfast"))
            .arg(env.home())
            .args(arguments)
            .env("STEADFAST_HOME", env.home())
            .env("STEADFAST_NO_WATCH", "1")
            .env("HOME", env.path("user"))
            .env("CLIENT", client::one_shot())
            .current_dir(env.project());
        finish(&mut command, b"")
    };
    let tried = apart("mount -t tmpfs tmpfs \"$2\"");
    if tried.code != 0 {
        skipped(&format!("mounts are not allowed here: {}", tried.stderr.trim()));
        return None;
    }
    // The disk disappears with the shell, so its content is copied back.
    Some(apart(&format!(
        "cp -r \"$2\" \"$2-kept\"; mount -t tmpfs -o size=8m tmpfs \"$2\"; cp -r \"$2-kept/.\" \"$2\"; code=0
         {script}
         rm -r \"$2-kept\"; cp -r \"$2\" \"$2-kept\"; umount \"$2\"; cp -r \"$2-kept/.\" \"$2\"; exit $code"
    )))
}

#[test]
fn a_full_disk_leaves_the_goal_alone() {
    let env = Env::new();
    env.start(&["x"]);
    let stop = json!({"hook_event_name": "Stop", "session_id": "s1", "cwd": env.project(), "background_tasks": [],
        "transcript_path": env.transcript("s1"), "stop_hook_active": false, "last_assistant_message": ""});
    let script = r#"cat /dev/zero > "$2/ballast" 2> /dev/null || true
        printf '%s' "$3" | $CLIENT "$1" hook claude || code=$?
        rm "$2/ballast""#;
    let Some(output) = with_mounts(&env, script, &[&stop.to_string()]) else { return };
    assert_eq!(output.code, 0, "{output:?}");
    let said = output.json();
    assert!(message(&said).starts_with("steadfast: disk full: ") && said.get("decision").is_none(), "{said}");
    assert!(message(&said).ends_with("; the goal continues when there is room"), "{said}");
    assert_eq!(env.status()["status"], "active");
    assert!(!env.event_kinds().contains(&"paused_degraded".to_owned()));
}

#[test]
fn a_disk_that_is_full_at_the_moment_only_delays_the_wake_up() {
    let env = Env::new();
    env.start(&["x"]);
    let stop = json!({"hook_event_name": "Stop", "session_id": "s1", "cwd": env.project(), "background_tasks": [],
        "transcript_path": env.transcript("s1"), "stop_hook_active": false, "last_assistant_message": ""});
    // The turn has ended and the goal is due; the waker finds no room for its claim until the ballast is gone.
    let script = r#"export CLAUDE_CODE_ENTRYPOINT=cli
         printf %s "$3" | $CLIENT "$1" hook claude
         cat /dev/zero > "$2/ballast" 2> /dev/null || true
         printf %s "$3" > "$2-input"
         $CLIENT "$1" hook claude --rewake < "$2-input" & waker=$!
         sleep 8; kill -0 $waker
         rm "$2/ballast"
         wait $waker || code=$?"#;
    let Some(output) = with_mounts(&env, script, &[&stop.to_string()]) else { return };
    assert_eq!(output.code, 2, "{output:?}");
    assert_eq!(env.event_kinds().iter().filter(|kind| *kind == "goal_woken").count(), 1);
}
