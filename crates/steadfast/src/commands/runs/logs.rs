//! `logs`: what agents printed, from the files of their attempts; the end of it, or as it comes. Event streams are
//! shown as words unless somebody wants them raw, and nothing in them reaches the terminal as a control character.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use steadfast_core::bounded::{self, Part};
use steadfast_core::host::stream;
use steadfast_core::run::{AgentKind, AttemptId, Plan, RunStatus};
use steadfast_core::store::RunRow;
use steadfast_core::{host::Host, text};
use steadfast_engine::attempt::{Attempt, run_directory};

use super::Here;
use super::finding::called;
use crate::cli::LogsArgs;
use crate::failure::{Failure, code};
use crate::output::{self, Done, Reader};

pub(super) const LOOK_EVERY: Duration = Duration::from_millis(200);
/// The most of a file's end that is looked through for its last lines.
const TAIL_BYTES: u64 = 1 << 20;
/// The most that is read of a growing file at a time.
const CHUNK_BYTES: u64 = 256 * 1024;
/// A line without an end is shown in pieces.
const LONGEST_LINE: usize = 64 * 1024;

pub(super) fn logs(here: &Here, arguments: &LogsArgs) -> Result<Done, Failure> {
    let (_, row) = here.find(&arguments.name)?;
    if arguments.engine {
        let path = run_directory(&here.paths.home, &row.run_id).join("engine.log");
        let lines = told_lines(&path, arguments.lines);
        return Ok(Done { text: lines.join("\n"), json: json!({"lines": lines}), code: 0 });
    }
    let attempts = attempts(&here.paths.home, &row.run_id);
    let wanted = |id: &&AttemptId| {
        arguments.stage.is_none_or(|stage| id.stage == stage)
            && arguments.iteration.is_none_or(|iteration| id.iteration == iteration)
    };
    let newest = attempts.iter().rfind(wanted).copied();
    if arguments.follow && arguments.iteration.is_none() {
        let mut follower = Follower::new(here, &row, arguments.raw);
        if let Some(id) = newest {
            follower.begin_at(id, arguments.lines);
        }
        follow(here, &row.run_id, &mut follower)?;
        // A run that ended without any output has nothing to show, followed or not.
        if follower.current.is_some() {
            return Ok(Done::default());
        }
    }
    let Some(id) = newest else {
        let (kind, name) = (row.plan.kind, &row.plan.name);
        return Err(Failure::new(
            code::NOT_FOUND,
            format!("{} has no output of that iteration (yet)", called(kind, name)),
            format!("`steadfast {kind} status {name}` shows its iterations"),
        ));
    };
    let attempt = Attempt::at(&here.paths.home, &row.run_id, id);
    let host = host_of(&row.plan, id).filter(|_| !arguments.raw);
    let shown = shown_lines(&told_lines(&attempt.output(), arguments.lines), host);
    let errors = shown_lines(&told_lines(&attempt.errors(), arguments.lines), None);
    let mut lines = shown.clone();
    if !errors.is_empty() {
        lines.push("--- stderr".into());
        lines.extend(errors.iter().cloned());
    }
    let json = json!({
        "stage": id.stage, "iteration": id.iteration, "attempt": id.attempt, "lines": shown, "stderr": errors,
        "file": attempt.output(),
    });
    Ok(Done { text: lines.join("\n"), json, code: 0 })
}

/// Follows until the run is over and everything is shown, or nobody drives it any more.
fn follow(here: &Here, run_id: &str, follower: &mut Follower) -> Result<(), Failure> {
    loop {
        let store = here.existing_store()?;
        let row = match &store {
            Some(store) => store.read().run(run_id)?,
            None => None,
        };
        let is_live = row.as_ref().is_some_and(|row| row.run.status == RunStatus::Running);
        let is_driven = match &row {
            Some(row) => here.is_live(row)?,
            None => false,
        };
        // Looked at first, so that what is printed in between is not lost.
        loop {
            let mut lines = Vec::new();
            let is_more = follower.step(|id, line| lines.push(printed(here, id, line)));
            if output::lines(lines.iter().map(String::as_str))? == Reader::IsGone {
                return Ok(());
            }
            if !is_more {
                break;
            }
        }
        if !is_driven {
            if is_live {
                output::note("its engine is gone; `resume` goes on with it");
            }
            return Ok(());
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// A line as it is, or as an object of its own.
fn printed(here: &Here, id: AttemptId, line: &str) -> String {
    if !here.json {
        return line.to_owned();
    }
    let (stage, iteration, attempt) = (id.stage, id.iteration, id.attempt);
    json!({"stage": stage, "iteration": iteration, "attempt": attempt, "line": line}).to_string()
}

/// All attempts of a run that have a directory, in order.
pub(super) fn attempts(home: &Path, run_id: &str) -> Vec<AttemptId> {
    let Ok(entries) = fs_err::read_dir(run_directory(home, run_id)) else { return Vec::new() };
    let mut ids: Vec<AttemptId> = entries
        .flatten()
        .filter_map(|entry| attempt_id(entry.file_name().to_str()?))
        .filter(|id| id.attempt > 0)
        .collect();
    ids.sort_unstable();
    ids
}

/// The directories of all attempts of a run, and of those who judged them.
pub(super) fn directories(home: &Path, run_id: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs_err::read_dir(run_directory(home, run_id)) else { return Vec::new() };
    let is_of_attempt = |name: &str| {
        let end = name.match_indices('-').nth(2).map_or(name.len(), |(end, _)| end);
        name.get(..end).and_then(attempt_id).is_some()
    };
    let directories = entries.flatten().filter(|entry| entry.file_name().to_str().is_some_and(is_of_attempt));
    directories.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

fn attempt_id(name: &str) -> Option<AttemptId> {
    let mut numbers = name.split('-').map(|number| number.parse::<u32>().ok());
    let id = AttemptId { stage: numbers.next()??, iteration: numbers.next()??, attempt: numbers.next()?? };
    numbers.next().is_none().then_some(id)
}

/// Whose event stream an attempt's output is; `None` for plain text.
fn host_of(plan: &Plan, id: AttemptId) -> Option<Host> {
    match plan.stage(id.stage)?.agent.kind {
        AgentKind::Host(host) => Some(host),
        AgentKind::Command(_) => None,
    }
}

fn shown_lines(lines: &[String], host: Option<Host>) -> Vec<String> {
    lines.iter().filter_map(|line| shown(line, host)).collect()
}

fn shown(line: &str, host: Option<Host>) -> Option<String> {
    match host {
        Some(host) => stream::readable(host, line),
        None => Some(text::printable(line)),
    }
}

/// The last lines of a file, with a word to people if there are fewer than they want.
fn told_lines(path: &Path, most: usize) -> Vec<String> {
    let (lines, is_cut) = last_lines(path, most);
    if is_cut {
        let shown = TAIL_BYTES >> 20;
        output::note(&format!("only the last {shown} MiB are shown; the whole output is in {}", path.display()));
    }
    lines
}

/// The last lines of a file as far as they are near its end, and whether there are more that were asked for.
fn last_lines(path: &Path, most: usize) -> (Vec<String>, bool) {
    let (from, bytes) = tail(path, most);
    let lines: Vec<String> =
        String::from_utf8_lossy(&bytes).lines().map(|line| text::cut(line, LONGEST_LINE)).collect();
    let is_cut = from > 0 && lines.len() < most;
    (lines, is_cut)
}

/// The same in bytes, and where in the file they begin.
fn tail(path: &Path, most: usize) -> (u64, Vec<u8>) {
    let Ok(Part { mut bytes, from, .. }) = bounded::end_of(path, TAIL_BYTES) else { return (0, Vec::new()) };
    let mut start = bytes.len();
    for _ in 0..most {
        let Some(before) = start.checked_sub(1) else { break };
        // The break at the end of a line is its own.
        start = bytes.iter().take(before).rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    }
    bytes.drain(..start);
    (from + start as u64, bytes)
}

/// Reads the outputs of a run's attempts one after the other as they grow.
pub(super) struct Follower {
    home: PathBuf,
    run_id: String,
    plan: Plan,
    raw: bool,
    current: Option<AttemptId>,
    offset: u64,
    /// The beginning of a line whose end has not come.
    partial: Vec<u8>,
}

impl Follower {
    pub(super) fn new(here: &Here, row: &RunRow, raw: bool) -> Self {
        Self {
            home: here.paths.home.clone(),
            run_id: row.run_id.clone(),
            plan: row.plan.clone(),
            raw,
            current: None,
            offset: 0,
            partial: Vec::new(),
        }
    }

    /// Begins with the last lines of an attempt.
    fn begin_at(&mut self, id: AttemptId, lines: usize) {
        let path = Attempt::at(&self.home, &self.run_id, id).output();
        self.current = Some(id);
        (self.offset, _) = tail(&path, lines);
    }

    /// Begins with the attempt that is under way now.
    pub(super) fn begin_at_last(&mut self, lines: usize) {
        if let Some(id) = attempts(&self.home, &self.run_id).last().copied() {
            self.begin_at(id, lines);
        }
    }

    /// Hands over what is new; tells whether there may be more at once.
    pub(super) fn step(&mut self, mut line: impl FnMut(AttemptId, &str)) -> bool {
        let Some(id) = self.current else { return self.turn_to_next() };
        let attempt = Attempt::at(&self.home, &self.run_id, id);
        // Asked before reading: what was printed before the end is read.
        let has_ended = attempt.directory().join("exit.json").exists()
            || self.next_after(id).is_some_and(|next| (next.stage, next.iteration) == (id.stage, id.iteration));
        let host = host_of(&self.plan, id).filter(|_| !self.raw);
        let mut bytes = Vec::new();
        if let Ok(mut file) = bounded::open(&attempt.output())
            && file.seek(SeekFrom::Start(self.offset)).is_ok()
        {
            // A file that cannot be read now may be readable the next time.
            let _ = file.take(CHUNK_BYTES).read_to_end(&mut bytes);
        }
        self.offset += bytes.len() as u64;
        let is_more = !bytes.is_empty();
        self.partial.extend(bytes);
        while let Some(end) = self.partial.iter().position(|byte| *byte == b'\n') {
            let whole: Vec<u8> = self.partial.drain(..=end).collect();
            if let Some(text) = shown(String::from_utf8_lossy(&whole).trim_end_matches(['\n', '\r']), host) {
                line(id, &text);
            }
        }
        if self.partial.len() > LONGEST_LINE || (has_ended && !is_more && !self.partial.is_empty()) {
            let rest = std::mem::take(&mut self.partial);
            if let Some(text) = shown(&String::from_utf8_lossy(&rest), host) {
                line(id, &text);
            }
        }
        is_more || (has_ended && self.turn_to_next())
    }

    fn next_after(&self, id: AttemptId) -> Option<AttemptId> {
        attempts(&self.home, &self.run_id).into_iter().find(|next| *next > id)
    }

    fn turn_to_next(&mut self) -> bool {
        let next = match self.current {
            Some(id) => self.next_after(id),
            None => attempts(&self.home, &self.run_id).first().copied(),
        };
        if next.is_some() {
            self.current = next;
            self.offset = 0;
        }
        next.is_some()
    }
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
            assert_eq!(attempt_id(name), expected, "{name}");
        }
    }

    #[test]
    fn the_end_of_a_file_is_its_last_lines_whatever_its_size() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out.log");
        fs_err::write(&path, format!("{}\none\ntwo", "x".repeat(3 << 20))).unwrap();
        assert_eq!(last_lines(&path, 2), (vec!["one".to_owned(), "two".to_owned()], false));
        let (lines, is_cut) = last_lines(&path, 9);
        assert_eq!((lines.len(), is_cut), (3, true), "the first of them is not whole");
        assert_eq!(last_lines(&directory.path().join("none"), 2), (Vec::new(), false));
    }

    #[test]
    fn lines_are_followed_from_where_they_begin_whatever_is_in_them() {
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
        // Of a file that is too long, as much as is looked at.
        fs_err::write(&path, "x".repeat(3 << 20)).unwrap();
        assert_eq!(tail(&path, 1).0, 2 << 20);
    }
}
