//! What a headless agent printed: one JSON object a line, in the words of its client, reduced to what an iteration needs
//! to know. Also which session files such an agent left behind, so that its tokens are counted where they are exact.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{adapter, adapters};
use steadfast_model::clock::Millis;
use steadfast_model::host::Host;
use steadfast_model::limit::Spend;
use steadfast_model::price::Table;
use steadfast_model::quota::Quota;
use steadfast_model::reading::{Position, Reading, Response};
use steadfast_model::run::AttemptUsage;
use steadfast_model::text::printable;
use steadfast_system::bounded;

/// The session is named at the start of a stream, and how it ended at its end.
const HEAD_BYTES: u64 = 1 << 20;
const TAIL_BYTES: u64 = 64 << 20;
/// A longer line is tool output, never an event that matters here. An agent's last words may be long, too.
const LONGEST_LINE: usize = 48 << 20;
/// The most of a command, path or message that is shown to people.
pub(crate) const LONGEST_DETAIL: usize = 160;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentStream {
    pub session_id: Option<String>,
    /// Sessions of subagents that the stream names.
    pub subagents: Vec<String>,
    /// The last thing the agent said.
    pub final_text: Option<String>,
    /// An answer in a form that was asked for, as JSON text.
    pub structured: Option<String>,
    /// The stream came to its own end, good or bad.
    pub is_complete: bool,
    /// Why the client itself says that it failed.
    pub error: Option<StreamError>,
    /// What the client says it used in all.
    pub usage: Option<AttemptUsage>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StreamError {
    pub message: String,
    pub status: Option<u16>,
    /// The client said in so many words that the plan is used up, perhaps until a time.
    pub limit: Option<Option<Millis>>,
}

/// Reads what a client printed; of very long output the beginning and the end.
pub fn read(host: Host, output: &Path) -> std::io::Result<AgentStream> {
    let mut stream = AgentStream::default();
    each_line(output, |line| {
        // Clients print warnings between their events.
        if let Some(value) = event(line) {
            (adapter(host).read_event)(&value, &mut stream);
        }
    })?;
    Ok(stream)
}

/// What clients say they used whose output a program passed on, all of them together; `None` if there is none. Each is
/// counted by its final event, so all of the output has to be there.
pub fn printed_usage(output: &Path) -> std::io::Result<Option<AttemptUsage>> {
    let file = bounded::open(output)?;
    if file.metadata()?.len() > HEAD_BYTES + TAIL_BYTES || bounded::hole_of(&file).is_some() {
        return Ok(None);
    }
    let mut all: Option<AttemptUsage> = None;
    each_line(output, |line| {
        let Some(value) = event(line).filter(|value| value.get("type").is_some()) else { return };
        for adapter in adapters() {
            let mut stream = AgentStream::default();
            (adapter.read_event)(&value, &mut stream);
            if let Some(usage) = stream.usage {
                *all.get_or_insert_default() += usage;
                return;
            }
        }
    })?;
    Ok(all)
}

/// The event of a line. A byte that is no text spoils itself, not the end of an iteration.
fn event(line: &[u8]) -> Option<Value> {
    if !line.trim_ascii_start().starts_with(b"{") {
        return None;
    }
    serde_json::from_slice(String::from_utf8_lossy(line).as_bytes()).ok()
}

fn each_line(path: &Path, mut use_line: impl FnMut(&[u8])) -> std::io::Result<()> {
    let mut file = bounded::open(path)?;
    let size = file.metadata()?.len();
    let hole = bounded::hole_of(&file);
    let mut pass = |file: &mut fs_err::File, most: u64, skip_first: bool| -> std::io::Result<()> {
        let mut reader = BufReader::with_capacity(64 * 1024, file.take(most));
        let mut line = Vec::new();
        let mut is_first = skip_first;
        while reader.read_until(b'\n', &mut line)? > 0 {
            if !is_first && line.len() <= LONGEST_LINE {
                use_line(&line);
            }
            is_first = false;
            line.clear();
        }
        Ok(())
    };
    if let Some(hole) = hole {
        pass(&mut file, hole.start.min(TAIL_BYTES), false)?;
        // What follows a hole begins in the middle of a line.
        file.seek(SeekFrom::Start(hole.end.max(size.saturating_sub(TAIL_BYTES))))?;
        return pass(&mut file, TAIL_BYTES, true);
    }
    if size <= HEAD_BYTES + TAIL_BYTES {
        return pass(&mut file, size, false);
    }
    pass(&mut file, HEAD_BYTES, false)?;
    file.seek(SeekFrom::Start(size - TAIL_BYTES))?;
    // The tail begins in the middle of a line.
    pass(&mut file, TAIL_BYTES, true)
}

/// What a line says to a person; `None` if nothing. Lines that are no events are shown as they are.
pub fn readable(host: Host, line: &str) -> Option<String> {
    let Ok(event) = serde_json::from_slice::<Value>(line.as_bytes()) else {
        return Some(printable(line)).filter(|line| !line.trim().is_empty());
    };
    if !event.is_object() {
        return Some(printable(line));
    }
    let said = (adapter(host).readable_event)(&event);
    (!said.is_empty()).then(|| said.iter().map(|part| printable(part)).collect::<Vec<_>>().join("\n"))
}

pub(crate) fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name).and_then(Value::as_str)
}

pub(crate) fn field<'a>(value: &'a Value, name: &str) -> &'a str {
    text(value, name).unwrap_or_default()
}

/// Which session, and when it ran.
#[derive(Debug, Clone, Copy)]
pub struct SessionSpan<'a> {
    pub session_id: &'a str,
    /// Sessions of subagents that the stream names.
    pub subagents: &'a [String],
    pub started_at_ms: Millis,
    pub ended_at_ms: Millis,
}

/// What a session used, by its own files and those of its subagents; `None` if there is no file, or no response in any
/// and the client says itself what it used.
pub fn session_usage(
    host: Host,
    stream: &AgentStream,
    started_at_ms: Millis,
    ended_at_ms: Millis,
) -> Option<AttemptUsage> {
    let files = session_files(host, stream, started_at_ms, ended_at_ms);
    let no_response = || (stream.usage.is_none() && !files.is_empty()).then(AttemptUsage::default);
    usage_of(host, &files, started_at_ms).or_else(no_response)
}

fn usage_of(host: Host, files: &[PathBuf], started_at_ms: Millis) -> Option<AttemptUsage> {
    let mut all = Reading::default();
    for file in files {
        let Ok(reading) = (adapter(host).read_counts)(file, &Position::default()) else { continue };
        all.extend(reading.in_steady_time());
    }
    let mut usage = None;
    for response in all.responses.iter().filter(|response| is_of(response, started_at_ms)) {
        let usage = usage.get_or_insert_with(AttemptUsage::default);
        usage.tokens += response.tokens;
        match Table::shipped().cost_micros(&response.bill()) {
            Some(micros) => usage.cost_micros += micros,
            None => usage.cost_unknown = true,
        }
    }
    usage
}

/// Whether a response belongs to an attempt. A resumed session has older ones, of earlier attempts. Client and engine
/// share a clock, but lines may be stamped a moment early.
fn is_of(response: &Response, started_at_ms: Millis) -> bool {
    const SLACK: Millis = 5_000;
    response.at_ms == 0 || response.at_ms + SLACK >= started_at_ms
}

/// What a session used of each model, and what its files say about the user's plan.
#[derive(Debug, Default)]
pub struct SessionDetails {
    pub models: BTreeMap<String, Spend>,
    pub quotas: Vec<Quota>,
}

pub fn session_details(host: Host, stream: &AgentStream, started_at_ms: Millis, ended_at_ms: Millis) -> SessionDetails {
    let mut details = SessionDetails::default();
    for file in session_files(host, stream, started_at_ms, ended_at_ms) {
        let Ok(reading) = (adapter(host).read_counts)(&file, &Position::default()) else { continue };
        let reading = reading.in_steady_time();
        for response in reading.responses.iter().filter(|response| is_of(response, started_at_ms)) {
            let cost_micros = Table::shipped().cost_micros(&response.bill()).unwrap_or(0);
            let spent = details.models.entry(response.model.clone()).or_default();
            spent.tokens = spent.tokens.saturating_add(response.tokens.charged());
            spent.cost_micros = spent.cost_micros.saturating_add(cost_micros);
        }
        details.quotas.extend(reading.quotas);
    }
    details
}

/// When the used-up plan of a session comes back, if its files say so more exactly than its messages.
pub fn session_reset(host: Host, stream: &AgentStream, started_at_ms: Millis, ended_at_ms: Millis) -> Option<Millis> {
    let files = session_files(host, stream, started_at_ms, ended_at_ms);
    files.iter().filter_map(|file| (adapter(host).plan_reset)(file)).max()
}

fn session_files(host: Host, stream: &AgentStream, started_at_ms: Millis, ended_at_ms: Millis) -> Vec<PathBuf> {
    let Some(session_id) = stream.session_id.as_deref() else { return Vec::new() };
    let session = SessionSpan { session_id, subagents: &stream.subagents, started_at_ms, ended_at_ms };
    let adapter = adapter(host);
    (adapter.session_files)(&(adapter.transcript_roots)(), &session)
}

#[cfg(test)]
mod tests;
