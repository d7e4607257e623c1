//! Looks after what keeps the state files out of git while a run works: the lines in `info/exclude`, which an agent may
//! delete, and, where there is no repository, an ignore file of ours for the one that an agent may begin. That file
//! ignores itself too, and is written only where there is none.

use std::path::{Path, PathBuf};

use steadfast_system::bounded;

use super::FilesError;
use super::document::CLAUDE;
use super::exchange::{self, Stamp};
use super::exclude::{Lines, exclude, nearest_git};
use super::place::ProjectPlace;
use crate::durable::{self, Readers, if_exists};

const IGNORE: &str = ".gitignore";
/// A longer file is not ours.
const MAX_BYTES: u64 = 1 << 20;

/// What the last look found. While it stays the same, nothing has to be done.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    git: Option<PathBuf>,
    /// The file that keeps the state files out.
    file: PathBuf,
    stamp: Option<Stamp>,
}

/// Keeps the state files of one project out of git.
#[derive(Debug)]
pub(crate) struct GitGuard {
    project: PathBuf,
    seen: Option<Seen>,
}

impl GitGuard {
    pub(crate) fn of(project: &Path) -> Self {
        Self { project: project.to_owned(), seen: None }
    }

    /// Makes sure that git ignores the state files; returns notes for the user. Cheap while nothing changed.
    pub(crate) fn look(&mut self) -> Vec<String> {
        let git = nearest_git(&self.project);
        let is_same = |seen: &Seen| seen.git == git && stamp(&seen.file) == seen.stamp;
        if self.seen.as_ref().is_some_and(is_same) {
            return Vec::new();
        }
        // Taken before the file is written: the next look sees our own change and makes sure of it.
        let before = self.seen.take().map(|seen| (stamp(&seen.file), seen.file));
        let (file, notes) = match exclude(&self.project) {
            Ok(Some(excluded)) => excluded,
            Ok(None) => match self.ignore() {
                // A repository that git cannot read yet is looked at again once it changed.
                Ok(file) => (git.clone().unwrap_or(file), Vec::new()),
                Err(error) => (self.project.join(CLAUDE).join(IGNORE), vec![unprepared(&error)]),
            },
            // Another process writes the file.
            Err(_) => return Vec::new(),
        };
        let stamp = before.filter(|(_, path)| *path == file).and_then(|(stamp, _)| stamp);
        self.seen = Some(Seen { git, file, stamp });
        notes
    }

    /// Writes our ignore file if there is none; returns its path.
    fn ignore(&self) -> Result<PathBuf, FilesError> {
        let folder = ProjectPlace::of(&self.project)?;
        let path = folder.directory(&[CLAUDE])?.join(IGNORE);
        if stamp(&path).is_none() {
            let path = folder.file_to_write(&[CLAUDE, IGNORE])?;
            exchange::replace(&path, &Lines::beside(IGNORE).added(b""), None)?;
        }
        Ok(path)
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    Stamp::at(path).ok().flatten()
}

fn unprepared(error: &FilesError) -> String {
    format!("`git init` and `git add` would commit the state files of runs: cannot write `{CLAUDE}/{IGNORE}`: {error}")
}

/// Removes our ignore file, or our lines if a person added others; returns the file if it had them.
pub fn stop_ignoring(project: &Path, dry_run: bool) -> Result<Option<PathBuf>, FilesError> {
    // A link that leaves the project is not ours.
    let Ok(folder) = ProjectPlace::of(project).and_then(|place| place.directory(&[CLAUDE])) else { return Ok(None) };
    let path = folder.join(IGNORE);
    if !path.symlink_metadata().is_ok_and(|metadata| metadata.is_file()) {
        return Ok(None);
    }
    let Some(before) = if_exists(bounded::whole(&path, MAX_BYTES))? else { return Ok(None) };
    let after = Lines::beside(IGNORE).removed(&before);
    if after == before {
        return Ok(None);
    }
    if dry_run {
        return Ok(Some(path));
    }
    if after.is_empty() {
        fs_err::remove_file(&path)?;
    } else {
        durable::replace_for(Readers::Project, &path, &after)?;
    }
    Ok(Some(path))
}
