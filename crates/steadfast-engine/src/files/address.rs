//! One engine for each name of a project, even with another store or home: a lock file beside the public files, held while
//! the engine lives. It names its holder and is removed with the run; the file of a killed engine is not locked any more
//! and is swept.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::json;
use steadfast_model::run::RunKind;
use steadfast_system::bounded;

use super::document::{CLAUDE, files_named};
use super::place::ProjectPlace;
use super::{FilesError, registry_key};
use crate::{durable, lock};

const PREFIX: &str = ".steadfast-";
const SUFFIX: &str = ".lock";
/// A process that only checks holds the lock for an instant; a child of a killed engine until it execs.
const WAIT: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(10);
const MAX_BYTES: u64 = 4_096;

/// The name of a run in a project, held by this process until it is dropped.
#[derive(Debug)]
pub struct Address {
    path: PathBuf,
    file: File,
    run_id: String,
}

impl Address {
    /// Takes the name again if the lock file was removed, as `git clean` does. Errors are left to the next call.
    pub(crate) fn keep(&mut self) {
        if lock::is_at(&self.file, &self.path).unwrap_or(true) {
            return;
        }
        let Ok(file) = lock::open(&self.path) else { return };
        if lock::try_lock(&file).unwrap_or(false) && lock::is_at(&file, &self.path).unwrap_or(false) {
            // The content only names the holder.
            let _ = name_holder(&file, &self.run_id);
            self.file = file;
        }
    }
}

impl Drop for Address {
    fn drop(&mut self) {
        // The file may be another holder's, after ours was removed.
        if lock::is_at(&self.file, &self.path).unwrap_or(false) {
            // Removed while still locked: a process that has it open sees that it is gone and opens a new one.
            let _ = fs_err::remove_file(&self.path);
        }
    }
}

/// The engine that holds a name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Holder {
    pub pid: Option<i64>,
    pub run_id: Option<String>,
}

/// Takes the name of a run in a project, or returns its holder.
pub fn hold(project: &Path, kind: RunKind, name: &str, run_id: &str) -> Result<Result<Address, Holder>, FilesError> {
    let path = ProjectPlace::of(project)?.file_to_write(&[CLAUDE, &file(kind, name)])?;
    let deadline = Instant::now() + WAIT;
    loop {
        let file = lock::open(&path)?;
        if lock::try_lock(&file)? {
            if lock::is_at(&file, &path)? {
                name_holder(&file, run_id)?;
                return Ok(Ok(Address { path, file, run_id: run_id.to_owned() }));
            }
        } else if Instant::now() > deadline {
            return Ok(Err(read(file)));
        } else {
            std::thread::sleep(PAUSE);
        }
    }
}

/// The engine that holds a name now, if any.
pub fn holder(project: &Path, kind: RunKind, name: &str) -> Result<Option<Holder>, FilesError> {
    let path = ProjectPlace::of(project)?.file(&[CLAUDE, &file(kind, name)])?;
    let Some(lock) = open_existing(&path)? else { return Ok(None) };
    Ok(if lock::try_lock(&lock)? { None } else { Some(read(lock)) })
}

/// Removes lock files of killed engines.
pub(super) fn sweep(place: &ProjectPlace) -> Result<(), FilesError> {
    for path in files_named(&place.directory(&[CLAUDE])?, [PREFIX, SUFFIX]) {
        // Best effort: a leftover does no harm.
        let Ok(Some(file)) = open_existing(&path) else { continue };
        if lock::try_lock(&file).unwrap_or(false) && lock::is_at(&file, &path).unwrap_or(false) {
            let _ = fs_err::remove_file(path);
        }
    }
    Ok(())
}

fn file(kind: RunKind, name: &str) -> String {
    format!("{PREFIX}{}{SUFFIX}", registry_key(kind, name))
}

fn open_existing(path: &Path) -> Result<Option<File>, FilesError> {
    Ok(durable::if_exists(bounded::open(path))?.map(|file| file.into_parts().0))
}

fn name_holder(mut file: &File, run_id: &str) -> std::io::Result<()> {
    let own = Holder { pid: Some(std::process::id().into()), run_id: Some(run_id.to_owned()) };
    file.set_len(0)?;
    file.write_all(format!("{}\n", json!(own)).as_bytes())
}

fn read(file: File) -> Holder {
    let mut text = Vec::new();
    // Best effort: that the lock is held is known, the content only names the holder.
    let _ = file.take(MAX_BYTES).read_to_end(&mut text);
    serde_json::from_slice(&text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_holder_which_is_named_and_leaves_nothing() {
        let project = tempfile::tempdir().unwrap();
        let of = |name: &str| hold(project.path(), RunKind::Loop, name, "run-1").unwrap();
        let look = |kind| holder(project.path(), kind, "one").unwrap();
        assert_eq!(look(RunKind::Loop), None);
        assert!(!project.path().join(".claude").exists(), "checking creates nothing");
        let first = of("one").unwrap();
        let own = Holder { pid: Some(i64::from(std::process::id())), run_id: Some("run-1".into()) };
        assert_eq!(of("one").unwrap_err(), own);
        assert_eq!((look(RunKind::Loop), look(RunKind::Pipeline)), (Some(own), None));
        let other = of("other").unwrap();

        let place = ProjectPlace::of(project.path()).unwrap();
        let left = project.path().join(".claude/.steadfast-loop-killed.lock");
        fs_err::write(&left, "{\"pid\": 1}").unwrap();
        assert_eq!(holder(project.path(), RunKind::Loop, "killed").unwrap(), None);
        sweep(&place).unwrap();
        assert!(!left.exists() && look(RunKind::Loop).is_some());
        // `git clean` removes the file of a live engine.
        let mut first = first;
        fs_err::remove_file(place.file(&[CLAUDE, ".steadfast-loop-one.lock"]).unwrap()).unwrap();
        assert_eq!(look(RunKind::Loop), None);
        first.keep();
        assert_eq!(look(RunKind::Loop).unwrap().run_id.as_deref(), Some("run-1"));
        drop((first, other));
        assert_eq!(look(RunKind::Loop), None);
        assert_eq!(fs_err::read_dir(project.path().join(".claude")).unwrap().count(), 0);
    }
}
