//! Uncertain accounting: malformed numbers, rewritten files, and how the user reconciles them.

use super::*;
use steadfast_model::limit::{Axis, Limits};

const BUDGET: i64 = 1_000_000;

fn budgeted_goal() -> World {
    let mut world = World::new();
    world.start(Budget { limits: Limits::default().with(Axis::Tokens, BUDGET), ..Budget::default() }, START);
    world.register();
    world
}

fn malformed(id: &str, at: Millis) -> String {
    reply_with_usage(id, at, &json!({"input_tokens": "many", "output_tokens": 3}))
}

#[test]
fn a_malformed_number_pauses_the_goal_and_is_logged_by_name() {
    let mut world = budgeted_goal();
    let good = reply("m1", at(1), [10, 0, 0, 0]);
    world.write(&good);
    world.write(&malformed("m2", at(1)));
    let facts = world.account(at(2));
    assert_eq!(facts.invalid.map(|invalid| invalid.field), Some("input_tokens"));
    let goal = world.goal();
    assert_eq!((goal.state(), goal.tokens_used), ("paused (accounting_error)".into(), 10));
    let event = world.last_event();
    assert_eq!(event.kind, "invalid_usage_field");
    assert_eq!(event.payload, json!({"usage_field": "input_tokens", "response_id": "m2", "offset": good.len()}));
}

/// Bugs 6 and 7 of the plugin: reconciling did not move the cursor, so the goal paused again for ever.
#[test]
fn reconciling_moves_past_a_malformed_number_for_good() {
    let mut world = budgeted_goal();
    let bad = malformed("m1", at(1));
    world.write(&bad);
    world.account(at(2));
    let lost = reply("m2", at(3), [500, 0, 0, 0]);
    world.write(&lost);
    let old_cursor = world.goal().last_accounted_byte_offset;
    let goal = action::reconcile(&mut world.store, SESSION, USER, at(4)).unwrap();
    let end = i64::try_from(bad.len() + lost.len()).unwrap();
    assert_eq!((goal.status, goal.last_accounted_byte_offset), (GoalStatus::Active, end));
    let event = world.last_event();
    assert_eq!(event.kind, "goal_reconciled");
    assert_eq!((&event.payload["old_cursor"], &event.payload["new_cursor"]), (&json!(old_cursor), &json!(end)));

    let next = reply("m3", at(5), [7, 0, 0, 0]);
    world.write(&next);
    world.account(at(6));
    assert_eq!((world.goal().status, world.tokens()), (GoalStatus::Active, (7, 0)));

    // A rewrite makes the old line be read again; what was accepted once stays accepted.
    fs_err::write(&world.transcript, format!("{lost}{bad}{next}\n")).unwrap();
    let facts = world.account(at(7));
    assert_eq!(facts.invalid, None);
    assert_eq!(world.goal().paused_reason, None);
    assert_eq!(world.tokens(), (7, 0));
}

#[test]
fn only_the_user_reconciles_and_only_uncertain_goals() {
    let mut world = budgeted_goal();
    let in_order = action::reconcile(&mut world.store, SESSION, USER, at(1));
    assert!(matches!(in_order, Err(action::ActionError::Refused(_))), "{in_order:?}");
    world.write(&malformed("m1", at(1)));
    world.account(at(2));
    let refused = action::reconcile(&mut world.store, SESSION, WORKER, at(3));
    assert!(matches!(refused, Err(action::ActionError::NotForAgents("reconcile"))), "{refused:?}");
    assert_eq!(world.goal().state(), "paused (accounting_error)");
    assert_eq!(world.last_event().kind, "privileged_verb_refused");
}

fn rewrite(world: &World, lines: &str) {
    fs_err::write(&world.transcript, lines).unwrap();
}

fn mark(world: &mut World, now: Millis) {
    let transcript = world.transcript.clone();
    world
        .store
        .write(|db| {
            update_cursor(db, Host::Claude, SESSION, &transcript, now, |cursor| cursor.read_before_compaction = true)
        })
        .unwrap();
}

#[test]
fn a_file_rewritten_after_it_was_read_stays_certain() {
    let mut world = budgeted_goal();
    world.write(&reply("m1", at(1), [10, 0, 0, 0]));
    world.account(at(2));
    mark(&mut world, at(2));
    rewrite(&world, "{\"type\":\"summary\"}\n");
    world.write(&reply("m2", at(3), [5, 0, 0, 0]));
    let facts = world.account(at(4));
    assert!(!facts.became_uncertain);
    assert_eq!((world.goal().accounting_uncertain, world.tokens()), (false, (15, 0)));
}

/// Bug 8 of the plugin: the next pass cleared the flag without a message.
#[test]
fn a_file_rewritten_before_it_was_read_is_flagged_once() {
    let mut world = budgeted_goal();
    world.write(&reply("m1", at(1), [10, 0, 0, 0]));
    world.account(at(2));
    rewrite(&world, &reply("m2", at(3), [5, 0, 0, 0]));
    assert!(world.account(at(4)).became_uncertain);
    let event = world.last_event();
    assert_eq!(event.kind, "accounting_uncertain_set");
    assert_eq!(event.payload["cause"], json!("transcript_rewritten"));
    world.write(&reply("m3", at(5), [1, 0, 0, 0]));
    assert!(!world.account(at(6)).became_uncertain);
    let goal = world.goal();
    assert_eq!((goal.accounting_uncertain, goal.tokens_used), (true, 16));
    let flagged = world.event_kinds().iter().filter(|kind| *kind == "accounting_uncertain_set").count();
    assert_eq!(flagged, 1);
    let goal = action::reconcile(&mut world.store, SESSION, USER, at(7)).unwrap();
    assert_eq!((goal.status, goal.accounting_uncertain), (GoalStatus::Active, false));
}

#[test]
fn an_earlier_compaction_does_not_excuse_a_later_rewrite() {
    let mut world = budgeted_goal();
    world.write(&reply("m1", at(1), [10, 0, 0, 0]));
    world.account(at(2));
    mark(&mut world, at(2));
    world.account(at(3));
    world.write(&reply("m2", at(4), [10, 0, 0, 0]));
    world.account(at(5));
    rewrite(&world, &reply("m3", at(6), [5, 0, 0, 0]));
    assert!(world.account(at(7)).became_uncertain);
}

#[test]
fn a_rewritten_queue_and_its_broken_lines_are_counted_again() {
    let mut world = budgeted_goal();
    let waiting = "{\"type\":\"queue-operation\",\"operation\":\"enqueue\"}\n";
    let taken = "{\"type\":\"queue-operation\",\"operation\":\"remove\"}\n";
    world.write(&format!("{waiting}broken\n"));
    assert!(world.account(at(1)).user_waits);
    rewrite(&world, &format!("broken\n{waiting}{taken}{}", reply("m1", at(2), [1, 0, 0, 0])));
    assert!(!world.account(at(3)).user_waits);
    let cursor = world.store.read().cursor(&world.transcript).unwrap().unwrap();
    assert_eq!((cursor.queued_prompts, cursor.broken_lines), (0, 1));
}
