//! Codex's session files, called rollouts: one JSON object a line, only ever appended to. Newer clients write a
//! `token_usage_record` for each response. Older ones write running totals, and the differences are the
//! usage. If the file of a fork or a subagent begins with its parent's history, only the totals of that part are read.

mod calls;
mod context;
pub(crate) mod instructions;
mod thread;
mod turn;
pub(super) mod wire;

pub(crate) use context::holds;
pub(crate) use turn::{last_model, turn_runs};

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;

use memchr::memmem;
use serde_json::Value;

use self::thread::Thread;
use self::wire::{Head, WireTokens, tier};
use super::{hook, quota};
use crate::lines;
use steadfast_model::clock::{self, Millis};
use steadfast_model::hook::acceptable_id;
use steadfast_model::reading::{InvalidField, NativeGoal, Position, Reading, Response, UsageLimit};
use steadfast_system::bounded;

pub fn read(path: &Path, from: &Position) -> std::io::Result<Reading> {
    read_with(path, from, calls::note)
}

/// The same without the tool calls.
pub fn read_counts(path: &Path, from: &Position) -> std::io::Result<Reading> {
    read_with(path, from, |_, _| {})
}

fn read_with(path: &Path, from: &Position, note_call: fn(&[u8], &mut Reading)) -> std::io::Result<Reading> {
    let mut thread = match Thread::remembered(path, &from.carry) {
        Some(thread) => thread,
        None if from.offset == 0 => Thread::unread(path),
        None => thread_before(path, from.offset)?,
    };
    let mut reading = lines::read_file(path, from, |line, offset, reading| {
        if offset == 0 {
            thread = Thread::unread(path);
        }
        read_line(&mut thread, line, offset, reading);
        note_call(line, reading);
    })?;
    if reading.position.offset == 0 {
        thread = Thread::unread(path);
    }
    reading.position.carry = thread.carry();
    Ok(reading)
}

/// The thread that this one was forked from, as its first line says.
pub fn forked_from(path: &Path) -> Option<String> {
    text(first_line(path)?.get("payload")?, "forked_from_id").map(str::to_owned)
}

/// The thread at the root of the session that this one belongs to, as its first line says.
pub fn root_session(path: &Path) -> Option<String> {
    text(first_line(path)?.get("payload")?, "session_id").map(str::to_owned)
}

/// The kind of the subagent whose rollout this is, as its first line says.
pub fn agent_type(path: &Path) -> Option<String> {
    let first = first_line(path)?;
    let role = first["payload"]["source"]["subagent"]["thread_spawn"]["agent_role"].as_str();
    // Hooks call it that too.
    Some(role.filter(|kind| acceptable_id(kind)).unwrap_or("default").to_owned())
}

pub fn is_model_output(line: &Value) -> bool {
    let item = &line["payload"];
    line["type"] == "response_item" && item.is_object() && (item["type"] != "message" || item["role"] == "assistant")
}

fn first_line(path: &Path) -> Option<Value> {
    // Far more than any first line has, with all instructions in it.
    const LONGEST: u64 = 16 * 1024 * 1024;
    let mut line = Vec::new();
    BufReader::new(bounded::open(path).ok()?.take(LONGEST)).read_until(b'\n', &mut line).ok()?;
    serde_json::from_slice(&line).ok()
}

/// The state of the thread before an offset, for a position that was set without reading the lines before it.
fn thread_before(path: &Path, offset: u64) -> std::io::Result<Thread> {
    let mut thread = Thread::unread(path);
    lines::read_file(path, &Position::default(), |line, at, reading| {
        if at < offset {
            read_line(&mut thread, line, at, reading);
        }
    })?;
    Ok(thread)
}

fn read_line(thread: &mut Thread, line: &[u8], offset: u64, reading: &mut Reading) {
    if let Some(head) = Head::of(line) {
        if !line.trim_ascii_end().ends_with(b"}") {
            reading.broken_lines += 1;
            return;
        }
        if thread.is_inheriting() {
            let at = std::str::from_utf8(head.timestamp).ok().and_then(clock::parse_wall_rfc3339);
            thread.reach(head.ordinal, at);
        }
        if !matters(&head, line, thread) {
            model_output(thread, head.kind, head.inner, reading);
            if head.inner.ends_with(b"_call") && !thread.is_inheriting() {
                thread.use_tool(calls::mcp_server(line));
            }
            return;
        }
    }
    match serde_json::from_slice::<Value>(line) {
        Ok(value) => RolloutLine::of(&value, offset).read(thread, reading),
        Err(_) => reading.broken_lines += 1,
    }
}

/// Whether more than its head is needed of a line.
fn matters(head: &Head<'_>, line: &[u8], thread: &Thread) -> bool {
    match head.kind {
        b"session_meta" | b"turn_context" | b"token_usage_record" => true,
        b"response_item" if thread.is_inheriting() => false,
        // People's messages and instructions are many and long.
        b"response_item" => match head.inner {
            b"message" => memmem::find(line, br#""assistant""#).is_some(),
            inner => inner.is_empty(),
        },
        b"event_msg" => matches!(
            head.inner,
            b"" | b"token_count"
                | b"task_started"
                | b"turn_started"
                | b"task_complete"
                | b"turn_complete"
                | b"turn_aborted"
                | b"thread_goal_updated"
                | b"thread_goal_cleared"
                | b"thread_settings_applied"
        ),
        _ => false,
    }
}

/// Records output of the model other than messages.
fn model_output(thread: &mut Thread, kind: &[u8], inner: &[u8], reading: &mut Reading) {
    if kind != b"response_item" || thread.is_inheriting() {
        return;
    }
    let is_call = inner.ends_with(b"_call");
    if is_call {
        reading.tool_calls += 1;
    }
    if is_call || inner == b"reasoning" {
        thread.answered = true;
    }
}

/// A line that was parsed whole.
struct RolloutLine<'a> {
    kind: &'a str,
    inner: &'a str,
    payload: &'a Value,
    whole: &'a Value,
    at_ms: Option<Millis>,
    offset: u64,
}

impl<'a> RolloutLine<'a> {
    fn of(line: &'a Value, offset: u64) -> Self {
        let payload = line.get("payload").unwrap_or(&Value::Null);
        Self {
            kind: text(line, "type").unwrap_or_default(),
            inner: text(payload, "type").unwrap_or_default(),
            payload,
            whole: line,
            at_ms: text(line, "timestamp").and_then(clock::parse_wall_rfc3339),
            offset,
        }
    }

    fn read(&self, thread: &mut Thread, reading: &mut Reading) {
        let ordinal = self.whole.get("ordinal").and_then(Value::as_u64);
        thread.reach(ordinal, self.at_ms);
        let turn_id = text(self.payload, "turn_id");
        match (self.kind, self.inner) {
            ("session_meta", _) => {
                thread.begin(self.payload, ordinal, self.at_ms);
                reading.cwd = reading.cwd.take().or_else(|| text(self.payload, "cwd").map(str::to_owned));
                reading.parent = reading.parent.take().or_else(|| thread.parent().map(str::to_owned));
            }
            ("turn_context", _) => {
                thread.begin_turn(turn_id);
                thread.use_model(text(self.payload, "model"));
            }
            ("event_msg", "task_started" | "turn_started") => {
                thread.begin_turn(turn_id);
                let trigger = self.payload.pointer("/turn_attribution/turn_trigger");
                thread.native_turn = trigger.and_then(Value::as_str) == Some("goal");
            }
            ("event_msg", "thread_settings_applied") => {
                let settings = self.payload.get("thread_settings").unwrap_or(&Value::Null);
                thread.use_model(text(settings, "model"));
                thread.tier = tier(settings.get("service_tier"));
            }
            ("token_usage_record", _) => self.usage_record(thread, reading),
            ("event_msg", "token_count") => self.token_count(thread, reading),
            ("event_msg", "task_complete" | "turn_complete") if !thread.is_inheriting() => self.turn_end(reading),
            // The client ends a turn of its own goal feature in the same way when it exits.
            ("event_msg", "turn_aborted") if !thread.is_inheriting() && !thread.native_turn => {
                if text(self.payload, "reason") == Some("interrupted") {
                    reading.interrupted_at = self.at_ms;
                }
            }
            ("event_msg", "thread_goal_updated") if !thread.is_inheriting() => {
                reading.native_goal = self.payload.get("goal").map(hook::goal_of);
            }
            ("event_msg", "thread_goal_cleared") if !thread.is_inheriting() => {
                reading.native_goal = Some(NativeGoal::Over);
            }
            ("response_item", "message") if !thread.is_inheriting() => self.message(thread, reading),
            (kind, inner) => model_output(thread, kind.as_bytes(), inner.as_bytes(), reading),
        }
    }

    /// What one response cost. The turn's id is part of its name, since not every provider gives ids that are
    /// unique; copies of a record keep both.
    fn usage_record(&self, thread: &mut Thread, reading: &mut Reading) {
        if thread.is_inheriting() {
            return;
        }
        if text(self.payload, "thread_id").is_some_and(|id| !thread.is(id)) {
            thread.recorded = true;
            return;
        }
        let Some(usage) = self.payload.get("usage").filter(|usage| !usage.is_null()) else {
            return;
        };
        let turn = text(self.payload, "turn_id").unwrap_or(thread.name());
        let id = match text(self.payload, "response_id") {
            Some(response) => format!("{turn}/{response}"),
            None => format!("{turn}/@{}", self.offset),
        };
        match WireTokens::read(usage) {
            Ok(tokens) => {
                thread.recorded = true;
                reading.add(self.response(id, tokens, thread));
            }
            Err(field) => self.malformed(field, id, reading),
        }
    }

    /// The totals so far. They repeat, and stand beside the records of newer files.
    fn token_count(&self, thread: &mut Thread, reading: &mut Reading) {
        let limits = self.payload.get("rate_limits").filter(|_| !thread.is_inheriting());
        let quotas = limits.zip(self.at_ms).map(|(limits, at)| quota::read(limits, at));
        if let Some(quotas) = quotas.filter(|quotas| !quotas.is_empty()) {
            reading.quotas = quotas;
        }
        let Some(info) = self.payload.get("info").filter(|info| !info.is_null()) else {
            return;
        };
        thread.use_model(text(info, "model"));
        let last = info.get("last_token_usage").filter(|usage| usage.is_object());
        let last = last.and_then(|usage| WireTokens::read(usage).ok());
        let total = match info.get("total_token_usage").filter(|usage| !usage.is_null()).map(WireTokens::read) {
            Some(Ok(total)) => total,
            None => {
                if let Some(spent) = last.and_then(|last| thread.count_last(last)) {
                    let id = format!("{}@{}", thread.name(), self.offset);
                    reading.add(self.response(id, spent, thread));
                }
                return;
            }
            Some(Err(field)) => {
                if !thread.recorded && !thread.is_inheriting() {
                    self.malformed(field, thread.name().to_owned(), reading);
                }
                return;
            }
        };
        if let Some(spent) = thread.count(total, last) {
            let id = thread.id_of_total(total);
            reading.add(self.response(id, spent, thread));
        }
    }

    fn malformed(&self, field: &'static str, response_id: String, reading: &mut Reading) {
        let offset = self.offset;
        reading.invalid.get_or_insert(InvalidField { field, response_id, offset });
    }

    fn response(&self, id: String, tokens: WireTokens, thread: &mut Thread) -> Response {
        Response {
            id,
            model: thread.model.clone(),
            tier: thread.tier,
            tokens: tokens.split(),
            tool: std::mem::take(&mut thread.tool),
            agent_type: thread.agent_type.clone(),
            at_ms: self.at_ms.unwrap_or_default(),
        }
    }

    fn message(&self, thread: &mut Thread, reading: &mut Reading) {
        if text(self.payload, "role") != Some("assistant") {
            return;
        }
        thread.answered = true;
        // The summary of a compaction is written for the model, not for the user.
        if self.whole.pointer("/metadata/compaction_output") == Some(&Value::Bool(true)) {
            return;
        }
        let parts = self.payload.get("content").and_then(Value::as_array);
        let said = parts.into_iter().flatten().filter_map(|part| text(part, "text")).next_back();
        if let Some(said) = said {
            reading.last_text = Some(said.to_owned());
        }
    }

    fn turn_end(&self, reading: &mut Reading) {
        let Some(error) = self.payload.get("error") else { return };
        if text(error, "codex_error_info") == Some("usage_limit_exceeded") {
            reading.usage_limit = Some(UsageLimit {
                at_ms: self.at_ms.unwrap_or_default(),
                message: text(error, "message").unwrap_or_default().to_owned(),
            });
        }
    }
}

/// A field that is a text and not empty.
fn text<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    value.get(field)?.as_str().filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests;
