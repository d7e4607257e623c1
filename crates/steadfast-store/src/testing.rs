//! What the tests of several crates share: a store and a session file in a directory of their own.
#![expect(clippy::unwrap_used, clippy::new_without_default, reason = "only tests use this module")]

use std::path::{Path, PathBuf};

use steadfast_model::clock::Millis;
use steadfast_model::goal::budget::Budget;
use steadfast_model::goal::change::{Change, Refusal};
use steadfast_model::goal::{Actor, Goal, NewGoal};
use steadfast_model::host::Host;
pub use steadfast_model::testing::*;
use tempfile::TempDir;

use crate::clock::OF_TEST;
use crate::{EventFilter, EventRow, Origin, Store};

pub const USER: Origin = Origin { actor: Actor::User, place: "goal-cli" };
pub const WORKER: Origin = Origin { actor: Actor::Worker, place: "mcp" };
pub const HOOK: Origin = Origin { actor: Actor::Steadfast, place: "stop" };

/// A store and a session file in a directory of their own.
pub struct World {
    pub root: TempDir,
    pub store: Store,
    pub transcript: PathBuf,
}

impl World {
    pub fn new() -> Self {
        let root = TempDir::new().unwrap();
        let store = Store::open(&root.path().join("home/goals.db")).unwrap();
        let standing = "INSERT INTO clock (id, boot_id, boot_ms, suspended_ms, wall_ms, now_ms, aged_ms)
                        VALUES (1, ?1, 0, 0, 0, 0, ?2)";
        store.db.execute(standing, (OF_TEST, Millis::MAX)).unwrap();
        let transcript = root.path().join(format!("{SESSION}.jsonl"));
        Self { root, store, transcript }
    }

    /// Starts a goal of the session, in the place of one that is over.
    pub fn add_goal(&mut self, budget: Budget, now: Millis) -> Goal {
        self.start_goal(new_goal(budget), now)
    }

    pub fn start_goal(&mut self, new: NewGoal, now: Millis) -> Goal {
        let goal = Goal::start(new, SESSION, Host::Claude, None, now);
        let replaced = self.store.read().goal(SESSION).unwrap();
        self.store.write(|db| db.start_goal(&goal, replaced.as_ref(), USER)).unwrap()
    }

    /// Changes the goal of the session as the user.
    pub fn apply(&mut self, change: impl FnOnce(&Goal) -> Result<Change, Refusal>) -> Goal {
        let goal = self.goal();
        let change = change(&goal).unwrap();
        self.store.write(|db| db.save(&goal, change, USER)).unwrap()
    }

    pub fn goal(&self) -> Goal {
        self.store.read().goal(SESSION).unwrap().unwrap()
    }

    /// The number that a query returns.
    pub fn count(&self, sql: &str) -> i64 {
        self.store.db.query_row(sql, [], |row| row.get(0)).unwrap()
    }

    pub fn write(&self, lines: &str) {
        append(&self.transcript, lines);
    }

    /// Where the client puts the file of a subagent.
    pub fn subagent(&self, agent_id: &str) -> PathBuf {
        self.root.path().join(SESSION).join("subagents").join(format!("agent-{agent_id}.jsonl"))
    }

    pub fn events(&self) -> Vec<EventRow> {
        self.store.read().events(EventFilter::All, usize::MAX).unwrap()
    }

    pub fn event_kinds(&self) -> Vec<String> {
        self.events().into_iter().map(|event| event.kind).collect()
    }

    pub fn last_event(&self) -> EventRow {
        self.events().pop().unwrap()
    }
}

/// Lets tests of other modules pretend that a newer program wrote a store.
pub fn set_schema_version(path: &Path, version: i64) {
    Store::open_existing(path).unwrap().db.execute("UPDATE schema_version SET version = ?1", [version]).unwrap();
}

/// The documented table of subagents: id, file and tokens of each.
pub fn subagent_cursors(store: &Store) -> Vec<(String, String, i64)> {
    let sql = "SELECT agent_id, transcript_path, tokens_used FROM subagent_token_cursors ORDER BY agent_id";
    let mut statement = store.db.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
    rows.unwrap().collect::<Result<_, _>>().unwrap()
}

/// How many events have a payload that is not JSON.
pub fn invalid_payloads(store: &Store) -> i64 {
    let sql = "SELECT count(*) FROM goal_events WHERE NOT json_valid(payload_json)";
    store.db.query_row(sql, [], |row| row.get(0)).unwrap()
}
