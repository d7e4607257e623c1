//! Names follow the conventions of Prometheus, and `docs/` knows exactly these metrics.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::metrics::{METRICS, MetricKind, Spec};

const PAGE: &str = include_str!("../../../../../docs/metrics.md");
const DASHBOARD: &str = include_str!("../../../../../docs/grafana-dashboard.json");

/// What a name with this unit ends in, before `_total`.
fn suffix_of(unit: &str) -> &'static str {
    match unit {
        "s" => "_seconds",
        "By" => "_bytes",
        "USD" => "_usd",
        "{token}" => "_tokens",
        _ => "",
    }
}

#[test]
fn names_say_kind_and_unit() {
    let mut names = BTreeSet::new();
    for Spec { name, kind, help, unit, labels } in METRICS {
        assert!(names.insert(name), "{name} twice");
        assert!(name.starts_with("steadfast_") && help.ends_with('.') && !help.contains(['\\', '\n']), "{name}");
        let base = name.strip_suffix("_total");
        assert_eq!(base.is_some(), *kind == MetricKind::Counter, "{name}: only counters end in _total");
        assert!(base.unwrap_or(name).ends_with(suffix_of(unit)), "{name} is counted in {unit}");
        let is_ratio = help.contains("Used part of");
        assert_eq!(name.ends_with("_ratio"), is_ratio && *kind == MetricKind::Gauge, "{name}");
        assert!(labels.iter().all(|label| !["objective", "prompt", "session_id", "path"].contains(label)), "{name}");
    }
}

#[test]
fn the_documentation_lists_exactly_these_metrics() {
    let row = |spec: &Spec| {
        let labels: Vec<String> = spec.labels.iter().map(|label| format!("`{label}`")).collect();
        format!("| `{}` | {} | {} | {} |", spec.name, spec.kind, labels.join(", "), spec.help)
    };
    let expected: Vec<String> = METRICS.iter().map(row).collect();
    let documented: Vec<&str> = PAGE.lines().filter(|line| line.starts_with("| `steadfast_")).collect();
    assert_eq!(documented, expected, "paste this into docs/metrics.md:\n{}", expected.join("\n"));
}

/// All values of a key, at any depth.
fn find<'a>(value: &'a Value, key: &str, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get(key).and_then(Value::as_str));
            fields.values().for_each(|field| find(field, key, found));
        }
        Value::Array(elements) => elements.iter().for_each(|element| find(element, key, found)),
        _ => {}
    }
}

#[test]
fn the_dashboard_asks_only_for_metrics_and_labels_that_exist() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let mut queries = Vec::new();
    find(&dashboard, "expr", &mut queries);
    assert!(queries.len() >= 8, "{queries:?}");
    for query in &queries {
        let words = query.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).filter(|word| !word.is_empty());
        let used: Vec<&str> = words.filter(|word| word.starts_with("steadfast_")).collect();
        assert!(!used.is_empty(), "{query}");
        for name in &used {
            assert!(METRICS.iter().any(|spec| spec.name == *name), "{name} in {query}");
        }
        let grouped = query.split(" by (").skip(1).filter_map(|rest| rest.split(')').next());
        for label in grouped.flat_map(|labels| labels.split(',')).map(str::trim) {
            let is_known = METRICS.iter().any(|spec| used.contains(&spec.name) && spec.labels.contains(&label));
            assert!(is_known, "{label} in {query}");
        }
        assert_eq!(query.matches('(').count(), query.matches(')').count(), "{query}");
    }
    for panel in dashboard["panels"].as_array().unwrap() {
        assert!(panel["type"].is_string() && panel["title"].is_string() && panel["gridPos"]["w"].is_u64(), "{panel}");
        let source = &panel["datasource"]["uid"];
        assert_eq!(source, "${datasource}", "{panel}");
    }
    assert_eq!(dashboard["templating"]["list"][0]["type"], "datasource");
    assert!(dashboard["schemaVersion"].as_u64().unwrap() >= 39 && dashboard["uid"].is_string());
}
