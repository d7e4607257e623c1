//! Tables on wide and narrow terminals.

use std::collections::BTreeMap;

use steadfast_model::host::Host;
use steadfast_model::reading::Tokens;

use super::*;

fn amounts(scale: i64) -> Amounts {
    Amounts {
        responses: Some(7 * scale),
        tokens: Tokens {
            input: 1_234 * scale,
            output: 56_789 * scale,
            cache_creation: 1_000_000 * scale,
            cache_read: 123_456_789 * scale,
            ..Tokens::default()
        },
        priced_micros: 12_345_678 * scale,
        unpriced_tokens: 0,
        cost_unknown: false,
        tokens_unknown: false,
    }
}

fn report(view: View, key: &Key) -> UsageReport {
    let day = jiff::civil::date(2026, 11, 15);
    let row = |host| Row {
        view,
        key: key.clone(),
        host,
        models: BTreeMap::from([("claude-opus-4-5-20251101".to_owned(), amounts(1))]),
        has_breakdown: false,
        days: Some((day, day)),
        burn: None,
        first_ms: None,
        amounts: amounts(1),
    };
    UsageReport { view, rows: vec![row(Host::Claude), row(Host::Codex)], totals: amounts(2) }
}

/// The table without its colours.
fn plain(view: View, key: &Key, width: usize) -> String {
    let table = render(&report(view, key), &TimeZone::UTC, width);
    anstream::adapter::strip_str(&table).to_string()
}

fn keys() -> [(View, Key); 9] {
    let day = Some(jiff::civil::date(2026, 11, 15));
    let session = Key::Session {
        id: "6dd8620c-ffe0-495b-a46f-f90ad33f492f".into(),
        project: "/home/x/a-project-with-a-long-name".into(),
    };
    let block = Key::Block { start: Some(1_794_744_000_000) };
    [
        (View::Daily, Key::Day(day)),
        (View::Monthly, Key::Month(day)),
        (View::Session, session),
        (View::Blocks, block),
        (View::Models, Key::Named("claude-opus-4-5-20251101".into())),
        (View::Weekly, Key::Week(day)),
        (View::Projects, Key::Named("/home/x/a-project-with-a-long-name/and-a-deep/directory".into())),
        (View::Agents, Key::Named("(main)".into())),
        (View::Tools, Key::Named("plugin:labplug:labmcp".into())),
    ]
}

#[test]
fn a_wide_table_has_all_columns() {
    let table = plain(View::Daily, &keys()[0].1, 200);
    let lines: Vec<&str> = table.lines().collect();
    let expected = [
        "Date        Host    Models    Responses  Input   Output  Cache write   Cache read    Cost",
        "2026-11-15  claude  opus-4-5          7  1,234   56,789    1,000,000  123,456,789  $12.35",
        "2026-11-15  codex   opus-4-5          7  1,234   56,789    1,000,000  123,456,789  $12.35",
        "──────────  ──────  ────────  ─────────  ─────  ───────  ───────────  ───────────  ──────",
        "Total                                14  2,468  113,578    2,000,000  246,913,578  $24.69",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn a_breakdown_has_a_line_for_each_model() {
    let mut report = report(View::Weekly, &keys()[5].1);
    for row in &mut report.rows {
        row.has_breakdown = true;
        row.models.insert("gpt-5.4".to_owned(), amounts(3));
    }
    let table = render(&report, &TimeZone::UTC, 200);
    let table = anstream::adapter::strip_str(&table).to_string();
    let firsts: Vec<&str> = table.lines().map(|line| line.split("  ").next().unwrap()).collect();
    let part = ["2026-11-15", "└ opus-4-5", "└ gpt-5.4"];
    assert_eq!(firsts, [&["Week of"], &part[..], &part, &["──────────"], &["Total"]].concat(), "{table}");
    assert!(table.lines().nth(3).unwrap().contains("170,367"), "{table}");
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for (view, key) in keys() {
        for width in 30..140 {
            let table = plain(view, &key, width);
            let widest = table.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= width, "{view} in {width} columns:\n{table}");
            assert!(table.contains("$24.69"), "{view} in {width} columns:\n{table}");
        }
    }
}

#[test]
fn an_unknown_part_of_a_cost_is_shown() {
    let cost_of =
        |priced_micros, unpriced| cost(&Amounts { priced_micros, cost_unknown: unpriced > 0, ..Amounts::default() });
    assert_eq!(cost_of(0, 0), "$0.00");
    assert_eq!(cost_of(1, 0), "<$0.01");
    assert_eq!(cost_of(1_234_567_890, 0), "$1,234.57");
    assert_eq!(cost_of(1_230_000, 5), "$1.23+");
    assert_eq!(cost_of(0, 5), "unknown");
}

#[test]
fn the_sparkline_shows_days_in_proportion() {
    let line = sparkline(&[0, 1, 500_000, 1_000_000], 80).unwrap();
    assert_eq!(line, "last 4 days  ·▁▄█  at most 1M tokens a day");
    assert_eq!(sparkline(&[0, 5], 20).unwrap(), "last 2 days  ·█");
    assert_eq!(sparkline(&[0, 0], 80), None);
    assert!(sparkline(&[i64::MAX, 1], 80).unwrap().contains('█'));
}
