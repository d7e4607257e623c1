//! What several test modules share: a goal, a store in a directory of its own, and lines as Claude Code writes
//! them.

pub(crate) mod runs;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::json;
use tempfile::TempDir;

use crate::action::{self, Place};
use crate::clock::{self, Millis};
use crate::goal::budget::Budget;
use crate::goal::turn::TurnRules;
use crate::goal::{Actor, Goal, NewGoal};
use crate::host::Host;
use crate::store::{EventFilter, EventRow, Origin, Store};

/// 2026-11-15T12:00:00Z
pub(crate) const START: Millis = 1_794_744_000_000;
pub(crate) const SECOND: Millis = 1_000;
pub(crate) const MINUTE: Millis = 60 * SECOND;
pub(crate) const HOUR: Millis = 60 * MINUTE;
pub(crate) const SESSION: &str = "6dd8620c-ffe0-495b-a46f-f90ad33f492f";
pub(crate) const USER: Origin = Origin { actor: Actor::User, place: "goal-cli" };
pub(crate) const WORKER: Origin = Origin { actor: Actor::Worker, place: "mcp" };
pub(crate) const HOOK: Origin = Origin { actor: Actor::Steadfast, place: "stop" };

/// The rules of an untouched configuration, but for the breaker.
pub(crate) const fn rules(no_progress_limit: i64) -> TurnRules {
    TurnRules { no_progress_limit, always_pause_uncertain: false, shared: crate::goal::limit::SharedSpend::Free }
}

/// An active goal without limits that started at [`START`].
pub(crate) fn goal() -> Goal {
    goal_within(Budget::default())
}

pub(crate) fn goal_within(budget: Budget) -> Goal {
    Goal::start(new_goal(budget), SESSION, Host::Claude, None, START)
}

pub(crate) fn new_goal(budget: Budget) -> NewGoal {
    NewGoal { objective: "Make every test pass".into(), budget, verify: Vec::new() }
}

/// One line of a response with input, output, cache creation and cache read tokens.
pub(crate) fn reply(id: &str, at: Millis, tokens: [i64; 4]) -> String {
    let [input, output, creation, read] = tokens;
    let usage = json!({
        "input_tokens": input, "output_tokens": output, "cache_creation_input_tokens": creation,
        "cache_read_input_tokens": read,
    });
    reply_with_usage(id, at, &usage)
}

pub(crate) fn reply_with_usage(id: &str, at: Millis, usage: &serde_json::Value) -> String {
    let line = json!({
        "type": "assistant", "uuid": format!("uuid-{id}"), "timestamp": clock::to_rfc3339(at), "requestId": format!("req-{id}"),
        "message": {"id": id, "model": "claude-opus-4-8", "content": [{"type": "text", "text": format!("text of {id}")}],
                    "usage": usage},
    });
    format!("{line}\n")
}

/// A line with a call of a tool, as a part of the response `id`.
pub(crate) fn tool_call(id: &str, at: Millis, tool: &str) -> String {
    let line = json!({
        "type": "assistant", "uuid": format!("tool-{id}"), "timestamp": clock::to_rfc3339(at),
        "message": {"id": id, "model": "claude-opus-4-8", "usage": {"input_tokens": 1, "output_tokens": 1},
                    "content": [{"type": "tool_use", "id": format!("toolu-{id}"), "name": tool, "input": {}}]},
    });
    format!("{line}\n")
}

/// A store and a session file in a directory of their own.
pub(crate) struct World {
    pub(crate) root: TempDir,
    pub(crate) store: Store,
    pub(crate) transcript: PathBuf,
}

impl World {
    pub(crate) fn new() -> Self {
        let root = TempDir::new().unwrap();
        let store = Store::open(&root.path().join("home/goals.db")).unwrap();
        let transcript = root.path().join(format!("{SESSION}.jsonl"));
        Self { root, store, transcript }
    }

    pub(crate) fn place(&self) -> Place {
        Place {
            session_id: SESSION.into(),
            host: Host::Claude,
            project_dir: None,
            transcript: Some(self.transcript.clone()),
        }
    }

    /// Starts a goal of the session as a person does.
    pub(crate) fn start(&mut self, budget: Budget, now: Millis) -> Goal {
        let place = self.place();
        action::start(&mut self.store, &place, new_goal(budget), USER, now).unwrap()
    }

    pub(crate) fn goal(&self) -> Goal {
        self.store.read().goal(SESSION).unwrap().unwrap()
    }

    pub(crate) fn write(&self, lines: &str) {
        append(&self.transcript, lines);
    }

    /// Where the client puts the file of a subagent.
    pub(crate) fn subagent(&self, agent_id: &str) -> PathBuf {
        self.root.path().join(SESSION).join("subagents").join(format!("agent-{agent_id}.jsonl"))
    }

    pub(crate) fn events(&self) -> Vec<EventRow> {
        self.store.read().events(EventFilter::All, usize::MAX).unwrap()
    }

    pub(crate) fn event_kinds(&self) -> Vec<String> {
        self.events().into_iter().map(|event| event.kind).collect()
    }

    pub(crate) fn last_event(&self) -> EventRow {
        self.events().pop().unwrap()
    }
}

pub(crate) fn append(path: &Path, text: &str) {
    if let Some(directory) = path.parent() {
        fs_err::create_dir_all(directory).unwrap();
    }
    let mut file = fs_err::OpenOptions::new().create(true).append(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}
