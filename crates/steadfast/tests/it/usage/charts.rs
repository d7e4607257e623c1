//! `usage --chart`: aligned bars that fit the terminal, in every view.

use serde_json::json;

use super::{VIEWS, line, shapes, write};
use crate::env::{Env, Output, finish};

fn chart(env: &Env, view: &[&str], columns: usize) -> Output {
    let arguments = [&["usage"], view, &["--chart"]].concat();
    finish(env.command(&arguments).env("COLUMNS", columns.to_string()), b"")
}

fn is_bar(character: char) -> bool {
    ('▉'..='▏').contains(&character) || character == '█'
}

#[test]
fn charts_fit_the_terminal_and_use_its_width() {
    let env = Env::new();
    shapes(&env);
    for view in VIEWS {
        for columns in [20, 60, 80, 200] {
            let output = chart(&env, &[view, "-z", "UTC"], columns);
            let lines: Vec<&str> = output.succeeds().stdout.lines().collect();
            let widest = lines.iter().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= columns, "{view} in {columns} columns:\n{}", output.stdout);
            assert!(columns < 60 || widest == columns, "the longest bar ends at the edge:\n{}", output.stdout);
            let starts: Vec<usize> = lines.iter().filter_map(|line| line.chars().position(is_bar)).collect();
            assert!(!starts.is_empty() && starts.iter().all(|start| *start == starts[0]), "{}", output.stdout);
            assert!(lines[0].starts_with("Cost in US do") && lines.last().unwrap().starts_with("total"), "{lines:?}");
            assert!(!output.stdout.contains('\u{1b}'), "colour without a terminal: {output:?}");
        }
    }
}

#[test]
fn bars_are_as_long_as_their_numbers_and_days_without_usage_are_told() {
    let env = Env::new();
    let million = |count: i64| [count * 1_000_000, 0, 0, 0];
    let days =
        [("m1", "2025-11-01T10:00:00Z", 4), ("m2", "2025-11-02T10:00:00Z", 2), ("m3", "2025-11-05T10:00:00Z", 1)];
    let lines: Vec<_> = days.iter().map(|(id, at, count)| line(id, at, million(*count))).collect();
    write(&env, "-p/s.jsonl", &lines);
    let output = chart(&env, &["daily", "-z", "UTC"], 67);
    let expected = [
        "Cost in US dollars by day".to_owned(),
        format!("2025-11-01  $20.00  4M tokens  {}", "█".repeat(36)),
        format!("2025-11-02  $10.00  2M tokens  {}", "█".repeat(18)),
        "⋮ 2 days without usage".to_owned(),
        format!("2025-11-05   $5.00  1M tokens  {}", "█".repeat(9)),
        "total       $35.00  7M tokens".to_owned(),
    ];
    assert_eq!(output.succeeds().stdout.lines().collect::<Vec<_>>(), expected);
    let without_price = Env::new();
    let mut unknown = line("m1", "2025-11-01T10:00:00Z", million(3));
    unknown["message"]["model"] = json!("a-model-without-price");
    write(&without_price, "-p/s.jsonl", &[unknown]);
    let output = chart(&without_price, &["models"], 80);
    assert!(output.stdout.starts_with("Tokens by model\na-model-without-price  3M tokens  unknown  █"), "{output:?}");
}

#[test]
fn a_breakdown_has_a_bar_for_each_model_and_json_stays_as_it_is() {
    let env = Env::new();
    shapes(&env);
    let parts = chart(&env, &["monthly", "--breakdown", "-z", "UTC"], 80);
    assert!(parts.succeeds().stdout.contains("\n└ opus-4-5 "), "{}", parts.stdout);
    let plain = env.run(&["usage", "monthly", "--json"]);
    let asked = env.run(&["usage", "monthly", "--chart", "--json"]);
    assert_eq!(asked.succeeds().stdout, plain.stdout);
    assert!(asked.stderr.contains("--chart changes nothing"), "{asked:?}");
    env.run(&["usage", "runs", "--chart"]).fails_with(1, "--chart does not show runs");
    assert_eq!(env.run(&["usage", "--check", "--chart"]).code, 1);
    let nothing = Env::new().run(&["usage", "--chart"]);
    assert_eq!(nothing.succeeds().stdout, "");
}
