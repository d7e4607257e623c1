//! Rows of the views: days in the local time zone, blocks, filters, unknown prices.

use std::path::Path;

use jiff::civil::date;

use super::*;
use crate::usage::summary::UsageSession;
use steadfast_model::clock;

fn at(text: &str) -> i64 {
    clock::parse_rfc3339(text).unwrap().div_euclid(SLOT_MS)
}

/// Sums with ten input tokens each, at these times; odd ones are of a model without a price.
fn summary(slots: &[i64]) -> Summary {
    let sums = (0..).zip(slots).map(|(number, slot)| Sum {
        slot: *slot,
        session: number % 2,
        model: number % 2,
        responses: 1,
        tokens: Tokens { input: 10, ..Tokens::default() },
        cost_micros: (number % 2 == 0).then_some(3),
        agent: number % 2,
        tool: 2 * u32::from(number == 0),
    });
    Summary {
        models: vec!["known".into(), "mystery".into()],
        names: vec![String::new(), "Explore".into(), "github".into()],
        sessions: vec![
            UsageSession { id: "s0".into(), project: "/home/x/web".into() },
            UsageSession { id: "s1".into(), project: "/home/x/web/api".into() },
        ],
        sums: sums.collect(),
        ..Summary::default()
    }
}

fn rows(view: View, slots: &[i64], filter: &Filter, zone: &str) -> Vec<(String, i64)> {
    let zone = TimeZone::get(zone).unwrap();
    let report = report(view, &[(Host::Claude, summary(slots))], filter, Selection::default(), &zone, 0);
    let label = |key: &Key| match key {
        Key::Day(day) | Key::Week(day) | Key::Month(day) => day.map_or_else(|| "none".into(), |day| day.to_string()),
        Key::Session { id, .. } => id.clone(),
        Key::Block { start } => start.map_or_else(|| "none".into(), clock::to_rfc3339),
        Key::Named(name) => name.clone(),
    };
    report.rows.iter().map(|row| (label(&row.key), row.amounts.responses.unwrap())).collect()
}

fn expect(found: &[(String, i64)], expected: &[(&str, i64)]) {
    let found: Vec<(&str, i64)> = found.iter().map(|(key, count)| (key.as_str(), *count)).collect();
    assert_eq!(found, expected);
}

#[test]
fn days_are_local() {
    let slots = [at("2026-11-14T22:45:00Z"), at("2026-11-14T23:00:00Z"), at("2026-11-15T18:15:00Z")];
    let all = Filter::default();
    expect(&rows(View::Daily, &slots, &all, "UTC"), &[("2026-11-14", 2), ("2026-11-15", 1)]);
    expect(&rows(View::Daily, &slots, &all, "Europe/Berlin"), &[("2026-11-14", 1), ("2026-11-15", 2)]);
    // A time zone with an offset of 45 minutes.
    expect(&rows(View::Daily, &slots, &all, "Asia/Kathmandu"), &[("2026-11-15", 2), ("2026-11-16", 1)]);
    expect(&rows(View::Monthly, &slots, &all, "UTC"), &[("2026-11-01", 3)]);
    let undated = [UNDATED, slots[0]];
    expect(&rows(View::Daily, &undated, &all, "UTC"), &[("none", 1), ("2026-11-14", 1)]);
}

#[test]
fn days_with_a_clock_change_count_as_one_day() {
    let slots = [at("2026-10-24T22:00:00Z"), at("2026-10-25T22:45:00Z"), at("2026-10-25T23:00:00Z")];
    let expected = [("2026-10-25", 2), ("2026-10-26", 1)];
    expect(&rows(View::Daily, &slots, &Filter::default(), "Europe/Berlin"), &expected);
}

#[test]
fn a_block_lasts_five_hours_from_the_hour_of_its_first_response() {
    let slots = [
        at("2026-11-15T08:45:00Z"),
        at("2026-11-15T12:45:00Z"),
        at("2026-11-15T13:00:00Z"),
        at("2026-11-15T17:59:00Z"),
        at("2026-11-16T03:15:00Z"),
    ];
    let expected = [("2026-11-15T08:00:00Z", 2), ("2026-11-15T13:00:00Z", 2), ("2026-11-16T03:00:00Z", 1)];
    expect(&rows(View::Blocks, &slots, &Filter::default(), "UTC"), &expected);
    let undated = [UNDATED, slots[0]];
    let expected = [("none", 1), ("2026-11-15T08:00:00Z", 1)];
    expect(&rows(View::Blocks, &undated, &Filter::default(), "UTC"), &expected);
}

#[test]
fn filters_select_days_and_projects() {
    let slots = [UNDATED, at("2026-11-13T10:00:00Z"), at("2026-11-14T10:00:00Z"), at("2026-11-15T10:00:00Z")];
    let since = Filter { since: Some(date(2026, 11, 14)), ..Filter::default() };
    expect(&rows(View::Daily, &slots, &since, "UTC"), &[("2026-11-14", 1), ("2026-11-15", 1)]);
    for (project, expected) in [
        ("/home/x/web", vec![("s0", 2), ("s1", 2)]),
        ("/home/x/web/", vec![("s0", 2), ("s1", 2)]),
        ("..", vec![("s0", 2), ("s1", 2)]),
        ("./api", vec![("s1", 2)]),
        ("/home/x/we", vec![]),
        ("web", vec![("s0", 2)]),
        ("api", vec![("s1", 2)]),
        ("none", vec![]),
    ] {
        let filter =
            Filter { project: Some(ProjectFilter::new(project, Path::new("/home/x/web"))), ..Filter::default() };
        expect(&rows(View::Session, &slots, &filter, "UTC"), &expected);
    }
}

#[test]
fn an_unknown_cost_is_not_guessed() {
    let slots = [at("2026-11-15T10:00:00Z"), at("2026-11-15T10:15:00Z"), at("2026-11-15T10:30:00Z")];
    let report = report(
        View::Models,
        &[(Host::Claude, summary(&slots))],
        &Filter::default(),
        Selection::default(),
        &TimeZone::UTC,
        0,
    );
    let costs: Vec<_> = report.rows.iter().map(|row| (&row.key, row.amounts.cost_micros())).collect();
    let (known, mystery) = (Key::Named("known".into()), Key::Named("mystery".into()));
    assert_eq!(costs, [(&known, Some(6)), (&mystery, None)]);
    let totals = report.totals;
    assert_eq!((totals.cost_micros(), totals.priced_micros, totals.unpriced_tokens), (None, 6, 10));
}

#[test]
fn recent_days_have_one_entry_each() {
    let slots = [at("2026-11-12T10:00:00Z"), at("2026-11-14T10:00:00Z"), at("2026-11-14T11:00:00Z")];
    let report = report(
        View::Daily,
        &[(Host::Claude, summary(&slots))],
        &Filter::default(),
        Selection::default(),
        &TimeZone::UTC,
        0,
    );
    assert_eq!(recent_days(&report.rows, date(2026, 11, 15), 5), [0, 10, 0, 20, 0]);
}

#[test]
fn weeks_begin_on_monday_in_the_asked_zone() {
    // A Sunday evening, the Monday after it, and the Sunday of that week.
    let slots = [at("2026-11-15T23:30:00Z"), at("2026-11-16T00:00:00Z"), at("2026-11-22T10:00:00Z")];
    let all = Filter::default();
    expect(&rows(View::Weekly, &slots, &all, "UTC"), &[("2026-11-09", 1), ("2026-11-16", 2)]);
    expect(&rows(View::Weekly, &slots, &all, "Europe/Berlin"), &[("2026-11-16", 3)]);
    expect(&rows(View::Weekly, &slots, &all, "America/New_York"), &[("2026-11-09", 2), ("2026-11-16", 1)]);
    expect(&rows(View::Weekly, &[UNDATED], &all, "UTC"), &[("none", 1)]);
}

#[test]
fn both_ends_of_a_range_are_inclusive() {
    let slots = [UNDATED, at("2026-11-13T10:00:00Z"), at("2026-11-14T23:45:00Z"), at("2026-11-15T00:00:00Z")];
    let until = Filter { until: Some(date(2026, 11, 14)), ..Filter::default() };
    expect(&rows(View::Daily, &slots, &until, "UTC"), &[("2026-11-13", 1), ("2026-11-14", 1)]);
    let one = Filter { since: until.until, ..until.clone() };
    expect(&rows(View::Daily, &slots, &one, "UTC"), &[("2026-11-14", 1)]);
    expect(&rows(View::Daily, &slots, &one, "Europe/Berlin"), &[]);
}

#[test]
fn projects_agents_and_tools_have_rows_of_their_own() {
    let slots = [at("2026-11-15T10:00:00Z"), at("2026-11-15T10:15:00Z"), at("2026-11-15T10:30:00Z")];
    let all = Filter::default();
    expect(&rows(View::Projects, &slots, &all, "UTC"), &[("/home/x/web", 2), ("/home/x/web/api", 1)]);
    expect(&rows(View::Agents, &slots, &all, "UTC"), &[("(main)", 2), ("Explore", 1)]);
    expect(&rows(View::Tools, &slots, &all, "UTC"), &[("(none)", 2), ("github", 1)]);
    let session = Filter { session: Some("s1".into()), ..Filter::default() };
    expect(&rows(View::Session, &slots, &session, "UTC"), &[("s1", 1)]);
}

#[test]
fn the_last_rows_are_the_newest_or_the_most_expensive() {
    let slots = [at("2026-11-13T10:00:00Z"), at("2026-11-14T10:00:00Z"), at("2026-11-15T10:00:00Z")];
    let select = |view, last, is_descending| {
        let select = Selection { last, is_descending, only_active: false };
        let report = report(view, &[(Host::Claude, summary(&slots))], &Filter::default(), select, &TimeZone::UTC, 0);
        let keys: Vec<Key> = report.rows.into_iter().map(|row| row.key).collect();
        (keys, report.totals.responses)
    };
    let day = |day| Key::Day(Some(date(2026, 11, day)));
    assert_eq!(select(View::Daily, Some(2), None), (vec![day(14), day(15)], Some(2)));
    assert_eq!(select(View::Daily, Some(9), Some(true)), (vec![day(15), day(14), day(13)], Some(3)));
    assert_eq!(select(View::Models, Some(1), None), (vec![Key::Named("known".into())], Some(2)));
    assert_eq!(select(View::Models, None, Some(false)).0[0], Key::Named("mystery".into()));
}

#[test]
fn a_breakdown_adds_up_to_its_row() {
    let slots = [at("2026-11-15T10:00:00Z"), at("2026-11-15T10:15:00Z"), at("2026-11-15T10:30:00Z")];
    let filter = Filter { breakdown: true, ..Filter::default() };
    let report =
        report(View::Daily, &[(Host::Claude, summary(&slots))], &filter, Selection::default(), &TimeZone::UTC, 0);
    let row = serde_json::to_value(&report.rows[0]).unwrap();
    let parts: Vec<_> = row["breakdown"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| {
            (part["model"].as_str().unwrap(), part["input_tokens"].as_i64().unwrap(), part["cost_usd"].as_f64())
        })
        .collect();
    assert_eq!(parts, [("known", 20, Some(0.000_006)), ("mystery", 10, None)]);
    assert_eq!((&row["input_tokens"], &row["models"]), (&json!(30), &json!(["known", "mystery"])));
}

/// 20 tokens for 6 millionths of a dollar in the first hour of a block that began at 10:00.
#[test]
fn a_running_block_has_a_rate_and_a_projection() {
    let slots = [at("2026-11-15T02:00:00Z"), UNDATED, at("2026-11-15T10:00:00Z"), at("2026-11-15T10:15:00Z")];
    let mut summary = summary(&slots);
    for sum in &mut summary.sums {
        sum.cost_micros = Some(3_000);
        sum.tokens.input = 600;
    }
    let now = clock::parse_rfc3339("2026-11-15T11:00:00Z").unwrap();
    let select = Selection { only_active: true, ..Selection::default() };
    let summaries = [(Host::Claude, summary)];
    let active = |now| report(View::Blocks, &summaries, &Filter::default(), select, &TimeZone::UTC, now);
    let report = active(now);
    assert_eq!(report.rows.len(), 1);
    let row = serde_json::to_value(&report.rows[0]).unwrap();
    assert_eq!(
        (&row["start"], &row["active"], &row["minutes_left"]),
        (&json!("2026-11-15T10:00:00Z"), &json!(true), &json!(240))
    );
    assert_eq!(row["burn_rate"], json!({"tokens_per_minute": 20, "cost_usd_per_minute": 0.0001}));
    assert_eq!(row["projection"], json!({"total_tokens": 6_000, "cost_usd": 0.03}));
    assert_eq!(report.totals.tokens.input, 1_200);
    assert!(active(now + BLOCK_MS).rows.is_empty());
}
