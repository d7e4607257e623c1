//! Accounting with real files and a real store: what a goal is charged, and what not.

use super::*;
use crate::action;
use crate::testing::{HOOK, MINUTE, SECOND, SESSION, START, USER, WORKER, World, append, reply, reply_with_usage};
use steadfast_model::goal::budget::Budget;
use steadfast_model::goal::change::{self, Span};
use steadfast_store::Session;

mod any_order;
mod codex_copies;
mod doubt;
mod evaluator;

impl World {
    /// One pass over all files of the session.
    fn account(&mut self, now: Millis) -> AccountingFacts {
        let readings = read_session(&self.store, Host::Claude, SESSION, &self.transcript).unwrap();
        let goal = self.goal();
        let (_, facts) = self.store.write(|db| record(db, goal, &readings, HOOK, now)).unwrap();
        facts
    }

    fn tokens(&self) -> (i64, i64) {
        let goal = self.goal();
        (goal.tokens_used, goal.subagent_tokens)
    }

    fn pause(&mut self, now: Millis) {
        action::apply(&mut self.store, SESSION, USER, now, |goal| change::pause(goal, now)).unwrap();
    }

    fn resume(&mut self, now: Millis) {
        action::resume(&mut self.store, SESSION, USER, now).unwrap();
    }

    fn complete(&mut self, now: Millis) {
        action::complete(
            &mut self.store,
            SESSION,
            &action::Claim::Agent { judged: false, verified: None },
            WORKER,
            now,
        )
        .unwrap();
    }

    fn close_span(&mut self, now: Millis) {
        let goal = self.goal();
        self.store.write(|db| db.move_span(&goal, Span::Close, now)).unwrap();
    }

    /// Registers the session as a hook does, so that commands know its file.
    fn register(&mut self) {
        let session = Session {
            session_id: SESSION.into(),
            host: Host::Claude,
            cwd: String::new(),
            project_dir: String::new(),
            transcript_path: self.transcript.to_string_lossy().into_owned(),
            client: None,
            parent_session_id: None,
            parent_link: None,
            last_prompt_ms: None,
            started_at_ms: START,
            last_seen_ms: START,
            ended_at_ms: None,
            end_reason: None,
            ..Session::default()
        };
        self.store.write(|db| db.put_session(&session)).unwrap();
    }
}

fn at(seconds: i64) -> Millis {
    START + seconds * SECOND
}

fn running_goal() -> World {
    let mut world = World::new();
    world.start(Budget::default(), START);
    world
}

/// Bug 1 of the plugin: every line of a response was added up.
#[test]
fn a_response_on_many_lines_is_charged_once_with_its_last_values() {
    let mut world = running_goal();
    world.write(&reply("m1", at(1), [100, 1, 20, 500]));
    world.write(&reply("m1", at(1), [100, 1, 20, 500]));
    world.account(at(2));
    assert_eq!(world.tokens(), (121, 0));
    world.write(&reply("m1", at(1), [100, 40, 20, 500]));
    world.account(at(3));
    let goal = world.goal();
    assert_eq!((goal.tokens_used, goal.cache_read_tokens), (160, 500));
    let deltas: Vec<Option<i64>> = world.events().iter().map(|event| event.tokens_delta).collect();
    assert_eq!(deltas, [None, Some(121), Some(39)], "the log adds up to the total");
}

#[test]
fn a_pass_that_finds_nothing_writes_nothing() {
    let mut world = running_goal();
    world.write(&reply("m1", at(1), [10, 1, 0, 0]));
    world.account(at(2));
    let before = (world.goal(), world.event_kinds());
    world.account(at(3));
    assert_eq!((world.goal(), world.event_kinds()), before);
}

/// Bug 2 of the plugin: the whole conversation before the goal was charged to it.
#[test]
fn tokens_from_before_the_goal_are_not_charged() {
    let mut world = World::new();
    world.write(&reply("m0", at(-60), [310_000, 1, 0, 0]));
    world.start(Budget::default(), START);
    world.write(&reply("m1", at(1), [10, 1, 0, 0]));
    world.account(at(2));
    assert_eq!(world.tokens(), (11, 0));
}

#[test]
fn tokens_from_before_the_goal_are_not_charged_from_an_unknown_file() {
    let mut world = World::new();
    world.write(&reply("m0", at(-60), [310_000, 1, 0, 0]));
    let place = action::Place { transcript: None, ..world.place() };
    let new = crate::testing::new_goal(Budget::default());
    action::start(&mut world.store, &place, new, USER, START).unwrap();
    world.write(&reply("m1", at(1), [10, 1, 0, 0]));
    world.account(at(2));
    assert_eq!(world.tokens(), (11, 0));
}

/// Bug 2, second half: the previous goal of the session was charged to the next one.
#[test]
fn tokens_of_the_previous_goal_stay_with_it() {
    let mut world = running_goal();
    world.register();
    let first = world.goal().goal_id;
    world.write(&reply("m1", at(1), [100, 1, 0, 0]));
    world.complete(at(2));
    // The rest of the turn that ended it is written late, and no Stop hook came.
    world.write(&reply("m2", at(3), [200, 2, 0, 0]));
    let second = world.start(Budget::default(), at(10));
    world.write(&reply("m3", at(11), [7, 0, 0, 0]));
    world.account(at(12));
    assert_eq!(world.tokens(), (7, 0));
    let replaced = world.store.read().replaced_goals(Some(SESSION)).unwrap();
    let history: Vec<(&str, i64)> = replaced.iter().map(|goal| (&*goal.goal_id, goal.tokens_used)).collect();
    assert_eq!(history, [(&*first, 303)]);
    assert_eq!(second.version, replaced[0].version + 1, "an old holder of the row must lose");
}

/// Bug 4 of the plugin: what a session spent while its goal was paused was charged at the resume.
#[test]
fn tokens_spent_while_paused_are_not_charged() {
    let mut world = running_goal();
    world.write(&reply("m1", at(1), [10, 0, 0, 0]));
    world.account(at(2));
    world.pause(at(3));
    world.write(&reply("m2", at(4), [50_000, 0, 0, 0]));
    world.resume(at(5));
    world.write(&reply("m3", at(6), [7, 0, 0, 0]));
    world.account(at(7));
    assert_eq!(world.tokens(), (17, 0));
}

#[test]
fn tokens_from_just_before_a_pause_are_charged_even_if_they_are_read_late() {
    let mut world = running_goal();
    world.write(&reply("m1", at(1), [10, 0, 0, 0]));
    world.pause(at(3));
    world.resume(at(60));
    world.account(at(61));
    assert_eq!(world.tokens(), (10, 0));
}

/// Bug 3 of the plugin: a finished goal was charged for everything its session did later.
#[test]
fn a_finished_goal_is_charged_for_the_turn_that_ended_it_and_no_more() {
    let mut world = running_goal();
    world.write(&reply("m1", at(1), [10, 0, 0, 0]));
    world.complete(at(2));
    world.write(&reply("m2", at(3), [5, 0, 0, 0]));
    world.account(at(4));
    assert_eq!(world.tokens(), (15, 0));
    world.close_span(at(4));
    world.write(&reply("m3", at(5), [5_000, 0, 0, 0]));
    world.account(at(6));
    assert_eq!(world.tokens(), (15, 0));
}

/// Bug 17 of the plugin: what a subagent said after its last tool call was never counted.
#[test]
fn subagents_are_charged_to_their_last_line() {
    let mut world = running_goal();
    let [one, two] = ["a1", "b\"2"].map(|id| world.subagent(id));
    append(&one, &reply("s1", at(1), [100, 0, 0, 9]));
    append(&two, &reply("s2", at(1), [20, 0, 0, 0]));
    world.write(&reply("m1", at(1), [3, 0, 0, 0]));
    world.account(at(2));
    append(&one, &reply("s3", at(3), [0, 11, 0, 0]));
    world.account(at(4));
    world.account(at(5));
    assert_eq!(world.tokens(), (3, 131));
    let readings = read_subagent(&world.store, Host::Claude, &two, "b\"2").unwrap();
    assert_eq!(readings[0].reading.responses, []);
}

#[test]
fn a_fork_is_charged_for_its_own_responses_only() {
    let mut world = running_goal();
    let shared = reply("m1", at(1), [100, 0, 0, 0]);
    world.write(&shared);
    world.account(at(2));

    let fork = action::Place { session_id: "fork".into(), transcript: None, ..world.place() };
    let new = crate::testing::new_goal(Budget::default());
    // Not even a goal of the fork whose time includes the copied line is charged for it.
    let goal = action::start(&mut world.store, &fork, new, USER, at(-60)).unwrap();
    let file = world.root.path().join("fork.jsonl");
    append(&file, &format!("{shared}{}", reply("f1", at(3), [7, 0, 0, 0])));
    let readings = read_session(&world.store, Host::Claude, "fork", &file).unwrap();
    let (forked, _) = world.store.write(|db| record(db, goal, &readings, HOOK, at(4))).unwrap();
    assert_eq!((forked.tokens_used, world.tokens()), (7, (100, 0)));
}

#[test]
fn a_response_without_a_timestamp_counts_when_it_is_read() {
    let mut world = running_goal();
    let mut line: serde_json::Value = serde_json::from_str(&reply("m1", at(1), [10, 0, 0, 0])).unwrap();
    line.as_object_mut().unwrap().shift_remove("timestamp");
    world.write(&format!("{line}\n"));
    world.account(at(2));
    world.account(at(3));
    assert_eq!(world.tokens(), (10, 0));
}

#[test]
fn cost_is_charged_if_the_price_is_known_and_noted_otherwise() {
    let mut world = running_goal();
    world.write(&reply("m1", at(1), [1_000, 50, 300, 2_000]));
    world.write(&reply("m2", at(1), [7, 1, 0, 0]).replace("claude-opus-4-8", "mystery-1"));
    world.account(at(2));
    let goal = world.goal();
    // A quarter of the client's own $0.0365 for four such responses.
    assert_eq!((goal.cost_micros, goal.unpriced_tokens, goal.tokens_used), (9_125, 8, 1_358));
}

fn limited_to(dollars: &str) -> World {
    let mut world = World::new();
    let mut budget = Budget::default();
    budget.limits.set(Axis::Usd, Some(Axis::Usd.parse(dollars, START).unwrap()));
    world.start(budget, START);
    world
}

fn opus(id: &str, tokens: [i64; 4], speed: &str) -> String {
    let [input, output, creation, read] = tokens;
    let usage = json!({"input_tokens": input, "output_tokens": output, "cache_creation_input_tokens": creation,
        "cache_read_input_tokens": read, "service_tier": "standard", "speed": speed});
    reply_with_usage(id, at(1), &usage).replace("claude-opus-4-8", "claude-opus-4-6")
}

/// 1,000 tokens in and out cost 3 cents, and 18 in fast mode.
#[test]
fn fast_mode_reaches_a_money_budget_in_time() {
    for (speed, cost, status) in
        [("standard", 30_000, GoalStatus::Active), ("fast", 180_000, GoalStatus::BudgetLimited)]
    {
        let mut world = limited_to("0.10");
        world.write(&opus("m1", [1_000, 1_000, 0, 0], speed));
        world.account(at(2));
        let goal = world.goal();
        assert_eq!((goal.cost_micros, goal.unpriced_tokens, goal.status), (cost, 0, status), "{speed}");
        // The ledger keeps the speed, so that another reading changes nothing.
        let path = world.transcript.clone();
        world.store.write(|db| db.put_cursor(source(&path), &Cursor::default(), at(2))).unwrap();
        world.account(at(3));
        assert_eq!(world.goal().cost_micros, cost, "{speed}");
    }
}

fn source(path: &Path) -> Source<'_> {
    Source { host: Host::Claude, session_id: SESSION, agent_id: "", agent_type: "", path }
}

#[test]
fn a_long_context_reaches_a_money_budget_in_time() {
    let mut world = limited_to("1.5");
    let line = reply("m1", at(1), [1_000, 1_000, 0, 249_000]).replace("claude-opus-4-8", "claude-sonnet-4-5-20250929");
    world.write(&line);
    world.account(at(2));
    // Twice the input and cache rates, one and a half times the output: 6,000 + 22,500 + 149,400.
    assert_eq!((world.goal().cost_micros, world.goal().unpriced_tokens), (177_900, 0));
}

#[test]
fn a_response_without_a_price_pauses_a_goal_that_limits_money() {
    for line in [
        reply("m1", at(1), [7, 1, 0, 0]).replace("claude-opus-4-8", "mystery-1"),
        opus("m1", [7, 1, 0, 0], "ludicrous"),
        // Only cache reads, which are not charged, but cost.
        reply("m1", at(1), [0, 0, 0, 5]).replace("claude-opus-4-8", "mystery-1"),
    ] {
        let mut world = limited_to("0.10");
        world.write(&line);
        let facts = world.account(at(2));
        let goal = world.goal();
        assert_eq!((goal.status, goal.paused_reason), (GoalStatus::Paused, Some(PausedReason::AccountingUncertain)));
        assert!(goal.unpriced_tokens > 0 && facts.unpriced.is_some());
        let event = world.store.read().last_event(&goal.goal_id, EventKind::GoalPaused).unwrap().unwrap();
        assert_eq!(event.payload["cause"], UNKNOWN_PRICE);
    }
    let mut world = running_goal();
    world.write(&reply("m1", at(1), [7, 1, 0, 0]).replace("claude-opus-4-8", "mystery-1"));
    world.account(at(2));
    assert_eq!(world.goal().status, GoalStatus::Active, "without a limit on money nothing stops");
}

#[test]
fn a_goal_that_limits_money_is_refused_for_a_model_without_a_price() {
    let mut world = World::new();
    world.write(&reply("m0", START - MINUTE, [7, 1, 0, 0]).replace("claude-opus-4-8", "mystery-1"));
    let place = action::Place {
        session_id: SESSION.into(),
        host: Host::Claude,
        project_dir: None,
        transcript: Some(world.transcript.clone()),
    };
    let mut new = steadfast_model::goal::NewGoal { objective: "x".into(), ..Default::default() };
    new.budget.limits.set(Axis::Usd, Some(1_000_000));
    let error = action::start(&mut world.store, &place, new.clone(), USER, START).unwrap_err();
    assert!(error.to_string().contains("mystery-1"), "{error}");
    world.write(&reply("m1", START - 1, [7, 1, 0, 0]));
    action::start(&mut world.store, &place, new, USER, START).unwrap();
}

#[test]
fn the_change_that_reaches_the_budget_also_limits_the_goal() {
    let mut world = World::new();
    world.start(Budget::parse("100", "").unwrap(), START);
    append(&world.subagent("a"), &reply("s1", at(1), [60, 0, 0, 0]));
    world.write(&reply("m1", at(1), [39, 0, 0, 0]));
    world.account(at(2));
    assert_eq!(world.goal().status, GoalStatus::Active);
    world.write(&reply("m2", at(3), [1, 0, 0, 0]));
    world.account(at(4));
    let goal = world.goal();
    assert_eq!((goal.status, goal.total_tokens()), (GoalStatus::BudgetLimited, 100));
    assert_eq!(goal.resume_at_ms, None, "its clock is stopped");
}
