//! The page that Prometheus reads: valid, bounded, without secrets, and as documented.

mod documented;
mod parser;

use std::collections::BTreeMap;
use std::path::Path;

use steadfast_model::clock::Millis;
use steadfast_model::goal::budget::Budget;
use steadfast_model::goal::{Goal, NewGoal};
use steadfast_model::host::Host;
use steadfast_model::limit::{Axis, Cap, CapScope, Limits, Period};
use steadfast_model::quota::{Quota, Window};
use steadfast_model::reading::{Reading, Response, Tokens};
use steadfast_store::testing::{HOUR, START, USER, World};
use steadfast_store::{Keep, Source};
use steadfast_system::config::{Config, RetentionConfig};
use steadfast_system::paths::Paths;

use super::*;
use parser::{Page, parse};

const HOSTILE: &str = "/home/me/ev\"il\\ {x=\"1\"}\n# TYPE steadfast_goals counter\u{1b}[31m\u{202e}";

pub(super) fn paths(world: &World) -> Paths {
    Paths {
        home: world.root.path().join("home"),
        store: world.store.path().to_owned(),
        store_from: "test",
        config: Config::default(),
        closed: Vec::new(),
    }
}

pub(super) fn start(world: &mut World, session: &str, project: &str, limits: Limits) -> Goal {
    let new = NewGoal {
        objective: "Find the hidden word SESAME".into(),
        budget: Budget { limits, ..Budget::default() },
        ..NewGoal::default()
    };
    let goal = Goal::start(new, session, Host::Claude, Some(project.into()), START);
    world.store.write(|db| db.start_goal(&goal, None, USER)).unwrap()
}

pub(super) fn spend(world: &mut World, session: &str, id: &str, model: &str, input: i64, at_ms: Millis) {
    let mut reading = Reading::default();
    let tokens = Tokens { input, output: 1, cache_creation: 2, cache_creation_1h: 0, cache_read: 3 };
    reading.add(Response { id: id.into(), model: model.into(), tokens, at_ms, ..Response::default() });
    let path = Path::new("/t.jsonl");
    let source = Source { host: Host::Claude, session_id: session, agent_id: "", agent_type: "", path };
    world
        .store
        .write(|db| {
            for (goal_id, charge) in db.record(source, &reading, None, at_ms)?.charges {
                db.charge_other_goal(&goal_id, charge, USER, at_ms)?;
            }
            Ok::<_, StoreError>(())
        })
        .unwrap();
}

fn page(world: &World, now: Millis) -> Page {
    parse(&prometheus(world.store.read(), &paths(world), now).unwrap())
}

#[test]
fn an_empty_store_has_every_metric_and_no_series_of_goals() {
    let page = page(&World::new(), START);
    let names: Vec<&str> = page.families.iter().map(|family| family.name.as_str()).collect();
    assert_eq!(names, METRICS.iter().map(|spec| spec.name).collect::<Vec<_>>());
    assert_eq!(page.value("steadfast_build_info", &[("version", env!("CARGO_PKG_VERSION"))]), Some(1.0));
    assert_eq!(page.value("steadfast_goals", &[("status", "active"), ("host", "codex")]), Some(0.0));
    assert_eq!(page.value("steadfast_needs_you", &[("reason", "sign_off")]), Some(0.0));
    assert_eq!(page.value("steadfast_runs", &[("status", "failed"), ("kind", "pipeline")]), Some(0.0));
    assert!(page.value("steadfast_store_size_bytes", &[]).unwrap() > 0.0);
    assert_eq!(page.family("steadfast_goal_tokens_total").samples.len(), 0);
}

#[test]
fn a_live_goal_has_its_numbers_under_an_escaped_name() {
    let mut world = World::new();
    let limits = Limits::default().with(Axis::Tokens, 200).with(Axis::Turns, 10);
    let goal = start(&mut world, "s1", HOSTILE, limits);
    spend(&mut world, "s1", "r1", "claude-opus-4-8", 47, START + 1);
    let text = prometheus(world.store.read(), &paths(&world), START + 60_000).unwrap();
    assert!(!text.contains("SESAME") && !text.contains("/home/me") && !text.contains('\u{1b}'), "{text}");
    let parsed = parse(&text);
    let project = "ev\"il\\ {x=\"1\"} …";
    let of = |more: &[(&str, &str)]| -> Vec<(String, String)> {
        let own = [("goal_id", goal.goal_id.as_str()), ("host", "claude"), ("project", project)];
        own.iter().chain(more).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let value = |name: &str, more: &[(&str, &str)]| {
        let labels = of(more);
        let labels: Vec<(&str, &str)> = labels.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        parsed.value(name, &labels)
    };
    assert_eq!(value("steadfast_goal_tokens_total", &[("agent", "worker")]), Some(50.0));
    assert_eq!(value("steadfast_goal_limit_used_ratio", &[("limit", "tokens")]), Some(0.25));
    assert_eq!(value("steadfast_goal_limit_used_ratio", &[("limit", "turns")]), Some(0.0));
    assert_eq!(value("steadfast_goal_active_seconds_total", &[]), Some(60.0));
    assert!(value("steadfast_goal_cost_usd_total", &[]).unwrap() > 0.0);
    spend(&mut world, "s1", "r2", "a-model-without-price", 1, START + 2);
    assert_eq!(page(&world, START).family("steadfast_goal_cost_usd_total").samples.len(), 0);
}

#[test]
fn the_number_of_series_is_bounded() {
    let mut world = World::new();
    for number in 0..130 {
        start(&mut world, &format!("s{number}"), &format!("/p/{number}"), Limits::default().with(Axis::Tokens, 9));
        spend(&mut world, "other", &format!("r{number}"), &format!("model-{number:03}"), 10, START + number);
    }
    let page = page(&world, START + HOUR);
    assert_eq!(page.family("steadfast_goal_turns_total").samples.len(), 100);
    assert_eq!(page.value("steadfast_goals_left_out", &[]), Some(30.0));
    let tokens = page.family("steadfast_tokens_total");
    assert_eq!(tokens.samples.len(), 4 * 101);
    let other = [("host", "claude"), ("model", "other"), ("type", "input")];
    assert_eq!(page.value("steadfast_tokens_total", &other), Some(300.0));
    let all = tokens.samples.values().sum::<f64>();
    assert_eq!(Some(all), Some(f64::from(130 * (10 + 1 + 2 + 3))), "nothing is lost");
    let series: usize = page.families.iter().map(|family| family.samples.len()).sum();
    assert!(series < 2_000, "{series}");
}

#[test]
fn counters_do_not_decrease_when_details_are_deleted() {
    let mut world = World::new();
    let day = 24 * HOUR;
    for number in 0..120 {
        let model = format!("model-{:03}", 120 - number);
        spend(&mut world, "s", &format!("r{number}"), &model, 100, START - (200 - number) * day);
    }
    let counters = |page: &Page| -> BTreeMap<String, f64> {
        let all = page.families.iter().filter(|family| family.kind == "counter");
        all.flat_map(|family| {
            family.samples.iter().map(|(labels, value)| (format!("{}{labels:?}", family.name), *value))
        })
        .collect()
    };
    let before = counters(&page(&world, START));
    let details = RetentionConfig { ledger_days: 150, ..RetentionConfig::default() };
    world.store.upkeep_all(&Keep { details: &details, memory_days: 30 }, START).unwrap();
    assert!(world.count("SELECT count(*) FROM usage_days") > 20, "some are deleted");
    assert_eq!(counters(&page(&world, START)), before);
    spend(&mut world, "s", "new", "aaa-a-new-model", 100, START);
    let after = counters(&page(&world, START));
    assert!(before.iter().all(|(series, value)| after.get(series).is_some_and(|now| now >= value)), "a new model");
}

#[test]
fn caps_and_the_plan_have_their_own_series() {
    let mut world = World::new();
    let quota =
        Quota { window: Window::FiveHour, used_percent: 42, resets_at_ms: Some(START + HOUR), seen_at_ms: START };
    world.store.write(|db| db.put_quota(Host::Codex, &quota)).unwrap();
    let mut paths = paths(&world);
    let cap = |scope, axis, most| Cap { scope, axis, most };
    paths.config.limits.caps = vec![
        cap(CapScope::Machine(Period::Daily), Axis::Usd, 20_000_000),
        cap(CapScope::Model("claude\"x".into(), Period::Weekly), Axis::Tokens, 500),
    ];
    let page = parse(&prometheus(world.store.read(), &paths, START).unwrap());
    assert_eq!(page.value("steadfast_cap_limit_usd", &[("cap", "daily_usd")]), Some(20.0));
    let model = [("cap", "models.\"claude\"x\".weekly_tokens")];
    assert_eq!(page.value("steadfast_cap_limit_tokens", &model), Some(500.0));
    let window = [("host", "codex"), ("window", "five_hour")];
    assert_eq!(page.value("steadfast_plan_used_ratio", &window), Some(0.42));
    let reset = page.value("steadfast_plan_reset_timestamp_seconds", &window);
    assert_eq!(reset, Some(f64::from(i32::try_from((START + HOUR) / 1_000).unwrap())));
}

#[test]
fn failures_of_hooks_are_counted_for_a_day() {
    let world = World::new();
    let paths = paths(&world);
    let line = |ago: Millis, text: &str| format!("{} {text}\n", steadfast_model::clock::to_rfc3339(START - ago));
    let log = [line(25 * HOUR, "old"), line(HOUR, "broken"), line(HOUR, "note: closed"), "x\n".into()].concat();
    fs_err::create_dir_all(paths.log_file().parent().unwrap()).unwrap();
    fs_err::write(paths.log_file(), log).unwrap();
    assert_eq!(page(&world, START).value("steadfast_hook_failures", &[]), Some(1.0));
}
