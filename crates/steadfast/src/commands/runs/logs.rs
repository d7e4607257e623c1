//! `logs`: prints the output of agents from the files of their attempts: its end, or with `-f` as it grows. Event streams
//! are shown as text unless `--raw` is given. Control characters never reach the terminal, and secrets only with `--raw`
//! in the user's own terminal.

use std::path::Path;
use std::time::Duration;

use serde_json::json;
use steadfast_engine::attempt::Attempt;
use steadfast_engine::run_folder::RunFolder;
use steadfast_model::host::Host;
use steadfast_model::run::{AttemptId, RunStatus};
use steadfast_store::RunRow;
use steadfast_views::log::{self, Clean};

use super::RunContext;
use crate::cli::LogsArgs;
use crate::commands::person;
use crate::error::{CliError, code};
use crate::output::{self, CommandOutput, CommandResult};

pub(super) const LOOK_EVERY: Duration = Duration::from_millis(200);

pub(super) fn logs(context: &RunContext, arguments: &LogsArgs) -> CommandResult {
    let (_, row) = context.find(&arguments.name)?;
    let shows_secrets = arguments.raw && !person::caller(&context.paths).is_agent();
    if arguments.engine {
        let path = RunFolder::at(&context.paths.home, &row.run_id).engine_log();
        let lines = read_last_lines(&path, arguments.lines, None, shows_secrets);
        return Ok(CommandOutput { text: lines.join("\n"), json: json!({"lines": lines}), code: 0 });
    }
    let attempts = log::attempts(&context.paths.home, &row.run_id);
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
    let host = log::host_of(&row.plan, id).filter(|_| !arguments.raw);
    let lines = read_last_lines(&attempt.output(), arguments.lines, host, shows_secrets);
    let errors = read_last_lines(&attempt.errors(), arguments.lines, None, shows_secrets);
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

/// The last lines of a file, with a note if not all of them are read.
fn read_last_lines(path: &Path, most: usize, host: Option<Host>, shows_secrets: bool) -> Vec<String> {
    let (lines, is_cut) = log::last_lines(path, most, host, shows_secrets);
    if is_cut {
        let shown = log::TAIL_BYTES >> 20;
        output::note(&format!("only the last {shown} MiB are read; the whole output is in {}", path.display()));
    }
    lines
}

/// Reads the outputs of a run's attempts, one after the other, as they grow.
pub(super) struct Follower<'a> {
    context: &'a RunContext,
    row: &'a RunRow,
    raw: bool,
    shows_secrets: bool,
    clean: Clean,
    current: Option<AttemptId>,
    offset: u64,
}

impl<'a> Follower<'a> {
    pub(super) fn new(context: &'a RunContext, row: &'a RunRow, raw: bool, shows_secrets: bool) -> Self {
        Self { context, row, raw, shows_secrets, clean: Clean::unless(shows_secrets), current: None, offset: 0 }
    }

    fn attempts(&self) -> Vec<AttemptId> {
        log::attempts(&self.context.paths.home, &self.row.run_id)
    }

    fn begin_at(&mut self, id: AttemptId, lines: usize) {
        let path = Attempt::at(&self.context.paths.home, &self.row.run_id, id).output();
        self.current = Some(id);
        self.offset = log::start_of_tail(&path, lines);
        self.clean = log::clean_from(&path, self.offset, self.host_of(id), self.shows_secrets);
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
        let has_ended = log::has_ended(&attempt, id, &self.attempts());
        let chunk = log::chunk(&attempt.output(), self.offset, self.host_of(id), has_ended);
        for text in &chunk.lines {
            if let Some(text) = self.clean.line(text) {
                line(id, &text);
            }
        }
        let is_more = chunk.next != self.offset;
        self.offset = chunk.next;
        is_more || (has_ended && self.start_next())
    }

    fn host_of(&self, id: AttemptId) -> Option<Host> {
        log::host_of(&self.row.plan, id).filter(|_| !self.raw)
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
