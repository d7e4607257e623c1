//! Files of earlier releases: this version opens, extends and resumes them and loses nothing, and `setup` changes only what
//! must change. `upgrade/VERSION.tar.gz` was written by the binary of that version, see [`release`].

mod moved;
mod release;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::SystemTime;

use serde_json::{Value, json};

use crate::env::Env;
use crate::setup::tree;

/// All releases whose files are kept here.
const RELEASES: [&str; 1] = ["0.1.0"];
/// Fields of a goal that every look computes again; the files were written on another day.
const AS_OF_NOW: [&str; 8] =
    ["next", "next_kind", "wall_seconds", "active_seconds", "mover", "today", "wake_at", "updated_at_ms"];

#[test]
fn goals_events_ledger_and_memory_of_an_earlier_release_are_all_there() {
    for release in RELEASES {
        let old = moved::unpack(release);
        let (env, before) = (&old.env, &old.expected);
        let history = env.run(&["goal", "history", "--all", "--limit", "0", "--format=json"]).json();
        for (list, key) in [("goals", "goal_id"), ("events", "id")] {
            let rows = |value: &Value| -> BTreeMap<String, Value> {
                let rows = value[list].as_array().unwrap().iter();
                rows.map(|row| (row[key].to_string(), row.clone())).collect()
            };
            let (was, is) = (rows(&before["history"]), rows(&history));
            assert!(was.len() > 5, "{list}");
            for (id, row) in was {
                for (name, value) in row.as_object().unwrap() {
                    if AS_OF_NOW.contains(&name.as_str()) {
                        continue;
                    }
                    assert_eq!(is[&id].get(name), Some(value), "{release}: {name} of {list} {id}");
                }
            }
        }
        for (table, rows) in before["rows"].as_object().unwrap() {
            let now = env.sql(&format!("SELECT count(*) FROM {table}"))[0][0].parse::<i64>().unwrap();
            assert!(now >= rows.as_i64().unwrap(), "{release}: {table} had {rows} rows, now {now}");
        }
        let found = env.run(&["session", "search", "tabs"]).succeeds().stdout.clone();
        assert!(found.contains("tabs for indentation"), "{found}");
        assert_eq!(env.run(&["db", "check"]).code, 0);
    }
}

#[test]
fn goals_of_an_earlier_release_continue_in_every_status() {
    for release in RELEASES {
        let old = moved::unpack(release);
        let env = &old.env;
        let status = |session: &str| {
            let status = env.run(&["goal", "status", "--json", "--session", session]).json();
            let goal = &status["goal"];
            (goal["status"].as_str().unwrap().to_owned(), goal["tokens_used"].as_i64().unwrap())
        };
        let run = |words: &[&str], session: &str| env.run(&[words, &["--session", session]].concat()).succeeds().code;
        assert_eq!(status("s-limited").0, "budget_limited");
        run(&["goal", "extend", "--add-tokens", "1M"], "s-limited");
        assert_eq!(status("s-limited").0, "active");
        run(&["goal", "resume"], "s-paused");
        run(&["goal", "resume"], "s-blocked");
        run(&["goal", "start", "The next one"], "s-complete");
        run(&["goal", "start", "The next one"], "s-abandoned");
        for session in ["s-paused", "s-blocked", "s-complete", "s-abandoned"] {
            assert_eq!(status(session).0, "active", "{session}");
        }
        // The session goes on: what was counted stays, what is new is added, nothing is counted twice.
        let (_, counted) = status("s-active");
        assert!(counted > 0);
        env.hook("s-active", &json!({"hook_event_name": "SessionStart", "source": "resume"}));
        env.hook("s-active", &json!({"hook_event_name": "UserPromptSubmit", "prompt": "<task-notification>"}));
        env.says("s-active", "after-the-upgrade", "More.", 1_000);
        let reply = env.stop("s-active", "More.", false);
        assert_eq!(reply["decision"], "block", "{reply}");
        assert_eq!(status("s-active"), ("active".to_owned(), counted + 1_000));
        run(&["goal", "complete"], "s-active");
    }
}

#[test]
fn a_run_whose_engine_an_earlier_release_left_is_resumed() {
    for release in RELEASES {
        let old = moved::unpack(release);
        let env = &old.env;
        let before = env.run(&["loop", "status", "four", "--json"]).succeeds().json();
        assert_eq!((&before["iteration"], &before["status"]), (&json!(2), &json!("unknown_termination")), "{before:#}");
        env.run(&["loop", "resume", "four"]).succeeds();
        let after = env.run(&["loop", "status", "four", "--json"]).succeeds().json();
        assert_eq!((&after["iteration"], &after["status"]), (&json!(4), &json!("completed")), "{after:#}");
        let summaries = |run: &Value| -> Vec<Value> {
            run["history"].as_array().unwrap().iter().map(|line| line["iteration"].clone()).collect()
        };
        assert_eq!(summaries(&after), [1, 2, 3, 4], "each iteration once: {after:#}");
        let tries = std::fs::read_to_string(env.project().join("tries")).unwrap();
        assert_eq!(tries.lines().collect::<Vec<_>>(), ["1", "2", "3", "3", "4"], "committed work is not repeated");
        let state: Value =
            serde_json::from_slice(&std::fs::read(env.project().join(".claude/loop-state-four.json")).unwrap())
                .unwrap();
        assert_eq!(state["status"], "completed");
    }
}

fn times(env: &Env) -> BTreeMap<PathBuf, SystemTime> {
    let files = [env.home(), env.path("user")].into_iter().flat_map(|root| tree(&root).into_keys());
    files.map(|path| (path.clone(), path.metadata().unwrap().modified().unwrap())).collect()
}

#[test]
fn setup_after_an_upgrade_writes_only_what_differs_and_uninstalls_exactly() {
    for release in RELEASES {
        let old = moved::unpack(release);
        let env = &old.env;
        let (before, written) = (tree(&env.path("user")), times(env));
        let home_before = tree(&env.home());
        let output = env.run(&["doctor", "--fix", "--json"]).json();
        assert!(output["fixed"].is_array(), "{output:#}");
        env.run(&["setup", "claude", "--yes"]).succeeds();
        env.run(&["setup", "codex", "--yes"]).succeeds();

        // A fresh setup of this version in the same place has the same files.
        let fresh = moved::fresh_setup(&old);
        for (path, text) in &fresh {
            // The time of the setup is in it.
            let has_time = path.ends_with("known_marketplaces.json");
            assert!(has_time || std::fs::read(path).ok().as_ref() == Some(text), "{} is not current", path.display());
        }
        let now = times(env);
        for (path, text) in before.iter().chain(&home_before) {
            let is_same = std::fs::read(path).ok().as_ref() == Some(text);
            let is_touched = now.get(path) != written.get(path);
            let is_store = path.starts_with(env.home()) && !path.starts_with(env.home().join("claude"));
            assert!(is_store || is_same != is_touched, "{} was written for nothing", path.display());
        }
        // The user's own files are as the earlier release left them.
        for name in [".claude/settings.json", ".codex/config.toml", ".claude/commands/goal-pause.md"] {
            let path = env.path("user").join(name);
            assert_eq!(before.get(&path), Some(&std::fs::read(&path).unwrap()), "{name}");
        }
        let settled = times(env);
        env.run(&["setup", "claude", "--yes"]).succeeds();
        assert_eq!(times(env), settled, "a second setup changes nothing");
        env.run(&["setup", "--uninstall"]).succeeds();
        assert_eq!(tree(&env.path("user")), moved::files_of_the_user(&old));
    }
}
