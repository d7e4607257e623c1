//! The turn that a wake-up begins.

use serde_json::json;

use super::{Change, Span, resume};
use crate::clock::Millis;
use crate::goal::event::{Event, EventKind};
use crate::goal::{Goal, GoalStatus, PausedReason};

/// A wake-up reached the client and a turn begins. `None` if none is due: the goal stopped meanwhile, or moved already.
pub fn woken(goal: &Goal, now: Millis) -> Option<Change> {
    let is_due = goal.wake_at_ms.is_some_and(|at| at <= now);
    match (goal.status, goal.paused_reason) {
        (GoalStatus::Active, _) if is_due || goal.woken_at_ms.is_some() => {
            let mut after = goal.changed(now);
            (after.wake_at_ms, after.woken_at_ms) = (None, None);
            let span = if after.resume_at_ms.is_some() { Span::Keep } else { Span::Open };
            after.resume_at_ms = after.resume_at_ms.or(Some(now));
            // Whoever claimed the wake-up has recorded it.
            let events = if is_due { vec![Event::new(EventKind::GoalWoken, json!({}))] } else { Vec::new() };
            Some(Change { goal: after, events, span })
        }
        (GoalStatus::Paused, Some(reason)) if is_due && PausedReason::wakes_by_itself(reason) => {
            let mut change = resume(goal, now).ok()?;
            change.goal.woken_at_ms = None;
            Some(change)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goal::NewGoal;
    use crate::goal::change::{pause, wait};
    use crate::host::Host;

    #[test]
    fn a_wake_up_counts_once_and_only_when_it_is_due() {
        let new = NewGoal { objective: "x".into(), ..NewGoal::default() };
        let running = Goal::start(new, "s", Host::Codex, None, 0);
        assert_eq!(woken(&running, 10), None, "it moves by itself");
        assert_eq!(woken(&pause(&running, 5).unwrap().goal, 10), None);

        let waiting = wait(&running, 10, 5).unwrap().goal;
        assert_eq!(woken(&waiting, 9), None);
        let resumed = woken(&waiting, 10).unwrap().goal;
        assert_eq!((resumed.status, resumed.wake_at_ms), (GoalStatus::Active, None));
        assert_eq!(woken(&resumed, 11), None, "only one wake-up");

        let claimed = Goal { woken_at_ms: Some(9), ..running.clone() };
        let begun = woken(&claimed, 10).unwrap();
        assert_eq!((begun.goal.woken_at_ms, begun.events.len()), (None, 0));
        let due = Goal { wake_at_ms: Some(9), resume_at_ms: None, ..running };
        let begun = woken(&due, 10).unwrap();
        assert_eq!((begun.goal.resume_at_ms, begun.events.len(), begun.span), (Some(10), 1, Span::Open));
    }
}
