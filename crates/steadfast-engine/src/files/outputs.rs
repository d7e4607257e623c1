//! Files that agents read and write: progress, outputs of stages, and the copy of a pipeline's definition.

use std::path::{Path, PathBuf};

use steadfast_model::run::{Plan, Run, RunKind, StagePlan};
use steadfast_system::bounded;

use super::document::{CLAUDE, Lock, create, replace, sweep};
use super::place::Place;
use super::{FilesError, pipeline_state, progress};

const OUTPUT: &str = "output.md";
const DEFINITION: &str = "pipeline.yaml";
/// A longer output is not copied.
const MAX_COPIED: u64 = 64 << 20;

/// Creates the files that are missing.
pub(super) fn prepare(place: &Place, plan: &Plan, definition: Option<&str>, lock: &Lock) -> Result<(), FilesError> {
    if plan.kind == RunKind::Loop {
        let path = place.file_to_write(&as_parts(&loop_progress(plan)))?;
        sweep_beside(&path, lock);
        create(&path, progress::of_loop(plan).as_bytes())?;
        return Ok(());
    }
    let parts = [CLAUDE, pipeline_state::DIRECTORY, &plan.name];
    sweep(&place.directory(&parts)?, lock);
    if let Some(definition) = definition {
        let path = place.file_to_write(&[&parts[..], &[DEFINITION]].concat())?;
        create(&path, definition.as_bytes())?;
    }
    for (number, stage) in (1_u32..).zip(&plan.stages) {
        let path = place.file_to_write(&as_parts(&in_stage(plan, number, stage, progress::STAGE_FILE)))?;
        sweep_beside(&path, lock);
        create(&path, progress::of_stage(plan, stage).as_bytes())?;
    }
    Ok(())
}

/// Creates one progress file if it is missing.
pub(super) fn ensure_progress(place: &Place, plan: &Plan, stage: u32) -> Result<(), FilesError> {
    let (parts, head) = match plan.kind {
        RunKind::Loop => (loop_progress(plan), progress::of_loop(plan)),
        RunKind::Pipeline => {
            let planned = stage_plan(plan, stage)?;
            (in_stage(plan, stage, planned, progress::STAGE_FILE), progress::of_stage(plan, planned))
        }
    };
    create(&place.file_to_write(&as_parts(&parts))?, head.as_bytes())
}

fn sweep_beside(path: &Path, lock: &Lock) {
    if let Some(directory) = path.parent() {
        sweep(directory, lock);
    }
}

pub(super) fn progress_file(place: &Place, plan: &Plan, stage: u32) -> Result<PathBuf, FilesError> {
    let parts = match plan.kind {
        RunKind::Loop => loop_progress(plan),
        RunKind::Pipeline => in_stage(plan, stage, stage_plan(plan, stage)?, progress::STAGE_FILE),
    };
    place.file(&as_parts(&parts))
}

/// The iteration that an output belongs to. The run has the maximum, which can have grown when it was resumed.
#[derive(Debug, Clone, Copy)]
pub struct OutputOf<'a> {
    pub plan: &'a Plan,
    pub run: &'a Run,
    pub stage: u32,
    pub iteration: u32,
}

impl OutputOf<'_> {
    /// The path of a file in the stage's folder.
    fn parts(&self, file: &str) -> Result<Vec<String>, FilesError> {
        Ok(in_stage(self.plan, self.stage, stage_plan(self.plan, self.stage)?, file))
    }

    fn name(&self) -> Result<String, FilesError> {
        let planned = stage_plan(self.plan, self.stage)?.runs;
        let several = planned.max(self.run.max_iterations(self.plan, self.stage)) > 1;
        Ok(output_name(several, self.iteration))
    }

    fn file(&self, place: &Place, name: &str) -> Result<PathBuf, FilesError> {
        place.file(&as_parts(&self.parts(name)?))
    }

    /// `output.md` if it still belongs to this iteration: the first of a stage that was resumed with a larger maximum.
    fn single_output(&self, place: &Place) -> Result<Option<PathBuf>, FilesError> {
        let was_single = stage_plan(self.plan, self.stage)?.runs <= 1 && self.iteration == 1;
        let path = self.file(place, OUTPUT)?;
        Ok(Some(path).filter(|path| was_single && !has_later(path, self.iteration)))
    }
}

/// Whether the folder of an output has one with a higher number. Parallel iterations end in any order.
fn has_later(path: &Path, iteration: u32) -> bool {
    let Some(entries) = path.parent().and_then(|folder| std::fs::read_dir(folder).ok()) else { return false };
    let number = |name: &str| name.strip_prefix("run-")?.strip_suffix(".md")?.parse::<u32>().ok();
    entries.flatten().any(|entry| entry.file_name().to_str().and_then(number).is_some_and(|it| it > iteration))
}

pub(super) fn output_file(place: &Place, of: OutputOf<'_>) -> Result<Option<PathBuf>, FilesError> {
    if of.plan.kind == RunKind::Loop {
        return Ok(None);
    }
    of.file(place, &of.name()?).map(Some)
}

/// Removes what an earlier attempt left where the output belongs.
pub(super) fn clear(place: &Place, of: OutputOf<'_>) -> Result<(), FilesError> {
    let Some(path) = output_file(place, of)? else { return Ok(()) };
    for path in [Some(path), of.single_output(place)?].into_iter().flatten() {
        match fs_err::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
}

pub(super) fn save(place: &Place, of: OutputOf<'_>, text: &str) -> Result<Option<PathBuf>, FilesError> {
    if of.plan.kind == RunKind::Loop {
        return Ok(None);
    }
    let _lock = Lock::take(place)?;
    let path = place.file_to_write(&as_parts(&of.parts(&of.name()?)?))?;
    let last = of.file(place, OUTPUT)?;
    let is_there = |path: &Path| path.metadata().is_ok_and(|metadata| metadata.len() > 0);
    // A file that the agent wrote itself is its output.
    if !is_there(&path) {
        match of.single_output(place)?.filter(|single| *single != path && is_there(single)) {
            Some(single) => replace(&path, &bounded::whole(&single, MAX_COPIED)?)?,
            None => replace(&path, text.as_bytes())?,
        }
    }
    if last != path && !has_later(&path, of.iteration) {
        let content = bounded::whole(&path, MAX_COPIED)?;
        if bounded::whole(&last, MAX_COPIED).ok().as_ref() != Some(&content) {
            replace(&last, &content)?;
        }
    }
    Ok(Some(path))
}

fn output_name(several: bool, iteration: u32) -> String {
    if several { format!("run-{iteration}.md") } else { OUTPUT.to_owned() }
}

/// The progress file of a stage and the output of its first iteration, as paths in the project. Loops have no outputs.
pub(crate) fn first_files(plan: &Plan, number: u32, stage: &StagePlan) -> (String, Option<String>) {
    match plan.kind {
        RunKind::Loop => (loop_progress(plan).join("/"), None),
        RunKind::Pipeline => {
            let path = |file: &str| in_stage(plan, number, stage, file).join("/");
            (path(progress::STAGE_FILE), Some(path(&output_name(stage.runs > 1, 1))))
        }
    }
}

fn stage_plan(plan: &Plan, stage: u32) -> Result<&StagePlan, FilesError> {
    let at = usize::try_from(stage).ok().and_then(|stage| stage.checked_sub(1));
    at.and_then(|at| plan.stages.get(at)).ok_or_else(|| FilesError::Part { name: format!("stage {stage}") })
}

fn loop_progress(plan: &Plan) -> Vec<String> {
    vec![CLAUDE.to_owned(), progress::DIRECTORY.to_owned(), progress::file(&plan.name)]
}

fn in_stage(plan: &Plan, number: u32, stage: &StagePlan, file: &str) -> Vec<String> {
    let folder = pipeline_state::stage_folder(number, &stage.name);
    [CLAUDE, pipeline_state::DIRECTORY, &plan.name, &folder, file].map(str::to_owned).to_vec()
}

fn as_parts(parts: &[String]) -> Vec<&str> {
    parts.iter().map(String::as_str).collect()
}
