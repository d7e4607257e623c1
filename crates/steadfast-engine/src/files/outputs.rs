//! Files that agents read and write: progress, outputs of stages, and the copy of a pipeline's definition. Of a progress
//! file only the head is ours, written once; from then on the file belongs to the agents.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use steadfast_model::redact::redact;
use steadfast_model::run::{Plan, Rule, Run, RunKind, StagePlan};
use steadfast_system::bounded;

use super::document::{CLAUDE, Lock, create, replace, sweep};
use super::place::ProjectPlace;
use super::restored::restored;
use super::{FilesError, PIPELINES, PublicFiles};
use crate::durable;

const PROGRESS: &str = "progress.md";
const OUTPUT: &str = "output.md";
const DEFINITION: &str = "pipeline.yaml";
/// A longer output is not copied.
const MAX_COPIED: u64 = 64 << 20;

/// The iteration that an output belongs to. The run has the maximum, which can have grown when it was resumed.
#[derive(Debug, Clone, Copy)]
pub struct OutputOf<'a> {
    pub plan: &'a Plan,
    pub run: &'a Run,
    pub stage: u32,
    pub iteration: u32,
}

impl OutputOf<'_> {
    fn name(&self) -> Result<String, FilesError> {
        let planned = stage_plan(self.plan, self.stage)?.runs;
        let several = planned.max(self.run.max_iterations(self.plan, self.stage)) > 1;
        Ok(output_name(several, self.iteration))
    }

    /// As the state lists it while it is owed.
    pub(crate) fn public_name(&self) -> Result<String, FilesError> {
        Ok(self.parts(&self.name()?)?.get(3..).unwrap_or_default().join("/"))
    }

    /// The path of a file in the stage's folder.
    fn parts(&self, file: &str) -> Result<Vec<String>, FilesError> {
        Ok(in_stage(self.plan, self.stage, stage_plan(self.plan, self.stage)?, file))
    }

    /// `output.md` if it still belongs to this iteration: the first of a stage that was resumed with a larger maximum.
    fn single_output(&self, place: &ProjectPlace) -> Result<Option<PathBuf>, FilesError> {
        let was_single = stage_plan(self.plan, self.stage)?.runs <= 1 && self.iteration == 1;
        let path = place.file(&self.parts(OUTPUT)?)?;
        Ok(Some(path).filter(|path| was_single && !has_later(path, self.iteration)))
    }
}

impl PublicFiles {
    /// Creates files that are missing, of a run whose files were removed or put back.
    pub(crate) fn repair(&self, plan: &Plan, definition: Option<&str>) -> Result<(), FilesError> {
        self.prepare(plan, definition, &Lock::take(&self.place)?)
    }

    /// Creates the files that are missing.
    pub(super) fn prepare(&self, plan: &Plan, definition: Option<&str>, lock: &Lock) -> Result<(), FilesError> {
        if plan.kind == RunKind::Pipeline {
            let parts = [CLAUDE, PIPELINES, &plan.name];
            sweep(&self.place.directory(&parts)?, lock);
            if let Some(definition) = definition {
                let path = self.place.file_to_write(&[&parts[..], &[DEFINITION]].concat())?;
                create(&path, redact(definition).as_bytes())?;
            }
        }
        for (stage, _) in (1..).zip(&plan.stages) {
            if let Some(directory) = self.progress_file(plan, stage)?.parent() {
                sweep(directory, lock);
            }
            self.ensure_progress(plan, stage, None)?;
        }
        Ok(())
    }

    /// Creates a missing progress file before an agent starts that reads it: with the notes that were kept of it, or
    /// with its head.
    pub fn ensure_progress(&self, plan: &Plan, stage: u32, kept: Option<&[u8]>) -> Result<(), FilesError> {
        let planned = stage_plan(plan, stage)?;
        let title = match plan.kind {
            RunKind::Loop => plan.name.clone(),
            RunKind::Pipeline => format!("{} / {}", plan.name, planned.name),
        };
        let head = format!(
            "# Progress: {title}\n\nVerify: {}\n\n## Codebase Patterns\n(Patterns discovered during implementation)\n\n---\n",
            verify_line(planned)
        );
        let path = self.place.file_to_write(&progress_parts(plan, stage, planned))?;
        create(&path, kept.unwrap_or(redact(&head).as_bytes()))
    }

    /// The progress file of a loop, or of a pipeline's stage (from 1).
    pub fn progress_file(&self, plan: &Plan, stage: u32) -> Result<PathBuf, FilesError> {
        self.place.file(&progress_parts(plan, stage, stage_plan(plan, stage)?))
    }

    /// Where the output of an iteration belongs: `output.md` of a stage with one run, else `run-N.md`. Loops have none.
    pub fn output_file(&self, of: OutputOf<'_>) -> Result<Option<PathBuf>, FilesError> {
        if of.plan.kind == RunKind::Loop {
            return Ok(None);
        }
        self.place.file(&of.parts(&of.name()?)?).map(Some)
    }

    /// Removes the output that a failed attempt left, before the next one starts.
    pub(crate) fn clear_output(&self, of: OutputOf<'_>) -> Result<(), FilesError> {
        let Some(path) = self.output_file(of)? else { return Ok(()) };
        for path in [Some(path), of.single_output(&self.place)?].into_iter().flatten() {
            durable::if_exists(fs_err::remove_file(&path))?;
        }
        Ok(())
    }

    /// The outputs of this run that git replaced by those of a commit.
    pub(crate) fn restored_outputs(&self) -> BTreeSet<PathBuf> {
        let folder = self.place.directory(&[CLAUDE, PIPELINES, &self.name]);
        folder.map(|folder| restored(self.place.root(), &folder)).unwrap_or_default()
    }

    pub(crate) fn set_owed_outputs(&mut self, names: Vec<String>) {
        self.owed_outputs = names;
    }

    /// Saves the output of a committed iteration. A file that the agent wrote itself wins over `text`, without its
    /// secrets. Of several iterations, `output.md` is a copy of the last. Returns the file, or `None` for a loop.
    pub fn save_output(&self, of: OutputOf<'_>, text: &[u8]) -> Result<Option<PathBuf>, FilesError> {
        if of.plan.kind == RunKind::Loop {
            return Ok(None);
        }
        let _lock = Lock::take(&self.place)?;
        let path = self.place.file_to_write(&of.parts(&of.name()?)?)?;
        let last = self.place.file(&of.parts(OUTPUT)?)?;
        let is_there = |path: &Path| path.metadata().is_ok_and(|metadata| metadata.len() > 0);
        if is_there(&path) {
            clean_in_place(&path)?;
        } else {
            match of.single_output(&self.place)?.filter(|single| *single != path && is_there(single)) {
                Some(single) => replace(&path, &without_secrets(bounded::whole(&single, MAX_COPIED)?))?,
                None => replace(&path, text)?,
            }
        }
        if last != path && !has_later(&path, of.iteration) {
            let content = without_secrets(bounded::whole(&path, MAX_COPIED)?);
            if bounded::whole(&last, MAX_COPIED).ok().as_ref() != Some(&content) {
                replace(&last, &content)?;
            }
        }
        Ok(Some(path))
    }
}

/// Removes the secrets from a file that an agent wrote, and makes it its owner's only. One that is too long to be copied
/// keeps its text.
fn clean_in_place(path: &Path) -> Result<(), FilesError> {
    let said = match bounded::whole(path, MAX_COPIED) {
        Ok(said) => said,
        Err(error) if error.kind() == ErrorKind::FileTooLarge => {
            return Ok(fs_err::set_permissions(path, std::fs::Permissions::from_mode(0o600))?);
        }
        Err(error) => return Err(error.into()),
    };
    let clean = without_secrets(said.clone());
    let is_private = path.metadata().is_ok_and(|found| found.permissions().mode() & 0o777 == 0o600);
    if clean == said && is_private { Ok(()) } else { replace(path, &clean) }
}

/// What an agent said, as it is published; bytes that are no text stay as they are.
pub fn without_secrets(said: Vec<u8>) -> Vec<u8> {
    match std::str::from_utf8(&said).map(redact) {
        Ok(Cow::Owned(clean)) => clean.into_bytes(),
        _ => said,
    }
}

/// The progress file of a stage and the output of its first iteration, as paths in the project. Loops have no outputs.
pub(crate) fn first_files(plan: &Plan, number: u32, stage: &StagePlan) -> (String, Option<String>) {
    let output = || in_stage(plan, number, stage, &output_name(stage.runs > 1, 1)).join("/");
    (progress_parts(plan, number, stage).join("/"), (plan.kind == RunKind::Pipeline).then(output))
}

/// Whether the folder of an output has one with a higher number. Parallel iterations end in any order.
fn has_later(path: &Path, iteration: u32) -> bool {
    let Some(entries) = path.parent().and_then(|folder| fs_err::read_dir(folder).ok()) else { return false };
    let number = |name: &str| name.strip_prefix("run-")?.strip_suffix(".md")?.parse::<u32>().ok();
    entries.flatten().any(|entry| entry.file_name().to_str().and_then(number).is_some_and(|it| it > iteration))
}

fn output_name(several: bool, iteration: u32) -> String {
    if several { format!("run-{iteration}.md") } else { OUTPUT.to_owned() }
}

/// The user's verification commands on one line.
fn verify_line(stage: &StagePlan) -> String {
    let commands = stage.completion.leaves().filter_map(|leaf| match leaf {
        Rule::Verify(commands) => Some(commands),
        _ => None,
    });
    let lines: Vec<String> =
        commands.flatten().map(|command| command.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    if lines.is_empty() { "(none)".to_owned() } else { lines.join(" && ") }
}

fn stage_plan(plan: &Plan, stage: u32) -> Result<&StagePlan, FilesError> {
    plan.stage(stage).ok_or_else(|| FilesError::Part { name: format!("stage {stage}") })
}

fn progress_parts(plan: &Plan, number: u32, stage: &StagePlan) -> Vec<String> {
    match plan.kind {
        RunKind::Loop => [CLAUDE, "loop-progress", &format!("progress-{}.txt", plan.name)].map(str::to_owned).to_vec(),
        RunKind::Pipeline => in_stage(plan, number, stage, PROGRESS),
    }
}

fn in_stage(plan: &Plan, number: u32, stage: &StagePlan, file: &str) -> Vec<String> {
    let folder = format!("stage-{number}-{}", stage.name);
    [CLAUDE, PIPELINES, &plan.name, &folder, file].map(str::to_owned).to_vec()
}
