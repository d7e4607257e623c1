//! What a worker knows of a run: the run directory, of which the files that a prompt needs are written beside the attempt.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use steadfast_engine::attempt::Attempt;
use steadfast_engine::files::{OutputOf, PublicFiles};
use steadfast_engine::observer::{KeptOutput, PromptValues};
use steadfast_engine::work::{IterationRow, RunRecords, row_of};
use steadfast_model::run::{AttemptId, Plan, Record, Run, StagePlan};
use steadfast_model::text;
use steadfast_system::paths;

use super::WorkError;
use crate::git::Refs;
use crate::git::directory::{RunDirectory, SEGMENT, progress_file};
use crate::wire::{Heads, attempt_key};

/// Files of committed iterations that prompts show.
const SHOWN: [&str; 2] = ["output.md", "answer.md"];

pub(super) struct FleetRecords<'a> {
    pub(super) directory: &'a RunDirectory,
    pub(super) plan: &'a Plan,
    pub(super) run: &'a Run,
    pub(super) refs: Refs,
    pub(super) heads: &'a Heads,
    /// The folder of the attempt.
    pub(super) home: &'a Path,
    pub(super) run_id: &'a str,
    /// Where the attempt works.
    pub(super) project: &'a Path,
    /// The lane in which it works.
    pub(super) lane: Option<&'a str>,
    pub(super) notes: &'a [String],
    pub(super) messages: Vec<String>,
}

impl FleetRecords<'_> {
    fn files(&self) -> Option<PublicFiles> {
        PublicFiles::open(self.project, self.plan.kind, &self.plan.name).ok()
    }

    /// Writes the progress file of a stage as the last attempt left it, and the text of the inputs.
    pub(super) fn prepare(&self, id: AttemptId) -> Result<(), WorkError> {
        let kept = self.directory.text(&progress_file(id.stage))?;
        let files =
            self.files().ok_or_else(|| WorkError::Io(std::io::Error::other("the project has no state files")))?;
        let written = files.ensure_progress(self.plan, id.stage, kept.as_deref().map(str::as_bytes));
        written.map_err(|error| WorkError::Io(std::io::Error::other(error.to_string())))
    }

    /// Writes files of an attempt to where the engine looks for them. The notes of the attempt say what is missing.
    fn materialize(&mut self, id: AttemptId, names: &[&str]) {
        let attempt = Attempt::at(self.home, self.run_id, id);
        for name in names {
            if let Err(error) = self.copy_file(id, name, attempt.directory()) {
                let key = attempt_key(id);
                tracing::warn!("{name} of attempt {key} is not shown to the agent: {error}");
                self.messages.push(format!("{name} of attempt {key} could not be read: {error}"));
            }
        }
    }

    fn copy_file(&self, id: AttemptId, name: &str, folder: &Path) -> Result<(), WorkError> {
        let path = folder.join(name);
        if !path.exists()
            && let Some(content) = self.directory.file(id, name)?
        {
            paths::create_private_dir(folder)?;
            fs_err::write(path, content)?;
        }
        Ok(())
    }

    /// Committed iterations that `is_meant`, the newest first, until there are enough.
    fn newest(&self, most: usize, is_meant: impl Fn(AttemptId) -> bool) -> Result<Vec<IterationRow>, WorkError> {
        let mut rows = Vec::new();
        for segment in (0..self.directory.state.seq.div_ceil(SEGMENT)).rev() {
            let lines = self.directory.segment(segment)?;
            rows.extend(lines.into_iter().rev().filter_map(|line| match line.record {
                Record::Committed { id, success, .. } if is_meant(id) => Some(row_of(id, &success)),
                _ => None,
            }));
            if rows.len() >= most {
                break;
            }
        }
        rows.truncate(most);
        Ok(rows)
    }
}

impl RunRecords for FleetRecords<'_> {
    type Error = WorkError;

    fn end_of_stage(&mut self, stage: u32, most: usize) -> Result<Vec<IterationRow>, WorkError> {
        let mut rows = self.newest(most, |id| id.stage == stage)?;
        rows.sort_by_key(|row| row.id);
        let artifacts: BTreeSet<String> = self
            .plan
            .stage(stage)
            .map(|stage| stage.artifacts.keys().map(|name| format!("artifact-{name}")).collect())
            .unwrap_or_default();
        let names: Vec<&str> = SHOWN.into_iter().chain(artifacts.iter().map(String::as_str)).collect();
        for row in &rows {
            self.materialize(row.id, &names);
        }
        Ok(rows)
    }

    fn last_iterations(&mut self, most: usize) -> Result<Vec<IterationRow>, WorkError> {
        let mut rows = self.newest(most, |_| true)?;
        rows.sort_by_key(|row| row.id);
        Ok(rows)
    }

    fn notes_for(&mut self, _id: AttemptId) -> Result<Vec<String>, WorkError> {
        Ok(self.notes.to_vec())
    }

    fn prompt_values(&self, id: AttemptId) -> PromptValues {
        let of = OutputOf { plan: self.plan, run: self.run, stage: id.stage, iteration: id.iteration };
        let files = self.files();
        let said = |name: &str| self.directory.text(name).ok().flatten().unwrap_or_default();
        PromptValues {
            output: files.as_ref().and_then(|files| files.output_file(of).ok()?),
            progress: files.and_then(|files| files.progress_file(self.plan, id.stage).ok()),
            objective: text::escape_xml(&said("objective.md")),
            inputs: said("inputs.md"),
        }
    }

    fn output(&self, id: AttemptId) -> Option<KeptOutput> {
        let attempt = Attempt::at(self.home, self.run_id, id);
        SHOWN.iter().find_map(|name| KeptOutput::read(attempt.directory().join(name)))
    }

    fn output_file(&self, _id: AttemptId) -> Option<PathBuf> {
        None
    }

    fn branch_of(&self, stage: &StagePlan, id: AttemptId) -> Option<String> {
        let place = format!("{}-{}", id.stage, id.iteration);
        stage.parallel.then(|| self.heads.get(&place).map(|_| self.refs.place_branch(&place)))?
    }

    fn directory_of(&self, stage: &StagePlan, _id: AttemptId) -> Option<PathBuf> {
        let is_here = !stage.parallel && stage.lane.as_deref() == self.lane;
        is_here.then(|| self.project.to_owned())
    }

    fn note(&mut self, message: &str) {
        self.messages.push(message.to_owned());
    }
}
