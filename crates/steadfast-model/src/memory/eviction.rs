//! Which events a session keeps when it has too many: the newest of the categories that matter most after a compaction
//! are held, and of the others the least important are dropped first, then the oldest. The store does the same in SQL
//! for events that it has already.

use std::collections::{HashMap, HashSet};

use super::{Category, EVENTS_KEPT, MemoryEvent};

/// The newest is the current goal; those before it show how it changed.
pub const GOALS_HELD: u32 = 10;
pub const PROMPTS_HELD: u32 = 20;
pub const RULES_HELD: u32 = 20;
pub const DECISIONS_HELD: u32 = 20;
pub const UNRESOLVED_ERRORS_HELD: u32 = 10;
const _: () = assert!(
    ((GOALS_HELD + PROMPTS_HELD + RULES_HELD + DECISIONS_HELD + UNRESOLVED_ERRORS_HELD) as usize) < EVENTS_KEPT,
    "floors and a new row must fit"
);

/// How many of the newest events of its category are held.
fn floor(event: &MemoryEvent) -> u32 {
    match event.category {
        Category::Goal => GOALS_HELD,
        Category::Prompt => PROMPTS_HELD,
        Category::Rule => RULES_HELD,
        Category::Decision => DECISIONS_HELD,
        Category::Error if !event.resolved => UNRESOLVED_ERRORS_HELD,
        _ => 0,
    }
}

/// Drops events, oldest first in the list, until a session may keep all of them. The newest is never dropped. Returns how
/// many went.
pub fn fit(events: &mut Vec<MemoryEvent>) -> usize {
    let excess = events.len().saturating_sub(EVENTS_KEPT);
    if excess == 0 {
        return 0;
    }
    let mut held: HashMap<Category, u32> = HashMap::new();
    let mut others = Vec::new();
    for (index, event) in events.iter().enumerate().rev() {
        let floor = floor(event);
        let count = held.entry(event.category).or_default();
        if *count < floor {
            *count += 1;
        } else if index + 1 < events.len() {
            others.push((event.importance, index));
        }
    }
    others.sort_unstable();
    let gone: HashSet<usize> = others.into_iter().take(excess).map(|(_, index)| index).collect();
    let mut index = 0;
    events.retain(|_| {
        index += 1;
        !gone.contains(&(index - 1))
    });
    gone.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Importance;

    fn event(number: i64, category: Category, importance: Importance, resolved: bool) -> MemoryEvent {
        MemoryEvent {
            id: number,
            session_id: "s".into(),
            category,
            kind: "kind".into(),
            importance,
            subject: String::new(),
            text: number.to_string(),
            repeats: 1,
            resolved,
            created_at_ms: number,
        }
    }

    #[test]
    fn the_least_important_go_first_and_the_floors_stay() {
        let mut events: Vec<MemoryEvent> =
            (0..30).map(|n| event(n, Category::Prompt, Importance::Low, false)).collect();
        events.extend((30..50).map(|n| event(n, Category::Error, Importance::Low, n % 2 == 0)));
        events.extend((50..1_200).map(|n| event(n, Category::File, Importance::Normal, false)));
        assert_eq!(fit(&mut events), 200);
        let kept: Vec<i64> = events.iter().take(32).map(|event| event.id).collect();
        let prompts = 10..30;
        let errors = (30..50).filter(|number| number % 2 == 1);
        assert_eq!(kept, prompts.chain(errors).chain([230, 231]).collect::<Vec<_>>());
        assert_eq!(events.len(), EVENTS_KEPT);
        assert_eq!(fit(&mut events), 0);
    }

    #[test]
    fn the_newest_stays_whatever_it_is() {
        let mut events: Vec<MemoryEvent> = (0..1_001)
            .map(|n| event(n, Category::Git, if n == 1_000 { Importance::Low } else { Importance::Critical }, false))
            .collect();
        fit(&mut events);
        assert_eq!((events[0].id, events[999].id), (1, 1_000));
    }
}
