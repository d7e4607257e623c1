//! What several test modules share: a goal, a store in a directory of its own, and lines as Claude Code writes
//! them.

#![expect(clippy::unwrap_used, reason = "only tests use these functions")]

pub mod runs;

use std::io::Write as _;
use std::path::Path;

use serde_json::json;

use crate::clock::{self, Millis};
use crate::goal::budget::Budget;
use crate::goal::turn::TurnRules;
use crate::goal::{Goal, NewGoal};
use crate::host::Host;
use crate::limit::{Limits, SharedSpend};

/// 2026-11-15T12:00:00Z
pub const START: Millis = 1_794_744_000_000;
pub const SECOND: Millis = 1_000;
pub const MINUTE: Millis = 60 * SECOND;
pub const HOUR: Millis = 60 * MINUTE;
pub const SESSION: &str = "6dd8620c-ffe0-495b-a46f-f90ad33f492f";

/// The rules of an untouched configuration, but for the breaker.
pub const fn rules(no_progress_limit: i64) -> TurnRules {
    TurnRules { no_progress_limit, repeated_calls_limit: 10, always_pause_uncertain: false, shared: SharedSpend::Free }
}

/// An active goal without limits that started at [`START`].
pub fn goal() -> Goal {
    goal_within(Budget::default())
}

pub fn goal_within(budget: Budget) -> Goal {
    Goal::start(new_goal(budget), SESSION, Host::Claude, None, START)
}

/// Like [`goal`], with limits.
pub fn goal_with(limits: Limits) -> Goal {
    goal_within(Budget { limits, ..Budget::default() })
}

pub fn new_goal(budget: Budget) -> NewGoal {
    NewGoal { objective: "Make every test pass".into(), budget, ..NewGoal::default() }
}

/// One line of a response with input, output, cache creation and cache read tokens.
pub fn reply(id: &str, at: Millis, tokens: [i64; 4]) -> String {
    let [input, output, creation, read] = tokens;
    let usage = json!({
        "input_tokens": input, "output_tokens": output, "cache_creation_input_tokens": creation,
        "cache_read_input_tokens": read,
    });
    reply_with_usage(id, at, &usage)
}

pub fn reply_with_usage(id: &str, at: Millis, usage: &serde_json::Value) -> String {
    let line = json!({
        "type": "assistant", "uuid": format!("uuid-{id}"), "timestamp": clock::to_rfc3339(at), "requestId": format!("req-{id}"),
        "message": {"id": id, "model": "claude-opus-4-8", "content": [{"type": "text", "text": format!("text of {id}")}],
                    "usage": usage},
    });
    format!("{line}\n")
}

/// A line with a call of a tool, as a part of the response `id`.
pub fn tool_call(id: &str, at: Millis, tool: &str) -> String {
    let line = json!({
        "type": "assistant", "uuid": format!("tool-{id}"), "timestamp": clock::to_rfc3339(at),
        "message": {"id": id, "model": "claude-opus-4-8", "usage": {"input_tokens": 1, "output_tokens": 1},
                    "content": [{"type": "tool_use", "id": format!("toolu-{id}"), "name": tool, "input": {}}]},
    });
    format!("{line}\n")
}

pub fn append(path: &Path, text: &str) {
    if let Some(directory) = path.parent() {
        fs_err::create_dir_all(directory).unwrap();
    }
    let mut file = fs_err::OpenOptions::new().create(true).append(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}
