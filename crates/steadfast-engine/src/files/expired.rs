//! Public files of runs that ended long ago and that the store no longer has. What a person or another tool wrote or
//! changed since stays, and so does a state that another store wrote or that names no run.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::Value;
use steadfast_model::clock::{self, Millis};
use steadfast_model::run::RunKind;
use steadfast_model::run::name::RunName;

use super::document::{CLAUDE, Document, Lock, files_named};
use super::{FilesError, PIPELINES, ProjectPlace, address};
use crate::durable;

/// How long after the end of a run its files are written, by an engine that waited for room or the next one.
const PUBLISHED_WITHIN: Millis = clock::DAY;

/// Which files to remove.
#[derive(Clone, Copy)]
pub struct Expiry<'a> {
    pub kind: RunKind,
    /// Only of runs that ended before this.
    pub before_ms: Millis,
    /// The store's `file_id`.
    pub store_id: &'a str,
    /// Whether that store has a run of this id.
    pub is_known: &'a dyn Fn(&str) -> bool,
    /// Remove nothing, only return what would be removed.
    pub dry_run: bool,
}

/// Removes the public files of runs that are gone. Returns their paths, and what could not be removed.
pub fn remove_expired(project: &Path, expiry: Expiry<'_>) -> Result<(Vec<PathBuf>, Vec<FilesError>), FilesError> {
    let place = ProjectPlace::of(project)?;
    let (mut removed, mut problems) = (Vec::new(), Vec::new());
    for name in names(&place, expiry.kind)? {
        if let Err(error) = remove_files_of(&place, &name, expiry, &mut removed) {
            problems.push(error);
        }
    }
    Ok((removed, problems))
}

fn remove_files_of(
    place: &ProjectPlace,
    name: &str,
    expiry: Expiry<'_>,
    removed: &mut Vec<PathBuf>,
) -> Result<(), FilesError> {
    if expired_end(place, name, expiry)?.is_none() {
        return Ok(());
    }
    // The run may begin anew before the lock is taken.
    let lock = if expiry.dry_run { None } else { Some(Lock::take(place)?) };
    let Some(ended) = expired_end(place, name, expiry)? else { return Ok(()) };
    // Views write the state again long after the end, and who edits anything edits the other files.
    let is_unchanged = |path: &PathBuf| {
        let is_state = path.extension().is_some_and(|extension| extension == "json");
        is_older(path, if is_state { expiry.before_ms } else { ended + PUBLISHED_WITHIN })
    };
    for path in files_of(place, expiry.kind, name)?.into_iter().filter(is_unchanged) {
        if lock.is_some() {
            durable::if_exists(fs_err::remove_file(&path))?;
            remove_empty_folders(place, expiry.kind, &path)?;
        }
        removed.push(path);
    }
    Ok(())
}

/// The names of the state files of a kind, those of pipelines that were moved aside included.
fn names(place: &ProjectPlace, kind: RunKind) -> Result<Vec<String>, FilesError> {
    let name_of = |path: PathBuf| path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
    let names: Vec<String> = match kind {
        RunKind::Loop => files_named(&place.directory(&[CLAUDE])?, LOOP_STATE)
            .filter_map(name_of)
            .filter_map(|name| Some(name.strip_prefix(LOOP_STATE[0])?.strip_suffix(LOOP_STATE[1])?.to_owned()))
            .collect(),
        RunKind::Pipeline => {
            files_named(&place.directory(&[CLAUDE, PIPELINES])?, ["", ""]).filter_map(name_of).collect()
        }
    };
    Ok(names.into_iter().filter(|name| name.parse::<RunName>().is_ok()).collect())
}

/// Around the name of a loop.
const LOOP_STATE: [&str; 2] = ["loop-state-", ".json"];

/// When a run ended, if its state shows that this was long ago and that it is of this store, the store no longer has it,
/// and no engine holds its name.
fn expired_end(place: &ProjectPlace, name: &str, expiry: Expiry<'_>) -> Result<Option<Millis>, FilesError> {
    let mut document = match expiry.kind {
        RunKind::Loop => Document::new(&[CLAUDE, &LOOP_STATE.join(name)], Value::is_object),
        RunKind::Pipeline => Document::new(&[CLAUDE, PIPELINES, name, "state.json"], Value::is_object),
    };
    // A directory or a link in place of the file is not ours.
    let Ok(Some(state)) = document.peek(place) else { return Ok(None) };
    let text = |field: &str| state.get(field).and_then(Value::as_str);
    let (Some(run_id), Some(status), Some(session)) = (text("run_id"), text("status"), text("session")) else {
        return Ok(None);
    };
    let ended = text("completed_at").and_then(clock::parse_rfc3339).filter(|ended| *ended < expiry.before_ms);
    let is_ours = text(super::state::STORE_ID) == Some(expiry.store_id);
    if status == "running" || !is_ours || (expiry.is_known)(run_id) || session.parse::<RunName>().is_err() {
        return Ok(None);
    }
    Ok(if address::holder(place.root(), expiry.kind, session)?.is_none() { ended } else { None })
}

/// The files of a run that Steadfast writes, the state last: without it, the others are not found again.
fn files_of(place: &ProjectPlace, kind: RunKind, name: &str) -> Result<Vec<PathBuf>, FilesError> {
    let inside = |parts: &[&str]| -> Result<Vec<PathBuf>, FilesError> {
        Ok(files_named(&place.directory(parts)?, ["", ""]).collect())
    };
    let mut files = Vec::new();
    match kind {
        RunKind::Loop => {
            files.extend(inside(&[CLAUDE, "loop-progress", &format!("artifacts-{name}")])?);
            files.push(place.file(&[CLAUDE, "loop-progress", &format!("progress-{name}.txt")])?);
            files.push(place.file(&[CLAUDE, &LOOP_STATE.join(name)])?);
        }
        RunKind::Pipeline => {
            files.extend(inside(&[CLAUDE, PIPELINES, name, "artifacts"])?);
            for stage in inside(&[CLAUDE, PIPELINES, name])? {
                let Some(folder) = file_name(&stage).filter(|folder| folder.starts_with("stage-")) else { continue };
                files.extend(inside(&[CLAUDE, PIPELINES, name, folder])?.into_iter().filter(|path| is_of_stage(path)));
            }
            files.push(place.file(&[CLAUDE, PIPELINES, name, "pipeline.yaml"])?);
            files.push(place.file(&[CLAUDE, PIPELINES, name, "state.json"])?);
        }
    }
    Ok(files)
}

fn file_name(path: &Path) -> Option<&str> {
    path.file_name().and_then(|name| name.to_str())
}

fn is_of_stage(path: &Path) -> bool {
    let is_run = |name: &str| name.strip_prefix("run-").is_some_and(|rest| rest.strip_suffix(".md").is_some());
    file_name(path).is_some_and(|name| ["progress.md", "output.md"].contains(&name) || is_run(name))
}

/// Whether a plain file was changed last before a moment. The moment is in the time of the file system here.
fn is_older(path: &Path, before_ms: Millis) -> bool {
    let before = u64::try_from(before_ms).map(|before| SystemTime::UNIX_EPOCH + Duration::from_millis(before));
    let changed =
        path.symlink_metadata().ok().filter(std::fs::Metadata::is_file).and_then(|found| found.modified().ok());
    before.ok().zip(changed).is_some_and(|(before, changed)| changed < before)
}

/// Removes the folders of a file that are empty now, up to those of all runs.
fn remove_empty_folders(place: &ProjectPlace, kind: RunKind, path: &Path) -> Result<(), FilesError> {
    let top = match kind {
        RunKind::Loop => place.directory(&[CLAUDE, "loop-progress"])?,
        RunKind::Pipeline => place.directory(&[CLAUDE, PIPELINES])?,
    };
    let folders = path.ancestors().skip(1).take_while(|folder| folder.starts_with(&top) && **folder != top);
    for folder in folders {
        // A folder with files stays.
        if std::fs::remove_dir(folder).is_err() {
            break;
        }
    }
    Ok(())
}
