//! Session files of the clients, and what headless agents print.

use std::path::Path;

use serde_json::Value;
use steadfast_hosts::{HostAdapter, Since, adapter, holds_text, stream, worked_since};
use steadfast_model::host::Host;
use steadfast_model::price::Table;
use steadfast_model::reading::{Position, Reading};

use crate::scratch;

type Reader = fn(&Path, &Position) -> std::io::Result<Reading>;

/// The ids of responses may contain the name of the file.
const FILE: &str = "s-1.jsonl";
/// Shorter files are cut at every byte.
const CUT_EVERYWHERE: usize = 96;

pub(crate) fn claude_transcript(data: &[u8]) {
    session_file(adapter(Host::Claude), data);
}

pub(crate) fn codex_rollout(data: &[u8]) {
    session_file(adapter(Host::Codex), data);
}

fn session_file(adapter: &HostAdapter, data: &[u8]) {
    let (seed, data) = scratch::split_first(data);
    let whole = scratch::file(FILE, data);
    let all = read(adapter.read_transcript, &whole);
    let counts = read(adapter.read_counts, &whole);
    assert_eq!(all.position.offset, counts.position.offset);
    assert!(all.position.offset <= data.len() as u64);
    for response in &all.responses {
        let cost = Table::shipped().cost_micros(&response.bill());
        assert!(cost.is_none_or(|cost| cost >= 0), "{response:?} costs {cost:?}");
    }
    let somewhere = data.len() * usize::from(seed) / 256;
    let cuts: Vec<usize> = if data.len() <= CUT_EVERYWHERE { (0..=data.len()).collect() } else { vec![somewhere] };
    for cut in cuts {
        assert_eq!(read_in_two(adapter.read_counts, data, cut), counts, "cut at {cut}");
        let pieces = read_in_two(adapter.read_transcript, data, cut);
        assert_eq!(pieces.responses, all.responses, "cut at {cut}");
        assert_eq!(pieces.tool_calls, all.tool_calls, "cut at {cut}");
    }
    scratch::file(FILE, data);
    read_backwards(adapter, &whole);
    scratch::file(FILE, &well_formed(data));
    let all = read(adapter.read_transcript, &whole);
    let counts = read(adapter.read_counts, &whole);
    assert_eq!(all.responses, counts.responses, "the quick reader counts other tokens");
}

/// The lines that are JSON, each key once. The quick reader does not look for faults in what it skips.
fn well_formed(data: &[u8]) -> Vec<u8> {
    let lines = data.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    lines.flat_map(|line| (line.to_string() + "\n").into_bytes()).collect()
}

fn read(reader: Reader, path: &Path) -> Reading {
    reader(path, &Position::default()).expect("a plain file can be read")
}

/// Reads a file that grows between two readings, as a client writes it.
fn read_in_two(reader: Reader, data: &[u8], cut: usize) -> Reading {
    let path = scratch::file(FILE, data.get(..cut).unwrap_or(data));
    let mut reading = read(reader, &path);
    scratch::file(FILE, data);
    let later = reader(&path, &reading.position).expect("a plain file can be read");
    assert!(!later.rewritten, "a file that only grew, cut at {cut}");
    reading.extend(later);
    reading
}

fn read_backwards(adapter: &HostAdapter, path: &Path) {
    (adapter.last_model)(path);
    (adapter.agent_type)(path);
    (adapter.fork_parent)(path);
    (adapter.turn_runs)(path);
    (adapter.plan_reset)(path);
    (adapter.native_goal_in_transcript)(path);
    (adapter.has_evaluator_rules)(path);
    worked_since(adapter.host, path, 0);
    for since in [Since::Resume, Since::Compaction { noted_at: None }, Since::Compaction { noted_at: Some(40) }] {
        holds_text(adapter.host, path, "Make all tests pass", since);
    }
}

/// The output of a headless agent.
pub(crate) fn agent_stream(data: &[u8]) {
    let path = scratch::file("out.log", data);
    stream::printed_usage(&path).expect("a plain file can be read");
    for host in Host::ALL {
        let found = stream::read(*host, &path).expect("a plain file can be read");
        assert_eq!(found, stream::read(*host, &path).expect("a plain file can be read"));
        for line in String::from_utf8_lossy(data).lines() {
            let shown = stream::readable(*host, line).unwrap_or_default();
            assert!(!shown.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')), "{shown:?}");
            if let Ok(value) = serde_json::from_str::<Value>(line) {
                (adapter(*host).is_model_output)(&value);
            }
        }
    }
}
