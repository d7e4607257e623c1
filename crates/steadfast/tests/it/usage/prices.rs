//! Cost by what the transcript says: one response in fast mode, one at long context, one of an unknown model.

use serde_json::{Value, json};

use super::{line, usage, write};
use crate::env::Env;

fn response(id: &str, model: &str, tokens: [i64; 4], speed: &str) -> Value {
    let mut line = line(id, &crate::env::now(), tokens);
    line["message"]["model"] = json!(model);
    line["message"]["usage"]["speed"] = json!(speed);
    line
}

#[test]
fn fast_mode_and_long_context_have_their_price_and_an_unknown_model_has_none() {
    let env = Env::new();
    write(&env, "-p/fast.jsonl", &[response("m1", "claude-opus-4-6", [1_000, 1_000, 0, 0], "fast")]);
    write(&env, "-p/long.jsonl", &[response("m2", "claude-sonnet-4-5-20250929", [250_000, 1_000, 0, 0], "standard")]);
    write(&env, "-p/unknown.jsonl", &[response("m3", "mystery-9", [1_000, 1_000, 0, 0], "standard")]);
    for state in ["cold", "warm"] {
        let report = usage(&env, &["session"]);
        let mut costs: Vec<(&str, &Value)> = report["rows"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| (row["session_id"].as_str().unwrap(), &row["cost_usd"]))
            .collect();
        costs.sort_by_key(|(id, _)| *id);
        assert_eq!(costs, [("fast", &json!(0.18)), ("long", &json!(1.5225)), ("unknown", &Value::Null)], "{state}");
        assert_eq!(report["totals"]["cost_usd"], Value::Null);
    }
}

fn spends(env: &Env, line: &Value) -> Value {
    let mut line = line.clone();
    line["timestamp"] = json!(crate::env::now());
    env.append(&env.transcript("s1"), &line);
    env.stop("s1", "still at it", false)
}

#[test]
fn a_money_limit_stops_a_goal_in_time() {
    let fast = |speed| response("m1", "claude-opus-4-6", [1_000, 1_000, 0, 0], speed);
    for (line, status, reason, cost) in [
        (fast("standard"), "active", Value::Null, json!(0.03)),
        (fast("fast"), "budget_limited", Value::Null, json!(0.18)),
        (
            response("m1", "claude-sonnet-4-5", [250_000, 0, 0, 0], "standard"),
            "budget_limited",
            Value::Null,
            json!(1.5),
        ),
        (response("m1", "mystery-9", [1, 1, 0, 0], "standard"), "paused", json!("accounting_uncertain"), Value::Null),
        (fast("ludicrous"), "paused", json!("accounting_uncertain"), Value::Null),
    ] {
        let env = Env::new();
        env.start(&["Spend it", "--usd", "0.10"]);
        let reply = spends(&env, &line);
        let goal = &env.status();
        assert_eq!((&goal["status"], &goal["paused_reason"], &goal["cost_usd"]), (&json!(status), &reason, &cost));
        let today = &goal["today"]["cost_usd"];
        assert_eq!(today, &cost, "what today cost is as unknown as the goal's cost");
        if reason != Value::Null {
            assert!(reply.to_string().contains("no known price"), "{reply}");
            let page = env.goal(&["status"]).stdout;
            assert!(page.contains("cost unknown counted on this machine") && page.contains("no known price"), "{page}");
            env.goal(&["reconcile", "--accept-reset"]).succeeds();
            assert_eq!(env.status()["status"], "active");
        }
    }
}

#[test]
fn a_money_limit_is_refused_where_the_model_has_no_price() {
    let env = Env::new();
    env.start(&["First"]);
    spends(&env, &response("m1", "mystery-9", [1, 1, 0, 0], "standard"));
    env.goal(&["abandon"]).succeeds();
    env.goal(&["start", "Second", "--usd", "1"]).fails_with(1, "mystery-9");
    env.goal(&["start", "Second", "--budget", "1M"]).succeeds();
}
