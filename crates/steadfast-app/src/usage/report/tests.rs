//! Rows of the views: days in the local time zone, blocks, filters, unknown prices.

use std::path::Path;

use jiff::civil::date;

use super::*;
use crate::usage::summary::UsageSession;

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
    });
    Summary {
        models: vec!["known".into(), "mystery".into()],
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
    let report = report(view, &[(Host::Claude, summary(slots))], filter, &zone, 0);
    let label = |key: &Key| match key {
        Key::Day(day) | Key::Month(day) => day.map_or_else(|| "none".into(), |day| day.to_string()),
        Key::Session { id, .. } => id.clone(),
        Key::Block { start } => start.map_or_else(|| "none".into(), clock::to_rfc3339),
        Key::Model(model) => model.clone(),
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
    let report = report(View::Models, &[(Host::Claude, summary(&slots))], &Filter::default(), &TimeZone::UTC, 0);
    let costs: Vec<_> = report.rows.iter().map(|row| (&row.key, row.amounts.cost_micros())).collect();
    let (known, mystery) = (Key::Model("known".into()), Key::Model("mystery".into()));
    assert_eq!(costs, [(&known, Some(6)), (&mystery, None)]);
    let totals = report.totals;
    assert_eq!((totals.cost_micros(), totals.priced_micros, totals.unpriced_tokens), (None, 6, 10));
}

#[test]
fn recent_days_have_one_entry_each() {
    let slots = [at("2026-11-12T10:00:00Z"), at("2026-11-14T10:00:00Z"), at("2026-11-14T11:00:00Z")];
    let report = report(View::Daily, &[(Host::Claude, summary(&slots))], &Filter::default(), &TimeZone::UTC, 0);
    assert_eq!(recent_days(&report.rows, date(2026, 11, 15), 5), [0, 10, 0, 20, 0]);
}
