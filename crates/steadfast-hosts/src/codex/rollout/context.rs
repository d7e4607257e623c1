//! Whether a rollout holds a message that Codex will send again.
//!
//! By experiment (0.166), the client sends what follows the last `compacted` line, and before that the line's own
//! `replacement_history`, in which real prompts survive and what hooks said does not. The line is on disk before the
//! `SessionStart` that follows a compaction. A fork's file begins where its parent's was left: `history_base`.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde_json::Value;

use super::wire::{self, Head};
use crate::backwards;
use crate::codex::files::home_of;
use crate::context::{Since, Statement};

/// How many forks of forks are followed.
const GENERATIONS: usize = 4;

/// Whether the conversation that the file ends with states the goal.
pub(crate) fn holds(path: &Path, statement: &Statement, since: Since) -> std::io::Result<bool> {
    let mut file = (path.to_owned(), None);
    for _ in 0..GENERATIONS {
        let look = look(&file.0, file.1, statement, since)?;
        match look.outcome {
            Some(outcome) => return Ok(outcome),
            None => match look.base.and_then(|base| base.file(path)) {
                Some(base) => file = base,
                None => return Ok(false),
            },
        }
    }
    Ok(false)
}

#[derive(Default)]
struct Look {
    outcome: Option<bool>,
    /// Where the history before this file is.
    base: Option<Base>,
}

fn look(path: &Path, end: Option<u64>, statement: &Statement, since: Since) -> std::io::Result<Look> {
    let mut look = Look::default();
    let mut found = false;
    backwards::read(path, end, |line, offset| {
        let kind = Head::of(line);
        let (kind, inner) = kind.as_ref().map_or((&b""[..], &b""[..]), |head| (head.kind, head.inner));
        match (kind, inner) {
            (b"response_item", b"message") if statement.may_be_in(line) => {
                found |= parsed(line).is_some_and(|line| item_states(&line["payload"], statement));
            }
            (b"compacted", _) => {
                let is_this = match since {
                    Since::Resume => true,
                    Since::Compaction { noted_at } => noted_at.is_some_and(|noted_at| offset >= noted_at),
                };
                look.outcome = Some(is_this && (found || history_states(line, statement)));
            }
            // The line does not say how much before it was rolled back.
            (b"event_msg", b"thread_rolled_back") => look.outcome = Some(false),
            (b"session_meta", _) if offset == 0 => look.base = parsed(line).and_then(|line| Base::of(&line)),
            _ => {}
        }
        if found && since == Since::Resume {
            look.outcome = Some(true);
        }
        if look.outcome.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(look)
}

fn parsed(line: &[u8]) -> Option<Value> {
    serde_json::from_slice(line).ok()
}

fn history_states(line: &[u8], statement: &Statement) -> bool {
    if !statement.may_be_in(line) {
        return false;
    }
    let line = parsed(line).unwrap_or_default();
    let history = line.pointer("/payload/replacement_history").and_then(Value::as_array);
    history.into_iter().flatten().any(|item| item_states(item, statement))
}

/// Prompts, what a Stop hook said in the user's name, and what other hooks said as the developer.
fn item_states(item: &Value, statement: &Statement) -> bool {
    if item["type"] != "message" || !matches!(item["role"].as_str(), Some("user" | "developer")) {
        return false;
    }
    let parts = item["content"].as_array();
    parts.into_iter().flatten().filter_map(|part| part["text"].as_str()).any(|text| statement.is_in(text))
}

/// The part of another thread's history that a fork begins with.
struct Base {
    thread: String,
    end: u64,
}

impl Base {
    fn of(meta: &Value) -> Option<Self> {
        let base = meta.pointer("/payload/history_base")?;
        Some(Self { thread: base["thread_id"].as_str()?.to_owned(), end: base["end_byte_offset"].as_u64()? })
    }

    /// The thread's file, in the folder of the day on which its id says that it was made. The folder is named by local
    /// time, so the days around it are looked at too.
    fn file(&self, fork: &Path) -> Option<(PathBuf, Option<u64>)> {
        let made = Timestamp::from_millisecond(wire::made_at(&self.thread)?).ok()?;
        let day = made.to_zoned(TimeZone::UTC).date();
        let sessions = home_of(fork)?.join("sessions");
        let name = format!("-{}.jsonl", self.thread);
        let days = [day.yesterday().ok()?, day, day.tomorrow().ok()?];
        let path = days.iter().find_map(|day| file_in(&sessions, *day, &name))?;
        Some((path, Some(self.end)))
    }
}

/// The thread's id is foreign text, so it is compared and never made a path.
fn file_in(sessions: &Path, day: Date, name: &str) -> Option<PathBuf> {
    let folder = sessions
        .join(format!("{:04}", day.year()))
        .join(format!("{:02}", day.month()))
        .join(format!("{:02}", day.day()));
    let mut files = fs_err::read_dir(folder).ok()?.flatten();
    let found = files.find(|file| file.file_name().to_string_lossy().ends_with(name))?;
    Some(found.path())
}

#[cfg(test)]
mod tests;
