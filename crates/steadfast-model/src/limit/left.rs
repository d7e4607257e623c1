//! What is left of limits for work that counts to them.

use super::{Axis, Limits, Used};

impl Limits {
    /// What is left for other work that counts to these limits. Turns belong to their owner alone, and caps hold by
    /// themselves.
    #[must_use]
    pub fn left(&self, used: &Used) -> Self {
        let mut left = Self::default();
        for standing in self.standings(used) {
            match standing.axis {
                Axis::Tokens | Axis::Usd | Axis::Hours => {
                    left.set(standing.axis, Some(standing.most.saturating_sub(standing.used).max(0)));
                }
                Axis::Deadline => left.set(Axis::Deadline, self.get(Axis::Deadline)),
                _ => {}
            }
        }
        left
    }

    /// The limits of work that has used this much already and may use these amounts more.
    #[must_use]
    pub fn beyond(self, used: &Used) -> Self {
        let mut limits = self;
        for (axis, already) in [(Axis::Tokens, used.tokens), (Axis::Usd, used.cost_micros), (Axis::Hours, used.time_ms)]
        {
            limits.set(axis, self.get(axis).map(|amount| amount.saturating_add(already)));
        }
        limits
    }

    /// The smaller amount on each axis.
    #[must_use]
    pub fn smaller(self, other: Self) -> Self {
        let mut limits = self.or(other);
        for (axis, amount) in other.iter() {
            limits.set(axis, Some(self.get(axis).map_or(amount, |own| own.min(amount))));
        }
        limits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_the_most_that_other_work_may_use() {
        let limits = Limits::default()
            .with(Axis::Tokens, 1_000)
            .with(Axis::Usd, 5)
            .with(Axis::Hours, 3_600_000)
            .with(Axis::Deadline, 99)
            .with(Axis::Turns, 7);
        let used = Used { tokens: 400, cost_micros: 6, time_ms: 600_000, turns: 3, now_ms: 50, ..Used::default() };
        let left = limits.left(&used);
        let amounts: Vec<(Axis, i64)> = left.iter().collect();
        assert_eq!(amounts, [(Axis::Tokens, 600), (Axis::Usd, 0), (Axis::Hours, 3_000_000), (Axis::Deadline, 99)]);
        let asked = Limits::default().with(Axis::Tokens, 1_000_000).with(Axis::Hours, 60_000).with(Axis::Turns, 2);
        let amounts: Vec<(Axis, i64)> = asked.smaller(left).iter().collect();
        let expected =
            [(Axis::Tokens, 600), (Axis::Usd, 0), (Axis::Turns, 2), (Axis::Hours, 60_000), (Axis::Deadline, 99)];
        assert_eq!(amounts, expected);
        assert_eq!(left.beyond(&used).get(Axis::Tokens), Some(1_000));
    }
}
