//! The output of a run's agents, from the files of their attempts. Event streams are shown as text, without control
//! characters.

mod clean;

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use steadfast_engine::attempt::Attempt;
use steadfast_engine::run_folder::{self, RunFolder};
use steadfast_hosts::stream;
use steadfast_model::host::Host;
use steadfast_model::run::{AgentKind, AttemptId, Plan};
use steadfast_model::text;
use steadfast_system::bounded::{self, Part};

pub use clean::Clean;

/// How much of a file's end is searched for its last lines.
pub const TAIL_BYTES: u64 = 1 << 20;
/// How much of a growing file is read at a time.
const CHUNK_BYTES: u64 = 256 * 1024;
/// Longer lines are shown in pieces.
const LONGEST_LINE: usize = 64 * 1024;
/// How much is read before the first line to show, to see a private key in which it stands.
const BEFORE: u64 = 16 * 1024;

/// The attempts of a run that have a directory, in order.
pub fn attempts(home: &Path, run_id: &str) -> Vec<AttemptId> {
    let directories = RunFolder::at(home, run_id).attempts();
    let ids = directories.iter().filter_map(|path| run_folder::attempt_of(path.file_name()?.to_str()?));
    let mut ids: Vec<AttemptId> = ids.filter(|id| id.attempt > 0).collect();
    ids.sort_unstable();
    ids
}

/// Whether an attempt writes no more: its end is recorded, or its iteration has a later attempt.
pub fn has_ended(attempt: &Attempt, id: AttemptId, all: &[AttemptId]) -> bool {
    let is_later = |other: &&AttemptId| (other.stage, other.iteration) == (id.stage, id.iteration) && **other > id;
    attempt.directory().join("exit.json").exists() || all.iter().find(is_later).is_some()
}

/// The host whose event stream an attempt's output is, or `None` for plain text.
pub fn host_of(plan: &Plan, id: AttemptId) -> Option<Host> {
    match plan.stage(id.stage)?.agent_of(id.iteration).kind {
        AgentKind::Host(host) => Some(host),
        AgentKind::Command(_) => None,
    }
}

/// What a line says to a person; `None` if nothing.
pub fn readable_line(line: &str, host: Option<Host>) -> Option<String> {
    match host {
        Some(host) => stream::readable(host, line),
        None => Some(text::printable(line)),
    }
}

/// What the last lines of an output say to a person, and whether some of them were too far from its end.
pub fn last_lines(path: &Path, most: usize, host: Option<Host>, shows_secrets: bool) -> (Vec<String>, bool) {
    let (from, bytes) = tail(path, most);
    let text = String::from_utf8_lossy(&bytes);
    let is_cut = from > 0 && text.lines().count() < most;
    let readable = text.lines().filter_map(|line| readable_line(&text::cut(line, LONGEST_LINE), host));
    (clean_from(path, from, host, shows_secrets).lines(readable), is_cut)
}

/// Removes the secrets from the lines of an output that begin at a byte.
pub fn clean_from(path: &Path, from: u64, host: Option<Host>, shows_secrets: bool) -> Clean {
    let clean = Clean::unless(shows_secrets);
    let start = from.saturating_sub(BEFORE);
    let mut bytes = Vec::new();
    // A file that cannot be read has nothing to show either.
    let _ = bounded::open(path).and_then(|mut file| {
        file.seek(SeekFrom::Start(start))?;
        file.take(from - start).read_to_end(&mut bytes)
    });
    let before = String::from_utf8_lossy(&bytes);
    clean.after(before.lines().filter_map(|line| readable_line(line, host)))
}

/// Where the last lines of a file begin.
pub fn start_of_tail(path: &Path, most: usize) -> u64 {
    tail(path, most).0
}

/// The last lines of a file in bytes, and their offset.
fn tail(path: &Path, most: usize) -> (u64, Vec<u8>) {
    let Ok(Part { mut bytes, mut from, .. }) = bounded::end_of(path, TAIL_BYTES) else { return (0, Vec::new()) };
    let hole = bounded::open(path).ok().as_ref().and_then(bounded::hole_of);
    if let Some(inside) = hole.map(|hole| hole.end.saturating_sub(from)).filter(|inside| *inside > 0) {
        bytes.drain(..usize::try_from(inside).unwrap_or(usize::MAX).min(bytes.len()));
        from += inside;
    }
    let mut start = bytes.len();
    for _ in 0..most {
        let Some(before) = start.checked_sub(1) else { break };
        // A line includes its line break.
        start = bytes.iter().take(before).rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    }
    bytes.drain(..start);
    (from + start as u64, bytes)
}

/// The lines of an output from some byte on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chunk {
    pub lines: Vec<String>,
    /// Where the next chunk begins.
    pub next: u64,
}

/// Reads the complete lines from a byte on, up to 256 KiB; once the attempt has ended, also a last line without its
/// break. `has_ended` is found out before the call, so that nothing is missed in between.
pub fn chunk(path: &Path, from: u64, host: Option<Host>, has_ended: bool) -> Chunk {
    let mut chunk = Chunk { lines: Vec::new(), next: from };
    let Ok(mut file) = bounded::open(path) else { return chunk };
    let hole = bounded::hole_of(&file).filter(|hole| hole.end > from);
    if let Some(hole) = hole.as_ref().filter(|hole| hole.start <= from) {
        let left_out = i64::try_from(hole.end - from).unwrap_or(i64::MAX);
        chunk.lines.push(format!("[{} bytes left out]", text::thousands(left_out)));
        chunk.next = hole.end;
    }
    let until = hole.filter(|hole| hole.start > from).map(|hole| hole.start);
    let most = until.map_or(CHUNK_BYTES, |until| (until - from).min(CHUNK_BYTES));
    let mut bytes = Vec::new();
    // On an error, the next call tries again.
    if file.seek(SeekFrom::Start(chunk.next)).is_err() || file.take(most).read_to_end(&mut bytes).is_err() {
        return chunk;
    }
    let is_at_end = (bytes.len() as u64) < most;
    let is_before_hole = until.is_some_and(|until| chunk.next + bytes.len() as u64 == until);
    let complete = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let rest = bytes.len() - complete;
    // The rest is a line of its own if nothing more comes, or if it is too long.
    let is_whole = rest > LONGEST_LINE || is_before_hole || (has_ended && is_at_end);
    bytes.truncate(if is_whole { bytes.len() } else { complete });
    chunk.next += bytes.len() as u64;
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    chunk.lines.extend(lines.filter_map(|line| {
        let line = String::from_utf8_lossy(line);
        readable_line(line.trim_end_matches(['\n', '\r']), host)
    }));
    chunk
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_directories_of_attempts_are_attempts() {
        let id = |stage, iteration, attempt| Some(AttemptId { stage, iteration, attempt });
        for (name, expected) in
            [("1-2-3", id(1, 2, 3)), ("1-2", None), ("1-2-3-4", None), ("lock", None), ("1-x-3", None), ("", None)]
        {
            assert_eq!(run_folder::attempt_of(name), expected, "{name}");
        }
    }

    #[test]
    fn the_last_lines_of_a_file_are_read_whatever_its_size() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out.log");
        fs_err::write(&path, format!("{}\none\ntwo", "x".repeat(3 << 20))).unwrap();
        assert_eq!(last_lines(&path, 2, None, false), (vec!["one".to_owned(), "two".to_owned()], false));
        let (lines, is_cut) = last_lines(&path, 9, None, false);
        assert_eq!((lines.len(), is_cut), (3, true), "the first of them is not whole");
        assert_eq!(last_lines(&directory.path().join("none"), 2, None, false), (Vec::new(), false));
    }

    #[test]
    fn a_private_key_that_begins_before_the_first_line_is_hidden() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out.log");
        let body = "MIIEowIBAAKCAQEA\n".repeat(50);
        fs_err::write(&path, format!("-----BEGIN PRIVATE KEY-----\n{body}-----END PRIVATE KEY-----\nend\n")).unwrap();
        for most in 1..54 {
            let shown = last_lines(&path, most, None, false).0;
            assert_eq!(shown.iter().filter(|line| line.contains("MIIE")).count(), 0, "{most}: {shown:?}");
            assert_eq!(shown.last().map(String::as_str), Some("end"));
        }
        for from in [28, 30, 47, 800] {
            let shown = clean_from(&path, from, None, false).lines(chunk(&path, from, None, true).lines);
            assert_eq!(shown, ["end"], "from {from}");
        }
        assert_eq!(last_lines(&path, 3, None, true).0.len(), 3);
    }

    #[test]
    fn tail_starts_at_the_beginning_of_a_line_whatever_it_contains() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out.log");
        let long = "x".repeat(LONGEST_LINE + 9);
        for (before, lines) in [
            ("", "one\n"),
            ("old\n", "one\r\ntwo\r\n"),
            ("old\n", "one\ntwo"),
            ("old\n", "\n\n"),
            ("old\n", &format!("{long}\ntwo\n")),
        ] {
            fs_err::write(&path, format!("{before}{lines}")).unwrap();
            assert_eq!(tail(&path, 2), (before.len() as u64, lines.as_bytes().to_vec()), "{before}{lines}");
        }
        fs_err::write(&path, b"old\n\xff\xfe\xfd\nend\n").unwrap();
        assert_eq!(tail(&path, 2), (4, b"\xff\xfe\xfd\nend\n".to_vec()));
        assert_eq!(tail(&path, 0), (12, vec![]));
        assert_eq!(tail(&path, 9), (0, fs_err::read(&path).unwrap()));
        // Only the searched part of a file that is too long.
        fs_err::write(&path, "x".repeat(3 << 20)).unwrap();
        assert_eq!(tail(&path, 1).0, 2 << 20);
    }

    #[test]
    fn an_output_is_read_line_by_line_as_it_grows() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out.log");
        let read = |from, has_ended| {
            let Chunk { lines, next } = chunk(&path, from, None, has_ended);
            (lines.join("|"), next)
        };
        assert_eq!(read(0, true), (String::new(), 0), "no file yet");
        fs_err::write(&path, "one\r\ntw").unwrap();
        assert_eq!(read(0, false), ("one".into(), 5));
        assert_eq!(read(5, false), (String::new(), 5));
        fs_err::write(&path, "one\r\ntwo\n\n\u{1b}[31mred").unwrap();
        assert_eq!(read(5, false), ("two|".into(), 10));
        assert_eq!(read(10, true), ("red".into(), 18));
        assert_eq!(read(18, true), (String::new(), 18));
        assert_eq!(read(99, true), (String::new(), 99), "beyond the end");
    }

    #[test]
    fn a_long_output_comes_in_chunks_and_a_long_line_in_pieces() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out.log");
        let long = "x".repeat(600_000);
        fs_err::write(&path, format!("{long}\nend\n")).unwrap();
        let (mut from, mut read, mut calls) = (0, String::new(), 0);
        loop {
            let Chunk { lines, next } = chunk(&path, from, None, false);
            if next == from {
                break;
            }
            assert!(next - from <= CHUNK_BYTES);
            (from, calls) = (next, calls + 1);
            read.extend(lines);
        }
        assert_eq!((read, from, calls), (format!("{long}end"), 600_005, 3));
    }
}
