//! `steadfast usage` over trees of many shapes: exact totals, the same with and without cache, JSON as documented,
//! tables that fit, and errors with a hint.

mod caps;
mod charts;
mod generated;
mod of_runs;
mod prices;
mod subagents;
mod tables;
mod trouble;
mod views;

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::env::{Env, finish};
use crate::schemas::check;

const VIEWS: [&str; 9] = ["daily", "weekly", "monthly", "session", "blocks", "models", "projects", "agents", "tools"];

/// Input, output, cache creation and cache read tokens.
type Tokens = [i64; 4];

/// A line of a transcript in project `/src/web`, unless changed afterwards.
fn line(id: &str, at: &str, tokens: Tokens) -> Value {
    let [input, output, creation, read] = tokens;
    json!({
        "type": "assistant", "uuid": format!("u-{id}-{output}"), "timestamp": at, "requestId": format!("req-{id}"),
        "cwd": "/src/web", "sessionId": "any",
        "message": {
            "id": id, "role": "assistant", "model": "claude-opus-4-5-20251101", "type": "message",
            "content": [{"type": "text", "text": "about \"usage\":{\"input_tokens\":5} and more"}],
            "usage": {"input_tokens": input, "output_tokens": output, "cache_creation_input_tokens": creation,
                      "cache_read_input_tokens": read, "service_tier": "standard"},
        },
    })
}

fn transcript(env: &Env, name: &str) -> PathBuf {
    let path = env.claude_config().join("projects").join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    path
}

fn write(env: &Env, name: &str, lines: &[Value]) {
    let path = transcript(env, name);
    for line in lines {
        env.append(&path, line);
    }
}

fn write_raw(env: &Env, name: &str, text: &str) {
    use std::io::Write as _;
    let path = transcript(env, name);
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

fn usage(env: &Env, arguments: &[&str]) -> Value {
    let output = env.run(&[&["usage", "--json"], arguments].concat());
    output.succeeds().json()
}

/// Responses and tokens of the totals.
fn totals(env: &Env, arguments: &[&str]) -> (i64, Tokens) {
    amounts(&usage(env, arguments)["totals"])
}

fn amounts(row: &Value) -> (i64, Tokens) {
    let number = |name: &str| row[name].as_i64().unwrap();
    let names = ["input_tokens", "output_tokens", "cache_creation_tokens", "cache_read_tokens"];
    (number("responses"), names.map(number))
}

/// The shapes that other counters get wrong; eight responses in all.
fn shapes(env: &Env) {
    let first = [
        // Many lines of one response, with smaller snapshots before and after the final numbers.
        line("m1", "2026-11-10T10:00:00.000Z", [10, 3, 100, 1000]),
        line("m1", "2026-11-10T10:00:01.000Z", [10, 50, 100, 1000]),
        line("m1", "2026-11-10T10:00:02.000Z", [10, 7, 100, 1000]),
        line("m2", "2026-11-10T10:01:00.000Z", [20, 5, 0, 0]),
    ];
    write(env, "-src-web/s1.jsonl", &first);
    // A fork: all lines again under another session, and one new line.
    write(env, "-src-web/s2.jsonl", &first);
    write(env, "-src-web/s2.jsonl", &[line("m3", "2026-11-11T09:00:00.000Z", [1, 1, 1, 1])]);
    // Through a gateway: no request id.
    let mut gateway = [
        line("chatcmpl-1", "2026-11-11T10:00:00.000Z", [5, 1, 0, 0]),
        line("chatcmpl-1", "2026-11-11T10:00:01.000Z", [5, 9, 0, 0]),
    ];
    for line in &mut gateway {
        line.as_object_mut().unwrap().shift_remove("requestId");
    }
    write(env, "-src-api/s3.jsonl", &gateway);
    let mut api = line("m4", "2026-12-01T00:30:00.000Z", [2, 2, 2, 2]);
    api["cwd"] = json!("/src/api");
    api["message"]["model"] = json!("mystery-9");
    write(env, "-src-api/s4.jsonl", &[api]);
    // Subagents, and a subagent of a subagent.
    write(env, "-src-web/s1/subagents/agent-a.jsonl", &[line("m5", "2026-11-10T10:02:00.000Z", [3, 3, 0, 0])]);
    write(env, "-src-web/s1/subagents/agent-b.jsonl", &[line("m6", "2026-11-10T10:03:00.000Z", [4, 4, 0, 0])]);
    // Synthetic messages, the result of a subagent with usage in it, lines of other kinds, broken and torn ones.
    let mut synthetic = line("x1", "2026-11-10T10:04:00.000Z", [99, 99, 99, 99]);
    synthetic["message"]["model"] = json!("<synthetic>");
    let mut nulls = synthetic.clone();
    nulls["message"]["usage"] = json!({"input_tokens": null, "output_tokens": 0, "iterations": null});
    let result = json!({"type": "user", "toolUseResult": {"usage": {"input_tokens": 777, "output_tokens": 777}}});
    write(env, "-src-web/s5.jsonl", &[synthetic, nulls, result, json!({"type": "summary", "summary": "\"usage\""})]);
    write_raw(env, "-src-web/s5.jsonl", "{\"type\":\"assistant\",\"message\":{\"usage\":{\"input_\n\0\0\0\n\n");
    write(env, "-src-web/s5.jsonl", &[line("m7", "2026-11-10T23:59:59.000Z", [6, 6, 0, 0])]);
    let torn = line("m8", "2026-11-12T12:00:00.000Z", [50, 50, 50, 50]).to_string();
    write_raw(env, "-src-web/s5.jsonl", &torn[..torn.len() - 9]);
}

const ALL: (i64, Tokens) = (8, [10 + 20 + 1 + 5 + 2 + 3 + 4 + 6, 50 + 5 + 1 + 9 + 2 + 3 + 4 + 6, 103, 1003]);

#[test]
fn every_response_counts_once_in_every_view() {
    let env = Env::new();
    shapes(&env);
    for view in VIEWS {
        let cold = usage(&env, &[view]);
        assert_eq!(amounts(&cold["totals"]), ALL, "{view}");
        let mut sum = (0, [0; 4]);
        for row in cold["rows"].as_array().unwrap() {
            let (responses, tokens) = amounts(row);
            sum.0 += responses;
            sum.1 = std::array::from_fn(|at| sum.1[at] + tokens[at]);
        }
        assert_eq!(sum, ALL, "the rows of {view}");
        check("usage.schema.json", &cold);
        assert_eq!(usage(&env, &[view]), cold, "{view} again");
        std::fs::remove_dir_all(env.home()).unwrap();
    }
}

#[test]
fn rows_have_the_keys_of_their_view() {
    let env = Env::new();
    shapes(&env);
    let column = |view: &str, name: &str| -> Vec<Value> {
        let report = usage(&env, &[view]);
        report["rows"].as_array().unwrap().iter().map(|row| row[name].clone()).collect()
    };
    assert_eq!(column("daily", "date"), ["2026-11-10", "2026-11-11", "2026-12-01"]);
    assert_eq!(column("monthly", "month"), ["2026-11", "2026-12"]);
    assert_eq!(column("models", "model"), ["claude-opus-4-5-20251101", "mystery-9"]);
    assert_eq!(column("session", "session_id"), ["s1", "s5", "s2", "s3", "s4"]);
    assert_eq!(column("session", "project"), ["/src/web", "/src/web", "/src/web", "/src/web", "/src/api"]);
    assert_eq!(column("daily", "host"), ["claude", "claude", "claude"]);
    let blocks = ["2026-11-10T10:00:00Z", "2026-11-10T23:00:00Z", "2026-11-11T09:00:00Z", "2026-12-01T00:00:00Z"];
    assert_eq!(column("blocks", "start"), blocks);
    assert_eq!(column("blocks", "end")[0], "2026-11-10T15:00:00Z");
}

#[test]
fn days_are_those_of_the_local_time_zone() {
    let env = Env::new();
    write(&env, "-p/s.jsonl", &[line("m1", "2026-11-10T23:30:00.000Z", [1, 0, 0, 0])]);
    for (zone, day) in [("UTC", "2026-11-10"), ("CET-1", "2026-11-11"), ("EST5", "2026-11-10")] {
        let output = finish(env.command(&["usage", "--json"]).env("TZ", zone), b"");
        assert_eq!(output.json()["rows"][0]["date"], day, "{zone}");
    }
}

#[test]
fn an_unknown_price_makes_the_cost_null() {
    let env = Env::new();
    shapes(&env);
    let report = usage(&env, &["models"]);
    let (known, mystery) = (&report["rows"][0], &report["rows"][1]);
    assert!(known["cost_usd"].as_f64().unwrap() > 0.0);
    assert_eq!((&mystery["cost_usd"], &mystery["unpriced_tokens"]), (&Value::Null, &json!(8)));
    assert_eq!(report["totals"]["cost_usd"], Value::Null);
    assert_eq!(report["totals"]["priced_cost_usd"], known["cost_usd"]);

    let prices = env.path("prices.toml");
    let table = "[models.mystery-9]\ninput = 1e6\noutput = 0\ncache_write_5m = 0\ncache_write_1h = 0\ncache_read = 0\n";
    std::fs::write(&prices, table).unwrap();
    let report = usage(&env, &["models", "--prices", prices.to_str().unwrap()]);
    assert_eq!(report["rows"][0]["model"], "mystery-9");
    assert_eq!(report["rows"][0]["cost_usd"], 2.0);
    assert_eq!(report["rows"][1]["cost_usd"], Value::Null);
    let text = env.run(&["usage"]);
    assert!(text.stderr.contains("8 tokens have no known price"), "{text:?}");
}

#[test]
fn changes_between_calls_are_counted() {
    let env = Env::new();
    shapes(&env);
    assert_eq!(totals(&env, &[]), ALL);
    // The incomplete line is completed, a known response gets its final counts, and a file is added.
    let torn = line("m8", "2026-11-12T12:00:00.000Z", [50, 50, 50, 50]).to_string();
    write_raw(&env, "-src-web/s5.jsonl", &format!("{}\n", &torn[torn.len() - 9..]));
    write(&env, "-src-web/s1.jsonl", &[line("m2", "2026-11-10T10:01:01.000Z", [20, 15, 0, 0])]);
    write(&env, "-new/s9.jsonl", &[line("m9", "2026-11-12T12:00:00.000Z", [1, 0, 0, 0])]);
    let (responses, [input, output, creation, read]) = ALL;
    let grown = (responses + 2, [input + 51, output + 60, creation + 50, read + 50]);
    assert_eq!(totals(&env, &[]), grown);

    std::fs::remove_file(transcript(&env, "-src-web/s5.jsonl")).unwrap();
    std::fs::remove_dir_all(transcript(&env, "-new/s9.jsonl").parent().unwrap()).unwrap();
    let shrunk = (responses - 1, [input - 6, output + 4, creation, read]);
    assert_eq!(totals(&env, &[]), shrunk);
    let warm = usage(&env, &["session"]);
    std::fs::remove_dir_all(env.home()).unwrap();
    assert_eq!(usage(&env, &["session"]), warm);
}

#[test]
fn filters_narrow_every_view() {
    let env = Env::new();
    shapes(&env);
    let responses = |arguments: &[&str]| totals(&env, arguments).0;
    assert_eq!(responses(&["--since", "2026-11-11"]), 3);
    assert_eq!(responses(&["session", "--since", "20261201"]), 1);
    assert_eq!(responses(&["--since", "2027-01-01"]), 0);
    assert_eq!(responses(&["--project", "/src/web"]), 7);
    assert_eq!(responses(&["--project", "api"]), 1);
    assert_eq!(responses(&["blocks", "--project", "/src"]), 8);
    assert_eq!(responses(&["--project", "nowhere"]), 0);
    assert_eq!(responses(&["--host", "claude"]), 8);
    assert_eq!(responses(&["--host", "codex"]), 0);
    assert_eq!(responses(&["models", "--host", "claude", "--project", "web", "--since", "2026-11-11"]), 2);
}

#[test]
fn several_configuration_directories_are_one_machine() {
    let env = Env::new();
    shapes(&env);
    let other = env.path("other");
    let second = other.join("projects/-p/s.jsonl");
    std::fs::create_dir_all(second.parent().unwrap()).unwrap();
    env.append(&second, &line("m1", "2026-11-10T10:00:00.000Z", [10, 50, 100, 1000]));
    env.append(&second, &line("other", "2026-11-10T10:00:00.000Z", [1, 0, 0, 0]));
    let list = format!("{}, {},,", env.claude_config().display(), other.display());
    let output = finish(env.command(&["usage", "--json"]).env("CLAUDE_CONFIG_DIR", list), b"");
    assert_eq!(output.json()["totals"]["responses"], 9);
}

/// Codex's rollouts count beside Claude's transcripts; the totals of the samples are explained where they are read.
#[test]
fn codex_sessions_are_counted_with_their_project() {
    let env = Env::new();
    let folder = env.path("user/.codex/sessions/2026/11/15");
    std::fs::create_dir_all(&folder).unwrap();
    let samples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../steadfast-hosts/samples/codex/rollout");
    for (number, name) in ["simple", "tool-call", "stop-block-then-resume"].iter().enumerate() {
        let target = format!("rollout-2026-11-15T08-00-0{number}-00000000-0000-7000-8000-00000000000{number}.jsonl");
        std::fs::copy(samples.join(format!("{name}.jsonl")), folder.join(target)).unwrap();
    }
    let usage = |arguments: &[&str]| env.run(&[&["usage", "--json"], arguments].concat()).succeeds().json();
    let all = usage(&["models"]);
    assert_eq!((&all["totals"]["responses"], &all["totals"]["input_tokens"]), (&json!(7), &json!(2300)), "{all:#}");
    assert_eq!((&all["totals"]["output_tokens"], &all["totals"]["cache_read_tokens"]), (&json!(152), &json!(5200)));
    assert_eq!(all["rows"][0]["host"], "codex");
    assert_eq!(usage(&["models"]), all, "a warm run says the same");
    assert_eq!(usage(&["--host", "claude"])["totals"]["responses"], 0);
    assert_eq!(usage(&["session", "--project", "/home/user/project"])["totals"]["responses"], 7);
    assert_eq!(usage(&["session", "--project", "/elsewhere"])["totals"]["responses"], 0);
}
