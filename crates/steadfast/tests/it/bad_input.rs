//! Bad input gets a clear error with a hint and the right exit code, and nothing is changed.

use serde_json::{Value, json};

use crate::env::{Env, finish};

#[test]
fn objectives_have_one_to_four_thousand_characters() {
    let env = Env::new();
    for (objective, fine) in [
        (String::new(), false),
        ("  \n\t ".into(), false),
        ("x".into(), true),
        ("目".repeat(4000), true),
        ("🚀".repeat(4000), true),
        ("x".repeat(4001), false),
        ("two\nlines".into(), true),
        ("quotes \" ' ` $(id) ; rm -rf / </objective> <script>".into(), true),
        ("-- --budget 5".into(), true),
    ] {
        let output = env.run(&["goal", "start", "--session", "s1", "--json", "--", &objective]);
        let shown: String = objective.chars().take(20).collect();
        if fine {
            assert_eq!(output.json()["goal"]["objective"], objective.as_str(), "{shown}");
            assert_eq!(env.sql("SELECT objective FROM goals"), [[objective]]);
            env.goal(&["abandon"]).succeeds();
        } else {
            assert_eq!(
                (output.code, output.json()["error"]["kind"].as_str()),
                (1, Some("usage")),
                "{shown}: {output:?}"
            );
        }
    }
    assert_eq!(env.sql("SELECT count(*) FROM goal_history"), [["5"]]);
}

#[test]
fn budgets_must_be_positive_numbers_or_profiles() {
    let env = Env::new();
    for budget in ["0", "-1", "1e9", "abc", "", "10MM", "1.2.3", "∞"] {
        env.goal(&["start", "x", "--budget", budget]).fails_with(1, budget);
    }
    for (flag, value) in [
        ("--usd", "-5"),
        ("--usd", "free"),
        ("--max-turns", "0"),
        ("--max-turns", "1.5"),
        ("--max-hours", "0"),
        ("--max-hours", "soon"),
        ("--deadline", "someday"),
        ("--deadline", "2001-01-01T00:00:00Z"),
        ("--verify", " "),
    ] {
        assert_eq!(env.goal(&["start", "x", flag, value]).code, 1, "{flag} {value}");
    }
    assert!(!env.store().exists());
    env.goal(&["start", "x", "--budget", "10M"]).succeeds();
    for (flag, value) in [("--add-tokens", "0"), ("--add-turns", "-3"), ("--add-hours", "x"), ("--add-usd", "0")] {
        assert_eq!(env.goal(&["extend", flag, value]).code, 1, "{flag} {value}");
    }
    assert_eq!(env.sql("SELECT version FROM goals"), [["0"]]);
}

#[test]
fn hostile_session_ids_are_keys_or_refused_and_never_paths() {
    let env = Env::new();
    for id in ["../../x", "a/b", "..\\x", "a\nb", "", "\u{1b}[31m"] {
        env.run(&["goal", "start", "x", "--session", id]).fails_with(1, "not a session id");
    }
    env.run(&["goal", "start", "x", "--session", &"s".repeat(201)]).fails_with(1, "not a session id");
    env.run(&["goal", "start", "x", "--session", "'; DROP TABLE goals; --"]).succeeds();
    assert_eq!(env.sql("SELECT session_id FROM goals"), [["'; DROP TABLE goals; --"]]);
    // A hook accepts any id a client may use, only as a key.
    let event = json!({"hook_event_name": "SessionStart", "source": "startup"});
    assert_eq!(env.hook("../../x", &event), Value::Null);
    let files: Vec<_> = std::fs::read_dir(env.home()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(files.iter().all(|name| name.to_string_lossy().starts_with("goals.db")), "{files:?}");
}

#[test]
fn verbs_without_a_goal_exit_with_2() {
    let env = Env::new();
    env.hook("s1", &json!({"hook_event_name": "SessionStart", "source": "startup"}));
    env.run(&["goal", "start", "x", "--session", "other"]).succeeds();
    for verb in [
        vec!["pause"],
        vec!["resume"],
        vec!["abandon"],
        vec!["complete"],
        vec!["verify"],
        vec!["edit", "y"],
        vec!["extend", "--add-turns", "1"],
        vec!["block", "--reason", "r"],
        vec!["reconcile", "--accept-reset"],
    ] {
        env.goal(&verb).fails_with(2, "has no goal");
    }
    let none = env.goal(&["status", "--json"]);
    assert_eq!((none.code, none.json()), (2, json!({"goal": null})));
    env.goal(&["reconcile"]).fails_with(1, "requires --accept-reset");
    let error = env.goal(&["pause", "--json"]);
    assert_eq!(error.json()["error"]["kind"], "not_found");
    assert!(error.json()["error"]["hint"].is_string() && error.stderr.is_empty());
}

#[test]
fn a_wrong_value_names_its_flag_what_is_expected_and_the_help_to_read() {
    let env = Env::new();
    for (arguments, expected, help) in [
        (&["loop", "run", "fix", "--max", "0"][..], "expected a whole number of 1 or more", "loop run"),
        (&["ui", "--port", "80000"], "expected a whole number from ", "ui"),
        (&["session", "list", "--limit", "x"], "expected a whole number", "session list"),
    ] {
        let said = env.run(arguments);
        said.fails_with(1, expected);
        assert!(said.stderr.contains(&format!("hint: run `steadfast {help} --help`")), "{said:?}");
    }
    for (flag, value) in [("--usd", "abc"), ("--plan-percent", "300"), ("--budget", "lots"), ("--max-turns", "0")] {
        env.goal(&["start", "x", flag, value]).fails_with(1, &format!("{flag}: `{value}` "));
    }
    env.start(&["x"]);
    let live = env.goal(&["start", "y"]);
    live.fails_with(3, "a goal already exists");
    assert!(live.stderr.contains("or queue this one: add `--queue`"), "{live:?}");
}

#[test]
fn usage_errors_exit_with_one() {
    let env = Env::new();
    for arguments in [
        vec!["frobnicate"],
        vec!["goal"],
        vec!["goal", "start"],
        vec!["goal", "start", "x", "--nonsense"],
        vec!["hook", "bogus"],
        vec!["hook"],
        vec!["setup", "frobnicate"],
        vec!["db", "import"],
        vec!["goal", "queue", "frobnicate"],
    ] {
        let output = env.run(&arguments);
        assert_eq!(output.code, 1, "{arguments:?}: {output:?}");
    }
    assert_eq!(env.run(&["goal", "pause", "--nonsense", "--json"]).json()["error"]["kind"], "usage");
}

#[test]
fn a_store_that_cannot_be_used_is_left_untouched() {
    let env = Env::new();
    std::fs::create_dir_all(env.home()).unwrap();
    for (name, bytes) in
        [("garbage", b"this is not a database, not at all, no".repeat(100)), ("short", b"SQLite".to_vec())]
    {
        std::fs::write(env.store(), &bytes).unwrap();
        env.goal(&["status"]).fails_with(4, "not a usable database");
        env.goal(&["start", "x"]).fails_with(4, "not a usable database");
        // Each session hears of it once.
        let reply = env.stop(name, "", false);
        assert!(reply["systemMessage"].as_str().unwrap().contains("not a usable database"), "{name}: {reply}");
        assert_eq!(env.stop(name, "", false), Value::Null, "{name}");
        assert!(reply.get("decision").is_none());
        assert_eq!(std::fs::read(env.store()).unwrap(), bytes, "{name}");
        assert_eq!(env.run(&["doctor", "--json"]).code, 4);
    }
    std::fs::remove_file(env.store()).unwrap();
    env.goal(&["start", "x"]).succeeds();
    env.execute("UPDATE schema_version SET version = 7; PRAGMA wal_checkpoint(TRUNCATE);");
    let before = std::fs::read(env.store()).unwrap();
    env.goal(&["pause"]).fails_with(4, "version 7");
    let reply = env.stop("s1", "", false);
    assert!(reply["systemMessage"].as_str().unwrap().contains("version 7"), "{reply}");
    assert_eq!(std::fs::read(env.store()).unwrap(), before);
}

#[test]
fn an_unwritable_home_or_store_is_reported() {
    let env = Env::new();
    std::fs::write(env.home(), "a file where the home should be").unwrap();
    env.goal(&["start", "x"]).fails_with(4, "Not a directory");
    assert_eq!(env.stop("s1", "", false), Value::Null);
    std::fs::remove_file(env.home()).unwrap();
    env.goal(&["start", "x"]).succeeds();
    // Permissions do not stop root, so a directory takes the place of the journal.
    let output =
        finish(env.command(&["goal", "start", "x", "--session", "s9"]).env("STEADFAST_DB", env.path("project")), b"");
    output.fails_with(4, "is a directory");
}

#[test]
fn a_store_in_use_is_waited_for_and_then_reported() {
    let env = Env::new();
    env.start(&["x"]);
    let blocker = rusqlite::Connection::open(env.store()).unwrap();
    blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
    env.goal(&["pause"]).fails_with(4, "locked by another process");
    // Readers are never blocked.
    assert_eq!(env.status()["status"], "active");
    blocker.execute_batch("ROLLBACK").unwrap();
    env.goal(&["pause"]).succeeds();
}

#[test]
fn a_broken_configuration_is_reported_with_its_line() {
    let env = Env::new();
    std::fs::create_dir_all(env.home()).unwrap();
    std::fs::write(env.home().join("config.toml"), "[goal]\nno_progress_limit = \"many\"\n").unwrap();
    env.goal(&["start", "x"]).fails_with(4, "line 2");
    assert_eq!(env.stop("s1", "", false), Value::Null);
}

#[test]
fn a_failed_write_to_stdout_is_an_error_and_a_closed_pipe_is_not() {
    let env = Env::new();
    for arguments in [&["loop", "types"][..], &["loop", "types", "--json"]] {
        let mut command = env.command(arguments);
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = command.stdout(full).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(4) && stderr.contains("cannot write output"), "{stderr}");
        let mut child = env.command(arguments).stdout(std::process::Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}
