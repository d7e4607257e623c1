//! What the worker may do to its goal, and what the goals that it creates inherit.

use super::*;
use crate::action::{Claim, complete, start};
use crate::testing::{SECOND, SESSION, START, USER, WORKER, World, new_goal};
use steadfast_model::goal::budget::Budget;
use steadfast_model::goal::{GoalStatus, PausedReason};
use steadfast_model::limit::Limits;
use steadfast_store::ParentLink;
use steadfast_system::process::ProcessId;

fn at(seconds: i64) -> Millis {
    START + seconds * SECOND
}

fn limited() -> Limits {
    Limits::default().with(Axis::Tokens, 1_000).with(Axis::Turns, 3)
}

fn session(id: &str) -> Session {
    Session { session_id: id.into(), started_at_ms: START, last_seen_ms: START, ..Session::default() }
}

impl World {
    /// The user prompts in the session, and a turn begins.
    fn user_prompts(&mut self, id: &str, now: Millis) {
        let session = Session { user_prompt_ms: Some(now), last_seen_ms: now, ..session(id) };
        self.store.write(|db| db.put_session(&session).and_then(|()| db.begin_turn(id, None, now))).unwrap();
    }

    fn create_by_worker(&mut self, id: &str, limits: Limits, now: Millis) -> Result<Goal, ActionError> {
        let place = Place { session_id: id.into(), ..self.place() };
        let new = new_goal(Budget { limits, ..Budget::default() });
        start(&mut self.store, &place, new, WORKER, now)
    }

    fn end_by_worker(&mut self, now: Millis) {
        complete(&mut self.store, SESSION, &Claim::Agent { judged: false, verified: None }, WORKER, now).unwrap();
    }
}

/// A goal of the user with these limits, in the turn that their prompt began.
fn goal_within(limits: Limits) -> World {
    let mut world = World::new();
    world.user_prompts(SESSION, START);
    world.start(Budget { limits, ..Budget::default() }, START);
    world
}

type Try = fn(&mut Store, Millis) -> Result<Goal, ActionError>;
const TRIES: [(&str, Try); 4] = [
    ("edit", |store, now| edit(store, SESSION, "Say hello".into(), WORKER, now)),
    ("abandon", |store, now| abandon(store, SESSION, WORKER, now)),
    ("pause", |store, now| pause(store, SESSION, WORKER, now)),
    ("block", |store, now| block(store, SESSION, "too hard", WORKER, now)),
];

#[test]
fn without_the_users_prompt_a_worker_changes_nothing_and_the_attempt_is_logged() {
    for (verb, change) in TRIES {
        let mut world = goal_within(limited());
        let before = world.goal();
        let refused = change(&mut world.store, at(5)).unwrap_err();
        assert!(matches!(refused, ActionError::Denied(denial) if denial.verb().to_string() == verb), "{refused}");
        assert_eq!(world.goal(), Goal { version: before.version + 1, updated_at_ms: at(5), ..before }, "{verb}");
        let event = world.last_event();
        assert_eq!((&*event.kind, &event.payload["verb"]), ("privileged_verb_refused", &verb.into()));
    }
}

#[test]
fn in_the_users_turn_a_worker_may() {
    let expected = [GoalStatus::Active, GoalStatus::Abandoned, GoalStatus::Paused, GoalStatus::Blocked];
    for ((verb, change), status) in TRIES.into_iter().zip(expected) {
        let mut world = goal_within(limited());
        world.store.write(|db| db.end_turn(SESSION, false, at(3))).unwrap();
        world.user_prompts(SESSION, at(4));
        let goal = change(&mut world.store, at(5)).unwrap();
        assert_eq!(goal.status, status, "{verb}");
        let reason = (status == GoalStatus::Paused).then_some(PausedReason::Worker);
        assert_eq!(goal.paused_reason, reason, "a pause by the worker is not the user's");
    }
}

#[test]
fn a_goal_that_the_user_paused_stays_as_it_is() {
    for (verb, change) in TRIES {
        let mut world = goal_within(limited());
        pause(&mut world.store, SESSION, USER, at(2)).unwrap();
        world.store.write(|db| db.end_turn(SESSION, false, at(3))).unwrap();
        world.user_prompts(SESSION, at(4));
        let refused = change(&mut world.store, at(5));
        assert!(refused.is_err(), "{verb}");
        let goal = world.goal();
        assert_eq!((goal.status, goal.paused_reason), (GoalStatus::Paused, Some(PausedReason::User)), "{verb}");
    }
}

#[test]
fn a_worker_may_abandon_a_goal_of_its_own() {
    let mut world = World::new();
    world.user_prompts(SESSION, START);
    world.create_by_worker(SESSION, limited(), at(1)).unwrap();
    assert_eq!(abandon(&mut world.store, SESSION, WORKER, at(2)).unwrap().status, GoalStatus::Abandoned);
}

#[test]
fn a_goal_that_follows_another_inherits_what_was_left() {
    type End = fn(&mut World);
    let asked = Limits::default().with(Axis::Tokens, 1_000_000_000);
    let ends: [(&str, End); 3] = [
        ("complete", |world| world.end_by_worker(at(5))),
        ("abandoned by the user", |world| drop(abandon(&mut world.store, SESSION, USER, at(5)).unwrap())),
        ("abandoned by the worker", |world| {
            world.user_prompts(SESSION, at(4));
            world.store.write(|db| db.end_turn(SESSION, false, at(4))).unwrap();
            world.store.write(|db| db.begin_turn(SESSION, None, at(4))).unwrap();
            abandon(&mut world.store, SESSION, WORKER, at(5)).unwrap();
        }),
    ];
    for (how, end) in ends {
        let mut world = goal_within(limited());
        world.apply(|goal| {
            let mut change = change::verdict(goal, "incomplete", None, &[], at(1))?;
            (change.goal.tokens_used, change.goal.continuations_used) = (400, 1);
            (change.goal.judge, change.goal.sign_off) = (true, true);
            Ok(change)
        });
        world.apply(|goal| {
            let mut change = change::verdict(goal, "complete", None, &[], at(2))?;
            // Completion has its own tests.
            (change.goal.judge, change.goal.sign_off) = (false, false);
            Ok(change)
        });
        end(&mut world);
        let next = world.create_by_worker(SESSION, asked, at(6)).unwrap();
        assert_eq!(next.limits, Limits::default().with(Axis::Tokens, 600).with(Axis::Turns, 2), "{how}");
    }
}

#[test]
fn judge_and_sign_off_are_inherited() {
    let mut world = World::new();
    world.user_prompts(SESSION, START);
    let place = world.place();
    let new = NewGoal { judge: true, sign_off: true, ..new_goal(Budget::default()) };
    start(&mut world.store, &place, new, USER, START).unwrap();
    abandon(&mut world.store, SESSION, USER, at(5)).unwrap();
    let next = world.create_by_worker(SESSION, Limits::default(), at(6)).unwrap();
    assert!(next.judge && next.sign_off);
}

#[test]
fn after_a_prompt_of_the_user_a_goal_is_fresh() {
    let mut world = goal_within(limited());
    world.end_by_worker(at(5));
    world.user_prompts(SESSION, at(6));
    assert_eq!(world.create_by_worker(SESSION, Limits::default(), at(7)).unwrap().limits, Limits::default());
}

#[test]
fn no_goal_starts_where_nothing_is_left() {
    let mut world = goal_within(limited());
    world.apply(|goal| {
        let mut change = change::verdict(goal, "incomplete", None, &[], at(1))?;
        change.goal.continuations_used = 3;
        Ok(change)
    });
    abandon(&mut world.store, SESSION, USER, at(5)).unwrap();
    let refused = world.create_by_worker(SESSION, Limits::default(), at(6)).unwrap_err();
    assert!(matches!(refused, ActionError::NothingLeft(Axis::Turns)), "{refused}");
    assert_eq!(world.goal().status, GoalStatus::Abandoned);
}

#[test]
fn another_session_of_the_same_agent_inherits_too() {
    let own = ProcessId { pid: 4_711, started: 7 };
    let first = |client, ended_at_ms| Session { client: Some(client), ended_at_ms, ..session(SESSION) };
    let next = Session { client: Some(own), ..session("next") };
    let fork =
        Session { parent_session_id: Some(SESSION.into()), parent_link: Some(ParentLink::Fork), ..session("next") };
    // The client of the first session is a process above this one, as if its agent had started the second one.
    let around = process::ancestors().next().unwrap().id;
    let elsewhere = ProcessId { pid: 4_712, ..own };
    for (case, first, next, inherits) in [
        ("a fork", first(elsewhere, None), fork, true),
        ("left by the same client", first(own, Some(at(1))), next.clone(), true),
        ("open beside it in the same client", first(own, None), next.clone(), false),
        ("an agent's agent", first(around, None), next.clone(), true),
        ("a stranger", first(elsewhere, None), next, false),
    ] {
        let expected = if inherits { limited() } else { Limits::default() };
        let mut world = goal_within(limited());
        world.store.write(|db| db.put_session(&first).and_then(|()| db.put_session(&next))).unwrap();
        // Whether the goal of the first session lives on makes no difference.
        assert_eq!(world.create_by_worker("next", Limits::default(), at(6)).unwrap().limits, expected, "{case}");
        for id in ["next", SESSION] {
            abandon(&mut world.store, id, USER, at(60)).unwrap();
        }
        assert_eq!(world.create_by_worker("next", Limits::default(), at(61)).unwrap().limits, expected, "{case}");
    }
}
