//! Files that agents read and write themselves: progress, outputs of stages, and the copy of a pipeline's definition.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use steadfast_core::run::{Plan, RunKind, StagePlan};

use super::document::{CLAUDE, Lock, create, replace, sweep};
use super::place::Place;
use super::{FilesError, pipeline_state, progress};

const OUTPUT: &str = "output.md";
const DEFINITION: &str = "pipeline.yaml";

/// Writes what is not there yet.
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

pub(super) fn output_file(
    place: &Place,
    plan: &Plan,
    stage: u32,
    iteration: u32,
) -> Result<Option<PathBuf>, FilesError> {
    if plan.kind == RunKind::Loop {
        return Ok(None);
    }
    let definition = stage_plan(plan, stage)?;
    place.file(&as_parts(&in_stage(plan, stage, definition, &output_name(definition, iteration)))).map(Some)
}

pub(super) fn read(path: &Path, most: u64) -> Option<String> {
    let mut bytes = Vec::new();
    fs_err::File::open(path).ok()?.take(most).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

pub(super) fn save(
    place: &Place,
    plan: &Plan,
    stage: u32,
    iteration: u32,
    text: &str,
) -> Result<Option<PathBuf>, FilesError> {
    if plan.kind == RunKind::Loop {
        return Ok(None);
    }
    let definition = stage_plan(plan, stage)?;
    let file = |name: &str| place.file_to_write(&as_parts(&in_stage(plan, stage, definition, name)));
    let _lock = Lock::take(place)?;
    let path = file(&output_name(definition, iteration))?;
    if path.metadata().is_ok_and(|metadata| metadata.len() > 0) {
        // The agent was told this path, and wrote there what it wanted to hand on.
    } else {
        replace(&path, text.as_bytes())?;
    }
    let last = file(OUTPUT)?;
    if last == path {
        return Ok(Some(path));
    }
    // Parallel iterations end in any order.
    let mut later = iteration.saturating_add(1)..=definition.runs;
    let is_last = !definition.parallel
        || !later.any(|later| file(&output_name(definition, later)).is_ok_and(|path| path.exists()));
    if is_last {
        let content = fs_err::read(&path)?;
        if fs_err::read(&last).ok().as_ref() != Some(&content) {
            replace(&last, &content)?;
        }
    }
    Ok(Some(path))
}

fn output_name(stage: &StagePlan, iteration: u32) -> String {
    if stage.runs <= 1 { OUTPUT.to_owned() } else { format!("run-{iteration}.md") }
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
