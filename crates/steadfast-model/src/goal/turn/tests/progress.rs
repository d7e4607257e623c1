//! The no-progress breaker, the client's cap on blocks, and their precedence.

use super::*;

#[test]
fn three_idle_continuations_pause_the_goal_and_a_tool_call_resets_the_count() {
    let (goal, _) = stop(&goal(), &work());
    let (goal, one) = stop(&goal, &talk("a"));
    let (goal, two) = stop(&goal, &talk("b"));
    assert_eq!((one, two, goal.idle_continuations), (Decision::Continue, Decision::Continue, 2));

    let (paused, three) = stop(&goal, &talk("c"));
    assert_eq!((three, paused.state()), (Decision::NoProgress, "paused (no_progress)".into()));

    let worked = TurnEnd { worked: true, ..talk("c") };
    assert_eq!(stop(&goal, &worked).0.idle_continuations, 0);
    // A tool call that only a batch hook saw counts as well.
    let worked_before = Goal { worked_since_continuation: true, ..goal.clone() };
    let (after, decision) = stop(&worked_before, &talk("c"));
    assert_eq!((decision, after.idle_continuations), (Decision::Continue, 0));
    assert!(!after.worked_since_continuation);
    // So does a prompt of the user.
    let by_person = TurnEnd { after_continuation: false, ..talk("c") };
    assert_eq!(stop(&goal, &by_person).0.idle_continuations, 0);
}

#[test]
fn the_same_message_is_no_progress_even_with_tool_calls() {
    let same = TurnEnd { worked: true, ..talk("still waiting") };
    let (mut goal, _) = stop(&goal(), &same);
    let mut decisions = Vec::new();
    for _ in 0..3 {
        let (after, decision) = stop(&goal, &same);
        decisions.push(decision);
        goal = after;
    }
    assert_eq!(decisions, [Decision::Continue, Decision::Continue, Decision::NoProgress]);
    let silent = TurnEnd { message: None, worked: true, ..talk("") };
    let quiet = Goal { last_message_hash: None, ..crate::testing::goal() };
    assert_eq!(stop(&quiet, &silent).0.idle_continuations, 0, "two absent messages are not the same");
}

#[test]
fn the_breaker_can_be_tuned_and_disabled() {
    for (limit, most) in [(1, 1), (5, 5), (0, 50)] {
        let rules = crate::testing::rules(limit);
        let mut goal = goal();
        let mut paused_after = None;
        for turn in 1..=most {
            let end = TurnEnd { block_cap: None, ..talk("x") };
            let (change, decision) = at_stop(&goal, &end, rules, NOW);
            goal = change.unwrap().goal;
            if decision == Decision::NoProgress {
                paused_after = Some(turn);
            }
        }
        assert_eq!(paused_after, (limit > 0).then_some(most), "limit {limit}");
    }
}

#[test]
fn the_turn_ends_before_the_client_would_override_a_block() {
    let rules = crate::testing::rules(0);
    let mut goal = goal();
    let mut decisions = Vec::new();
    for turn in 0..10 {
        let end = TurnEnd { after_continuation: turn > 0, ..talk("x") };
        let (change, decision) = at_stop(&goal, &end, rules, NOW);
        let change = change.unwrap();
        if decision == Decision::HandOver {
            assert_eq!((change.events[0].kind, change.events[0].decision), (EventKind::BlockCapReached, None));
        }
        goal = change.goal;
        decisions.push(decision);
    }
    let mut expected = vec![Decision::Continue; 8];
    expected.extend([Decision::HandOver, Decision::Continue]);
    assert_eq!(decisions, expected, "eight blocks, never a ninth");

    let at_cap = Goal { blocks_in_row: 8, ..goal.clone() };
    let worked = TurnEnd { worked: true, ..talk("x") };
    let by_person = TurnEnd { after_continuation: false, ..talk("x") };
    let uncapped = TurnEnd { block_cap: None, ..talk("x") };
    for end in [worked, by_person, uncapped] {
        assert_eq!(at_stop(&at_cap, &end, rules, NOW).1, Decision::Continue, "{end:?}");
    }
}

#[test]
fn the_user_background_work_and_the_native_goal_come_first() {
    let all = TurnEnd {
        user_waits: true,
        background_work: true,
        native_goal: true,
        background_until: NOW + 300_000,
        ..work()
    };
    let background = TurnEnd { user_waits: false, ..all.clone() };
    let native = TurnEnd { background_work: false, ..background.clone() };
    let (_, at_cap) = goals_at_their_limit()[3].clone();
    for goal in [goal(), at_cap] {
        // The clock stops, and the goal is woken if nothing begins a turn.
        for (end, expected, wake_at) in [
            (&all, Decision::UserFirst, NOW + TYPED_AHEAD_WAIT),
            (&background, Decision::BackgroundFirst, background.background_until),
        ] {
            let (change, decision) = at_stop(&goal, end, RULES, NOW);
            let after = change.unwrap().goal;
            assert_eq!((decision, after.resume_at_ms, after.wake_at_ms), (expected, None, Some(wake_at)));
        }
        assert_eq!(at_stop(&goal, &native, RULES, NOW), (None, Decision::NativeGoalDrives));
    }
}

#[test]
fn a_client_that_is_woken_ends_its_turn_and_is_never_at_its_cap() {
    let end = TurnEnd { drive: Drive::Wake, block_cap: Some(8), ..talk("x") };
    let at_cap = Goal { blocks_in_row: 8, ..goal() };
    let (change, decision) = at_stop(&at_cap, &end, RULES, NOW);
    let ended = change.unwrap().goal;
    assert_eq!((decision, ended.resume_at_ms, ended.wake_at_ms), (Decision::Continue, None, Some(NOW)));
    let woken = wake(&ended, SharedSpend::Free, NOW + 1).goal;
    assert_eq!((woken.wake_at_ms, woken.woken_at_ms), (None, Some(NOW + 1)));
    assert_eq!(woken.continuations_used, ended.continuations_used, "the end of the turn counted it");
}

#[test]
fn a_wake_up_counts_as_a_continuation_and_winds_down_at_a_limit() {
    let waiting = Goal { resume_at_ms: None, wake_at_ms: Some(NOW), ..goal() };
    assert_eq!(wake(&waiting, SharedSpend::Free, NOW).goal.continuations_used, waiting.continuations_used + 1);
    let failed = Goal { failures_in_row: 1, ..waiting.clone() };
    assert_eq!(wake(&failed, SharedSpend::Free, NOW).goal.continuations_used, failed.continuations_used);
    let spent = Goal { limits: Limits::default().with(Axis::Turns, 0), ..waiting };
    let change = wake(&spent, SharedSpend::Free, NOW);
    assert_eq!((change.goal.wind_down, change.goal.continuations_used), (Some(Axis::Turns), 0));
}
