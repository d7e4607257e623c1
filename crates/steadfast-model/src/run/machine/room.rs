//! How many agents may run at once under a budget. What an agent uses is known when it has ended, so agents that run at
//! once pass a budget together. Once the run knows what its dearest attempt used, no more agents run than the rest of
//! the budget pays for: the budget is then passed by less than one such attempt, and before by one attempt per agent.

use crate::limit::{Axis, Limits, Spend, Used};

/// The most agents at once: `parallel`, or fewer if the rest of a budget does not pay for so many. At least one: the
/// limit itself decides whether another agent starts. `dearest` is the most that one attempt used so far, per axis.
pub(super) fn agents_at_once(limits: &Limits, used: &Used, dearest: Spend, parallel: u32) -> u32 {
    let rest = |axis: Axis, used: i64, dearest: i64| {
        let left = limits.get(axis)?.saturating_sub(used).max(0);
        // Rounded up: the last agent may pass the budget, as it does when one runs after the other.
        (dearest > 0).then(|| left.saturating_add(dearest - 1) / dearest)
    };
    let tokens = rest(Axis::Tokens, used.tokens, dearest.tokens);
    let money = rest(Axis::Usd, used.cost_micros, dearest.cost_micros);
    let most = tokens.into_iter().chain(money).min().unwrap_or(i64::MAX);
    u32::try_from(most).unwrap_or(u32::MAX).clamp(1, parallel.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_once(limit: i64, used: i64, dearest: i64) -> u32 {
        let used = Used { cost_micros: used, tokens: 7, ..Used::default() };
        let dearest = Spend { tokens: 7, cost_micros: dearest };
        agents_at_once(&Limits::default().with(Axis::Usd, limit), &used, dearest, 4)
    }

    #[test]
    fn the_rest_of_a_budget_pays_for_all_agents_that_run_at_once() {
        assert_eq!(at_once(300, 0, 0), 4, "the first wave");
        assert_eq!(at_once(300, 200, 200), 1);
        assert_eq!(at_once(1_000, 200, 200), 4);
        assert_eq!(at_once(1_000, 500, 200), 3, "the third passes the budget");
        assert_eq!(at_once(1_000, 600, 200), 2);
        assert_eq!(at_once(1_000, 1_400, 200), 1, "the limit itself stops the run");
        assert_eq!(at_once(i64::MAX, -1, i64::MAX), 1);
    }

    #[test]
    fn the_scarcer_budget_counts_and_no_budget_does_not() {
        let used = Used::default();
        let dearest = Spend { tokens: 50, cost_micros: 10 };
        let both = Limits::default().with(Axis::Usd, 100).with(Axis::Tokens, 100);
        assert_eq!(agents_at_once(&both, &used, dearest, 4), 2);
        assert_eq!(agents_at_once(&Limits::default().with(Axis::Hours, 1), &used, dearest, 4), 4);
        assert_eq!(agents_at_once(&Limits::default(), &used, dearest, 0), 1);
    }
}
