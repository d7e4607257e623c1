//! Which stages have to end before which: the graph that `needs` makes. A stage without `needs` waits for the one before
//! it. All numbers count from 1.

use std::collections::BTreeSet;

use super::Plan;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageGraph {
    needs: Vec<Vec<u32>>,
}

impl StageGraph {
    /// One element for each stage; `None` stands for the stage before it.
    pub fn new(needs: impl IntoIterator<Item = Option<Vec<u32>>>) -> Self {
        let before = |number: u32| if number > 1 { vec![number - 1] } else { Vec::new() };
        let needs = (1..).zip(needs).map(|(number, needs)| needs.unwrap_or_else(|| before(number))).collect();
        Self { needs }
    }

    pub fn of(plan: &Plan) -> Self {
        Self::new(plan.stages.iter().map(|stage| stage.needs.clone()))
    }

    /// The stages that this one waits for.
    pub fn needs(&self, stage: u32) -> &[u32] {
        let index = usize::try_from(stage).ok().and_then(|stage| stage.checked_sub(1));
        index.and_then(|index| self.needs.get(index)).map_or(&[], Vec::as_slice)
    }

    /// All stages that are over when this one starts: those that it needs, and what they need.
    pub fn before(&self, stage: u32) -> BTreeSet<u32> {
        let mut found = BTreeSet::new();
        let mut open = self.needs(stage).to_vec();
        while let Some(next) = open.pop() {
            if found.insert(next) {
                open.extend_from_slice(self.needs(next));
            }
        }
        found
    }

    /// The stages by the earliest moment at which they can start: first those that wait for nothing. Stages that wait
    /// for themselves are in none.
    pub fn levels(&self) -> Vec<Vec<u32>> {
        let mut levels = Vec::new();
        let mut done: BTreeSet<u32> = BTreeSet::new();
        loop {
            let is_ready = |stage: &u32| !done.contains(stage) && self.needs(*stage).iter().all(|n| done.contains(n));
            let level: Vec<u32> = self.numbers().filter(is_ready).collect();
            if level.is_empty() {
                return levels;
            }
            done.extend(&level);
            levels.push(level);
        }
    }

    /// Stages that wait for each other in a ring; each waits for the next, and the last for the first.
    pub fn cycle(&self) -> Option<Vec<u32>> {
        let free: BTreeSet<u32> = self.levels().into_iter().flatten().collect();
        let mut path: Vec<u32> = Vec::new();
        let mut next = self.numbers().find(|stage| !free.contains(stage))?;
        loop {
            if let Some(start) = path.iter().position(|stage| *stage == next) {
                return Some(path.split_off(start));
            }
            path.push(next);
            // A stage that never starts needs another one that never does.
            next = *self.needs(next).iter().find(|need| !free.contains(need))?;
        }
    }

    fn numbers(&self) -> impl Iterator<Item = u32> + use<> {
        1..=u32::try_from(self.needs.len()).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(needs: &[Option<&[u32]>]) -> StageGraph {
        StageGraph::new(needs.iter().map(|needs| needs.map(<[u32]>::to_vec)))
    }

    #[test]
    fn stages_without_needs_are_a_chain() {
        let chain = graph(&[None, None, None]);
        assert_eq!(chain.levels(), [[1], [2], [3]]);
        assert_eq!(chain.before(3), BTreeSet::from([1, 2]));
        assert_eq!(chain.before(1), BTreeSet::new());
        assert_eq!(chain.cycle(), None);
    }

    #[test]
    fn a_diamond_has_three_levels_and_may_be_written_in_any_order() {
        let diamond = graph(&[Some(&[2, 3]), Some(&[4]), Some(&[4]), Some(&[])]);
        assert_eq!(diamond.levels(), [vec![4], vec![2, 3], vec![1]]);
        assert_eq!(diamond.before(1), BTreeSet::from([2, 3, 4]));
        assert_eq!(diamond.cycle(), None);
    }

    #[test]
    fn a_ring_is_found_behind_the_stages_that_wait_for_it() {
        assert_eq!(graph(&[Some(&[1])]).cycle(), Some(vec![1]));
        // The second stage waits for the first because it says nothing.
        assert_eq!(graph(&[Some(&[3]), None, None]).cycle(), Some(vec![1, 3, 2]));
        let behind = graph(&[Some(&[]), Some(&[3]), Some(&[4]), Some(&[1, 3])]);
        assert_eq!((behind.levels(), behind.cycle()), (vec![vec![1]], Some(vec![3, 4])));
    }
}
