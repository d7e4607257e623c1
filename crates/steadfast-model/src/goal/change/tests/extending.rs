//! What `goal extend` adds, when it resumes, and when it is refused.

use super::*;
use crate::goal::UNLIMITED_CONTINUATIONS;

fn add_tokens(tokens: i64) -> Extension {
    Extension { tokens: Some(tokens), ..Extension::default() }
}

fn add_turns(turns: i64) -> Extension {
    Extension { turns: Some(turns), ..Extension::default() }
}

fn add_seconds(seconds: i64) -> Extension {
    Extension { seconds: Some(seconds), ..Extension::default() }
}

fn add_usd(usd_micros: i64) -> Extension {
    Extension { usd_micros: Some(usd_micros), ..Extension::default() }
}

#[test]
fn limits_can_be_raised_from_every_live_state_and_no_other() {
    for before in all_states() {
        let result = extend(&before, add_turns(5), NOW);
        assert_eq!(result.is_ok(), before.status.is_live(), "{}", before.state());
    }
}

#[test]
fn an_extension_resumes_only_goals_stopped_by_that_limit() {
    let tokens = Goal {
        tokens_used: 80,
        subagent_tokens: 25,
        token_budget: Some(100),
        budget_limit_reported: true,
        ..goal_in(GoalStatus::BudgetLimited, None)
    };
    let money = Goal { cost_micros: 100, usd_budget_micros: Some(100), ..goal_in(GoalStatus::BudgetLimited, None) };
    let turns = Goal { continuations_used: 5, continuations_remaining: 0, ..paused(PausedReason::ContinuationCap) };
    let hours = Goal { max_wall_clock_seconds: 10, ..paused(PausedReason::WallClockCap) };
    let deadline = Goal { deadline_ms: Some(START + MINUTE), ..paused(PausedReason::Deadline) };
    let by_user = Goal { tokens_used: 105, token_budget: Some(100), ..paused(PausedReason::User) };
    let cases = [
        ("tokens", &tokens, add_tokens(6), "active Open"),
        ("just too few tokens", &tokens, add_tokens(5), "no"),
        ("turns on spent tokens", &tokens, add_turns(5), "same"),
        ("hours on spent tokens", &tokens, add_seconds(5), "same"),
        ("money on spent tokens", &tokens, add_usd(5), "same"),
        ("money", &money, add_usd(1), "active Open"),
        ("turns", &turns, add_turns(1), "active Open"),
        ("tokens at the turn cap", &turns, add_tokens(1), "same"),
        ("hours", &hours, add_seconds(1), "active Open"),
        ("hours for a deadline", &deadline, add_seconds(1), "active Open"),
        ("turns at the deadline", &deadline, add_turns(9), "same"),
        ("tokens for a goal paused by its user", &by_user, add_tokens(500), "same"),
    ];
    for (name, before, add, expected) in cases {
        let result = extend(before, add, NOW);
        assert_eq!(outcome(before, &result), expected, "{name}");
    }
    assert!(!extend(&tokens, add_tokens(6), NOW).unwrap().goal.budget_limit_reported);
}

#[test]
fn several_limits_are_raised_at_once_and_logged_as_one() {
    let before = Goal {
        continuations_used: 3,
        continuations_remaining: 2,
        max_wall_clock_seconds: 60,
        token_budget: Some(1_000),
        usd_budget_micros: Some(5),
        warned: vec![Limit::Tokens, Limit::Turns, Limit::Hours, Limit::Usd],
        ..goal_in(GoalStatus::Active, None)
    };
    let add = Extension { turns: Some(10), seconds: Some(3_600), tokens: Some(500), usd_micros: None };
    let change = extend(&before, add, NOW).unwrap();
    let payload = json!({"add_turns": 10, "add_seconds": 3600, "add_tokens": 500, "add_usd_micros": null});
    assert_eq!(change.events, [Event::new("goal_extended", payload)]);
    let expected = Goal {
        continuations_remaining: 12,
        max_wall_clock_seconds: 3_660,
        token_budget: Some(1_500),
        warned: vec![Limit::Usd],
        updated_at_ms: NOW,
        ..before
    };
    assert_eq!((change.goal, change.span), (expected, Span::Keep));
}

#[test]
fn a_first_limit_counts_from_what_is_used_already() {
    let before = Goal {
        tokens_used: 40,
        subagent_tokens: 2,
        cost_micros: 7,
        continuations_used: 9,
        continuations_remaining: UNLIMITED_CONTINUATIONS - 9,
        ..goal_in(GoalStatus::Active, None)
    };
    let add = Extension { turns: Some(10), seconds: Some(3_600), tokens: Some(500), usd_micros: Some(3) };
    let after = extend(&before, add, NOW).unwrap().goal;
    assert_eq!((after.token_budget, after.budget_source), (Some(542), BudgetSource::Tokens));
    assert_eq!(after.usd_budget_micros, Some(10));
    assert_eq!((after.continuations_remaining, after.has_turn_cap()), (10, true));
    assert_eq!(after.max_wall_clock_seconds, 100 + 3_600);
}

#[test]
fn an_unlimited_goal_that_has_continued_still_has_no_turn_cap() {
    let mut goal = goal();
    let rules = crate::testing::rules(0);
    for _ in 0..3 {
        goal = turn::at_stop(&goal, &TurnEnd::default(), rules, NOW).0.unwrap().goal;
    }
    assert!(!goal.has_turn_cap(), "{} left", goal.continuations_remaining);
}

#[test]
fn added_hours_move_a_deadline_and_set_no_other_cap() {
    let before = Goal { deadline_ms: Some(NOW + MINUTE), ..goal_in(GoalStatus::Active, None) };
    let after = extend(&before, add_seconds(60), NOW).unwrap().goal;
    assert_eq!(after.deadline_ms, Some(NOW + 2 * MINUTE));
    assert!(!after.has_time_cap());
}

#[test]
fn huge_amounts_saturate() {
    let add = Extension {
        turns: Some(i64::MAX),
        seconds: Some(i64::MAX),
        tokens: Some(i64::MAX),
        usd_micros: Some(i64::MAX),
    };
    let before = Goal { tokens_used: 40, cost_micros: 40, deadline_ms: Some(NOW), ..goal_in(GoalStatus::Active, None) };
    let after = extend(&before, add, NOW).unwrap().goal;
    assert!(after.has_turn_cap() || after.continuations_remaining >= UNLIMITED_CONTINUATIONS - 1);
    assert_eq!(
        (after.token_budget, after.usd_budget_micros, after.deadline_ms),
        (Some(i64::MAX), Some(i64::MAX), Some(i64::MAX))
    );
}

#[test]
fn an_extension_cancels_the_wind_down() {
    let before = Goal {
        wind_down: Some(Limit::Turns),
        continuations_used: 5,
        continuations_remaining: 0,
        ..goal_in(GoalStatus::Active, None)
    };
    assert_eq!(extend(&before, add_turns(5), NOW).unwrap().goal.wind_down, None);
    assert_eq!(extend(&before, add_tokens(5), NOW).unwrap().goal.wind_down, Some(Limit::Turns));
    // Running time continues to count.
    let extended = extend(&before, add_turns(5), NOW).unwrap().goal;
    assert_eq!(extended.active_seconds(NOW), before.active_seconds(NOW));
}
