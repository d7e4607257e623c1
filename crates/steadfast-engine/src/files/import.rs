//! Runs that the shell tools before Steadfast left under `.claude`, in the layouts they used over time: one state file
//! for each loop, one for everybody, and a directory for each run. Read only: the files stay as they are, and reading
//! them again gives the same runs under the same ids, so that whoever stores them can tell what is there already.

use std::path::{Path, PathBuf};

use serde_json::Value;
use steadfast_model::clock::Millis;
use steadfast_model::run::{RunKind, RunStatus};
use steadfast_model::text::Fingerprint;
use steadfast_store::IterationRow;
use steadfast_system::bounded;

use super::document::{self, CLAUDE, Document};
use super::place::Place;
use super::{FilesError, loop_state, pipeline_state, progress, registry};

mod read;

/// More runs than this are not imported at once.
const MOST_RUNS: usize = 10_000;
/// A longer progress file stays where it is.
const MOST_PROGRESS: u64 = 16 << 20;

/// A run of somebody else's, in our words.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The same for the same run, however often it is read.
    pub id: String,
    /// The file it was read from.
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
    /// The stage it was at, from 1.
    pub stage: u32,
    pub stages: Vec<ImportedStage>,
    pub iterations: Vec<IterationRow>,
    /// What its agents left for each other, where the tool had it and we do not.
    pub progress: Option<PathBuf>,
    /// What had to be guessed.
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedStage {
    pub name: String,
    pub loop_type: Option<String>,
    pub runs: Option<u32>,
    /// `completed`, `running` or `failed`.
    pub status: String,
    pub started_at_ms: Option<Millis>,
    pub completed_at_ms: Option<Millis>,
    pub reason: Option<String>,
}

/// Everything that can be imported from a project, and what could not be read.
#[derive(Debug, Default, PartialEq)]
pub struct Import {
    pub runs: Vec<Imported>,
    pub warnings: Vec<String>,
}

/// Reads the runs of older tools. Our own are left out.
pub fn import(project: &Path) -> Result<Import, FilesError> {
    let place = Place::of(project)?;
    let mut import = Import::default();
    let claude = place.directory(&[CLAUDE])?;
    for name in names_in(&claude) {
        let is_loop = name.strip_prefix("loop-state-").and_then(|rest| rest.strip_suffix(".json")).is_some();
        if is_loop || name == "state.json" {
            import.add(&place, &[CLAUDE, &name]);
        }
    }
    let runs = place.directory(&[CLAUDE, pipeline_state::DIRECTORY])?;
    for name in names_in(&runs) {
        if runs.join(&name).is_dir() {
            import.add(&place, &[CLAUDE, pipeline_state::DIRECTORY, &name, pipeline_state::FILE]);
        }
    }
    import.look_at_registry(&place);
    Ok(import)
}

impl Import {
    fn add(&mut self, place: &Place, parts: &[&str]) {
        if self.runs.len() >= MOST_RUNS {
            return;
        }
        let mut document = Document::new(parts, Value::is_object);
        let shown = parts.join("/");
        let state = match document.path(place).and_then(|path| Ok((path, document.peek(place)?.cloned()))) {
            Ok((path, Some(state))) => Some((path, state)),
            Ok((path, None)) => {
                if path.exists() {
                    self.warnings.push(format!("`{shown}` is broken"));
                }
                None
            }
            Err(error) => {
                self.warnings.push(error.to_string());
                None
            }
        };
        let Some((path, state)) = state else { return };
        // Entries of ours carry the id of their run.
        if state.get("run_id").is_some_and(Value::is_string) {
            return;
        }
        match read::run(&state, parts) {
            Ok(mut run) => {
                run.id = id_of(&shown, &run);
                run.file = path;
                run.progress = progress_of(place, &run);
                self.runs.push(run);
            }
            Err(why) => self.warnings.push(format!("`{shown}` {why}")),
        }
    }

    /// The registry knows what the engines never wrote: that a run was killed. What still says that it runs and has no
    /// engine of ours ended in a way that nobody saw.
    fn look_at_registry(&mut self, place: &Place) {
        let mut document = Document::new(&[CLAUDE, registry::FILE], registry::is_registry);
        let registry = document.peek(place).ok().flatten().cloned().unwrap_or_default();
        for run in &mut self.runs {
            let entry = registry::entry(&registry, &registry::registry_key(run.kind, &run.name));
            let entry = entry.filter(|entry| entry.get("run_id").is_none());
            // Their states say nothing of it.
            let most = || entry.and_then(|entry| read::number(entry, "max_iterations"));
            run.max_iterations = run.max_iterations.or_else(most);
            if run.status != RunStatus::Running {
                continue;
            }
            let text = |name: &str| entry.and_then(|entry| entry.get(name)).and_then(Value::as_str);
            let told = text("status").and_then(read::status);
            if let Some(status) = told.filter(|status| *status != RunStatus::Running) {
                run.status = status;
                let ended = text("killed_at").or_else(|| text("completed_at"));
                run.completed_at_ms = run.completed_at_ms.or_else(|| ended.and_then(read::moment));
            } else {
                run.status = RunStatus::UnknownTermination;
                run.warnings.push("it says that it runs; nobody saw how it ended".into());
            }
        }
    }
}

/// Where the tools kept the progress of a loop, if it is anywhere but where we do.
fn progress_of(place: &Place, run: &Imported) -> Option<PathBuf> {
    if run.kind != RunKind::Loop {
        return None;
    }
    let file = format!("progress-{}.md", run.name);
    let places = [&[CLAUDE, &file][..], &[CLAUDE, pipeline_state::DIRECTORY, &run.name, &file]];
    places.into_iter().filter_map(|parts| place.file(parts).ok()).find(|path| path.is_file())
}

/// Copies the progress of an imported loop to where our agents look for it; whether it did. What is there stays.
pub fn bring_progress(project: &Path, run: &Imported) -> Result<bool, FilesError> {
    let Some(old) = &run.progress else { return Ok(false) };
    let text = bounded::whole(old, MOST_PROGRESS)?;
    let path = Place::of(project)?.file_to_write(&[CLAUDE, progress::DIRECTORY, &progress::file(&run.name)])?;
    document::create(&path, &text)
}

fn names_in(directory: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut names: Vec<String> = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names.truncate(MOST_RUNS);
    names
}

fn id_of(file: &str, run: &Imported) -> String {
    let mut print = Fingerprint::default();
    for part in [file, &run.name, &run.started_at_ms.unwrap_or_default().to_string()] {
        print.add(part.as_bytes());
        print.add(&[0]);
    }
    format!("imported-{:032x}", print.value())
}

/// The name that a loop's state file says it is of.
fn loop_of(file: &str) -> Option<&str> {
    let name = file.strip_prefix("loop-state-")?.strip_suffix(".json")?;
    (loop_state::file(name) == file).then_some(name)
}

#[cfg(test)]
mod tests;
