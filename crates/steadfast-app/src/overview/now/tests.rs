//! Goals and runs in a real store, as the first page shows them.

use super::*;
use crate::testing::{HOOK, HOUR, MINUTE, SESSION, START, USER, World};
use steadfast_model::goal::budget::Budget;
use steadfast_model::goal::turn::{self, Charge};
use steadfast_model::goal::{Goal, GoalStatus, PausedReason, change};
use steadfast_model::limit::{Cap, CapScope, Limits, Period};
use steadfast_model::memory::{Category, Finding, Findings, Importance};
use steadfast_model::run::{Plan, Rule, RunEvent, StageStatus, machine};
use steadfast_model::testing::runs::{pipeline_of, stage};
use steadfast_store::{ClientActivity, Session};
use steadfast_system::process::ProcessId;

fn page(world: &World, at: Millis) -> Now {
    now(world.store.read(), &world.paths(), &|_| true, at).unwrap()
}

/// A session whose client is this test, in the middle of a turn.
fn working() -> (World, Goal) {
    let mut world = World::new();
    let session = Session {
        session_id: SESSION.into(),
        client: Some(ProcessId::own()),
        started_at_ms: START,
        last_seen_ms: START,
        activity: ClientActivity { turn_since_ms: Some(START), ..ClientActivity::default() },
        ..Session::default()
    };
    world.store.write(|db| db.put_session(&session).and_then(|()| db.begin_turn(SESSION, None, START))).unwrap();
    let budget = Budget { limits: Limits::default().with(Axis::Tokens, 1_000), ..Budget::default() };
    let goal = world.start(budget, START);
    (world, goal)
}

fn charge(world: &mut World, tokens: i64, at: Millis) {
    let goal = world.goal();
    let add = Charge { worker_tokens: tokens, cost_micros: tokens * 10, ..Charge::default() };
    let change = turn::charge(&goal, add, at).unwrap();
    world.store.write(|db| db.save(&goal, change, HOOK)).unwrap();
}

/// Saves the goal as a test wants it.
fn set(world: &mut World, change_goal: impl FnOnce(&mut Goal)) {
    let before = world.goal();
    let mut after = Goal { updated_at_ms: START + MINUTE, ..before.clone() };
    change_goal(&mut after);
    let change = change::Change { goal: after, events: Vec::new(), span: change::Span::Keep };
    world.store.write(|db| db.save(&before, change, HOOK)).unwrap();
}

#[test]
fn an_empty_store_is_an_empty_page() {
    let world = World::new();
    let page = page(&world, START);
    assert_eq!((page.needs.len(), page.working.len(), page.runs.len(), page.ended.len()), (0, 0, 0, 0));
    assert_eq!((page.header.today_tokens, page.header.today_cost_usd), (0, Some(0.0)));
}

#[test]
fn a_goal_in_a_turn_works_and_shows_what_it_spent() {
    let (mut world, _) = working();
    charge(&mut world, 300, START + MINUTE);
    charge(&mut world, 200, START + 2 * MINUTE);
    let page = page(&world, START + 2 * MINUTE);
    let card = page.working.first().unwrap();
    assert_eq!(card.limits.first().map(|bar| (bar.axis, bar.percent)), Some((Axis::Tokens, 50)));
    assert_eq!(card.burn.iter().map(|point| point.tokens).collect::<Vec<_>>(), [0, 300, 500]);
    assert_eq!(card.pace.as_ref().map(|pace| pace.seconds_left), Some(Some(120)));
    assert!(card.actions.contains(&Action::Pause) && !card.actions.contains(&Action::Verify));
    assert_eq!((page.needs.len(), page.waiting.len(), page.header.live_goals), (0, 0, 1));
}

#[test]
fn what_a_goal_does_now_is_the_last_thing_that_was_seen() {
    let (mut world, _) = working();
    let finding = |category, kind, subject: &str, text: &str| Finding {
        category,
        kind,
        importance: Importance::Normal,
        subject: subject.into(),
        text: text.into(),
    };
    let findings = vec![
        finding(Category::File, "edit", "src/parser.rs", "src/parser.rs"),
        finding(Category::Intent, "implement", "", "implement"),
    ];
    let seen = Findings { findings, ..Findings::default() };
    world.store.write(|db| db.remember(SESSION, &seen, START)).unwrap();
    let page = page(&world, START + MINUTE);
    let doing = page.working.first().and_then(|card| card.doing.as_ref()).map(|doing| doing.what.as_str());
    assert_eq!(doing, Some("edit src/parser.rs"));
}

#[test]
fn each_state_of_a_goal_has_its_place() {
    let need = |alter: fn(&mut Goal)| {
        let (mut world, _) = working();
        set(&mut world, alter);
        let page = page(&world, START + HOUR);
        assert_eq!(page.working.len(), 0);
        page.needs.first().map(|need| need.kind)
    };
    assert_eq!(need(|goal| goal.status = GoalStatus::Blocked), Some(NeedKind::Blocked));
    let paused = |reason: PausedReason| {
        let (mut world, _) = working();
        set(&mut world, |goal| {
            goal.status = GoalStatus::Paused;
            goal.paused_reason = Some(reason);
        });
        let page = page(&world, START + HOUR);
        page.needs.first().map(|need| need.kind)
    };
    assert_eq!(paused(PausedReason::SignOff), Some(NeedKind::SignOff));
    assert_eq!(paused(PausedReason::ContinuationCap), Some(NeedKind::Limit));
    assert_eq!(paused(PausedReason::NoProgress), Some(NeedKind::Paused));
    assert_eq!(paused(PausedReason::Interrupted), Some(NeedKind::Stalled));
    assert_eq!(paused(PausedReason::User), None, "you paused it: it waits for you, and needs nothing");
}

#[test]
fn a_goal_that_the_user_paused_waits_for_the_user() {
    let (mut world, goal) = working();
    world.apply(|goal| change::pause(goal, START + MINUTE));
    let page = page(&world, START + HOUR);
    let card = page.waiting.first().unwrap();
    assert_eq!((card.title.as_str(), card.until_ms, card.woken_by.as_str()), (goal.objective.as_str(), None, "you"));
    assert_eq!(card.actions.first(), Some(&Action::Resume));
}

#[test]
fn a_goal_whose_client_is_gone_needs_the_user() {
    let mut world = World::new();
    world.start(Budget::default(), START);
    let page = page(&world, START + HOUR);
    let need = page.needs.first().unwrap();
    assert_eq!(need.kind, NeedKind::Stalled);
    assert!(!need.hint.contains("/goal-"), "the hint is for a terminal: {}", need.hint);
    assert!(need.actions.contains(&Action::Adopt), "another session can take it over");
}

#[test]
fn an_ended_goal_is_listed_with_how_it_ended() {
    let (mut world, goal) = working();
    let proof = steadfast_model::goal::proof::Proof::from_user(&goal, steadfast_model::goal::Actor::User).unwrap();
    world.apply(|goal| change::complete(goal, &proof, START + MINUTE));
    let page = page(&world, START + HOUR);
    let ended = page.ended.first().unwrap();
    assert_eq!((ended.ending, ended.at_ms), (RecentEnding::Completed, START + MINUTE));
    assert_eq!(page.header.live_goals, 0);
}

fn add_run(world: &mut World, plan: &Plan) {
    let run = machine::begin(plan, START);
    let row = world.store.write(|db| db.create_run("run-1", "/shop", plan, &run, START)).unwrap();
    let step = machine::step(&row.plan, row.run, RunEvent::Started, START + MINUTE);
    world.store.write(|db| db.save_step("run-1", row.version, &step, START + MINUTE)).unwrap();
}

#[test]
fn a_run_shows_its_stages_and_needs_the_user_when_its_engine_is_gone() {
    let mut world = World::new();
    add_run(&mut world, &pipeline_of(vec![stage(Rule::FixedN, 2), stage(Rule::FixedN, 1)]));
    let driven = page(&world, START + HOUR);
    let card = driven.runs.first().unwrap();
    let dots: Vec<StageStatus> = card.stages.iter().map(|dot| dot.status).collect();
    assert_eq!(dots, [StageStatus::Running, StageStatus::Pending]);
    assert_eq!((driven.needs.len(), driven.header.live_runs), (0, 1));
    let orphaned = now(world.store.read(), &world.paths(), &|_| false, START + HOUR).unwrap();
    assert_eq!(orphaned.needs.first().map(|need| need.kind), Some(NeedKind::EngineGone));
    assert_eq!(orphaned.header.live_runs, 0);
}

#[test]
fn a_stage_that_asks_is_a_need_with_its_question() {
    let mut world = World::new();
    let mut asking = stage(Rule::FixedN, 1);
    asking.approve = Some("Deploy now?".to_owned());
    add_run(&mut world, &pipeline_of(vec![asking]));
    let page = page(&world, START + HOUR);
    let need = page.needs.first().unwrap();
    assert_eq!((need.kind, need.stage), (NeedKind::Approval, Some(1)));
    assert!(need.why.contains("Deploy now?"), "{}", need.why);
    assert!(need.actions.contains(&Action::Approve));
}

#[test]
fn caps_are_shown_also_when_they_are_far_away() {
    let (mut world, _) = working();
    charge(&mut world, 100, START + MINUTE);
    let mut paths = world.paths();
    paths.config.limits.caps =
        vec![Cap { scope: CapScope::Machine(Period::Daily), axis: Axis::Usd, most: 1_000_000_000 }];
    let page = now(world.store.read(), &paths, &|_| true, START + HOUR).unwrap();
    let cap = page.header.caps.first().unwrap();
    assert_eq!((cap.name.as_str(), cap.percent, cap.is_reached), ("daily_usd", 0, false));
}

#[test]
fn many_goals_are_counted_and_not_all_shown() {
    let mut world = World::new();
    for number in 0..(SHOWN + 25) {
        let mut goal =
            Goal { session_id: format!("s{number}"), goal_id: format!("g{number}"), ..crate::testing::goal() };
        goal.status = GoalStatus::Paused;
        goal.paused_reason = Some(PausedReason::User);
        world.store.write(|db| db.start_goal(&goal, None, USER)).unwrap();
    }
    let page = page(&world, START + HOUR);
    assert_eq!((page.waiting.len(), page.goals_left_out, page.header.live_goals), (SHOWN, 25, SHOWN + 25));
}
