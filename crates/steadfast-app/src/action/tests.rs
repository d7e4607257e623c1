//! What the user, the worker and the evaluator may do to a goal, and what cleanup keeps.

use super::*;
use crate::testing::{HOUR, SECOND, SESSION, START, USER, WORKER, World, new_goal, reply};
use steadfast_model::goal::budget::Budget;
use steadfast_model::goal::proof::{CompletedBy, Proof};
use steadfast_model::limit::Axis;

fn at(seconds: i64) -> Millis {
    START + seconds * SECOND
}

fn running_goal() -> World {
    let mut world = World::new();
    world.start(Budget::default(), START);
    world
}

fn session(id: &str, ended_at_ms: Option<Millis>) -> Session {
    Session {
        session_id: id.into(),
        host: Host::Claude,
        cwd: String::new(),
        project_dir: String::new(),
        transcript_path: String::new(),
        client: None,
        parent_session_id: None,
        parent_link: None,
        last_prompt_ms: None,
        started_at_ms: START,
        last_seen_ms: START,
        ended_at_ms,
        end_reason: None,
        ..Session::default()
    }
}

impl World {
    fn put_session(&mut self, id: &str, ended_at_ms: Option<Millis>) {
        let session = session(id, ended_at_ms);
        self.store.write(|db| db.put_session(&session)).unwrap();
    }

    fn start_in(&mut self, id: &str, now: Millis) -> Goal {
        let place = Place { session_id: id.into(), transcript: None, ..self.place() };
        start(&mut self.store, &place, new_goal(Budget::default()), USER, now).unwrap()
    }

    fn change(&mut self, origin: Origin, now: Millis, change: impl FnOnce(&Goal) -> Result<Change, Refusal>) {
        apply(&mut self.store, SESSION, origin, now, change).unwrap();
    }

    fn judge(&mut self, verdict: &str, now: Millis) {
        let evaluator = Origin { actor: Actor::Evaluator, place: "mcp" };
        self.change(evaluator, now, |goal| change::verdict(goal, verdict, None, &[], now));
    }

    fn complete_by_evaluator(&mut self, now: Millis) -> Result<GoalStatus, String> {
        complete(&mut self.store, SESSION, &Claim::Agent { judged: true, verified: None }, WORKER, now)
            .map(|goal| goal.status)
            .map_err(|error| error.to_string())
    }
}

#[test]
fn a_session_has_one_live_goal_at_a_time() {
    let mut world = running_goal();
    let before = (world.goal(), world.event_kinds());
    let place = world.place();
    let refused = start(&mut world.store, &place, new_goal(Budget::default()), USER, at(1)).unwrap_err();
    assert_eq!(refused.to_string(), "a goal already exists in status 'active': Make every test pass");
    assert_eq!((world.goal(), world.event_kinds()), before);
}

/// Bug 20 of the plugin: any `complete` verdict ever given opened the gate.
#[test]
fn only_the_newest_verdict_on_this_text_counts() {
    let mut world = running_goal();
    let none = world.complete_by_evaluator(at(1));
    assert_eq!(none, Err("the evaluator has given no verdict on this goal".into()));
    world.judge("complete", at(2));
    world.judge("incomplete", at(3));
    assert_eq!(world.complete_by_evaluator(at(4)), Err("the newest verdict is 'incomplete'".into()));
    world.judge("complete", at(5));
    world.change(USER, at(6), |goal| change::edit(goal, "Something harder".into(), at(6)));
    let outdated = world.complete_by_evaluator(at(7));
    assert_eq!(outdated, Err("the newest verdict is about an earlier text of the objective".into()));
    world.judge("complete", at(8));
    assert_eq!(world.complete_by_evaluator(at(9)), Ok(GoalStatus::Complete));
}

#[test]
fn the_worker_cannot_override_an_incomplete_verdict() {
    let mut world = running_goal();
    let by_itself = |world: &mut World, now| {
        let claim = Claim::Agent { judged: false, verified: None };
        complete(&mut world.store, SESSION, &claim, WORKER, now)
            .map(|goal| goal.state())
            .map_err(|error| error.to_string())
    };
    world.judge("incomplete", at(1));
    assert_eq!(by_itself(&mut world, at(2)), Err("the newest verdict is 'incomplete'".into()));
    world.judge("unverifiable", at(3));
    assert_eq!(by_itself(&mut world, at(4)), Err("the newest verdict is 'incomplete'".into()));
    world.judge("complete", at(5));
    assert_eq!(by_itself(&mut world, at(6)), Ok("complete".into()));
    assert_eq!(world.goal().completed_by, Some(CompletedBy::Evaluator));
}

#[test]
fn a_verdict_on_the_previous_goal_does_not_count_for_the_next() {
    let mut world = running_goal();
    world.judge("complete", at(1));
    assert_eq!(world.complete_by_evaluator(at(2)), Ok(GoalStatus::Complete));
    world.start(Budget::default(), at(3));
    assert!(world.complete_by_evaluator(at(4)).is_err());
}

/// Bug 21 of the plugin: the evaluator could not judge goals in the very states where only it can close them.
#[test]
fn a_goal_stopped_by_budget_or_accounting_can_be_judged_and_closed() {
    for reason in [None, Some(PausedReason::AccountingError), Some(PausedReason::AccountingUncertain)] {
        let mut world = running_goal();
        let stopped = |goal: &Goal| {
            let event = Event::new(EventKind::GoalPaused, json!({}));
            let mut change = change::pause_for(goal, PausedReason::AccountingError, event, at(1));
            change.goal.paused_reason = reason;
            if reason.is_none() {
                change.goal.status = GoalStatus::BudgetLimited;
            }
            Ok(change)
        };
        world.change(USER, at(1), stopped);
        let by_itself =
            complete(&mut world.store, SESSION, &Claim::Agent { judged: false, verified: None }, WORKER, at(2));
        assert!(matches!(by_itself, Err(ActionError::Refused(_))), "{by_itself:?}");
        world.judge("complete", at(3));
        assert_eq!(world.complete_by_evaluator(at(4)), Ok(GoalStatus::Complete), "{reason:?}");
    }
}

#[test]
fn an_agent_cannot_raise_a_limit_undo_a_pause_or_accept_a_gap() {
    type Verb = fn(&mut Store) -> Result<Goal, ActionError>;
    let verbs: [(&str, Verb); 3] = [
        ("extend", |store| {
            let add = Limits::default().with(Axis::Tokens, 1_000_000);
            extend(store, SESSION, add, WORKER, at(3))
        }),
        ("resume", |store| resume(store, SESSION, WORKER, at(3))),
        ("reconcile", |store| reconcile(store, SESSION, WORKER, at(3))),
    ];
    for (name, verb) in verbs {
        let mut world = running_goal();
        world.change(USER, at(2), |goal| change::pause(goal, at(2)));
        let before = world.goal();
        let refused = verb(&mut world.store);
        assert!(matches!(&refused, Err(ActionError::NotForAgents(verb)) if *verb == name), "{refused:?}");
        let expected = Goal { version: before.version + 1, updated_at_ms: at(3), ..before };
        assert_eq!(world.goal(), expected, "{name}");
        let event = world.last_event();
        assert_eq!((&*event.kind, event.payload), ("privileged_verb_refused", json!({"verb": name})));
        assert_eq!(event.actor.as_deref(), Some("worker"));
    }
}

#[test]
fn an_agent_may_resume_a_goal_it_blocked_itself() {
    let mut world = running_goal();
    world.change(WORKER, at(1), |goal| change::block(goal, "no key", at(1)));
    let goal = resume(&mut world.store, SESSION, WORKER, at(2)).unwrap();
    assert_eq!(goal.status, GoalStatus::Active);
}

/// Bug 19 of the plugin: cleaning up deleted live and finished goals of any session.
#[test]
fn cleanup_deletes_only_old_orphans() {
    let mut world = World::new();
    for (id, ended) in [("alive", None), ("ended", Some(at(1))), ("finished", Some(at(1))), ("fresh", Some(at(1)))] {
        world.put_session(id, ended);
        world.start_in(id, if id == "fresh" { START + 20 * HOUR } else { START });
    }
    world.start_in("never seen", START);
    let done = |goal: &Goal| change::complete(goal, &Proof::from_user(goal, Actor::User).unwrap(), START);
    apply(&mut world.store, "finished", USER, START, done).unwrap();

    let now = START + 30 * HOUR;
    let sessions = |goals: Vec<Goal>| {
        let mut ids: Vec<String> = goals.into_iter().map(|goal| goal.session_id).collect();
        ids.sort();
        ids
    };
    let listed = orphans(world.store.read(), 24 * HOUR, 9, now).unwrap();
    assert_eq!(sessions(listed), ["ended", "never seen"]);
    let deleted = delete_orphans(&mut world.store, 24 * HOUR, now).unwrap();
    assert_eq!(sessions(deleted), ["ended", "never seen"]);
    assert_eq!(sessions(world.store.read().goals().unwrap()), ["alive", "finished", "fresh"]);
    let left: Vec<String> = world.events().into_iter().map(|event| event.session_id).collect();
    assert!(!left.contains(&"ended".to_owned()) && left.contains(&"finished".to_owned()));
}

#[test]
fn only_an_orphaned_live_goal_is_adopted_and_only_by_a_free_session() {
    let mut world = World::new();
    world.put_session("old", None);
    let goal = world.start_in("old", START);
    let place = world.place();
    let adopt_it = |world: &mut World| adopt(&mut world.store, &goal.goal_id, &place, USER, at(9));
    assert!(matches!(adopt_it(&mut world), Err(ActionError::NotOrphaned(id)) if id == "old"));
    world.put_session("old", Some(at(1)));
    world.start(Budget::default(), at(2));
    assert!(matches!(adopt_it(&mut world), Err(ActionError::GoalExists { .. })));
    world.change(USER, at(3), |goal| change::abandon(goal, at(3)));
    let adopted = adopt_it(&mut world).unwrap();
    assert_eq!((&*adopted.session_id, adopted.version), (SESSION, goal.version + 1));
    assert_eq!(world.last_event().payload["from_session"], json!("old"));
    assert_eq!(world.store.read().replaced_goals(Some(SESSION)).unwrap().len(), 1);
}

#[test]
fn a_goal_is_found_by_an_id_prefix() {
    let mut world = running_goal();
    let id = world.goal().goal_id;
    assert_eq!(find_goal(world.store.read(), &id[..6]).unwrap().goal_id, id);
    for unknown in ["", "%", "nothing", "' OR 1=1 --"] {
        let found = find_goal(world.store.read(), unknown);
        assert!(matches!(found, Err(ActionError::UnknownGoal(_))), "{unknown}: {found:?}");
    }
    let twin = Goal { session_id: "twin".into(), goal_id: format!("{}-twin", &id[..6]), ..world.goal() };
    world.store.write(|db| db.start_goal(&twin, None, USER)).unwrap();
    assert!(matches!(find_goal(world.store.read(), &id[..6]), Err(ActionError::AmbiguousGoal(_))));
}

#[test]
fn a_goal_is_charged_from_the_file_ends_that_were_read_before_its_transaction() {
    let mut world = World::new();
    world.write(&reply("m1", at(1), [100, 0, 0, 0]));
    let place = world.place();
    let ends = place.find_ends(world.store.read()).unwrap();
    world.write(&reply("m2", at(2), [10, 0, 0, 0]));
    let goal = |db: Db<'_>| start_with(db, &place, new_goal(Budget::default()), &ends, USER, START);
    let goal = world.store.write(goal).unwrap();
    let readings = accounting::read_session(&world.store, Host::Claude, SESSION, &world.transcript).unwrap();
    let (goal, _) = world.store.write(|db| accounting::record(db, goal, &readings, USER, at(3))).unwrap();
    assert_eq!(goal.total_tokens(), 10);
}
