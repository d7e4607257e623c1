//! Limits inside one long turn (bug 30 of the plugin: nothing enforced them).

use super::*;

fn batch(goal: &Goal) -> (Goal, BatchDecision) {
    let (change, decision) = at_batch(goal, SharedSpend::Free, NOW);
    (change.map_or_else(|| goal.clone(), |change| change.goal), decision)
}

/// What the next batches lead to, until the turn is ended or five have passed.
fn batches(mut goal: Goal) -> (Goal, Vec<BatchDecision>) {
    let mut decisions = Vec::new();
    for _ in 0..6 {
        let (after, decision) = batch(&goal);
        goal = after;
        decisions.push(decision);
        if matches!(decision, BatchDecision::EndTurn(_)) {
            break;
        }
    }
    (goal, decisions)
}

#[test]
fn a_batch_is_noted_as_work_once() {
    let (worked, decision) = batch(&goal());
    assert_eq!((decision, worked.worked_since_continuation), (BatchDecision::Proceed, true));
    assert_eq!(at_batch(&worked, SharedSpend::Free, NOW), (None, BatchDecision::Proceed));
}

#[test]
fn a_turn_that_passes_a_limit_is_warned_and_then_ended() {
    for (limit, at_limit) in goals_at_their_limit() {
        let (stopped, decisions) = batches(at_limit);
        if limit == Axis::Turns {
            assert_eq!(decisions, [BatchDecision::Proceed; 6], "turns cannot be passed inside one");
            continue;
        }
        let expected = [
            BatchDecision::WindDown(limit),
            BatchDecision::Proceed,
            BatchDecision::Proceed,
            BatchDecision::Proceed,
            BatchDecision::EndTurn(limit),
        ];
        assert_eq!(decisions, expected);
        let state = match limit {
            Axis::Hours => "paused (wall_clock_cap)",
            Axis::Deadline => "paused (deadline)",
            Axis::Shared => "paused (cost_cap)",
            _ => "budget_limited",
        };
        assert_eq!((stopped.state(), stopped.wind_down), (state.into(), None));
        assert_eq!(stop(&stopped, &work()).1, Decision::Silent);
    }
}

#[test]
fn a_wind_down_inside_a_turn_is_not_repeated_at_its_end() {
    for (limit, at_limit) in goals_at_their_limit() {
        if limit == Axis::Turns {
            continue;
        }
        let (winding, _) = batch(&at_limit);
        assert_eq!(stop(&winding, &work()).1, Decision::Limited(limit));
    }
}

#[test]
fn the_other_limits_apply_to_the_last_allowed_turn() {
    let (_, at_cap) = goals_at_their_limit()[3].clone();
    let last_turn = Goal { continuations_used: 5, limits: at_cap.limits.with(Axis::Turns, 5), ..at_cap };
    assert_eq!(batch(&last_turn).1, BatchDecision::WindDown(Axis::Hours));
}

#[test]
fn the_token_budget_applies_to_the_wind_down_turn_of_the_turn_cap() {
    let spent = charged(&goal_with(Limits::default().with(Axis::Tokens, 100).with(Axis::Turns, 0)), 100);
    let winding = Goal { wind_down: Some(Axis::Turns), ..spent };
    let (_, decisions) = batches(winding);
    assert_eq!(decisions.last(), Some(&BatchDecision::EndTurn(Axis::Tokens)));
}

#[test]
fn a_limited_goal_does_not_affect_the_users_later_turns() {
    let spent =
        Goal { budget_limit_reported: true, worked_since_continuation: true, ..goals_at_their_limit()[0].1.clone() };
    assert_eq!(at_batch(&spent, SharedSpend::Free, NOW), (None, BatchDecision::Proceed));
}
