//! Who starts the next goal of a queue, when, and which tokens belong to it.

use super::*;
use crate::action::{self, Claim, start};
use crate::testing::{HOOK, SECOND, SESSION, START, USER, WORKER, World, new_goal, reply};
use steadfast_model::goal::GoalStatus;
use steadfast_model::goal::budget::Budget;
use steadfast_store::Session;

fn at(seconds: i64) -> Millis {
    START + seconds * SECOND
}

/// A session with a goal that its worker ended, and goals in its queue.
fn ended_goal(queued: &[&str]) -> World {
    let mut world = World::new();
    let transcript_path = world.transcript.display().to_string();
    let session = Session { session_id: SESSION.into(), transcript_path, ..Session::default() };
    world.store.write(|db| db.put_session(&session)).unwrap();
    world.start(Budget::default(), START);
    let place = world.place();
    for objective in queued {
        let new = NewGoal { objective: (*objective).to_owned(), ..NewGoal::default() };
        enqueue(&mut world.store, &place, new, USER, at(1)).unwrap();
    }
    world.write(&reply("m1", at(2), [100, 0, 0, 0]));
    action::complete(&mut world.store, SESSION, &Claim::Agent { judged: false, verified: None }, WORKER, at(3))
        .unwrap();
    world
}

fn next(world: &mut World, origin: Origin, now: Millis) -> Option<String> {
    let place = world.place();
    start_next(&mut world.store, &place, origin, now).unwrap().map(|goal| goal.objective)
}

#[test]
fn of_concurrent_callers_one_starts_the_next_goal() {
    let world = ended_goal(&["A", "B"]);
    let (path, place) = (world.store.path().to_owned(), world.place());
    let started: Vec<Goal> = std::thread::scope(|scope| {
        let call = || start_next(&mut Store::open_existing(&path).unwrap(), &place, HOOK, at(9)).unwrap();
        let callers: Vec<_> = (0..8).map(|_| scope.spawn(call)).collect();
        callers.into_iter().filter_map(|caller| caller.join().unwrap()).collect()
    });
    assert_eq!(started.iter().map(|goal| goal.objective.as_str()).collect::<Vec<_>>(), ["A"]);
    assert_eq!(world.goal(), started[0]);
    let queue = world.store.read().queue(SESSION).unwrap();
    assert_eq!(queue.iter().map(|entry| (entry.number, &*entry.goal.objective)).collect::<Vec<_>>(), [(1, "B")]);
    let event = world.last_event();
    assert_eq!((&*event.kind, &event.payload["from"]), ("goal_created", &json!("queue")));
    assert_eq!(event.actor.as_deref(), Some("steadfast"));
}

#[test]
fn the_next_goal_starts_only_after_the_live_one_and_not_by_an_agent() {
    let mut world = ended_goal(&["A", "B"]);
    assert_eq!(next(&mut world, WORKER, at(4)), None);
    assert_eq!(world.goal().status, GoalStatus::Complete);
    assert_eq!(next(&mut world, HOOK, at(5)), Some("A".into()));
    assert_eq!(next(&mut world, HOOK, at(6)), None);
    world.apply(|goal| Ok(action::change::pause_for(goal, action::PausedReason::User, paused(), at(7))));
    assert_eq!(next(&mut world, HOOK, at(8)), None);
    world.apply(|goal| action::change::abandon(goal, at(9)));
    assert_eq!(next(&mut world, USER, at(10)), Some("B".into()));
    world.apply(|goal| action::change::abandon(goal, at(11)));
    assert_eq!(next(&mut world, USER, at(12)), None);
}

fn paused() -> Event {
    Event::new(EventKind::GoalPaused, json!({}))
}

#[test]
fn the_turn_that_ended_a_goal_is_not_charged_to_the_next() {
    let mut world = ended_goal(&["A"]);
    world.write(&reply("m2", at(4), [10, 0, 0, 0]));
    assert_eq!(next(&mut world, HOOK, at(5)), Some("A".into()));
    world.write(&reply("m3", at(6), [1, 0, 0, 0]));
    let goal = world.goal();
    action::refresh(&mut world.store, &goal, HOOK, at(7)).unwrap();
    assert_eq!(world.goal().total_tokens(), 1);
    assert_eq!(world.store.read().replaced_goals(Some(SESSION)).unwrap()[0].total_tokens(), 110);
}

#[test]
fn a_goal_that_starts_at_an_idle_prompt_is_woken_before_its_clock_runs() {
    for (turn_runs, expected) in [(false, (Some(at(5)), None)), (true, (None, Some(at(5))))] {
        let mut world = ended_goal(&["A"]);
        if turn_runs {
            world.store.write(|db| db.begin_turn(SESSION, None, at(4))).unwrap();
        }
        next(&mut world, HOOK, at(5)).unwrap();
        let goal = world.goal();
        assert_eq!((goal.wake_at_ms, goal.resume_at_ms), expected);
        assert!(world.store.read().has_open_span(&goal.goal_id).unwrap());
    }
}

#[test]
fn a_goal_started_by_hand_goes_before_the_queue() {
    let mut world = ended_goal(&["A"]);
    let place = world.place();
    start(&mut world.store, &place, new_goal(Budget::default()), USER, at(5)).unwrap();
    assert_eq!(next(&mut world, HOOK, at(6)), None);
    world.apply(|goal| action::change::abandon(goal, at(7)));
    assert_eq!(next(&mut world, HOOK, at(8)), Some("A".into()));
}

/// An end that names no goal must not hit the one that has just started.
#[test]
fn a_change_meant_for_the_old_goal_does_not_hit_the_next() {
    let mut world = ended_goal(&["A"]);
    let old = world.goal();
    next(&mut world, HOOK, at(5)).unwrap();
    let stale = world.store.write(|db| action::still_the_goal(db, &old));
    assert!(matches!(stale, Err(ActionError::Store(steadfast_store::StoreError::Stale))), "{stale:?}");
}

#[test]
fn an_unreadable_session_file_does_not_keep_a_goal_running() {
    let mut world = World::new();
    let transcript_path = world.root.path().display().to_string();
    let session = Session { session_id: SESSION.into(), transcript_path, ..Session::default() };
    world.store.write(|db| db.put_session(&session)).unwrap();
    world.add_goal(Budget::default(), START);
    let done = action::pause_all(&mut world.store, USER, at(1)).unwrap();
    assert_eq!((done.paused.len(), world.goal().state()), (1, "paused (user)".into()));
    let refused = action::pause_all(&mut world.store, WORKER, at(2));
    assert!(matches!(refused, Err(ActionError::NotForAgents("pause --all"))));
}
