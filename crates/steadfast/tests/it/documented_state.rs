//! The documented promises about state and persistence, one test each.

use std::process::Command;

use serde_json::{Value, json};

use crate::env::Env;

fn sqlite3(env: &Env, sql: &str) -> Option<String> {
    let output = Command::new("sqlite3").arg(env.store()).arg(sql).output().ok()?;
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn documented_sqlite3_commands_work() {
    let env = Env::new();
    let goal = env.start(&["x"]);
    env.says("s1", "m1", "one", 24_500);
    env.stop("s1", "one", false);
    let Some(active) =
        sqlite3(&env, "SELECT id, status, tokens_used, subagent_tokens FROM goals WHERE status='active'")
    else {
        panic!("the sqlite3 command is needed; ./test installs it");
    };
    assert_eq!(active, format!("{}|active|24500|0\n", goal["goal_id"].as_str().unwrap()));
    let log = sqlite3(&env, "SELECT ts, kind, payload FROM goal_events ORDER BY id DESC LIMIT 20").unwrap();
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines.len(), 3, "{log}");
    assert!(lines[2].contains("|goal_created|{") && lines[2].starts_with("20"), "{log}");
    let backup = env.path("goals-backup.db");
    sqlite3(&env, &format!(".backup {}", backup.display())).unwrap();
    let copied = rusqlite::Connection::open(&backup).unwrap();
    let objective: String = copied.query_row("SELECT objective FROM goals", [], |row| row.get(0)).unwrap();
    assert_eq!(objective, "x");
}

#[test]
fn the_database_runs_in_wal_mode_so_readers_do_not_block_writers() {
    let env = Env::new();
    env.start(&["x"]);
    assert_eq!(env.sql("PRAGMA journal_mode"), [["wal"]]);
    let reader = rusqlite::Connection::open(env.store()).unwrap();
    reader.execute_batch("BEGIN; SELECT * FROM goals;").unwrap();
    env.goal(&["pause"]).succeeds();
}

#[test]
fn the_documented_columns_exist_with_their_constraints() {
    let env = Env::new();
    env.start(&["x"]);
    let names = |table: &str| -> Vec<String> {
        env.sql(&format!("SELECT name FROM pragma_table_xinfo('{table}')")).into_iter().flatten().collect()
    };
    let documented = |table: &str, columns: &[&str]| {
        let found = names(table);
        for column in columns {
            assert!(found.iter().any(|name| name == column), "{table}.{column} is missing in {found:?}");
        }
    };
    documented(
        "goals",
        &[
            "session_id",
            "goal_id",
            "objective",
            "status",
            "paused_reason",
            "token_budget",
            "budget_profile",
            "budget_source",
            "tokens_used",
            "subagent_tokens",
            "time_used_seconds",
            "resume_at_ms",
            "last_accounted_byte_offset",
            "last_accounted_uuid",
            "accounting_uncertain",
            "last_continuation_at_ms",
            "continuations_remaining",
            "max_wall_clock_seconds",
            "budget_limit_reported",
            "version",
            "created_at_ms",
            "updated_at_ms",
        ],
    );
    documented(
        "goal_events",
        &["id", "session_id", "goal_id", "hook_name", "event_type", "payload_json", "created_at_ms"],
    );
    documented(
        "subagent_token_cursors",
        &["session_id", "goal_id", "agent_id", "tokens_used", "last_accounted_byte_offset"],
    );
    assert_eq!(
        env.sql("SELECT continuations_remaining, max_wall_clock_seconds FROM goals"),
        [["1000000", "315360000"]]
    );
    assert_eq!(env.sql("SELECT version FROM schema_version"), [["6"]]);
    let db = rusqlite::Connection::open(env.store()).unwrap();
    for bad in ["status = 'happy'", "objective = ''", "budget_profile = 'huge'", "budget_source = 'x'"] {
        assert!(db.execute(&format!("UPDATE goals SET {bad}"), []).is_err(), "{bad}");
    }
    // Reasons to pause are a list that grows: only the program knows it, so that a new one rebuilds no table.
    db.execute("UPDATE goals SET paused_reason = 'bored'", []).unwrap();
    env.goal(&["status"]).fails_with(4, "paused_reason holds `bored`");
}

#[test]
fn a_goal_is_exclusive_per_session_until_it_is_complete_or_abandoned() {
    let env = Env::new();
    env.start(&["x", "--budget", "100"]);
    env.goal(&["block", "--reason", "r"]).succeeds();
    env.goal(&["start", "y"]).fails_with(3, "'blocked'");
    env.goal(&["resume"]).succeeds();
    env.says("s1", "m1", "one", 150);
    env.stop("s1", "one", false);
    env.goal(&["start", "y"]).fails_with(3, "'budget_limited'");
    env.goal(&["complete"]).succeeds();
    env.goal(&["start", "y"]).succeeds();
}

#[test]
fn degraded_is_a_paused_reason_that_resume_can_restart() {
    let env = Env::new();
    env.start(&["x"]);
    // A transcript that is a directory cannot be read: an unexpected error in the hook.
    std::fs::create_dir(env.transcript("s1")).unwrap();
    let reply = env.stop("s1", "hi", false);
    assert!(
        reply.get("decision").is_none() && reply["systemMessage"].as_str().unwrap().contains("/goal-resume"),
        "{reply}"
    );
    let goal = env.status();
    assert_eq!((&goal["status"], &goal["paused_reason"]), (&json!("paused"), &json!("degraded")));
    assert!(env.event_kinds().contains(&"paused_degraded".to_owned()));
    std::fs::remove_dir(env.transcript("s1")).unwrap();
    env.goal(&["resume"]).succeeds();
    assert_eq!(env.stop("s1", "hi", false)["decision"], "block");
}

#[test]
fn history_json_all_returns_goals_and_events() {
    let env = Env::new();
    env.start(&["x"]);
    env.run(&["goal", "start", "y", "--session", "s2"]).succeeds();
    let all = env.run(&["goal", "history", "--format=json", "--all"]).json();
    assert_eq!((all["goals"].as_array().unwrap().len(), all["events"].as_array().unwrap().len()), (2, 2));
    let event = &all["events"][0];
    assert_eq!(
        (&event["kind"], &event["status_after"], event["payload"].is_object()),
        (&json!("goal_created"), &json!("active"), true)
    );
    assert_eq!(env.goal(&["history", "--format=json"]).json()["events"].as_array().unwrap().len(), 1);
}

#[test]
fn clear_orphans_the_goal_logs_it_and_abandons_nothing() {
    let env = Env::new();
    let goal = env.start(&["Keep me"]);
    env.hook("s1", &json!({"hook_event_name": "SessionEnd", "reason": "clear"}));
    let reply = env.hook("s2", &json!({"hook_event_name": "SessionStart", "source": "clear"}));
    let id = &goal["goal_id"].as_str().unwrap()[..8];
    assert!(reply["systemMessage"].as_str().unwrap().contains(&format!("/goal-adopt {id}")), "{reply}");
    assert_eq!(env.status()["status"], "active");
    assert!(env.event_kinds().contains(&"goal_orphaned".to_owned()));
    let listed = env.run(&["goal", "cleanup", "--list"]);
    assert!(listed.stdout.contains("Keep me"), "{listed:?}");
    env.run(&["goal", "cleanup", "--delete"]).succeeds();
    assert_eq!(env.status()["objective"], "Keep me", "24 hours protect a fresh orphan");
    assert_eq!(env.run(&["goal", "status", "--session", "s2", "--json"]).json()["goal"], Value::Null);
}

#[test]
fn a_restarted_session_picks_up_where_it_left_off() {
    let env = Env::new();
    env.start(&["Survive the reboot"]);
    env.execute("UPDATE goals SET resume_at_ms = resume_at_ms - 3600000; UPDATE sessions SET last_seen_ms = last_seen_ms - 1800000");
    // A power cut: no SessionEnd. Half an hour of work is counted, the absence is not.
    let reply = env.hook("s1", &json!({"hook_event_name": "SessionStart", "source": "resume"}));
    assert!(
        reply["hookSpecificOutput"]["additionalContext"].as_str().unwrap().contains("Survive the reboot"),
        "{reply}"
    );
    let active = env.status()["active_seconds"].as_i64().unwrap();
    assert!((1795..1860).contains(&active), "{active}");
    assert_eq!(env.stop("s1", "", false)["decision"], "block");
}

#[test]
fn time_is_shown_as_of_now() {
    let env = Env::new();
    env.start(&["x"]);
    env.execute("UPDATE goals SET resume_at_ms = resume_at_ms - 3600000, created_at_ms = created_at_ms - 7200000");
    let goal = env.status();
    assert!((3600..3660).contains(&goal["active_seconds"].as_i64().unwrap()), "{goal}");
    assert!((7200..7260).contains(&goal["wall_seconds"].as_i64().unwrap()), "{goal}");
}
