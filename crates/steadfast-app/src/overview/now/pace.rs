//! How fast a goal spends, what it spent over time, and which limit it reaches first.

use serde::Serialize;

use super::LimitBar;
use steadfast_model::clock::{HOUR, Millis};
use steadfast_model::goal::{Goal, GoalStatus};
use steadfast_model::limit::{Axis, Standing};
use steadfast_model::price::dollars;
use steadfast_store::{Charged, Db, StoreError};

/// Below this much active time a pace says nothing.
const PACE_AFTER_SECONDS: i64 = 60;

/// What was spent until a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Point {
    pub at_ms: Millis,
    pub tokens: i64,
    pub cost_micros: i64,
}

/// What a goal spends per hour of active time, and the limit that it reaches first at this pace.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SpendPace {
    pub tokens_per_hour: i64,
    /// Null if a part of the cost is not known.
    pub usd_per_hour: Option<f64>,
    /// The limit that is reached first; null without limits.
    pub first: Option<Axis>,
    /// Active time until then; for a deadline, time.
    pub seconds_left: Option<i64>,
    /// What it will have cost then.
    pub usd_then: Option<f64>,
}

/// What a goal spent over time, oldest first, in at most `most` points. `seen` accounting passes are looked at; what was
/// spent before them is one straight line.
pub(crate) fn burn(db: Db<'_>, goal: &Goal, seen: usize, most: usize) -> Result<Vec<Point>, StoreError> {
    let charges = db.charges(&goal.goal_id, seen)?;
    Ok(thin(points(goal, &charges), most))
}

/// Adds up backwards from what the goal has spent by now: older charges may be gone.
fn points(goal: &Goal, newest_first: &[Charged]) -> Vec<Point> {
    let (mut tokens, mut cost_micros) = (goal.total_tokens(), goal.cost_micros);
    let mut points = Vec::with_capacity(newest_first.len() + 1);
    for charge in newest_first {
        points.push(Point { at_ms: charge.at_ms, tokens, cost_micros });
        tokens = (tokens - charge.tokens).max(0);
        cost_micros = (cost_micros - charge.cost_micros).max(0);
    }
    points.push(Point { at_ms: goal.created_at_ms, tokens: 0, cost_micros: 0 });
    points.reverse();
    points
}

/// Every n-th point, and the last one.
fn thin(points: Vec<Point>, most: usize) -> Vec<Point> {
    if points.len() <= most.max(2) {
        return points;
    }
    let (last, step) = (points.last().copied(), points.len().div_ceil(most.max(2) - 1));
    let mut thinned: Vec<Point> = points.into_iter().step_by(step).collect();
    if thinned.last().copied() != last {
        thinned.extend(last);
    }
    thinned
}

/// The limits of a goal, the one that is reached first at the front: by the pace where there is one, else by share.
pub(crate) fn bars(goal: &Goal, now: Millis) -> Vec<LimitBar> {
    let until = if goal.status.is_live() { now } else { goal.updated_at_ms };
    let used = goal.used(until);
    let mut standings: Vec<Standing> = goal.limits.standings(&used).collect();
    standings.sort_by_key(|standing| {
        (seconds_left(goal, standing, until).unwrap_or(i64::MAX), -percent(standing.used, standing.most))
    });
    standings.iter().map(|standing| bar(goal, standing)).collect()
}

fn bar(goal: &Goal, standing: &Standing) -> LimitBar {
    let Standing { axis, used, most } = *standing;
    let (used_text, most_text) = match axis {
        // A deadline is a moment; what is used of it is time.
        Axis::Deadline => (Axis::Hours.format(used), axis.format(goal.limits.get(axis).unwrap_or(most))),
        _ => (axis.format(used), axis.format(most)),
    };
    LimitBar { axis, used: used_text, most: most_text, percent: percent(used, most) }
}

/// How many hundredths of `most` are used; a limit of nothing is used up.
pub(super) fn percent(used: i64, most: i64) -> i64 {
    let share = i128::from(used.max(0)) * 100 / i128::from(most.max(1));
    if most <= 0 { 100 } else { i64::try_from(share).unwrap_or(i64::MAX) }
}

/// The pace of a live goal; `None` before it says something.
pub(crate) fn pace(goal: &Goal, now: Millis) -> Option<SpendPace> {
    let seconds = goal.active_seconds(now);
    if !goal.status.is_live() || seconds < PACE_AFTER_SECONDS || goal.total_tokens() == 0 {
        return None;
    }
    let used = goal.used(now);
    let left = |standing: &Standing| Some((standing.axis, seconds_left(goal, standing, now)?));
    let first = goal.limits.standings(&used).filter_map(|standing| left(&standing)).min_by_key(|(_, left)| *left);
    let is_priced = goal.unpriced_tokens == 0;
    let seconds_left = first.map(|(_, left)| left);
    let cost_then = |left: i64| goal.cost_micros.saturating_add(scaled(goal.cost_micros, left, seconds));
    Some(SpendPace {
        tokens_per_hour: scaled(goal.total_tokens(), HOUR / 1_000, seconds),
        usd_per_hour: is_priced.then(|| dollars(scaled(goal.cost_micros, HOUR / 1_000, seconds))),
        first: first.map(|(axis, _)| axis),
        seconds_left,
        usd_then: seconds_left.filter(|_| is_priced).map(|left| dollars(cost_then(left))),
    })
}

/// Active time until a limit is reached, if the goal goes on as it did.
fn seconds_left(goal: &Goal, standing: &Standing, now: Millis) -> Option<i64> {
    let Standing { axis, used, most } = *standing;
    let left = (most - used).max(0);
    match axis {
        Axis::Hours | Axis::Deadline => Some(left / 1_000),
        _ if goal.status != GoalStatus::Active => None,
        Axis::Tokens | Axis::Usd | Axis::Turns if used > 0 => Some(scaled(left, goal.active_seconds(now), used)),
        _ => None,
    }
}

/// `amount * by / of`, without overflow.
fn scaled(amount: i64, by: i64, of: i64) -> i64 {
    let scaled = i128::from(amount) * i128::from(by) / i128::from(of.max(1));
    i64::try_from(scaled).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{HOUR, START};
    use steadfast_model::limit::Limits;

    fn goal(limits: Limits) -> Goal {
        Goal {
            limits,
            tokens_used: 1_000_000,
            cost_micros: 2_000_000,
            time_used_seconds: 3_600,
            continuations_used: 10,
            created_at_ms: START,
            updated_at_ms: START,
            ..Goal::default()
        }
    }

    #[test]
    fn the_limit_that_is_reached_first_is_in_front() {
        let limits = Limits::default().with(Axis::Tokens, 10_000_000).with(Axis::Turns, 12).with(Axis::Hours, 8 * HOUR);
        let goal = goal(limits);
        let bars = bars(&goal, START + HOUR);
        let order: Vec<(Axis, i64)> = bars.iter().map(|bar| (bar.axis, bar.percent)).collect();
        assert_eq!(order, [(Axis::Turns, 83), (Axis::Hours, 12), (Axis::Tokens, 10)]);
        let pace = pace(&goal, START + HOUR).unwrap();
        assert_eq!((pace.first, pace.seconds_left), (Some(Axis::Turns), Some(720)));
        assert_eq!((pace.tokens_per_hour, pace.usd_per_hour), (1_000_000, Some(2.0)));
        assert_eq!(pace.usd_then, Some(2.4));
    }

    #[test]
    fn a_goal_that_just_began_or_spent_nothing_has_no_pace() {
        let new = Goal { time_used_seconds: 59, ..goal(Limits::default()) };
        assert_eq!(pace(&new, START), None);
        assert_eq!(pace(&Goal { tokens_used: 0, ..goal(Limits::default()) }, START), None);
        let unpriced = Goal { unpriced_tokens: 1, ..goal(Limits::default()) };
        let pace = pace(&unpriced, START).unwrap();
        assert_eq!((pace.usd_per_hour, pace.usd_then, pace.first), (None, None, None));
    }

    #[test]
    fn charges_add_up_to_what_the_goal_spent() {
        let goal = goal(Limits::default());
        let charge = |at_ms, tokens| Charged { at_ms, tokens, cost_micros: tokens * 2 };
        let points = points(&goal, &[charge(START + 9, 400_000), charge(START + 5, 100_000)]);
        let seen: Vec<(Millis, i64, i64)> = points.iter().map(|p| (p.at_ms, p.tokens, p.cost_micros)).collect();
        let expected = [(START, 0, 0), (START + 5, 600_000, 1_200_000), (START + 9, 1_000_000, 2_000_000)];
        assert_eq!(seen, expected);
    }

    #[test]
    fn many_points_are_thinned_and_the_last_one_stays() {
        let many: Vec<Point> = (0..1_000).map(|n| Point { at_ms: n, tokens: n, cost_micros: 0 }).collect();
        for most in [0, 2, 3, 60, 999, 1_000] {
            let thinned = thin(many.clone(), most);
            assert!(thinned.len() <= most.max(2), "{most}: {}", thinned.len());
            assert_eq!(thinned.last().map(|point| point.at_ms), Some(999));
        }
        assert_eq!(thin(Vec::new(), 60), []);
    }

    #[test]
    fn absurd_numbers_do_not_overflow() {
        let limits = Limits::default().with(Axis::Tokens, i64::MAX).with(Axis::Usd, 1);
        let goal = Goal { tokens_used: i64::MAX / 2, cost_micros: i64::MAX, ..goal(limits) };
        assert!(bars(&goal, i64::MAX / 4).iter().all(|bar| bar.percent >= 0));
        assert!(pace(&goal, START + HOUR).is_some());
        assert_eq!(percent(5, 0), 100);
    }
}
