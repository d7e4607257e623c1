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
    assert_eq!(session_ended(&ended.goal, NOW, NOW), None, "once is enough");
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
    assert_eq!(prompted(&goal_in(GoalStatus::Active, None), NOW), None);
    let counted = Goal {
        idle_continuations: 2,
        blocks_in_row: 7,
        failures_in_row: 3,
        wake_at_ms: Some(NOW),
        resume_at_ms: None,
        ..goal()
    };
    let change = prompted(&counted, NOW).unwrap();
    let expected = Goal { resume_at_ms: Some(NOW), updated_at_ms: NOW, ..goal() };
    let same_goal = Goal { goal_id: change.goal.goal_id.clone(), ..expected };
    assert_eq!((change.goal, change.span), (same_goal, Span::Open));
    let stopped = Goal { idle_continuations: 2, ..paused(PausedReason::User) };
    assert_eq!(prompted(&stopped, NOW), None);
}
