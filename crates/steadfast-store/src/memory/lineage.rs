//! Whose memory a session has: its own, and that of the sessions it was forked from up to the moment of the fork.
//! What an ancestor did afterwards does not count. `/clear` ends a lineage.

use rusqlite::params;

use super::{COLUMNS, Db, StoreError, read};
use crate::ParentLink;
use steadfast_model::clock::Millis;
use steadfast_model::host::Host;
use steadfast_model::memory::{GoalSummary, MemoryEvent, SessionMemory, Task};

const GENERATIONS: usize = 8;

/// A session of a lineage, and until when its memory counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kin {
    pub(super) session_id: String,
    pub(super) until: Millis,
}

impl Db<'_> {
    /// A session, then the one it was forked from, and so on.
    pub(super) fn lineage(self, session_id: &str) -> Result<Vec<Kin>, StoreError> {
        let mut kin = vec![Kin { session_id: session_id.to_owned(), until: Millis::MAX }];
        let mut current = self.session(session_id)?;
        while let Some(session) = current.filter(|_| kin.len() <= GENERATIONS) {
            let until = kin.last().map_or(Millis::MAX, |child| child.until.min(session.started_at_ms));
            let parent = session.parent_session_id.filter(|_| session.parent_link == Some(ParentLink::Fork));
            let Some(parent) = parent.filter(|parent| kin.iter().all(|known| known.session_id != *parent)) else {
                break;
            };
            current = self.session(&parent)?;
            kin.push(Kin { session_id: parent, until });
        }
        Ok(kin)
    }

    /// The sessions that a session was forked from, the nearest first.
    pub fn ancestors_of(self, session_id: &str) -> Result<Vec<String>, StoreError> {
        Ok(self.lineage(session_id)?.into_iter().skip(1).map(|kin| kin.session_id).collect())
    }

    /// All that is known about a session and those it continues. `host` is used for a session that no hook reported;
    /// `goal` is its durable goal, which the caller has read.
    pub fn session_memory(
        self,
        session_id: &str,
        host: Host,
        goal: Option<GoalSummary>,
    ) -> Result<SessionMemory, StoreError> {
        let lineage = self.lineage(session_id)?;
        let (mut events, mut tasks): (Vec<MemoryEvent>, Vec<Task>) = (Vec::new(), Vec::new());
        for kin in lineage.iter().rev() {
            let sql = format!(
                "SELECT {COLUMNS} FROM session_events e WHERE e.session_id = ?1 AND e.created_at_ms <= ?2 ORDER BY e.id"
            );
            events.extend(self.all_understood(&sql, params![kin.session_id, kin.until], read)?);
            let newer = self.tasks_until(&kin.session_id, kin.until)?;
            // A list without ids replaces the one before it; other tasks are followed by their ids.
            if newer.iter().any(is_of_list) {
                tasks.retain(|task| !is_of_list(task));
            }
            tasks.retain(|task| newer.iter().all(|other| other.id != task.id));
            tasks.extend(newer);
        }
        Ok(SessionMemory {
            session_id: session_id.to_owned(),
            host: self.session(session_id)?.map_or(host, |session| session.host),
            goal,
            stated: self.stated_goal(session_id)?,
            events,
            tasks,
            compactions: self.snapshot(session_id)?.map_or(0, |snapshot| snapshot.compactions),
        })
    }
}

fn is_of_list(task: &Task) -> bool {
    task.id.strip_prefix("list-").is_some_and(|number| number.starts_with(|digit: char| digit.is_ascii_digit()))
}
