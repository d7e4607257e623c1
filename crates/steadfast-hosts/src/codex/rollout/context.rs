//! Whether a rollout holds a message that Codex will send again. By experiment (0.166), the client sends what follows
//! the last `compacted` line, and before that the line's own `replacement_history`, in which real prompts survive and
//! what hooks said does not. A fork's file begins where its parent's was left: `history_base`.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
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
    let (mut file, mut end) = (path.to_owned(), None);
    for _ in 0..GENERATIONS {
        let (outcome, base) = look(&file, end, statement, since)?;
        if let Some(outcome) = outcome {
            return Ok(outcome);
        }
        let Some(next) = base.and_then(|base| base_file(path, &base)) else { break };
        (file, end) = (next.0, Some(next.1));
    }
    Ok(false)
}

/// What the file answers, if it does, and else where the history before it is.
fn look(
    path: &Path,
    end: Option<u64>,
    statement: &Statement,
    since: Since,
) -> std::io::Result<(Option<bool>, Option<Value>)> {
    let (mut outcome, mut base, mut found) = (None, None, false);
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
                outcome = Some(is_this && (found || history_states(line, statement)));
            }
            // The line does not say how much before it was rolled back.
            (b"event_msg", b"thread_rolled_back") => outcome = Some(false),
            (b"session_meta", _) if offset == 0 => {
                base = parsed(line).and_then(|line| line.pointer("/payload/history_base").cloned());
            }
            _ => {}
        }
        if found && since == Since::Resume {
            outcome = Some(true);
        }
        if outcome.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok((outcome, base))
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

/// The file of the thread that a fork began with, and where its part ends. The folder is that of the day on which the
/// thread's id says that it was made, in local time, so the days around it are looked at too.
fn base_file(fork: &Path, base: &Value) -> Option<(PathBuf, u64)> {
    let thread = base["thread_id"].as_str()?;
    let made = Timestamp::from_millisecond(wire::made_at(thread)?).ok()?;
    let day = made.to_zoned(TimeZone::UTC).date();
    let sessions = home_of(fork)?.join("sessions");
    let days = [day.yesterday().ok()?, day, day.tomorrow().ok()?];
    let folders = days.iter().map(|day| sessions.join(day.strftime("%Y/%m/%d").to_string()));
    // The thread's id is foreign text, so it is compared and never made a path.
    let name = format!("-{thread}.jsonl");
    let mut files = folders.filter_map(|folder| fs_err::read_dir(folder).ok()).flatten().flatten();
    let found = files.find(|file| file.file_name().to_string_lossy().ends_with(&name))?;
    Some((found.path(), base["end_byte_offset"].as_u64()?))
}

#[cfg(test)]
mod tests;
