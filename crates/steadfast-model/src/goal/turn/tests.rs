//! The decisions at the end of a turn: continue, wind down once, stop; and their precedence.

use super::*;
use crate::goal::Actor;
use crate::goal::change::{complete, extend, pause};
use crate::goal::proof::{Basis, Proof};
use crate::limit::Limits;
use crate::testing::{HOUR, MINUTE, SECOND, START, goal, goal_with};

mod batches;
mod overtime;
mod progress;
mod repeating;

const NOW: Millis = START + MINUTE;
const RULES: TurnRules = crate::testing::rules(3);

/// A turn that a person started and in which tools were called.
fn work() -> TurnEnd {
    TurnEnd { worked: true, message: Some("m".into()), block_cap: Some(8), ..TurnEnd::default() }
}

/// A turn that a continuation started and that only talked.
fn talk(message: &str) -> TurnEnd {
    TurnEnd { after_continuation: true, worked: false, message: Some(message.into()), ..work() }
}

fn stop(goal: &Goal, turn: &TurnEnd) -> (Goal, Decision) {
    let (change, decision) = at_stop(goal, turn, RULES, NOW);
    (change.map_or_else(|| goal.clone(), |change| change.goal), decision)
}

fn charged(goal: &Goal, worker_tokens: i64) -> Goal {
    let add = Charge { worker_tokens, cost_micros: worker_tokens, ..Charge::default() };
    charge(goal, add, NOW).unwrap().goal
}

/// A goal with one limit.
fn limited(axis: Axis, amount: i64) -> Goal {
    goal_with(Limits::default().with(axis, amount))
}

/// For each limit, a goal that has just reached it.
fn goals_at_their_limit() -> [(Axis, Goal); 5] {
    let tokens = limited(Axis::Tokens, 100);
    let usd = limited(Axis::Usd, 100);
    let turns = limited(Axis::Turns, 0);
    let hours = limited(Axis::Hours, 60 * SECOND);
    let deadline = limited(Axis::Deadline, NOW);
    [
        (Axis::Tokens, charged(&tokens, 100)),
        (Axis::Usd, charged(&usd, 100)),
        (Axis::Turns, turns),
        (Axis::Hours, hours),
        (Axis::Deadline, deadline),
    ]
}

#[test]
fn an_active_goal_continues_and_the_turn_is_counted() {
    let before = limited(Axis::Turns, 5);
    let (change, decision) = at_stop(&before, &work(), RULES, NOW);
    let change = change.unwrap();
    let mut event =
        Event::new(EventKind::ContinuationInjected, json!({"message": "m", "last_accounted_byte_offset": 0}));
    event.decision = Some("block");
    assert_eq!((decision, change.events), (Decision::Continue, vec![event]));
    let expected = Goal {
        continuations_used: 1,
        last_continuation_at_ms: Some(NOW),
        last_message_hash: Some("m".into()),
        blocks_in_row: 1,
        updated_at_ms: NOW,
        ..before
    };
    assert_eq!(change.goal, expected);
    assert_eq!(change.goal.continuations_remaining(), 4);
}

#[test]
fn goals_that_are_not_running_are_left_alone() {
    let goal = goal();
    let by_user = Proof::from_user(&goal, Actor::User).unwrap();
    let done = complete(&goal, &by_user, NOW).unwrap().goal;
    let paused = pause(&Goal { resume_at_ms: None, ..goal.clone() }, NOW).unwrap().goal;
    let blocked = Goal { status: GoalStatus::Blocked, ..goal };
    for goal in [done, paused, blocked] {
        assert_eq!(at_stop(&goal, &work(), RULES, NOW), (None, Decision::Silent));
        assert_eq!(at_batch(&goal, SharedSpend::Free, NOW), (None, BatchDecision::Proceed));
        assert_eq!(warn(&goal, SharedSpend::Free, NOW), None);
    }
}

#[test]
fn every_limit_gives_one_wind_down_turn_and_then_stops() {
    for (limit, at_limit) in goals_at_their_limit() {
        let (winding, first) = stop(&at_limit, &work());
        assert_eq!(first, Decision::WindDown(limit));
        assert_eq!((winding.wind_down, winding.status), (Some(limit), at_limit.status));
        let (stopped, second) = stop(&winding, &work());
        assert_eq!(second, Decision::Limited(limit));
        let expected = match limit {
            Axis::Tokens | Axis::Usd => "budget_limited",
            Axis::Turns => "paused (continuation_cap)",
            Axis::Hours => "paused (wall_clock_cap)",
            Axis::Deadline => "paused (deadline)",
            Axis::Shared => "paused (cost_cap)",
            Axis::Plan => "paused (usage_limit)",
        };
        assert_eq!(stopped.state(), expected);
        assert_eq!((stopped.wind_down, stopped.resume_at_ms), (None, None));
        let (_, third) = stop(&stopped, &work());
        assert_eq!(third, Decision::Silent, "{limit} is reported once");
    }
}

#[test]
fn events_record_the_limit_and_the_amount_used() {
    let (_, at_cap) = goals_at_their_limit()[2].clone();
    let (winding, _) = stop(&at_cap, &work());
    let (change, _) = at_stop(&winding, &work(), RULES, NOW);
    let payload = json!({"limit": "turns", "used": 0, "most": 0, "reason": "continuation_cap"});
    assert_eq!(change.unwrap().events, [Event::new(EventKind::CapReached, payload)]);

    let (_, spent) = goals_at_their_limit()[0].clone();
    let (change, _) = at_stop(&spent, &work(), RULES, NOW);
    let mut event = Event::new(EventKind::BudgetLimitReported, json!({"limit": "tokens"}));
    event.decision = Some("block");
    assert_eq!(change.unwrap().events, [event]);
}

/// Reconciling can activate a goal above its budget, and a turn may have no visible cost.
#[test]
fn a_budget_ends_in_budget_limited_even_when_the_last_turn_cost_nothing() {
    for limit in [Axis::Tokens, Axis::Usd] {
        let over = Goal { tokens_used: 100, cost_micros: 100, ..limited(limit, 100) };
        let (winding, first) = stop(&over, &work());
        assert_eq!(first, Decision::WindDown(limit));
        let (stopped, second) = stop(&winding, &work());
        assert_eq!((second, stopped.state()), (Decision::Limited(limit), "budget_limited".into()));
        assert_eq!(stopped.resume_at_ms, None);
    }
}

#[test]
fn all_turns_of_a_cap_are_used_before_the_wind_down() {
    let mut goal = limited(Axis::Turns, 2);
    let mut decisions = Vec::new();
    for _ in 0..5 {
        let (after, decision) = stop(&goal, &work());
        decisions.push(decision);
        goal = after;
    }
    assert_eq!(
        decisions,
        [
            Decision::Continue,
            Decision::Continue,
            Decision::WindDown(Axis::Turns),
            Decision::Limited(Axis::Turns),
            Decision::Silent
        ]
    );
}

#[test]
fn an_extended_goal_winds_down_again_at_its_next_limit() {
    let (_, spent) = goals_at_their_limit()[0].clone();
    let (winding, _) = stop(&spent, &work());
    let (stopped, _) = stop(&winding, &work());
    let more = Limits::default().with(Axis::Tokens, 50);
    let extended = extend(&stopped, more, NOW).unwrap().goal;
    assert_eq!(stop(&extended, &work()).1, Decision::Continue);
    let spent_again = charged(&extended, 50);
    assert_eq!(stop(&spent_again, &work()).1, Decision::WindDown(Axis::Tokens));
}

#[test]
fn reaching_the_budget_and_becoming_budget_limited_are_one_change() {
    let before = limited(Axis::Tokens, 100);
    assert_eq!(charged(&before, 99).status, GoalStatus::Active);
    let add = Charge {
        worker_tokens: 60,
        subagent_tokens: 40,
        evaluator_tokens: 30,
        cache_read_tokens: 7,
        cost_micros: 5,
        unpriced_tokens: 3,
    };
    let change = charge(&before, add, NOW).unwrap();
    let mut event = Event::new(
        EventKind::TokensAccounted,
        json!({"worker_tokens": 60, "subagent_tokens": 40, "cache_read_tokens": 7, "cost_micros": 5}),
    );
    event.tokens_delta = Some(100);
    assert_eq!((change.events, change.span), (vec![event], Span::Keep));
    let expected = Goal {
        status: GoalStatus::BudgetLimited,
        tokens_used: 60,
        subagent_tokens: 40,
        evaluator_tokens: 30,
        cache_read_tokens: 7,
        cost_micros: 5,
        unpriced_tokens: 3,
        time_used_seconds: 60,
        resume_at_ms: None,
        updated_at_ms: NOW,
        ..before
    };
    assert_eq!(change.goal, expected);
    assert_eq!(charge(&expected, Charge::default(), NOW), None, "nothing new, nothing written");
    let goal = goal();
    let done = complete(&goal, &Proof::from_agent(&goal, &Basis::default()).unwrap(), NOW).unwrap().goal;
    assert_eq!(charged(&done, 1_000_000).status, GoalStatus::Complete);
}

#[test]
fn each_limit_gives_one_warning_at_eighty_percent() {
    let limits = Limits::default().with(Axis::Tokens, 1_000).with(Axis::Usd, 10_000);
    assert_eq!(warn(&charged(&goal_with(limits), 799), SharedSpend::Free, NOW), None);
    let near = charged(&goal_with(limits), 800);
    let (change, limits) = warn(&near, SharedSpend::Free, NOW).unwrap();
    assert_eq!(limits, [Axis::Tokens]);
    assert_eq!(change.events, [Event::new(EventKind::LimitWarning, json!({"limits": ["tokens"]}))]);
    assert_eq!(change.goal.warned, [Axis::Tokens]);
    assert_eq!(warn(&change.goal, SharedSpend::Free, NOW), None);

    let end = START + 100 * SECOND;
    let limits = Limits::default().with(Axis::Hours, 100 * SECOND).with(Axis::Turns, 5).with(Axis::Deadline, end);
    let almost = Goal { continuations_used: 4, ..goal_with(limits) };
    let (_, limits) = warn(&almost, SharedSpend::Free, START + 80 * SECOND).unwrap();
    assert_eq!(limits, [Axis::Turns, Axis::Hours, Axis::Deadline]);
}

#[test]
fn the_caps_over_all_goals_give_a_warning_when_near_and_none_when_reached() {
    assert_eq!(warn(&goal(), SharedSpend::Free, NOW), None);
    assert_eq!(warn(&goal(), SharedSpend::Reached, NOW), None);
    let (change, limits) = warn(&goal(), SharedSpend::Near, NOW).unwrap();
    assert_eq!((limits, &change.goal.warned), (vec![Axis::Shared], &vec![Axis::Shared]));
    assert_eq!(warn(&change.goal, SharedSpend::Near, NOW), None);
}

#[test]
fn the_caps_over_all_goals_give_one_wind_down_turn_and_then_pause() {
    let rules = TurnRules { shared: SharedSpend::Reached, ..RULES };
    let (change, decision) = at_stop(&goal(), &work(), rules, NOW);
    assert_eq!(decision, Decision::WindDown(Axis::Shared));
    let (change, decision) = at_stop(&change.unwrap().goal, &work(), rules, NOW);
    let change = change.unwrap();
    assert_eq!((decision, change.goal.state()), (Decision::Limited(Axis::Shared), "paused (cost_cap)".into()));
    let payload = json!({"limit": "shared", "used": 0, "most": 0, "reason": "cost_cap"});
    assert_eq!(change.events, [Event::new(EventKind::CapReached, payload)]);
}

#[test]
fn uncertain_accounting_pauses_only_a_goal_that_it_could_overspend() {
    let caps = Limits::default().with(Axis::Turns, 9).with(Axis::Hours, HOUR * SECOND);
    let with = |limits| Goal { accounting_uncertain: true, ..goal_with(limits) };
    for (goal, pauses) in
        [(with(caps), false), (with(caps.with(Axis::Tokens, 1_000)), true), (with(caps.with(Axis::Usd, 1_000)), true)]
    {
        let (after, decision) = stop(&goal, &work());
        if pauses {
            assert_eq!(decision, Decision::AccountingUncertain);
            assert_eq!(after.state(), "paused (accounting_uncertain)");
        } else {
            assert_eq!((decision, after.accounting_uncertain), (Decision::Continue, true));
        }
    }
}

#[test]
fn uncertain_accounting_pauses_every_goal_if_configured() {
    let rules = TurnRules { always_pause_uncertain: true, ..RULES };
    let uncertain = Goal { accounting_uncertain: true, ..goal() };
    assert_eq!(at_stop(&uncertain, &work(), rules, NOW).1, Decision::AccountingUncertain);
    assert_eq!(at_stop(&goal(), &work(), rules, NOW).1, Decision::Continue);
}
