//! Sessions that end and resume, and prompts of the user.

use super::*;

/// Bug 14 of the plugin: `--resume` dropped the time before it.
#[test]
fn a_returning_session_is_not_charged_for_its_absence() {
    let running = goal_in(GoalStatus::Active, None);
    let last_seen = START + 40 * SECOND;
    let back = session_resumed(&running, last_seen, START + 8 * HOUR).unwrap();
    assert_eq!((back.goal.time_used_seconds, back.span), (50, Span::Open));
    assert_eq!(back.goal.resume_at_ms, Some(START + 8 * HOUR));

    let ended = session_ended(&running, last_seen, NOW).unwrap();
    assert_eq!((ended.goal.time_used_seconds, ended.goal.resume_at_ms), (50, None));
    assert_eq!((ended.goal.status, ended.span), (GoalStatus::Active, Span::Close));
    assert_eq!(ended.goal.wake_at_ms, Some(NOW), "who can continue a closed session may do so");
    let back = session_resumed(&ended.goal, NOW, START + 8 * HOUR).unwrap();
    assert_eq!(back.goal.time_used_seconds, 50);
}

#[test]
fn a_returning_session_wakes_only_goals_that_were_not_stopped() {
    for before in all_states() {
        let expected = before.status == GoalStatus::Active;
        assert_eq!(session_resumed(&before, NOW, NOW).is_some(), expected, "{}", before.state());
    }
    let limited = |at| Goal { wake_at_ms: Some(at), ..paused(PausedReason::UsageLimit) };
    assert_eq!(session_resumed(&limited(NOW + 1), NOW, NOW), None);
    let woken = session_resumed(&limited(NOW), NOW, NOW).unwrap().goal;
    assert_eq!((woken.status, woken.wake_at_ms), (GoalStatus::Active, None));
}

#[test]
fn a_prompt_resets_the_counters_and_restarts_the_clock() {
    assert_eq!(turn_began(&goal_in(GoalStatus::Active, None), true, NOW), None);
    let counted = Goal {
        idle_continuations: 2,
        blocks_in_row: 7,
        failures_in_row: 3,
        wake_at_ms: Some(NOW),
        resume_at_ms: None,
        ..goal()
    };
    let change = turn_began(&counted, true, NOW).unwrap();
    let expected = Goal { resume_at_ms: Some(NOW), updated_at_ms: NOW, ..goal() };
    let same_goal = Goal { goal_id: change.goal.goal_id.clone(), ..expected };
    assert_eq!((change.goal, change.span), (same_goal, Span::Open));
    let stopped = Goal { idle_continuations: 2, ..paused(PausedReason::User) };
    assert_eq!(turn_began(&stopped, true, NOW), None);
}

#[test]
fn an_interrupt_stops_the_clock_where_it_happened_and_the_next_prompt_continues() {
    let running = goal_in(GoalStatus::Active, None);
    let change = interrupt(&running, START + 40 * SECOND, START + HOUR);
    assert_eq!(change.goal.state(), "paused (interrupted)");
    assert_eq!((change.goal.time_used_seconds, change.goal.resume_at_ms), (50, None));
    assert_eq!(turn_began(&change.goal, false, START + HOUR), None, "only a prompt of the user continues");
    let back = turn_began(&change.goal, true, START + HOUR).unwrap();
    assert_eq!((back.goal.status, back.goal.resume_at_ms), (GoalStatus::Active, Some(START + HOUR)));
    assert_eq!(back.span, Span::Open);
}

#[test]
fn short_turns_add_up_to_their_time() {
    let mut goal = Goal { resume_at_ms: None, ..goal() };
    for turn in 0..50 {
        let now = START + turn * HOUR;
        goal = turn_began(&goal, false, now).unwrap().goal;
        goal.stop_clock(now + 700);
    }
    assert_eq!(goal.active_seconds(START + 100 * HOUR), 35);
}
