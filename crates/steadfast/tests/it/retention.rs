//! Nothing grows for ever: old details go a little at a time, sums stay, and lists are as long as asked for.

mod runs;

use std::time::Duration;

use serde_json::{Value, json};

use crate::client;
use crate::env::Env;
use crate::schemas::check;

const DAY: i64 = 86_400_000;
const START: &str = "SessionStart";

impl Env {
    /// Makes everything in the store this many days older.
    fn age_all(&self, days: i64) {
        let columns = "SELECT m.name, c.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c
                       WHERE m.type = 'table' AND m.name NOT LIKE '%fts%' AND m.name NOT IN ('upkeep', 'clock')
                         AND c.name LIKE '%\\_ms' ESCAPE '\\' AND c.name NOT IN ('time_used_rest_ms', 'duration_ms', 'every_ms')";
        for row in self.sql(columns) {
            let (table, column) = (&row[0], &row[1]);
            self.execute(&format!("UPDATE {table} SET {column} = {column} - {} WHERE {column} > 0", days * DAY));
        }
    }

    /// New sessions start until nothing is left to do.
    fn upkeep(&self) {
        for number in 0..200 {
            self.execute("UPDATE upkeep SET due_at_ms = 0 WHERE position <> ''");
            self.hook(&format!("new{number}"), &json!({"hook_event_name": START, "source": "startup"}));
            // The task that never begins again has this position.
            let left = self.sql("SELECT count(*) FROM upkeep WHERE position NOT IN ('', 'done')");
            if left == [["0"]] && self.sql("SELECT count(*) >= 7 FROM upkeep") == [["1"]] {
                return;
            }
        }
        panic!("upkeep does not come to an end");
    }

    fn number(&self, sql: &str) -> i64 {
        self.sql(sql)[0][0].parse().unwrap_or(0)
    }
}

#[test]
fn a_long_history_is_cut_and_the_rest_is_one_flag_away() {
    let env = Env::new();
    env.start(&["First"]);
    env.execute(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 160)
         INSERT INTO goal_history (session_id, goal_id, objective, status, created_at_ms, updated_at_ms)
         SELECT 's1', 'old-' || i, 'Objective ' || i, 'complete', i, i FROM n;
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500)
         INSERT INTO goal_events (session_id, goal_id, event_type, payload_json, created_at_ms)
         SELECT 's1', 'old-1', 'tokens_accounted', '{}', i FROM n",
    );
    for all in [&["history"][..], &["history", "--all"]] {
        let text = env.goal(all).succeeds().stdout.clone();
        assert!(text.contains("First") && text.contains("Objective 160") && !text.contains("Objective 61\n"), "{text}");
        assert!(text.ends_with("61 goals more; `--limit 0` lists all\n"), "{text}");
        let json = env.goal(&[all, &["--format=json"]].concat()).json();
        check("goal-history.schema.json", &json);
        let lengths =
            |json: &Value| [json["goals"].as_array().unwrap().len(), json["events"].as_array().unwrap().len()];
        assert_eq!(
            (lengths(&json), &json["more_goals"], &json["more_events"]),
            ([100, 1_000], &json!(61), &json!(true))
        );
        let whole = env.goal(&[all, &["--format=json", "--limit", "0"]].concat()).json();
        check("goal-history.schema.json", &whole);
        assert_eq!(lengths(&whole)[0], 161);
        assert_eq!(i64::try_from(lengths(&whole)[1]).unwrap(), env.number("SELECT count(*) FROM goal_events"));
        let text = env.goal(&[all, &["--limit", "0"]].concat()).succeeds().stdout.clone();
        assert_eq!((text.matches("Objective ").count(), text.contains("more;")), (160, false));
        assert!(!text.contains("tokens_accounted"), "events only where they are asked for");
        let text = env.goal(&[all, &["--limit", "2", "--events"]].concat()).succeeds().stdout.clone();
        assert_eq!((text.matches("Objective ").count(), text.matches("tokens_accounted").count()), (1, 50), "{text}");
    }
}

/// An event that cannot be read shows which commands read it.
#[test]
fn a_history_reads_only_the_events_that_it_shows() {
    let env = Env::new();
    env.start(&["First"]);
    env.execute(
        "INSERT INTO goal_events (id, session_id, goal_id, event_type, payload_json, created_at_ms)
           VALUES (-1, 's1', 'old', 'tokens_accounted', '{}', 'no time');
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500)
         INSERT INTO goal_events (session_id, goal_id, event_type, payload_json, created_at_ms)
         SELECT 's1', 'old', 'tokens_accounted', '{}', i FROM n",
    );
    for all in [&["history"][..], &["history", "--all"]] {
        for more in [&[][..], &["--limit", "0"], &["--events"], &["--format=json"]] {
            env.goal(&[all, more].concat()).succeeds();
        }
        // All events are read where all are asked for.
        env.goal(&[all, &["--limit", "0", "--events"]].concat()).fails_with(4, "created_at_ms");
    }
    env.execute("UPDATE goal_events SET event_type = 'unreadable', created_at_ms = 'no time'");
    for all in [&["history"][..], &["history", "--all"]] {
        env.goal(all).succeeds();
        env.goal(&[all, &["--limit", "0"]].concat()).succeeds();
        env.goal(&[all, &["--events"]].concat()).fails_with(4, "created_at_ms");
    }
}

#[test]
fn old_details_go_and_no_number_changes() {
    let env = Env::new();
    env.start(&["Ship it"]);
    for number in 0..3 {
        env.says("s1", &format!("r{number}"), &format!("step {number}"), 1_000);
        env.stop("s1", &format!("step {number}"), false);
    }
    env.goal(&["complete"]).succeeds();
    let before = env.status();
    assert_eq!(before["tokens_used"], json!(3_000));
    // The file keeps its own times, so it has to age too.
    let file = std::fs::read_to_string(env.transcript("s1")).unwrap();
    let (today, then) = (crate::env::now(), steadfast_model::clock::now() - 100 * DAY);
    let old = file.replace(&today[..10], &steadfast_model::clock::to_rfc3339(then)[..10]);
    std::fs::write(env.transcript("s1"), &old).unwrap();
    env.age_all(100);
    env.execute("DELETE FROM upkeep");
    env.upkeep();
    assert_eq!(env.sql("SELECT count(*) FROM responses"), [["0"]]);
    let sums = env.sql("SELECT sum(responses), sum(input_tokens + output_tokens + cache_creation_tokens), min(in_goals) FROM usage_days");
    assert_eq!(sums, [["3", "3000", "1"]]);
    assert_eq!(env.sql("SELECT count(*) FROM goal_events WHERE kind = 'tokens_accounted'"), [["0"]]);
    let after = env.status();
    for field in ["tokens_used", "total_tokens", "cost_usd", "status", "active_seconds"] {
        assert_eq!(before[field], after[field], "{field}");
    }
    let report = env.goal(&["report"]).succeeds().stdout.clone();
    assert!(report.contains("complete"), "{report}");

    // The session is resumed, and its file is read again from its start.
    env.execute("DELETE FROM transcript_cursors");
    env.hook("s1", &json!({"hook_event_name": START, "source": "resume"}));
    env.stop("s1", "again", false);
    assert_eq!(env.status()["tokens_used"], json!(3_000));
    assert_eq!(env.sql("SELECT sum(responses) FROM usage_days"), [["3"]]);

    env.age_all(300);
    env.execute("DELETE FROM upkeep");
    env.upkeep();
    assert_eq!(env.status(), Value::Null, "the goal itself goes after a year");
    assert_eq!(env.sql("SELECT sum(responses) FROM usage_days"), [["3"]], "its sums stay");
}

/// Turns of hours end with one hook each, and every day some of those hooks have other tasks than the ledger.
#[test]
fn a_few_long_turns_a_day_do_not_outgrow_retention() {
    const DAYS: i64 = 20;
    const TURNS: i64 = 10;
    const RESPONSES: i64 = 300;
    let env = Env::new();
    env.start(&["Ship it"]);
    env.goal(&["complete"]).succeeds();
    for turn in 0..DAYS * TURNS {
        env.execute(&format!(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {RESPONSES})
             INSERT INTO responses (host, response_id, session_id, model, input_tokens, output_tokens,
               cache_creation_tokens, cache_creation_1h_tokens, cache_read_tokens, cost_micros, at_ms)
             SELECT 'claude', 'old' || ({turn} * {RESPONSES} + i), 'gone', 'claude-opus-4-5', 1, 0, 0, 0, 0, 1,
               1000000 + {turn} * {RESPONSES} + i FROM n"
        ));
        // The turns are at equal distances, all day long.
        env.execute(&format!("UPDATE upkeep SET due_at_ms = due_at_ms - {}", DAY / TURNS));
        env.stop("s1", "done", false);
    }
    let left = env.number("SELECT count(*) FROM responses WHERE session_id = 'gone'");
    assert!(left <= 3 * TURNS * RESPONSES, "{left} responses of {DAYS} days are left");
}

#[test]
fn a_live_goal_keeps_everything() {
    let env = Env::new();
    env.start(&["Ship it"]);
    env.says("s1", "r1", "step", 1_000);
    env.stop("s1", "step", false);
    env.goal(&["pause"]).succeeds();
    let rows =
        "SELECT (SELECT count(*) FROM responses), (SELECT count(*) FROM goal_events), (SELECT count(*) FROM goals),
                  (SELECT count(*) FROM transcript_cursors), (SELECT count(*) FROM sessions WHERE session_id = 's1')";
    let before = env.sql(rows);
    env.age_all(1_000);
    env.upkeep();
    assert_eq!(env.sql(rows), before);
}

#[test]
fn upkeep_that_is_killed_loses_no_sum() {
    let env = Env::new();
    env.start(&["Ship it"]);
    env.execute(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6000)
         INSERT INTO responses (host, response_id, session_id, model, input_tokens, output_tokens, cache_creation_tokens,
           cache_creation_1h_tokens, cache_read_tokens, cost_micros, at_ms)
         SELECT 'claude', 'old' || i, 'gone', 'claude-opus-4-5', 1, 0, 0, 0, 0, 1, 1000000 + i FROM n",
    );
    let sum = "SELECT (SELECT count(*) FROM responses) + (SELECT coalesce(sum(responses), 0) FROM usage_days)";
    for number in 0..40 {
        env.execute("UPDATE upkeep SET due_at_ms = CASE task WHEN 'ledger' THEN 0 ELSE due_at_ms END");
        let command = env.command(&["hook", "claude"]);
        let mut child = client::spawn(&command);
        let event = json!({"session_id": format!("k{number}"), "transcript_path": env.transcript("k"), "cwd": env.project(),
                           "hook_event_name": START, "source": "startup"});
        child.write(event.to_string().as_bytes());
        child.close_stdin();
        std::thread::sleep(Duration::from_millis(number % 20 * 4));
        child.kill();
        child.wait();
        assert_eq!(env.sql(sum), [["6000"]], "after kill {number}");
    }
    env.upkeep();
    assert_eq!(env.sql(sum), [["6000"]]);
    assert_eq!(env.sql("SELECT count(*) FROM responses WHERE session_id = 'gone'"), [["0"]]);
    assert_eq!(env.run(&["db", "check"]).succeeds().stdout, "ok\n");
}

#[test]
fn others_write_while_a_purge_is_at_work() {
    let env = Env::new();
    env.start(&["Ship it"]);
    for session in ["p1", "p2"] {
        env.hook(session, &json!({"hook_event_name": START, "source": "startup"}));
        // As every connection of the product does.
        env.execute(&format!(
            "PRAGMA secure_delete = FAST;
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
             INSERT INTO session_events (session_id, category, kind, importance, text, created_at_ms)
             SELECT '{session}', 'prompt', 'prompt', 2, 'WORDPURGED number ' || i || ' of many', 1 FROM n"
        ));
    }
    let purge =
        env.command(&["session", "purge", "p1", "--json"]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    for number in 0..8 {
        let prompt =
            json!({"hook_event_name": "UserPromptSubmit", "prompt": format!("prompt {number} of the other one")});
        assert_eq!(env.hook("s1", &prompt), Value::Null);
    }
    let done = purge.wait_with_output().unwrap();
    assert!(done.status.success(), "{done:?}");
    let purged: Value = serde_json::from_slice(&done.stdout).unwrap();
    check("session-purge.schema.json", &purged);
    assert_eq!((&purged["purged"][0]["events"], &purged["rewritten"]), (&json!(3_000), &json!(true)));
    assert_eq!(env.number("SELECT count(*) FROM session_events WHERE text LIKE 'prompt % of the other one'"), 8);
    assert_eq!(
        env.number("SELECT count(*) FROM session_events WHERE text LIKE 'WORDPURGED%'"),
        3_000,
        "of the other session"
    );
    env.run(&["session", "purge", "p2"]).succeeds();
    let files = std::fs::read_dir(env.home()).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    for file in files {
        let bytes = std::fs::read(&file).unwrap();
        let found: Vec<usize> =
            bytes.windows(10).enumerate().filter(|(_, window)| window == b"WORDPURGED").map(|(at, _)| at).collect();
        assert_eq!(found, [0; 0], "{}", file.display());
    }
}

#[test]
fn a_store_of_an_earlier_version_is_rewritten_only_when_nothing_is_at_work() {
    let env = Env::new();
    env.run(&["db", "compact"]).fails_with(4, "does not exist");
    env.start(&["Ship it"]);
    // This one gives pages back in steps, whoever is at work.
    env.run(&["db", "compact"]).succeeds();
    let db = rusqlite::Connection::open(env.store()).unwrap();
    db.execute_batch("PRAGMA auto_vacuum = NONE; VACUUM").unwrap();
    drop(db);
    env.run(&["db", "compact"]).fails_with(3, "is live");
    env.run(&["db", "compact", "--force"]).succeeds();
    env.goal(&["pause"]).succeeds();
    let json = env.run(&["db", "compact", "--json"]).succeeds().json();
    assert!(json["after_bytes"].as_u64() <= json["before_bytes"].as_u64(), "{json}");
    assert_eq!(env.status()["objective"], json!("Ship it"));
    let doctor = env.run(&["doctor", "--full", "--json"]).json();
    let check = |id: &str| doctor["checks"].as_array().unwrap().iter().find(|check| check["id"] == id).unwrap().clone();
    assert_eq!(
        (&check("store_integrity")["detail"], &check("store_size")["status"]),
        (&json!("no faults"), &json!("ok"))
    );
}

#[test]
fn a_rewrite_of_the_store_is_refused_while_a_client_is_open() {
    let env = Env::new();
    env.hook("s1", &json!({"hook_event_name": "SessionStart", "source": "startup"}));
    let db = rusqlite::Connection::open(env.store()).unwrap();
    db.execute_batch("PRAGMA auto_vacuum = NONE; VACUUM").unwrap();
    drop(db);
    env.run(&["db", "compact"]).fails_with(3, "session s1");
    env.hook("s1", &json!({"hook_event_name": "SessionEnd", "reason": "exit"}));
    env.run(&["db", "compact"]).succeeds();
}
