//! What `goal extend` adds, when it resumes, and when it is refused.

use super::*;
use crate::goal::{UNLIMITED_CONTINUATIONS, UNLIMITED_SECONDS};

fn add_tokens(tokens: i64) -> Limits {
    Limits::default().with(Axis::Tokens, tokens)
}

fn add_turns(turns: i64) -> Limits {
    Limits::default().with(Axis::Turns, turns)
}

fn add_seconds(seconds: i64) -> Limits {
    Limits::default().with(Axis::Hours, seconds * SECOND)
}

fn add_usd(usd_micros: i64) -> Limits {
    Limits::default().with(Axis::Usd, usd_micros)
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
        budget_limit_reported: true,
        ..limited(Axis::Tokens, 100, goal_in(GoalStatus::BudgetLimited, None))
    };
    let money = Goal { cost_micros: 100, ..limited(Axis::Usd, 100, goal_in(GoalStatus::BudgetLimited, None)) };
    let turns = Goal { continuations_used: 5, ..limited(Axis::Turns, 5, paused(PausedReason::ContinuationCap)) };
    let hours = limited(Axis::Hours, 10 * SECOND, paused(PausedReason::WallClockCap));
    let deadline = limited(Axis::Deadline, START + MINUTE, paused(PausedReason::Deadline));
    let by_user = Goal { tokens_used: 105, ..limited(Axis::Tokens, 100, paused(PausedReason::User)) };
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
fn a_refused_extension_shows_the_amounts_as_people_read_them() {
    let spent = goal_in(GoalStatus::BudgetLimited, None);
    let tokens = Goal { tokens_used: 1_200, ..limited(Axis::Tokens, 1_000, spent.clone()) };
    let money = Goal { cost_micros: 2_000_000, ..limited(Axis::Usd, 1_000_000, spent) };
    let hours = Goal { time_used_seconds: 7_200, ..limited(Axis::Hours, HOUR, paused(PausedReason::WallClockCap)) };
    for (before, add, shown) in [
        (tokens, add_tokens(100), "1,200 of 1,100 tokens"),
        (money, add_usd(500_000), "$2.00 of $1.50"),
        (hours, add_seconds(1_800), "2h 00m of 1h 30m"),
    ] {
        let refusal = extend(&before, add, NOW).unwrap_err();
        assert_eq!(refusal.to_string(), format!("not enough, even then: {shown}"));
    }
}

#[test]
fn extending_a_goal_paused_by_the_caps_over_all_goals_does_not_resume_it() {
    let before = paused(PausedReason::CostCap);
    for add in [add_tokens(1), add_turns(1), add_seconds(1), add_usd(1)] {
        assert_eq!(outcome(&before, &extend(&before, add, NOW)), "same", "{add:?}");
    }
}

#[test]
fn several_limits_are_raised_at_once_and_logged_as_one() {
    let before = Goal {
        continuations_used: 3,
        limits: Limits::default()
            .with(Axis::Turns, 3 + 2)
            .with(Axis::Hours, MINUTE)
            .with(Axis::Tokens, 1_000)
            .with(Axis::Usd, 5),
        warned: vec![Axis::Tokens, Axis::Turns, Axis::Hours, Axis::Usd],
        ..goal_in(GoalStatus::Active, None)
    };
    let add = Limits::default().with(Axis::Turns, 10).with(Axis::Hours, HOUR).with(Axis::Tokens, 500);
    let change = extend(&before, add, NOW).unwrap();
    let payload = json!({"add_turns": 10, "add_seconds": 3600, "add_tokens": 500, "add_usd_micros": null});
    assert_eq!(change.events, [Event::new(EventKind::GoalExtended, payload)]);
    let expected = Goal {
        limits: Limits::default()
            .with(Axis::Turns, 3 + 12)
            .with(Axis::Hours, 3_660 * SECOND)
            .with(Axis::Tokens, 1_500)
            .with(Axis::Usd, 5),
        warned: vec![Axis::Usd],
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
        ..goal_in(GoalStatus::Active, None)
    };
    let add =
        Limits::default().with(Axis::Turns, 10).with(Axis::Hours, HOUR).with(Axis::Tokens, 500).with(Axis::Usd, 3);
    let after = extend(&before, add, NOW).unwrap().goal;
    assert_eq!((after.limits.get(Axis::Tokens), after.budget_source), (Some(542), BudgetSource::Tokens));
    assert_eq!(after.limits.get(Axis::Usd), Some(10));
    assert_eq!((after.continuations_remaining(), after.limits.get(Axis::Turns)), (10, Some(9 + 10)));
    assert_eq!(after.limits.get(Axis::Hours), Some((100 + 3_600) * SECOND));
}

#[test]
fn an_unlimited_goal_that_has_continued_still_has_no_turn_cap() {
    let mut goal = goal();
    let rules = crate::testing::rules(0);
    for _ in 0..3 {
        goal = turn::at_stop(&goal, &TurnEnd::default(), rules, NOW).0.unwrap().goal;
    }
    let left = goal.continuations_remaining();
    assert_eq!(goal.limits.get(Axis::Turns), None, "{left} left");
    assert_eq!((goal.continuations_used, left), (3, UNLIMITED_CONTINUATIONS - 3));
}

#[test]
fn added_hours_move_a_deadline_and_set_no_other_cap() {
    let before = limited(Axis::Deadline, NOW + MINUTE, goal_in(GoalStatus::Active, None));
    let after = extend(&before, add_seconds(60), NOW).unwrap().goal;
    assert_eq!(after.limits, Limits::default().with(Axis::Deadline, NOW + 2 * MINUTE));
}

#[test]
fn huge_amounts_saturate() {
    let add = Limits::default()
        .with(Axis::Turns, i64::MAX)
        .with(Axis::Hours, i64::MAX)
        .with(Axis::Tokens, i64::MAX)
        .with(Axis::Usd, i64::MAX);
    let before = Goal {
        tokens_used: 40,
        cost_micros: 40,
        continuations_used: 40,
        ..limited(Axis::Deadline, NOW, goal_in(GoalStatus::Active, None))
    };
    let after = extend(&before, add, NOW).unwrap().goal;
    // One more would be stored as no cap.
    assert_eq!(after.limits.get(Axis::Turns), Some(UNLIMITED_CONTINUATIONS - 1));
    for axis in [Axis::Tokens, Axis::Usd, Axis::Deadline] {
        assert_eq!(after.limits.get(axis), Some(i64::MAX), "{axis}");
    }
    // Without a deadline, hours are a cap as well.
    let after = extend(&goal_in(GoalStatus::Active, None), add, NOW).unwrap().goal;
    assert_eq!(after.limits.get(Axis::Hours), Some((UNLIMITED_SECONDS - 1) * SECOND));
}

#[test]
fn an_extension_cancels_the_wind_down() {
    let before = Goal {
        wind_down: Some(Axis::Turns),
        continuations_used: 5,
        ..limited(Axis::Turns, 5, goal_in(GoalStatus::Active, None))
    };
    assert_eq!(extend(&before, add_turns(5), NOW).unwrap().goal.wind_down, None);
    assert_eq!(extend(&before, add_tokens(5), NOW).unwrap().goal.wind_down, Some(Axis::Turns));
    // Running time continues to count.
    let extended = extend(&before, add_turns(5), NOW).unwrap().goal;
    assert_eq!(extended.active_seconds(NOW), before.active_seconds(NOW));
}
