//! Every view and flag against numbers computed by hand.

use serde_json::{Value, json};

use super::{amounts, line, usage, write};
use crate::env::Env;
use crate::schemas::check;

const OPUS: &str = "claude-opus-4-5-20251101";
const SONNET: &str = "claude-sonnet-4-6";

fn said(id: &str, at: &str, model: &str, cwd: &str, input: i64) -> Value {
    let mut line = line(id, at, [input, 0, 0, 0]);
    line["message"]["model"] = json!(model);
    line["cwd"] = json!(cwd);
    line
}

/// Four responses: Sunday evening, Monday and the Sunday after it, and one in December. A million tokens of Opus cost
/// five dollars, of Sonnet three.
fn month(env: &Env) {
    write(
        env,
        "-web/s1.jsonl",
        &[
            said("m1", "2025-11-16T23:30:00.000Z", OPUS, "/src/web", 1_000_000),
            said("m2", "2025-11-17T08:00:00.000Z", SONNET, "/src/web", 2_000_000),
        ],
    );
    let mut skill = said("m3", "2025-11-23T10:00:00.000Z", OPUS, "/src/api", 3_000_000);
    skill["attributionSkill"] = json!("pdf");
    write(env, "-api/s2.jsonl", &[skill]);
    let mut agent = said("m4", "2025-12-01T00:00:00.000Z", SONNET, "/src/api", 4_000_000);
    agent["attributionAgent"] = json!("Explore");
    write(env, "-api/s2/subagents/agent-a.jsonl", &[agent]);
}

/// The rows as (key, million tokens, dollars).
fn rows(env: &Env, arguments: &[&str], key: &str) -> Vec<(String, i64, f64)> {
    let report = usage(env, arguments);
    check("usage.schema.json", &report);
    assert_eq!(usage(env, arguments), report, "a warm run says the same");
    let row = |row: &Value| {
        let tokens = amounts(row).1[0] / 1_000_000;
        (row[key].as_str().unwrap_or("none").to_owned(), tokens, row["cost_usd"].as_f64().unwrap())
    };
    report["rows"].as_array().unwrap().iter().map(row).collect()
}

fn expect(env: &Env, arguments: &[&str], key: &str, expected: &[(&str, i64, f64)]) {
    let found = rows(env, arguments, key);
    let found: Vec<(&str, i64, f64)> = found.iter().map(|(key, tokens, cost)| (key.as_str(), *tokens, *cost)).collect();
    assert_eq!(found, expected, "{arguments:?}");
}

#[test]
fn each_view_has_the_rows_computed_by_hand() {
    let env = Env::new();
    month(&env);
    let utc = |view: &'static str| [view, "--timezone", "UTC"];
    let days = [("2025-11-16", 1, 5.0), ("2025-11-17", 2, 6.0), ("2025-11-23", 3, 15.0), ("2025-12-01", 4, 12.0)];
    expect(&env, &utc("daily"), "date", &days);
    expect(&env, &utc("weekly"), "week", &[("2025-11-10", 1, 5.0), ("2025-11-17", 5, 21.0), ("2025-12-01", 4, 12.0)]);
    expect(&env, &utc("monthly"), "month", &[("2025-11", 6, 26.0), ("2025-12", 4, 12.0)]);
    expect(&env, &utc("session"), "session_id", &[("s1", 3, 11.0), ("s2", 7, 27.0)]);
    expect(&env, &utc("models"), "model", &[(OPUS, 4, 20.0), (SONNET, 6, 18.0)]);
    expect(&env, &utc("projects"), "project", &[("/src/api", 7, 27.0), ("/src/web", 3, 11.0)]);
    expect(&env, &utc("agents"), "agent_type", &[("(main)", 6, 26.0), ("Explore", 4, 12.0)]);
    expect(&env, &utc("tools"), "tool", &[("(none)", 7, 23.0), ("pdf", 3, 15.0)]);
    expect(
        &env,
        &utc("blocks"),
        "start",
        &[
            ("2025-11-16T23:00:00Z", 1, 5.0),
            ("2025-11-17T08:00:00Z", 2, 6.0),
            ("2025-11-23T10:00:00Z", 3, 15.0),
            ("2025-12-01T00:00:00Z", 4, 12.0),
        ],
    );
}

#[test]
fn flags_choose_zone_range_number_and_order() {
    let env = Env::new();
    month(&env);
    // Sunday 23:30 in UTC is Monday in Berlin and at +01:00; midnight of December is November in New York.
    for zone in ["Europe/Berlin", "+01:00", "+1", "+0100"] {
        expect(&env, &["weekly", "-z", zone], "week", &[("2025-11-17", 6, 26.0), ("2025-12-01", 4, 12.0)]);
    }
    expect(&env, &["monthly", "--timezone", "America/New_York"], "month", &[("2025-11", 10, 38.0)]);
    expect(&env, &["monthly", "--timezone", "-05:00"], "month", &[("2025-11", 10, 38.0)]);
    let range = ["-z", "UTC", "-s", "2025-11-17", "-u", "2025-11-23"];
    expect(&env, &range, "date", &[("2025-11-17", 2, 6.0), ("2025-11-23", 3, 15.0)]);
    expect(&env, &["-z", "UTC", "--until", "20251116"], "date", &[("2025-11-16", 1, 5.0)]);
    expect(&env, &["-z", "UTC", "--last", "2"], "date", &[("2025-11-23", 3, 15.0), ("2025-12-01", 4, 12.0)]);
    expect(
        &env,
        &["-z", "UTC", "--last", "2", "--order", "desc"],
        "date",
        &[("2025-12-01", 4, 12.0), ("2025-11-23", 3, 15.0)],
    );
    expect(&env, &["projects", "--last", "1"], "project", &[("/src/api", 7, 27.0)]);
    expect(&env, &["projects", "-o", "asc"], "project", &[("/src/web", 3, 11.0), ("/src/api", 7, 27.0)]);
    expect(&env, &["session", "--id", "s2"], "session_id", &[("s2", 7, 27.0)]);
    // The totals are those of the rows.
    assert_eq!(usage(&env, &["-z", "UTC", "--last", "1"])["totals"]["cost_usd"], json!(12.0));
    let short = env.run(&["usage", "-j", "-z", "UTC"]);
    assert_eq!(short.succeeds().json()["totals"]["cost_usd"], json!(38.0));
}

#[test]
fn a_breakdown_shows_each_model_of_a_row() {
    let env = Env::new();
    month(&env);
    let report = usage(&env, &["monthly", "-z", "UTC", "--breakdown"]);
    check("usage.schema.json", &report);
    let parts: Vec<(&Value, &Value)> = report["rows"][0]["breakdown"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| (&part["model"], &part["cost_usd"]))
        .collect();
    assert_eq!(parts, [(&json!(OPUS), &json!(20.0)), (&json!(SONNET), &json!(6.0))]);
    let page = env.run(&["usage", "monthly", "-z", "UTC", "-b"]).succeeds().stdout.clone();
    assert!(page.contains("└ opus-4-5") && page.contains("└ sonnet-4-6"), "{page}");
    assert!(usage(&env, &["monthly"])["rows"][0].get("breakdown").is_none());
}

#[test]
fn the_running_block_has_a_rate_and_a_projection() {
    let env = Env::new();
    let none = env.run(&["usage", "blocks", "--active"]);
    none.succeeds();
    assert!(none.stderr.contains("no 5-hour block is running") && none.stdout.is_empty(), "{none:?}");
    month(&env);
    assert_eq!(usage(&env, &["blocks", "--active"])["rows"], json!([]));
    write(&env, "-web/s9.jsonl", &[line("now", &crate::env::now(), [1_000, 0, 0, 0])]);
    let report = usage(&env, &["blocks", "--active"]);
    check("usage.schema.json", &report);
    let row = &report["rows"][0];
    assert_eq!((&row["active"], &row["input_tokens"]), (&json!(true), &json!(1_000)));
    let (rate, left) = (row["burn_rate"]["tokens_per_minute"].as_i64().unwrap(), row["minutes_left"].as_i64().unwrap());
    assert!(rate > 0 && (1..=300).contains(&left), "{row}");
    assert!(row["projection"]["total_tokens"].as_i64().unwrap() >= 1_000, "{row}");
    let page = env.run(&["usage", "blocks", "--active"]).succeeds().stdout.clone();
    assert!(page.contains("a minute; at this rate") && page.contains("minutes left"), "{page}");
}
