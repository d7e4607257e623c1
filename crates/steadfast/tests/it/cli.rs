//! The verbs of `steadfast goal` at a terminal, and the smaller commands.

use serde_json::json;

use crate::env::{Env, finish};
use crate::schemas::check;

#[test]
fn a_goal_is_started_and_completed_by_hand() {
    let env = Env::new();
    let goal = env.start(&["Ship it", "--budget", "10M"]);
    assert_eq!(
        (&goal["status"], &goal["token_budget"], &goal["objective"]),
        (&json!("active"), &json!(10_000_000), &json!("Ship it"))
    );
    env.goal(&["pause"]).succeeds();
    assert_eq!(env.status()["paused_reason"], "user");
    env.goal(&["resume"]).succeeds();
    env.goal(&["edit", "Ship it today"]).succeeds();
    env.goal(&["block", "--reason", "needs a key"]).succeeds();
    assert_eq!(env.status()["blocked_reason"], "needs a key");
    env.goal(&["resume"]).succeeds();
    env.goal(&["complete"]).succeeds();
    let done = env.status();
    assert_eq!((&done["status"], &done["objective"]), (&json!("complete"), &json!("Ship it today")));
    assert_eq!(
        env.event_kinds(),
        [
            "goal_created",
            "goal_paused",
            "goal_resumed",
            "goal_objective_updated",
            "goal_blocked",
            "goal_resumed",
            "goal_completed_by_user"
        ]
    );
}

#[test]
fn a_live_goal_excludes_another_and_a_finished_one_is_kept_in_history() {
    let env = Env::new();
    env.start(&["First"]);
    for (status, verb) in [("active", None), ("paused", Some(vec!["pause"])), ("active", Some(vec!["resume"]))] {
        if let Some(verb) = verb {
            env.goal(&verb).succeeds();
        }
        env.goal(&["start", "Second"]).fails_with(3, &format!("status '{status}'"));
    }
    env.goal(&["abandon"]).succeeds();
    env.goal(&["start", "Second"]).succeeds();
    let history = env.goal(&["history", "--format=json"]).json();
    let objectives: Vec<_> =
        history["goals"].as_array().unwrap().iter().map(|goal| goal["objective"].clone()).collect();
    assert_eq!(objectives, ["Second", "First"]);
    let replaced = history["events"].as_array().unwrap().iter().find(|event| event["kind"] == "goal_replaced").unwrap();
    assert_eq!(replaced["payload"]["prev_objective"], "First");
    assert_eq!(env.sql("SELECT objective, status FROM goal_history"), [["First", "abandoned"]]);
}

#[test]
fn several_limits_can_be_set_and_extended_at_once() {
    let env = Env::new();
    let goal = env.start(&[
        "x",
        "--budget",
        "quick",
        "--usd",
        "2.50",
        "--max-turns",
        "5",
        "--max-hours",
        "0.5",
        "--deadline",
        "2h",
    ]);
    assert_eq!(
        (&goal["token_budget"], &goal["usd_budget"], &goal["continuations_remaining"]),
        (&json!(2_000_000), &json!(2.5), &json!(5))
    );
    assert!(goal["deadline"].is_string());
    let goal = env
        .goal(&[
            "extend",
            "--add-continuations",
            "2",
            "--add-hours",
            "1",
            "--add-tokens",
            "1M",
            "--add-usd",
            "1",
            "--json",
        ])
        .json();
    let goal = &goal["goal"];
    assert_eq!(
        (&goal["token_budget"], &goal["usd_budget"], &goal["continuations_remaining"]),
        (&json!(3_000_000), &json!(3.5), &json!(7))
    );
    assert_eq!(env.sql("SELECT max_wall_clock_seconds FROM goals"), [["5400"]]);
    env.goal(&["extend"]).fails_with(1, "no limit was named");
}

#[test]
fn verification_runs_the_users_commands_and_keeps_the_evidence() {
    let env = Env::new();
    env.start(&["x", "--verify", "echo checking; test -f done.txt", "--verify", "true"]);
    let failed = env.goal(&["verify"]);
    failed.fails_with(6, "verification failed");
    assert!(failed.stderr.contains("checking"), "{failed:?}");
    std::fs::write(env.project().join("done.txt"), "").unwrap();
    env.goal(&["verify"]).succeeds();
    assert_eq!(
        env.sql("SELECT exit_code, timed_out, length(output_sha256), output_tail FROM verifications ORDER BY id"),
        [["1", "0", "64", "checking\n"], ["0", "0", "64", "checking\n"], ["0", "0", "64", ""]]
    );
    assert_eq!(env.status()["last_verification"]["exit_code"], 0);
    env.goal(&["abandon"]).succeeds();
    env.goal(&["start", "y"]).succeeds();
    env.goal(&["verify"]).fails_with(3, "no verification commands");
}

#[test]
fn a_failed_verification_prints_its_evidence_as_json() {
    let env = Env::new();
    env.start(&["x", "--verify", "echo checking; false", "--verify", "true"]);
    let failed = env.goal(&["verify", "--json"]);
    assert_eq!(failed.code, 6, "{failed:?}");
    let answer = failed.json();
    check("error.schema.json", &answer);
    assert_eq!(answer["error"]["kind"], "verification_failed");
    let run = &answer["evidence"][0];
    assert_eq!((&run["exit_code"], &run["output_tail"]), (&json!(1), &json!("checking\n")));
}

#[test]
fn a_verification_command_has_a_time_limit() {
    let env = Env::new();
    std::fs::create_dir_all(env.home()).unwrap();
    std::fs::write(env.home().join("config.toml"), "[goal]\nverify_timeout_seconds = 1\n").unwrap();
    env.start(&["x", "--verify", "sleep 60"]);
    env.goal(&["verify"]).fails_with(6, "longer than its time limit");
    assert_eq!(env.sql("SELECT exit_code, timed_out FROM verifications"), [["NULL", "1"]]);
}

#[test]
fn a_session_is_never_guessed() {
    let env = Env::new();
    env.run(&["goal", "status"]).fails_with(2, "no store");
    env.start(&["first"]);
    // The client of the hook is this test, so its session is alive and the only one of the directory.
    assert!(env.run(&["goal", "status"]).succeeds().stdout.contains("◎ Goal: first"));
    env.hook("s2", &json!({"hook_event_name": "SessionStart", "source": "startup"}));
    let several = env.run(&["goal", "status"]);
    several.fails_with(2, "several live sessions");
    assert!(several.stderr.contains("s1") && several.stderr.contains("s2"), "{several:?}");
    env.hook("s2", &json!({"hook_event_name": "SessionEnd", "reason": "other"}));
    assert!(env.run(&["goal", "status"]).succeeds().stdout.contains("first"));
    let elsewhere = finish(env.command(&["goal", "status"]).current_dir("/"), b"");
    elsewhere.fails_with(2, "no live session");
}

#[test]
fn cleanup_deletes_only_orphans() {
    let env = Env::new();
    env.start(&["alive"]);
    env.run(&["goal", "start", "orphan", "--session", "gone"]).succeeds();
    env.run(&["goal", "start", "finished", "--session", "over"]).succeeds();
    env.run(&["goal", "complete", "--session", "over"]).succeeds();
    env.execute("UPDATE goals SET updated_at_ms = updated_at_ms - 100 * 3600 * 1000");
    let listed = env.run(&["goal", "cleanup", "--list", "--json"]).json();
    assert_eq!(listed["goals"].as_array().unwrap().len(), 1, "{listed:#}");
    assert_eq!(listed["goals"][0]["objective"], "orphan");
    env.run(&["goal", "cleanup", "--delete", "--older-than", "1000"]).succeeds();
    assert_eq!(env.sql("SELECT count(*) FROM goals"), [["3"]]);
    env.run(&["goal", "cleanup", "--delete", "--older-than", "24"]).succeeds();
    assert_eq!(env.sql("SELECT objective FROM goals ORDER BY objective"), [["alive"], ["finished"]]);
    assert_eq!(env.sql("SELECT count(*) FROM goal_events WHERE session_id = 'gone'"), [["0"]]);
}

#[test]
fn an_orphan_can_be_adopted_with_its_budget_and_history() {
    let env = Env::new();
    let goal = env.start(&["move me", "--budget", "1M"]);
    env.says("s1", "m1", "working", 100);
    env.stop("s1", "working", false);
    let id = goal["goal_id"].as_str().unwrap();
    env.hook("s2", &json!({"hook_event_name": "SessionStart", "source": "startup"}));
    env.run(&["goal", "adopt", id, "--session", "s2"]).fails_with(3, "still running");
    env.hook("s1", &json!({"hook_event_name": "SessionEnd", "reason": "clear"}));
    env.run(&["goal", "adopt", &id[..8], "--session", "s2"]).succeeds();
    let adopted = env.run(&["goal", "status", "--session", "s2", "--json"]).json()["goal"].clone();
    assert_eq!(
        (&adopted["goal_id"], &adopted["status"], &adopted["total_tokens"], &adopted["token_budget"]),
        (&goal["goal_id"], &json!("active"), &json!(100), &json!(1_000_000))
    );
    env.run(&["goal", "status", "--session", "s1"]).fails_status_without_goal();
    env.says("s2", "m2", "on it", 50);
    assert_eq!(env.stop("s2", "on it", false)["decision"], "block");
    assert_eq!(env.run(&["goal", "status", "--session", "s2", "--json"]).json()["goal"]["total_tokens"], 150);
    env.run(&["goal", "adopt", "no-such", "--session", "s3"]).fails_with(2, "no goal has the id");
}

#[test]
fn a_goal_is_found_by_the_id_that_session_list_prints() {
    let env = Env::new();
    let (first, second) = ("019a8f00-1111-aaaa", "019a8f00-2222-bbbb");
    for session in [first, second] {
        env.hook(session, &json!({"hook_event_name": "SessionStart", "source": "startup"}));
        env.run(&["goal", "start", session, "--session", session]).succeeds();
        env.hook(session, &json!({"hook_event_name": "SessionEnd", "reason": "other"}));
    }
    let listed = env.run(&["session", "list"]).succeeds().stdout.clone();
    let printed = listed.split_whitespace().find(|word| word.starts_with("019a8f00-2")).unwrap();
    assert!(printed.len() < second.len(), "{listed}");
    let status = env.run(&["goal", "status", "--session", printed, "--json"]).succeeds().json();
    assert_eq!(status["goal"]["session_id"], second);
    env.run(&["goal", "abandon", "--session", printed]).succeeds();
    env.run(&["goal", "status", "--session", "019a8f00"]).fails_with(2, "several sessions begin with `019a8f00`");
    env.run(&["goal", "status", "--session", "019a"]).fails_with(2, "several sessions begin with `019a`");
    let shortest = env.run(&["goal", "status", "--session", "019a8f00-2", "--json"]).succeeds().json();
    assert_eq!(shortest["goal"]["session_id"], second);
}

/// Also where the session has no goal, or is one of a run, whose ids are shorter.
#[test]
fn any_beginning_of_a_known_session_names_it() {
    let env = Env::new();
    let (known, of_run) = ("019a8f00-1111-aaaa", "run-3e07a1b2");
    for session in [known, of_run] {
        env.hook(session, &json!({"hook_event_name": "SessionStart", "source": "startup"}));
    }
    for (beginning, id) in [("019", known), ("run-3e07", of_run), ("run", of_run)] {
        let said = env.run(&["goal", "status", "--session", beginning]);
        assert_eq!((said.code, said.stdout.contains(&format!("no goal for session {id}"))), (2, true), "{said:?}");
        assert_eq!(env.run(&["goal", "status", "--session", beginning, "--json"]).code, 2);
        env.run(&["goal", "pause", "--session", beginning]).fails_with(2, &format!("session {id} has no goal"));
    }
    for verb in ["status", "history", "pause", "report"] {
        let said = env.run(&["goal", verb, "--session", "zzz"]);
        said.fails_with(2, "unknown session `zzz`");
        assert!(said.stderr.contains("session list --all"), "{said:?}");
    }
    assert_eq!(env.run(&["goal", "status", "--session", "zzz", "--json"]).json(), json!({"goal": null}));
}

/// Scripts give sessions names of their own, one of which may be the beginning of another.
#[test]
fn a_name_of_a_session_is_not_the_beginning_of_another() {
    let env = Env::new();
    env.hook("nightly-10", &json!({"hook_event_name": "SessionStart", "source": "startup"}));
    for session in ["nightly-10", "nightly-1"] {
        let started = env.run(&["goal", "start", "Ship it", "--session", session, "--json"]).succeeds().json();
        assert_eq!(started["goal"]["session_id"], session);
    }
}

impl crate::env::Output {
    fn fails_status_without_goal(&self) {
        assert_eq!((self.code, self.stdout.starts_with("no goal for session")), (2, true), "{self:?}");
    }
}

#[test]
fn db_path_backup_and_check_work() {
    let env = Env::new();
    assert_eq!(env.run(&["db", "path"]).succeeds().stdout.trim(), env.store().to_str().unwrap());
    env.run(&["db", "check"]).fails_with(4, "does not exist");
    env.start(&["x"]);
    assert_eq!(env.run(&["db", "check"]).succeeds().stdout, "ok\n");
    let copy = env.path("copy.db");
    env.run(&["db", "backup", copy.to_str().unwrap()]).succeeds();
    env.run(&["db", "backup", copy.to_str().unwrap()]).fails_with(1, "exists");
    let other = Env::new();
    let imported = other.run(&["db", "import", copy.to_str().unwrap(), "--json"]).json();
    assert_eq!((&imported["goals"], &imported["events"]), (&json!(1), &json!(1)));
    let again = other.run(&["db", "import", copy.to_str().unwrap(), "--json"]).json();
    assert_eq!((&again["goals"], &again["events"], &again["already_here"]), (&json!(0), &json!(0), &json!(1)));
    env.run(&["db", "import", env.store().to_str().unwrap()]).fails_with(1, "into itself");
}

#[test]
fn the_status_line_shows_the_session_on_stdin() {
    let env = Env::new();
    env.start(&["x", "--budget", "10M"]);
    env.run(&["goal", "start", "y", "--session", "s2"]).succeeds();
    let line = |input: &str| finish(&mut env.command(&["statusline"]), input.as_bytes());
    assert_eq!(line(r#"{"session_id": "s1"}"#).stdout, "◎ goal active 0/10M · 0 turns · 0:00\n");
    // No hook of that session was ever called.
    assert_eq!(line(r#"{"session_id": "s2"}"#).stdout, "◎ goal active 0 · 0 turns · 0:00\n");
    for nothing in [r#"{"session_id": "other"}"#, "", "not json", "[]"] {
        let output = line(nothing);
        assert_eq!((output.code, output.stdout.as_str(), output.stderr.as_str()), (0, "", ""), "{nothing}");
    }
    let segment = finish(&mut env.command(&["statusline", "--segment"]), br#"{"session_id": "s1"}"#);
    assert!(!segment.stdout.ends_with('\n') && segment.stdout.starts_with("◎ goal active"), "{segment:?}");
}

#[test]
fn help_has_examples_and_colour_is_only_for_terminals() {
    let env = Env::new();
    for arguments in [vec!["--help"], vec!["goal", "--help"], vec!["goal", "start", "--help"], vec!["setup", "--help"]]
    {
        let output = env.run(&arguments);
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
        assert!(!output.stdout.contains('\u{1b}'), "{output:?}");
    }
    assert!(env.run(&["goal", "start", "--help"]).stdout.contains("Example"));
    assert_eq!(env.run(&["goal"]).code, 1);
    assert!(env.run(&["--version"]).succeeds().stdout.starts_with("steadfast "));
}
