//! `logs`: prints the output of agents from the files of their attempts: its end, or with `-f` as it grows. Event streams
//! are shown as text unless `--raw` is given. Control characters never reach the terminal, and secrets only with `--raw`
//! in the user's own terminal.

mod clean;

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::time::Duration;

use serde_json::json;
use steadfast_engine::attempt::Attempt;
use steadfast_engine::run_folder::{self, RunFolder};
use steadfast_hosts::stream;
use steadfast_model::host::Host;
use steadfast_model::run::{AgentKind, AttemptId, Plan, RunStatus};
use steadfast_model::text;
use steadfast_store::RunRow;
use steadfast_system::bounded::{self, Part};

use self::clean::Clean;
use super::RunContext;
use crate::cli::LogsArgs;
use crate::commands::person;
use crate::error::{CliError, code};
use crate::output::{self, CommandOutput, CommandResult};

pub(super) const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How much of a file's end is searched for its last lines.
const TAIL_BYTES: u64 = 1 << 20;
/// How much of a growing file is read at a time.
const CHUNK_BYTES: u64 = 256 * 1024;
/// Longer lines are printed in pieces.
const LONGEST_LINE: usize = 64 * 1024;

pub(super) fn logs(context: &RunContext, arguments: &LogsArgs) -> CommandResult {
    let (_, row) = context.find(&arguments.name)?;
    let shows_secrets = arguments.raw && !person::caller(&context.paths).is_agent();
    if arguments.engine {
        let path = RunFolder::at(&context.paths.home, &row.run_id).engine_log();
        let mut clean = Clean::unless(shows_secrets);
        let lines = read_last_lines(&path, arguments.lines);
        let lines: Vec<String> = lines.iter().filter_map(|line| clean.line(line)).collect();
        return Ok(CommandOutput { text: lines.join("\n"), json: json!({"lines": lines}), code: 0 });
    }
    let attempts = attempts(&context.paths.home, &row.run_id);
    let wanted = |id: &&AttemptId| {
        arguments.stage.is_none_or(|stage| id.stage == stage)
            && arguments.iteration.is_none_or(|iteration| id.iteration == iteration)
    };
    let newest = attempts.iter().rfind(wanted).copied();
    if arguments.follow && arguments.iteration.is_none() {
        let mut follower = Follower::new(context, &row, arguments.raw, shows_secrets);
        if let Some(id) = newest {
            follower.begin_at(id, arguments.lines);
        }
        follow(context, &row.run_id, &mut follower)?;
        // Without any output, fail as without -f.
        if follower.current.is_some() {
            return Ok(CommandOutput::default());
        }
    }
    let Some(id) = newest else {
        let (kind, name) = (row.plan.kind, &row.plan.name);
        let message = format!("{kind} {name} has no output of that iteration yet");
        let hint = format!("`steadfast {kind} status {name}` shows its iterations");
        return Err(CliError::new(code::NOT_FOUND, message, hint));
    };
    let attempt = Attempt::at(&context.paths.home, &row.run_id, id);
    let host = host_of(&row.plan, id).filter(|_| !arguments.raw);
    let readable = |path: &Path, host| -> Vec<String> {
        let mut clean = Clean::unless(shows_secrets);
        let lines = read_last_lines(path, arguments.lines);
        let lines = lines.iter().filter_map(|line| readable_line(line, host));
        lines.filter_map(|line| clean.line(&line)).collect()
    };
    let lines = readable(&attempt.output(), host);
    let errors = readable(&attempt.errors(), None);
    let json = json!({
        "stage": id.stage, "iteration": id.iteration, "attempt": id.attempt, "lines": lines, "stderr": errors,
        "file": attempt.output(),
    });
    let mut text = lines;
    if !errors.is_empty() {
        text.push("--- stderr".into());
        text.extend(errors);
    }
    Ok(CommandOutput { text: text.join("\n"), json, code: 0 })
}

/// Prints new output until the run ends or loses its engine.
fn follow(context: &RunContext, run_id: &str, follower: &mut Follower<'_>) -> Result<(), CliError> {
    loop {
        let store = context.existing_store()?;
        let row = store.map_or(Ok(None), |store| store.read().run(run_id))?;
        // Checked before reading, so that output printed in between is not lost.
        let is_live = row.as_ref().map_or(Ok(false), |row| context.is_live(row))?;
        loop {
            let mut lines = Vec::new();
            let is_more = follower.step(|AttemptId { stage, iteration, attempt }, line| {
                let object = json!({"stage": stage, "iteration": iteration, "attempt": attempt, "line": line});
                lines.push(if context.json { object.to_string() } else { line.to_owned() });
            });
            if !output::write_lines(&lines)? {
                return Ok(());
            }
            if !is_more {
                break;
            }
        }
        if !is_live {
            if row.is_some_and(|row| row.run.status == RunStatus::Running) {
                output::note("its engine is gone; `resume` resumes it");
            }
            return Ok(());
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// The attempts of a run that have a directory, in order.
fn attempts(home: &Path, run_id: &str) -> Vec<AttemptId> {
    let directories = RunFolder::at(home, run_id).attempts();
    let ids = directories.iter().filter_map(|path| run_folder::attempt_of(path.file_name()?.to_str()?));
    let mut ids: Vec<AttemptId> = ids.filter(|id| id.attempt > 0).collect();
    ids.sort_unstable();
    ids
}

/// The host whose event stream an attempt's output is, or `None` for plain text.
fn host_of(plan: &Plan, id: AttemptId) -> Option<Host> {
    match plan.stage(id.stage)?.agent_of(id.iteration).kind {
        AgentKind::Host(host) => Some(host),
        AgentKind::Command(_) => None,
    }
}

fn readable_line(line: &str, host: Option<Host>) -> Option<String> {
    match host {
        Some(host) => stream::readable(host, line),
        None => Some(text::printable(line)),
    }
}

/// The last lines of a file, with a note if not all of them are read.
fn read_last_lines(path: &Path, most: usize) -> Vec<String> {
    let (lines, is_cut) = last_lines(path, most);
    if is_cut {
        let shown = TAIL_BYTES >> 20;
        output::note(&format!("only the last {shown} MiB are read; the whole output is in {}", path.display()));
    }
    lines
}

/// The last lines of a file, and whether some of them were too far from its end.
fn last_lines(path: &Path, most: usize) -> (Vec<String>, bool) {
    let (from, bytes) = tail(path, most);
    let lines: Vec<String> =
        String::from_utf8_lossy(&bytes).lines().map(|line| text::cut(line, LONGEST_LINE)).collect();
    let is_cut = from > 0 && lines.len() < most;
    (lines, is_cut)
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

/// Reads the outputs of a run's attempts, one after the other, as they grow.
pub(super) struct Follower<'a> {
    context: &'a RunContext,
    row: &'a RunRow,
    raw: bool,
    clean: Clean,
    current: Option<AttemptId>,
    offset: u64,
    /// A line that is not complete yet.
    partial: Vec<u8>,
}

impl<'a> Follower<'a> {
    pub(super) fn new(context: &'a RunContext, row: &'a RunRow, raw: bool, shows_secrets: bool) -> Self {
        let clean = Clean::unless(shows_secrets);
        Self { context, row, raw, clean, current: None, offset: 0, partial: Vec::new() }
    }

    fn attempts(&self) -> Vec<AttemptId> {
        attempts(&self.context.paths.home, &self.row.run_id)
    }

    fn begin_at(&mut self, id: AttemptId, lines: usize) {
        let path = Attempt::at(&self.context.paths.home, &self.row.run_id, id).output();
        self.current = Some(id);
        (self.offset, _) = tail(&path, lines);
    }

    pub(super) fn begin_at_last(&mut self, lines: usize) {
        if let Some(id) = self.attempts().last().copied() {
            self.begin_at(id, lines);
        }
    }

    /// Passes new lines to `line`, and returns whether there may be more already.
    pub(super) fn step(&mut self, mut line: impl FnMut(AttemptId, &str)) -> bool {
        let Some(id) = self.current else { return self.start_next() };
        let attempt = Attempt::at(&self.context.paths.home, &self.row.run_id, id);
        // Checked before reading, so that all output before the end is read.
        let has_ended = attempt.directory().join("exit.json").exists()
            || self.next_after(id).is_some_and(|next| (next.stage, next.iteration) == (id.stage, id.iteration));
        let host = host_of(&self.row.plan, id).filter(|_| !self.raw);
        let mut bytes = Vec::new();
        if let Ok(mut file) = bounded::open(&attempt.output()) {
            let hole = bounded::hole_of(&file).filter(|hole| hole.end > self.offset);
            if let Some(hole) = hole.as_ref().filter(|hole| hole.start <= self.offset) {
                let left_out = i64::try_from(hole.end - self.offset).unwrap_or(i64::MAX);
                line(id, &format!("[{} bytes left out]", text::thousands(left_out)));
                self.offset = hole.end;
                self.partial.clear();
            }
            let most =
                hole.filter(|hole| hole.start > self.offset).map_or(CHUNK_BYTES, |hole| hole.start - self.offset);
            if file.seek(SeekFrom::Start(self.offset)).is_ok() {
                // On an error, the next step tries again.
                let _ = file.take(most.min(CHUNK_BYTES)).read_to_end(&mut bytes);
            }
        }
        self.offset += bytes.len() as u64;
        let is_more = !bytes.is_empty();
        self.partial.extend(bytes);
        while let Some(end) = self.partial.iter().position(|byte| *byte == b'\n') {
            let whole: Vec<u8> = self.partial.drain(..=end).collect();
            let whole = String::from_utf8_lossy(&whole);
            let text = readable_line(whole.trim_end_matches(['\n', '\r']), host);
            if let Some(text) = text.and_then(|text| self.clean.line(&text)) {
                line(id, &text);
            }
        }
        if self.partial.len() > LONGEST_LINE || (has_ended && !is_more && !self.partial.is_empty()) {
            let rest = std::mem::take(&mut self.partial);
            let text = readable_line(&String::from_utf8_lossy(&rest), host);
            if let Some(text) = text.and_then(|text| self.clean.line(&text)) {
                line(id, &text);
            }
        }
        is_more || (has_ended && self.start_next())
    }

    fn next_after(&self, id: AttemptId) -> Option<AttemptId> {
        self.attempts().into_iter().find(|next| *next > id)
    }

    fn start_next(&mut self) -> bool {
        let next = match self.current {
            Some(id) => self.next_after(id),
            None => self.attempts().first().copied(),
        };
        if next.is_some() {
            self.current = next;
            self.offset = 0;
            self.clean.begin_anew();
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
            assert_eq!(run_folder::attempt_of(name), expected, "{name}");
        }
    }

    #[test]
    fn the_last_lines_of_a_file_are_read_whatever_its_size() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out.log");
        fs_err::write(&path, format!("{}\none\ntwo", "x".repeat(3 << 20))).unwrap();
        assert_eq!(last_lines(&path, 2), (vec!["one".to_owned(), "two".to_owned()], false));
        let (lines, is_cut) = last_lines(&path, 9);
        assert_eq!((lines.len(), is_cut), (3, true), "the first of them is not whole");
        assert_eq!(last_lines(&directory.path().join("none"), 2), (Vec::new(), false));
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
}
