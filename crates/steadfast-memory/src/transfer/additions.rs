//! What an import adds to the memory of a session that may have some here. What is newer here stays as it is, so a second
//! import of the same file adds nothing.

use std::collections::HashMap;

use steadfast_model::clock::Millis;
use steadfast_model::memory::stated::{StatedGoal, StatedStatus};
use steadfast_model::memory::{Category, MemoryEvent};

use super::{ExportedSession, StatedEntry, TaskEntry};

/// What decides whether something is new here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownMemory {
    pub newest_event_ms: Option<Millis>,
    pub events: Vec<MemoryEvent>,
    /// Oldest first.
    pub stated: Vec<StatedGoal>,
    /// Deleted ones too.
    pub tasks: Vec<TaskEntry>,
}

/// What has to be written, in the order of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Additions {
    pub events: Vec<MemoryEvent>,
    /// Events of here that happened again elsewhere, or that are resolved there, as they are to be.
    pub changed: Vec<MemoryEvent>,
    pub stated: Vec<StatedEntry>,
    /// Stated goals of here that got another status elsewhere.
    pub moved: Vec<MovedGoal>,
    pub tasks: Vec<TaskEntry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedGoal {
    pub id: i64,
    pub status: StatedStatus,
    pub changed_at_ms: Millis,
}

/// What is newer in the file than everything of its kind that is here.
pub fn additions(here: &KnownMemory, recorded: &ExportedSession) -> Additions {
    let is_new = |event: &&MemoryEvent| here.newest_event_ms.is_none_or(|newest| event.created_at_ms > newest);
    let (stated, moved) = stated(&here.stated, &recorded.stated);
    Additions {
        events: recorded.events.iter().filter(is_new).cloned().collect(),
        changed: changed(&here.events, &recorded.events),
        stated,
        moved,
        tasks: tasks(&here.tasks, &recorded.tasks),
    }
}

/// Both only ever grow, so what is here is never taken back.
fn changed(here: &[MemoryEvent], recorded: &[MemoryEvent]) -> Vec<MemoryEvent> {
    fn key(event: &MemoryEvent) -> (Millis, Category, &str, &str, &str) {
        (event.created_at_ms, event.category, &event.kind, &event.subject, &event.text)
    }
    let theirs: HashMap<_, &MemoryEvent> = recorded.iter().map(|event| (key(event), event)).collect();
    let change = |ours: &MemoryEvent| {
        let theirs = theirs.get(&key(ours))?;
        let (repeats, resolved) = (ours.repeats.max(theirs.repeats), ours.resolved || theirs.resolved);
        let is_change = (repeats, resolved) != (ours.repeats, ours.resolved);
        is_change.then(|| MemoryEvent { repeats, resolved, ..ours.clone() })
    };
    here.iter().filter_map(change).collect()
}

fn tasks(here: &[TaskEntry], recorded: &[TaskEntry]) -> Vec<TaskEntry> {
    let newest = here.iter().map(|task| task.changed_at_ms).max();
    let known: HashMap<&str, &TaskEntry> = here.iter().map(|task| (task.id.as_str(), task)).collect();
    let is_new = |task: &&TaskEntry| match known.get(task.id.as_str()) {
        Some(known) => task.changed_at_ms > known.changed_at_ms,
        None => newest.is_none_or(|newest| task.changed_at_ms > newest),
    };
    recorded.iter().filter(is_new).cloned().collect()
}

/// The goals to add, and those to move. What belongs to a durable goal of here is left alone: its words are that goal's.
fn stated(here: &[StatedGoal], recorded: &[StatedEntry]) -> (Vec<StatedEntry>, Vec<MovedGoal>) {
    if here.iter().any(|goal| goal.goal_id.is_some() && goal.status.holds()) {
        return (Vec::new(), Vec::new());
    }
    let newest = here.iter().map(|goal| goal.set_at_ms).max();
    let (mut added, mut moved): (Vec<StatedEntry>, Vec<MovedGoal>) = (Vec::new(), Vec::new());
    for goal in recorded {
        let same = here.iter().find(|known| known.objective == goal.objective && known.set_at_ms == goal.set_at_ms);
        match same {
            Some(known) => {
                // One that is over stays over, since another may hold now.
                let is_later = goal.changed_at_ms > known.changed_at_ms && goal.status != known.status;
                if is_later && known.status.holds() {
                    let (status, changed_at_ms) = (goal.status, goal.changed_at_ms);
                    moved.push(MovedGoal { id: known.id, status, changed_at_ms });
                }
            }
            None if newest.is_none_or(|newest| goal.set_at_ms > newest) => {
                if let Some(before) = added.last_mut().filter(|before| before.status.holds()) {
                    before.status = StatedStatus::Replaced;
                }
                added.push(goal.clone());
            }
            None => {}
        }
    }
    // One goal holds at a time.
    if let Some(first) = added.first() {
        for known in here.iter().filter(|known| known.status.holds()) {
            if !moved.iter().any(|moved| moved.id == known.id && !moved.status.holds()) {
                moved.retain(|moved| moved.id != known.id);
                let changed_at_ms = first.set_at_ms;
                moved.push(MovedGoal { id: known.id, status: StatedStatus::Replaced, changed_at_ms });
            }
        }
    }
    (added, moved)
}

#[cfg(test)]
mod tests {
    use super::*;
    use StatedStatus::{Active, Done, Replaced};

    fn line(objective: &str, status: StatedStatus, set_at_ms: Millis, changed_at_ms: Millis) -> StatedEntry {
        StatedEntry { objective: objective.into(), status, set_at_ms, changed_at_ms }
    }

    fn known(id: i64, goal: &StatedEntry, goal_id: Option<&str>) -> StatedGoal {
        StatedGoal {
            id,
            session_id: "s".into(),
            objective: goal.objective.clone(),
            status: goal.status,
            goal_id: goal_id.map(Into::into),
            set_at_ms: goal.set_at_ms,
            changed_at_ms: goal.changed_at_ms,
        }
    }

    fn moved(id: i64, status: StatedStatus, changed_at_ms: Millis) -> MovedGoal {
        MovedGoal { id, status, changed_at_ms }
    }

    #[test]
    fn one_stated_goal_holds_whatever_the_file_says() {
        let two = [line("a", Active, 1, 1), line("b", Active, 2, 2)];
        let (added, none) = stated(&[], &two);
        assert_eq!(added, [line("a", Replaced, 1, 1), line("b", Active, 2, 2)]);
        assert_eq!(none, []);
        let here = [known(7, &line("mine", Active, 1, 1), None)];
        let (added, replaced) = stated(&here, &[line("b", Active, 2, 2)]);
        assert_eq!((added.len(), replaced), (1, vec![moved(7, Replaced, 2)]));
    }

    #[test]
    fn a_stated_goal_follows_what_became_of_it_elsewhere() {
        let here = [known(7, &line("a", Active, 1, 1), None)];
        assert_eq!(stated(&here, &[line("a", Done, 1, 5)]), (vec![], vec![moved(7, Done, 5)]));
        // What ended here does not begin again, and an older change is none.
        let over = [known(7, &line("a", Done, 1, 3), None)];
        for theirs in [line("a", Active, 1, 5), line("a", Done, 1, 5), line("older", Active, 0, 9)] {
            assert_eq!(stated(&over, &[theirs]), (vec![], vec![]));
        }
        assert_eq!(stated(&here, &[line("a", Done, 1, 1)]), (vec![], vec![]));
    }

    #[test]
    fn what_belongs_to_a_durable_goal_is_left_alone() {
        let here = [known(7, &line("a", Active, 1, 1), Some("g"))];
        assert_eq!(stated(&here, &[line("a", Done, 1, 5), line("b", Active, 6, 6)]), (vec![], vec![]));
    }

    #[test]
    fn a_task_changes_only_if_it_changed_later() {
        let task = |id: &str, at| TaskEntry {
            id: id.into(),
            subject: "x".into(),
            status: steadfast_model::memory::TaskStatus::Pending,
            changed_at_ms: at,
        };
        let here = [task("1", 5), task("2", 3)];
        let theirs = [task("1", 5), task("2", 4), task("3", 5), task("4", 6)];
        assert_eq!(tasks(&here, &theirs), [task("2", 4), task("4", 6)]);
        assert_eq!(tasks(&[], &theirs), theirs);
    }
}
