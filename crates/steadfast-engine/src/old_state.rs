//! Runs that the shell tools before Steadfast left under `.claude`, in the layouts they used over time: one state file for
//! each loop, one for all, and a directory for each run with its outputs and events. Reading changes nothing, and reading
//! again gives the same runs under the same ids. Everything here was written by others: files are bounded, and none
//! outside of the project is read.

mod definition;
mod lanes;
mod read;
mod traces;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;
use steadfast_model::clock::Millis;
use steadfast_model::run::{Plan, RunKind, RunStatus, StageStatus};
use steadfast_model::text::Fingerprint;
use steadfast_store::IterationRow;
use steadfast_system::disk::DiskFault;
use steadfast_system::{bounded, folder, paths};

use self::traces::Traces;

use crate::attempt::Attempt;
use crate::durable;
use crate::files::{self, FilesError, PublicFiles};
use crate::run_folder::RunFolder;

/// More runs than this are not imported at once.
const MOST_RUNS: usize = 10_000;
const MOST_STATE: u64 = 64 << 20;
const MOST_OUTPUT: u64 = 16 << 20;
const PIPELINES: &str = "pipeline-runs";
/// Between the name of a run and a number, in the name of a directory that was set aside.
const SET_ASIDE: &str = ".before-import-";
/// The beginning of the ids of imported runs.
const ID_PREFIX: &str = "imported-";

pub(crate) fn is_imported(run_id: &str) -> bool {
    run_id.starts_with(ID_PREFIX)
}

/// A run of an older tool, in our words.
#[derive(Debug, Clone, PartialEq)]
pub struct OldRun {
    /// The same for the same run, however often it is read.
    pub id: String,
    /// Its state file.
    pub file: PathBuf,
    pub name: String,
    pub kind: RunKind,
    /// The loop type, or the pipeline's name.
    pub title: String,
    pub status: RunStatus,
    pub reason: Option<String>,
    pub started_at_ms: Option<Millis>,
    pub completed_at_ms: Option<Millis>,
    pub max_iterations: Option<u32>,
    pub stages: Vec<OldStage>,
    /// Of all stages; the numbers are those of `stages`, from 1.
    pub iterations: Vec<OldIteration>,
    /// What its agents left for each other, by stage.
    pub progress: BTreeMap<u32, PathBuf>,
    /// Files that its first stage got.
    pub inputs: Vec<PathBuf>,
    pub definition: Option<OldDefinition>,
    /// What had to be guessed or left out.
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OldStage {
    pub name: String,
    pub loop_type: Option<String>,
    pub runs: Option<u32>,
    pub status: StageStatus,
    pub started_at_ms: Option<Millis>,
    pub completed_at_ms: Option<Millis>,
    pub reason: Option<String>,
    place: lanes::StagePlace,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OldIteration {
    pub row: IterationRow,
    pub output: Option<PathBuf>,
}

/// What a pipeline was made of.
#[derive(Debug, Clone, PartialEq)]
pub enum OldDefinition {
    /// The copy of its definition.
    File(PathBuf),
    /// The compiled plan of the newest tool.
    Compiled { file: PathBuf, plan: Value },
}

impl OldDefinition {
    /// The text of a definition that our planner reads; `known` are the loop types that exist.
    pub fn text(&self, project: &Path, known: &[String]) -> Option<String> {
        match self {
            Self::File(path) => bounded::text(path, MOST_OUTPUT).ok(),
            Self::Compiled { plan, .. } => definition::from_plan(plan, project, known),
        }
    }

    pub fn file(&self) -> &Path {
        match self {
            Self::File(path) | Self::Compiled { file: path, .. } => path,
        }
    }
}

/// Everything that can be imported from a project, and what could not be read.
#[derive(Debug, Default, PartialEq)]
pub struct OldState {
    pub runs: Vec<OldRun>,
    pub warnings: Vec<String>,
}

/// Reads the runs of older tools. Our own are left out.
pub fn read(project: &Path) -> Result<OldState, FilesError> {
    let mut found = OldState::default();
    let project = fs_err::canonicalize(project)?;
    let claude = project.join(".claude");
    for name in names_in(&claude)? {
        let is_loop = name.starts_with("loop-state-") && Path::new(&name).extension().is_some_and(|end| end == "json");
        if is_loop || name == "state.json" {
            found.add(&project, &claude.join(&name), None)?;
        }
    }
    let runs = claude.join(PIPELINES);
    for name in names_in(&runs)? {
        let directory = runs.join(&name);
        if directory.join("state.json").exists() {
            found.add(&project, &directory.join("state.json"), Some(&directory))?;
        }
    }
    found.consult_registry(&project)?;
    Ok(found)
}

impl OldState {
    fn add(&mut self, project: &Path, file: &Path, directory: Option<&Path>) -> io::Result<()> {
        if self.runs.len() >= MOST_RUNS {
            return Ok(());
        }
        let shown = file.strip_prefix(project).unwrap_or(file).display().to_string();
        match read_one(project, file, directory) {
            Ok(Some(mut run)) => {
                run.id = id_of(&shown, &run);
                self.runs.push(run);
            }
            Ok(None) => {}
            Err(StateFault::Wrong(why)) => self.warnings.push(format!("`{shown}` {why}")),
            Err(StateFault::Io(error)) => return Err(error),
        }
        Ok(())
    }

    /// The registry knows what the engines never wrote: that a run was killed, and its maximum. A run that says it runs and
    /// has no engine of ours ended unseen.
    fn consult_registry(&mut self, project: &Path) -> Result<(), FilesError> {
        let entries = files::registry(project)?;
        for run in &mut self.runs {
            let key = files::registry_key(run.kind, &run.name);
            let entry = entries.iter().find(|entry| entry.key == key && entry.run_id.is_none());
            let most = entry.and_then(|entry| entry.max_iterations).and_then(|most| u32::try_from(most).ok());
            run.max_iterations = run.max_iterations.or(most);
            // The tool with one state for all loops wrote the type only here.
            if let ([stage], Some(title)) = (&mut run.stages[..], entry.and_then(|entry| entry.title.clone()))
                && run.kind == RunKind::Loop
                && run.title == run.name
            {
                stage.name.clone_from(&title);
                run.title = title;
            }
            if run.status != RunStatus::Running {
                continue;
            }
            let said = entry.and_then(|entry| read::status(&entry.status));
            run.status = said.filter(|said| *said != RunStatus::Running).unwrap_or(RunStatus::UnknownTermination);
        }
        Ok(())
    }
}

/// The run of one state; `None` for ours, which have the id of their run.
fn read_one(project: &Path, file: &Path, directory: Option<&Path>) -> Result<Option<OldRun>, StateFault> {
    let state = json_inside(project, file)?;
    if state.get("run_id").is_some_and(Value::is_string) {
        return Ok(None);
    }
    let traces = Traces::of(project, directory)?;
    let run = read::run(&state, project, file, directory, &traces).map_err(StateFault::Wrong)?;
    traces.take_unreadable().map_or(Ok(Some(run)), |error| Err(error.into()))
}

/// Why a file of an older tool says nothing.
#[derive(Debug)]
enum StateFault {
    /// What is wrong with it.
    Wrong(String),
    /// The machine could not read it now.
    Io(io::Error),
}

impl From<io::Error> for StateFault {
    fn from(error: io::Error) -> Self {
        match DiskFault::of(&error) {
            Some(
                DiskFault::TooManyFiles | DiskFault::TooManyFilesOfMachine | DiskFault::NoMemory | DiskFault::Device,
            ) => Self::Io(error),
            _ => Self::Wrong(format!("cannot be read: {error}")),
        }
    }
}

/// The JSON of a file in the project.
fn json_inside(project: &Path, file: &Path) -> Result<Value, StateFault> {
    let wrong = |why: &str| StateFault::Wrong(why.to_owned());
    let path = inside(project, file)?.ok_or_else(|| wrong("is not in the project"))?;
    let bytes = bounded::whole(&path, MOST_STATE)?;
    serde_json::from_slice(&bytes).map_err(|_| wrong("is broken"))
}

/// The path without links, if it exists and is in the project.
fn inside(project: &Path, path: &Path) -> Result<Option<PathBuf>, StateFault> {
    match path.canonicalize().map_err(StateFault::from) {
        Ok(real) => Ok(Some(real).filter(|real| real.starts_with(project))),
        Err(StateFault::Wrong(_)) => Ok(None),
        Err(fault) => Err(fault),
    }
}

/// A path that a file of the run names, if it is a file in the project.
fn named_file(project: &Path, named: &str) -> Result<Option<PathBuf>, StateFault> {
    Ok(inside(project, &project.join(named))?.filter(|path| path.is_file()))
}

fn names_in(directory: &Path) -> io::Result<Vec<String>> {
    folder::names(directory, MOST_RUNS)
}

/// The path that a state had before `make_room` renamed its directory.
fn first_path(file: &str) -> String {
    match file.split_once(SET_ASIDE) {
        Some((before, after)) => format!("{before}{}", after.trim_start_matches(|c: char| c.is_ascii_digit())),
        None => file.to_owned(),
    }
}

fn id_of(file: &str, run: &OldRun) -> String {
    let mut print = Fingerprint::default();
    for part in [&first_path(file), &run.name, &run.started_at_ms.unwrap_or_default().to_string()] {
        print.add(part.as_bytes());
        print.add(&[0]);
    }
    format!("{ID_PREFIX}{:032x}", print.value())
}

/// Copies what the run needs into its folder: a copy of its state, the outputs of its iterations, and its progress.
/// Doing it again changes nothing. `number_of` is the stage of the plan for one of the old stages.
pub fn keep_files(home: &Path, old: &OldRun, number_of: impl Fn(u32) -> Option<u32>) -> io::Result<()> {
    let folder = RunFolder::at(home, &old.id);
    durable::replace(&folder.path().join("imported-state.json"), &bounded::whole(&old.file, MOST_STATE)?)?;
    for iteration in &old.iterations {
        let (Some(file), Some(stage)) = (&iteration.output, number_of(iteration.row.id.stage)) else { continue };
        let id = steadfast_model::run::AttemptId { stage, ..iteration.row.id };
        let attempt = Attempt::at(home, &old.id, id);
        paths::create_private_dir(attempt.directory())?;
        durable::replace(&attempt.answer(), &bounded::start_of(file, MOST_OUTPUT)?.bytes)?;
    }
    for (stage, file) in &old.progress {
        if let Some(stage) = number_of(*stage) {
            durable::replace(&kept_progress(&folder, stage), &bounded::start_of(file, MOST_OUTPUT)?.bytes)?;
        }
    }
    Ok(())
}

fn kept_progress(folder: &RunFolder, stage: u32) -> PathBuf {
    folder.path().join(format!("progress-{stage}.md"))
}

/// Makes room for the files of an imported run that is resumed: the directory of the older tool, which has the same path
/// and other contents, is renamed. Progress files that were kept are put where agents look for them. Returns the new name
/// of the directory if it was renamed.
pub fn make_room(home: &Path, project: &Path, run_id: &str, plan: &Plan) -> Result<Option<PathBuf>, FilesError> {
    if !is_imported(run_id) {
        return Ok(None);
    }
    let mut renamed = None;
    let directory = project.join(".claude").join(PIPELINES).join(&plan.name);
    if plan.kind == RunKind::Pipeline
        && let Some(real) = durable::if_exists(fs_err::canonicalize(&directory))?
        && real.starts_with(fs_err::canonicalize(project)?)
        && !is_ours(&real)
    {
        let free = (1_u32..).map(|number| directory.with_file_name(format!("{}{SET_ASIDE}{number}", plan.name)));
        if let Some(free) = free.take(1_000).find(|path| !path.exists()) {
            fs_err::rename(&directory, &free)?;
            renamed = Some(free);
        }
    }
    let files = PublicFiles::open(project, plan.kind, &plan.name)?;
    for (stage, _) in (1_u32..).zip(&plan.stages) {
        let path = files.progress_file(plan, stage)?;
        let kept =
            durable::if_exists(bounded::whole(&kept_progress(&RunFolder::at(home, run_id), stage), MOST_OUTPUT))?;
        if let Some(kept) = kept.filter(|_| !path.exists()) {
            fs_err::create_dir_all(path.parent().unwrap_or(project))?;
            durable::replace(&path, &kept)?;
        }
    }
    Ok(renamed)
}

/// Whether Steadfast wrote the state in a directory of a run.
fn is_ours(directory: &Path) -> bool {
    let state = bounded::whole(&directory.join("state.json"), MOST_STATE).ok();
    let state = state.and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    state.is_none_or(|state| state.get("run_id").is_some_and(Value::is_string))
}

#[cfg(test)]
mod tests;
