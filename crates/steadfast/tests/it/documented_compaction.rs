//! The documented promises about `/compact`. A compaction that lost nothing does not stop the goal.

use serde_json::json;

use crate::env::Env;

fn compact(env: &Env) -> serde_json::Value {
    env.hook("s1", &json!({"hook_event_name": "PreCompact", "trigger": "manual"}));
    env.hook("s1", &json!({"hook_event_name": "SessionStart", "source": "compact"}))
}

#[test]
fn a_compaction_that_lost_nothing_restores_the_goal_and_continues() {
    let env = Env::new();
    env.start(&["Word for word <b>", "--budget", "1M"]);
    env.says("s1", "m1", "one", 100);
    let reply = compact(&env);
    let context = reply["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(context.contains("Word for word &lt;b&gt;"), "{reply}");
    assert!(reply.get("systemMessage").is_none());
    env.says("s1", "m2", "two", 10);
    assert_eq!(env.stop("s1", "two", false)["decision"], "block");
    let goal = env.status();
    assert_eq!((&goal["accounting_uncertain"], &goal["total_tokens"]), (&json!(false), &json!(110)));
}

#[test]
fn a_transcript_rewritten_by_compaction_after_everything_was_read_is_certain() {
    let env = Env::new();
    env.start(&["x", "--budget", "1M"]);
    env.says("s1", "m1", "one", 100);
    env.hook("s1", &json!({"hook_event_name": "PreCompact", "trigger": "auto"}));
    std::fs::write(env.transcript("s1"), "{\"type\":\"user\",\"isCompactSummary\":true}\n").unwrap();
    env.hook("s1", &json!({"hook_event_name": "SessionStart", "source": "compact"}));
    env.says("s1", "m2", "two", 10);
    assert_eq!(env.stop("s1", "two", false)["decision"], "block");
    assert_eq!(env.status()["total_tokens"], 110);
}

#[test]
fn bytes_lost_before_they_were_read_flag_warn_and_pause_the_goal() {
    let env = Env::new();
    env.start(&["x", "--budget", "1M"]);
    env.says("s1", "m1", "one", 24_500);
    env.stop("s1", "one", false);
    let old_cursor = env.sql("SELECT last_accounted_byte_offset FROM goals")[0][0].clone();
    std::fs::write(env.transcript("s1"), "{\"type\":\"user\",\"isCompactSummary\":true,\"message\":{}}\n").unwrap();
    let warned = env.hook("s1", &json!({"hook_event_name": "SessionStart", "source": "compact"}));
    assert!(warned["systemMessage"].as_str().unwrap().contains("/goal-reconcile --accept-reset"), "{warned}");
    assert_eq!(env.status()["accounting_uncertain"], true);
    let paused = env.stop("s1", "", false);
    assert!(
        paused.get("decision").is_none() && paused["systemMessage"].as_str().unwrap().contains("accounting_uncertain"),
        "{paused}"
    );
    let shown = env.goal(&["status"]).stdout;
    for line in [
        "◎ Goal: x\nstatus: paused\npaused_reason: accounting_uncertain\nsession: s1\n",
        "tokens: 24,500 worker · 0 subagent (last known — may undercount)\n",
        "⚠ /compact event detected. Run /goal-reconcile --accept-reset to resume.\n",
    ] {
        assert!(shown.contains(line), "{shown}");
    }
    env.goal(&["resume"]).fails_with(3, "accounting_uncertain");
    env.goal(&["reconcile"]).fails_with(1, "requires --accept-reset");
    env.says("s1", "gap", "lost", 777);
    env.goal(&["reconcile", "--accept-reset"]).succeeds();
    let size = std::fs::metadata(env.transcript("s1")).unwrap().len().to_string();
    assert_eq!(
        env.sql("SELECT last_accounted_byte_offset, accounting_uncertain, status FROM goals"),
        [[size.as_str(), "0", "active"]]
    );
    let event = env.sql("SELECT json_extract(payload, '$.old_cursor'), json_extract(payload, '$.new_cursor') FROM goal_events WHERE kind = 'goal_reconciled'");
    assert_eq!(event, [[old_cursor, size]]);
    assert!(env.event_kinds().contains(&"accounting_uncertain_set".to_owned()));
    env.says("s1", "m2", "two", 100);
    assert_eq!(env.stop("s1", "two", false)["decision"], "block");
    assert_eq!(env.status()["total_tokens"], 24_600);
    env.goal(&["reconcile", "--accept-reset"]).fails_with(3, "active");
}

#[test]
fn a_withdrawn_message_leaves_the_accounting_certain() {
    let env = Env::new();
    env.start(&["x", "--budget", "1M"]);
    env.says("s1", "m1", "one", 100);
    env.says("s1", "m2", "withdrawn", 50);
    env.stop("s1", "withdrawn", false);
    let text = std::fs::read_to_string(env.transcript("s1")).unwrap();
    let kept: Vec<&str> = text.lines().filter(|line| !line.contains("withdrawn")).collect();
    std::fs::write(env.transcript("s1"), kept.join("\n") + "\n").unwrap();
    env.says("s1", "m3", "three", 10);
    assert_eq!(env.stop("s1", "three", true)["decision"], "block");
    let goal = env.status();
    assert_eq!((&goal["accounting_uncertain"], &goal["total_tokens"]), (&json!(false), &json!(160)));
}

#[test]
fn without_a_budget_the_goal_continues_with_the_flag_shown() {
    let env = Env::new();
    env.start(&["x"]);
    env.says("s1", "m1", "one", 100);
    env.stop("s1", "one", false);
    std::fs::write(env.transcript("s1"), "{\"type\":\"other\"}\n").unwrap();
    env.hook("s1", &json!({"hook_event_name": "SessionStart", "source": "compact"}));
    assert_eq!(env.stop("s1", "", false)["decision"], "block");
    assert!(env.goal(&["status"]).stdout.contains("may undercount"));
    env.goal(&["reconcile", "--accept-reset"]).succeeds();
    assert_eq!(env.status()["accounting_uncertain"], false);
}

#[test]
fn on_compact_pause_pauses_at_every_compaction() {
    let env = Env::new();
    std::fs::create_dir_all(env.home()).unwrap();
    std::fs::write(env.home().join("config.toml"), "[accounting]\non_compact = \"pause\"\n").unwrap();
    env.start(&["x", "--budget", "1M"]);
    env.says("s1", "m1", "one", 100);
    assert!(compact(&env)["systemMessage"].as_str().unwrap().contains("/goal-reconcile"));
    env.stop("s1", "one", false);
    assert_eq!(env.status()["paused_reason"], "accounting_uncertain");
}

#[test]
fn extend_add_hours_paces_a_running_goal_in_checkpoints() {
    let env = Env::new();
    env.start(&["x"]);
    env.execute("UPDATE goals SET resume_at_ms = resume_at_ms - 3600000");
    env.goal(&["extend", "--add-hours", "2"]).succeeds();
    let seconds: i64 = env.sql("SELECT max_wall_clock_seconds FROM goals")[0][0].parse().unwrap();
    assert!((3 * 3600..3 * 3600 + 60).contains(&seconds), "{seconds}");
}

#[test]
fn abandon_and_start_fresh_keeps_the_prior_row_in_goal_history() {
    let env = Env::new();
    env.start(&["off the rails"]);
    env.goal(&["abandon"]).succeeds();
    env.goal(&["start", "refined", "--budget", "quick"]).succeeds();
    assert_eq!(env.sql("SELECT objective FROM goal_history"), [["off the rails"]]);
}

#[test]
fn a_malformed_token_field_pauses_and_reconcile_moves_past_it_for_good() {
    let env = Env::new();
    env.start(&["x"]);
    let mut line = crate::env::assistant("bad", "odd", 100);
    line["message"]["usage"]["output_tokens"] = json!("many");
    env.append(&env.transcript("s1"), &line);
    let reply = env.stop("s1", "odd", false);
    assert!(
        reply.get("decision").is_none() && reply["systemMessage"].as_str().unwrap().contains("output_tokens"),
        "{reply}"
    );
    assert_eq!(env.status()["paused_reason"], "accounting_error");
    assert!(env.event_kinds().contains(&"invalid_usage_field".to_owned()));
    env.goal(&["reconcile", "--accept-reset"]).succeeds();
    for turn in 0..2 {
        env.says("s1", &format!("m{turn}"), "fine", 10);
        assert_eq!(env.stop("s1", "fine", false)["decision"], "block", "{turn}");
    }
    assert_eq!(env.status()["total_tokens"], 20);
}
