//! Every page for stores without, with little and with hostile content.

use std::path::Path;

use jiff::tz::TimeZone;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};
use steadfast_app::overview::now::Header;
use steadfast_app::usage::charts;
use steadfast_engine::attempt::Attempt;
use steadfast_model::goal::budget::Budget;
use steadfast_model::goal::proof::Evidence;
use steadfast_model::goal::{Goal, NewGoal, change};
use steadfast_model::host::Host;
use steadfast_model::limit::{Axis, Limits};
use steadfast_model::memory::{Category, Finding, Findings, Importance};
use steadfast_model::run::{AgentResult, Outcome, Plan, Rule, RunEvent, StagePlan, Success, machine};
use steadfast_model::testing::runs::{id, pipeline_of, stage, success};
use steadfast_model::text;
use steadfast_store::testing::{MINUTE, START, USER, World};
use steadfast_system::config::Config;

use super::*;

const HOSTILE: &str =
    "<script>alert(1)</script>\"><img src=x onerror=alert(2)>' {{ 7*7 }} \u{202e}txet\u{202c} \u{1b}[31mred";
const RUN: &str = "run-1";

fn paths(root: &Path) -> Paths {
    Paths {
        home: root.join("home"),
        store: root.join("home/goals.db"),
        store_from: "test",
        config: Config::default(),
        closed: Vec::new(),
    }
}

/// A store with a goal in each of a few states, and a run with an iteration; every text in it is `words`.
fn world(words: &str) -> (World, Paths, Goal) {
    let mut world = World::new();
    let paths = paths(world.root.path());
    let now = clock::now();
    let limits = Limits::default().with(Axis::Tokens, 1_000_000).with(Axis::Turns, 20);
    let new = || NewGoal {
        objective: words.to_owned(),
        budget: Budget { limits, ..Budget::default() },
        verify: vec![words.to_owned()],
        items: vec![words.to_owned()],
        ..NewGoal::default()
    };
    let mut goal_in = |session: &str| {
        let goal = Goal::start(new(), session, Host::default(), Some(format!("/home/ann/{words}")), now - MINUTE);
        world.store.write(|db| db.start_goal(&goal, None, USER)).unwrap()
    };
    let (working, blocked, over) = (goal_in("working"), goal_in("blocked"), goal_in("over"));
    let change = change::block(&blocked, words, now).unwrap();
    world.store.write(|db| db.save(&blocked, change, USER)).unwrap();
    let change = change::abandon(&over, now).unwrap();
    world.store.write(|db| db.save(&over, change, USER)).unwrap();
    let evidence = Evidence {
        command: words.to_owned(),
        exit_code: Some(1),
        timed_out: false,
        duration_ms: 2_000,
        output_sha256: "aa".repeat(32),
        output_tail: words.to_owned(),
        git_commit: Some(words.to_owned()),
        git_dirty: Some(true),
        created_at_ms: now,
    };
    let working = world.store.write(|db| db.record_evidence(&working, &[evidence], USER, now)).unwrap();
    let proof = change::prove_items(&working, &[(1, format!("shown by {}", text::cut(words, 900)))], now).unwrap();
    let working = world.store.write(|db| db.save(&working, proof, USER)).unwrap();
    world.store.write(|db| db.enqueue("working", &new(), now)).unwrap();
    let finding = Finding {
        category: Category::File,
        kind: "edit",
        importance: Importance::Normal,
        subject: words.to_owned(),
        text: words.to_owned(),
    };
    let found = Findings { findings: vec![finding], ..Findings::default() };
    world.store.write(|db| db.remember("working", &found, now)).unwrap();
    add_run(&mut world, &paths, words);
    (world, paths, working)
}

fn add_run(world: &mut World, paths: &Paths, words: &str) {
    let named = |stage: StagePlan| StagePlan { name: words.to_owned(), approve: Some(words.to_owned()), ..stage };
    let plan = Plan { name: words.to_owned(), title: words.to_owned(), ..pipeline_of(vec![]) };
    let plan = Plan { stages: vec![stage(Rule::FixedN, 1), named(stage(Rule::FixedN, 1))], ..plan };
    let run = machine::begin(&plan, START);
    let mut row = world.store.write(|db| db.create_run(RUN, words, &plan, &run, START)).unwrap();
    let result =
        AgentResult { summary: Some(words.to_owned()), errors: vec![words.to_owned()], ..AgentResult::default() };
    let outcome = Outcome::Succeeded(Box::new(Success { result, ..success("one") }));
    for event in [RunEvent::Started, RunEvent::Ended { id: id("1.1.1"), outcome }] {
        let step = machine::step(&row.plan, row.run, event, START + MINUTE);
        world.store.write(|db| db.save_step(RUN, row.version, &step, START + MINUTE)).unwrap();
        row = world.store.read().run(RUN).unwrap().unwrap();
    }
    world.store.write(|db| db.add_note(RUN, words, START)).unwrap();
    let output = Attempt::at(&paths.home, RUN, id("1.1.1")).output();
    fs_err::create_dir_all(output.parent().unwrap()).unwrap();
    fs_err::write(output, format!("first line\n{words}\n")).unwrap();
}

fn pages(goal: &Goal) -> Vec<Page> {
    vec![
        Page::Now,
        Page::Goal { id: goal.goal_id.clone() },
        Page::Run { id: RUN.into(), stage: None, iteration: None },
        Page::Run { id: RUN.into(), stage: Some(1), iteration: Some(1) },
        Page::Search { words: "alert".into() },
        Page::Help,
    ]
}

fn shown(paths: &Paths, page: &Page) -> String {
    let rendered = html(paths, page, &PageShell::default());
    assert_eq!(rendered.status, 200, "{page:?}: {}", rendered.html);
    rendered.html
}

/// The tags of a page; `>` in the value of an attribute ends none.
fn tags(html: &str) -> Vec<String> {
    let mut tags = Vec::new();
    let mut rest = html;
    while let Some(start) = rest.find('<') {
        let (mut quoted, mut tag) = (false, String::new());
        for character in rest[start..].chars() {
            tag.push(character);
            match character {
                '"' => quoted = !quoted,
                '>' if !quoted => break,
                _ => {}
            }
        }
        rest = &rest[start + tag.len()..];
        tags.push(tag);
    }
    tags
}

/// What the page's policy forbids, and what would mean that text became markup.
fn assert_inert(html: &str) {
    let scripts: Vec<_> = tags(html).into_iter().filter(|tag| tag.starts_with("<script")).collect();
    assert!(scripts.iter().all(|tag| tag.contains(" src=\"/assets/")), "{scripts:?}");
    for tag in tags(html) {
        assert!(!tag.starts_with("<img") && !tag.starts_with("<style"), "{tag}");
        // Values are text; what is left are the names of attributes.
        let names: String = tag.split('"').step_by(2).collect();
        assert!(!names.contains(" on") && !names.contains("style="), "{tag}");
    }
    for forbidden in ['\u{202e}', '\u{202c}', '\u{1b}'] {
        assert!(!html.contains(forbidden), "{forbidden:?}");
    }
    assert!(!html.contains("javascript:"));
}

#[test]
fn without_a_store_the_first_page_teaches_the_next_command() {
    let directory = tempfile::tempdir().unwrap();
    let paths = paths(directory.path());
    let first = html(&paths, &Page::Now, &PageShell::default());
    assert_eq!(first.status, 200);
    assert!(first.html.contains("steadfast demo") && first.html.contains("steadfast setup claude"), "{}", first.html);
    let goal = html(&paths, &Page::Goal { id: "x".into() }, &PageShell::default());
    assert_eq!(goal.status, 404);
    let (status, json) = json(&paths, &Page::Now);
    assert_eq!(status, 404);
    let json: Json = serde_json::from_str(&json).unwrap();
    assert!(json["error"].as_str().unwrap().contains("does not exist") && json["hint"].is_string());
    assert!(!paths.store.exists(), "a page creates no store");
}

#[test]
fn an_empty_store_teaches_too() {
    let world = World::new();
    let paths = paths(world.root.path());
    let now = shown(&paths, &Page::Now);
    assert!(now.contains("Nothing needs you.") && now.contains("No goals yet"), "{now}");
    let search = shown(&paths, &Page::Search { words: "nothing here".into() });
    assert!(search.contains("Nothing matches"), "{search}");
    for page in [Page::Goal { id: "none".into() }, Page::Run { id: "none".into(), stage: None, iteration: None }] {
        let missing = html(&paths, &page, &PageShell::default());
        assert_eq!(missing.status, 404);
        assert!(missing.html.contains("with the id `none`"), "{}", missing.html);
    }
}

#[test]
fn an_unusable_store_is_a_page_with_its_hint() {
    let directory = tempfile::tempdir().unwrap();
    let paths = paths(directory.path());
    fs_err::create_dir_all(&paths.home).unwrap();
    fs_err::write(&paths.store, "this is no database, and it is long enough to be looked at by SQLite".repeat(40))
        .unwrap();
    let page = html(&paths, &Page::Now, &PageShell::default());
    assert_eq!(page.status, 503);
    assert!(page.html.contains("is not a usable database") && page.html.contains("steadfast db recover"));
}

#[test]
fn every_page_of_a_small_store_shows_what_is_in_it() {
    let (_world, paths, goal) = world("All tests pass");
    let now = shown(&paths, &Page::Now);
    assert!(now.contains("Blocked") && now.contains("Needs you"), "{now}");
    assert!(now.contains("abandoned"), "{now}");
    let page = shown(&paths, &Page::Goal { id: goal.goal_id.clone() });
    assert!(page.contains("exit code 1") && page.contains("Queue"), "{page}");
    let short = html(&paths, &Page::Goal { id: goal.goal_id[..8].to_owned() }, &PageShell::default());
    assert_eq!(short.status, 200, "a prefix is enough");
    let run = shown(&paths, &Page::Run { id: RUN.into(), stage: None, iteration: None });
    assert!(run.contains("first line\nAll tests pass\n"), "{run}");
    assert!(run.contains("chart-graph"), "the stages are a graph: {run}");
}

#[test]
fn hostile_text_is_inert_on_every_page() {
    let (_world, paths, goal) = world(HOSTILE);
    for page in pages(&goal) {
        assert_inert(&shown(&paths, &page));
    }
    let now = shown(&paths, &Page::Now);
    assert!(now.contains("&lt;script&gt;alert(1)") && now.contains("{{ 7*7 }}"), "{now}");
    let notice = Some(Notice { is_error: true, text: HOSTILE.into() });
    assert_inert(&html(&paths, &Page::Now, &PageShell { read_only: true, notice }).html);
    for page in [Page::Search { words: HOSTILE.into() }, Page::Goal { id: HOSTILE.into() }] {
        assert_inert(&html(&paths, &page, &PageShell::default()).html);
    }
    assert_inert(&template::broken(HOSTILE));
}

#[test]
fn a_page_that_is_read_only_has_no_forms_but_the_search() {
    let (_world, paths, goal) = world("All tests pass");
    for page in pages(&goal) {
        let shell = PageShell { read_only: true, notice: None };
        let html = html(&paths, &page, &shell).html;
        assert_eq!(html.matches("method=\"post\"").count(), 0, "{page:?}");
        assert!(html.contains("read-only"));
    }
    assert!(shown(&paths, &Page::Now).contains("method=\"post\""));
}

#[test]
fn a_huge_objective_has_a_page_of_bounded_size() {
    let words = "Make it work, <whatever> it takes ".repeat(117);
    let (_world, paths, goal) = world(&words);
    let now = shown(&paths, &Page::Now);
    // The text stands for names and paths here too, which are far shorter in life.
    assert!(now.len() < 200_000, "{}", now.len());
    let page = shown(&paths, &Page::Goal { id: goal.goal_id.clone() });
    let escaped = words.replace('<', "&lt;").replace('>', "&gt;");
    assert!(page.contains(escaped.trim_end()), "the page of the goal has all of it");
}

/// JSON in which no object has a key twice.
struct Unique;

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Unique {
    type Value = Self;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
        let mut seen = std::collections::BTreeSet::new();
        while let Some((key, Self)) = map.next_entry::<String, Self>()? {
            if !seen.insert(key.clone()) {
                return Err(A::Error::custom(format!("`{key}` twice")));
            }
        }
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self, A::Error> {
        while list.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }
}

#[test]
fn json_is_the_read_model() {
    let (world, paths, goal) = world("All tests pass");
    let db = world.store.read();
    let at = clock::now();
    let parsed = |page: &Page| {
        let (status, text) = json(&paths, page);
        assert_eq!(status, 200);
        serde_json::from_str::<Unique>(&text).unwrap();
        serde_json::from_str::<Json>(&text).unwrap()
    };
    // What depends on the moment is left out.
    let without = |mut json: Json, keys: &[&str]| {
        for key in keys {
            *json.pointer_mut(key).unwrap() = Json::Null;
        }
        json
    };
    let page = Page::Run { id: RUN.into(), stage: None, iteration: None };
    assert_eq!(parsed(&page), serde_json::to_value(run::model(db, &paths, RUN, None, at).unwrap()).unwrap());
    let model = serde_json::to_value(goal::model(db, &paths, &goal.goal_id, at).unwrap()).unwrap();
    let moving = ["/report/goal/wall_seconds", "/report/goal/active_seconds", "/pace", "/bars"];
    assert_eq!(without(parsed(&Page::Goal { id: goal.goal_id.clone() }), &moving), without(model, &moving));
    let now = parsed(&Page::Now);
    let model = serde_json::to_value(crate::facts::now(db, &paths, at).unwrap()).unwrap();
    assert_eq!(now["needs"], model["needs"]);
    assert_eq!(now["runs"], model["runs"]);
    assert!(!now["needs"].as_array().unwrap().is_empty());
    let found = parsed(&Page::Search { words: "tests".into() });
    assert_eq!(found, serde_json::to_value(find::find(db, "tests", MOST_FOUND).unwrap()).unwrap());
}

#[test]
fn the_usage_page_shows_charts_or_says_that_there_are_none() {
    let header =
        Header { live_goals: 0, live_runs: 0, today_tokens: 0, today_cost_usd: Some(0.0), caps: vec![], plan: vec![] };
    let charts = charts::charts(&[], 7, &TimeZone::UTC, clock::wall());
    let page = rendered(&Page::Usage { days: 7 }, &PageShell::default(), Ok(usage::of(&charts, &header, 7)));
    assert_eq!(page.status, 200, "{}", page.html);
    assert!(page.html.contains("No usage in these days"), "{}", page.html);
    assert_inert(&page.html);
}

#[test]
fn vendored_files_are_those_of_the_registry() {
    let notes = include_str!("../../../assets/THIRD-PARTY.md");
    let hash = text::hex(&Sha256::digest(include_bytes!("../../../assets/idiomorph.js")));
    assert!(notes.contains(&hash), "{hash}");
}

#[test]
fn a_first_visit_is_small() {
    let (_world, paths, _goal) = world("All tests pass");
    let files = [
        include_str!("../../../assets/idiomorph.js"),
        include_str!("../../../assets/live.js"),
        include_str!("../../../assets/style.css"),
        crate::chart::CSS,
    ];
    let bytes = shown(&paths, &Page::Now).len() + files.iter().map(|file| file.len()).sum::<usize>();
    assert!(bytes < 150 * 1024, "{bytes}");
}
