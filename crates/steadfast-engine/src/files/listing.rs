//! A run's entry in the registry: written when it changes, left alone when a person removed it, and put back when the
//! registry as a whole was lost.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::SystemTime;

use serde_json::{Value, json};
use steadfast_model::run::RunStatus;

use super::document::{Edit, FoundDocument, Lock, registry_epoch};
use super::place::ProjectPlace;
use super::publishing::Shown;
use super::registry::{Mark, Own};
use super::restored::is_restored;
use super::{FileView, FilesError, PublicFiles, registry, registry_key};

/// The entry as this process wrote it last.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) status: RunStatus,
    own: Own,
    /// `None` if a person removed it.
    entry: Option<Value>,
    epoch: Option<SystemTime>,
    /// When a registry with this entry was put in place, in seconds and nanoseconds; `None` if it was there before.
    since: Option<(i64, i64)>,
}

impl Listed {
    /// Whether a missing entry was lost instead of removed: another run had to create the registry anew, or the file was
    /// written before the entry was in it, as by a `jq … > tmp` whose `mv` came later, or git put an older file back.
    fn is_lost(&self, place: &ProjectPlace, registry: &Path) -> Result<bool, FilesError> {
        if registry_epoch(place)? != self.epoch {
            return Ok(true);
        }
        let modified = fs_err::symlink_metadata(registry).map(|metadata| (metadata.mtime(), metadata.mtime_nsec()));
        let is_older = self.since.zip(modified.ok()).is_some_and(|(since, modified)| modified < since);
        Ok(is_older || is_restored(place.root(), registry))
    }
}

/// When a file was renamed into its place.
fn renamed_at(path: &Path) -> Option<(i64, i64)> {
    fs_err::symlink_metadata(path).ok().map(|metadata| (metadata.ctime(), metadata.ctime_nsec()))
}

impl PublicFiles {
    pub(super) fn publish_entry(
        &mut self,
        view: &FileView<'_>,
        shown: &Shown,
        lock: &Lock,
        warnings: &mut Vec<String>,
    ) -> Result<(), FilesError> {
        let key = registry_key(self.kind, &self.name);
        let path = self.registry.path(&self.place)?;
        // An entry that could not be written was never there to be removed.
        let was_shown = shown.run_id.as_deref() == Some(view.run_id) && !shown.owes(registry::FILE);
        let was_written = was_shown || self.listed.is_some();
        let was_reopened = view.run.status == RunStatus::Running && shown.ended;
        let since_ms = self.since_ms.unwrap_or(view.run.started_at_ms);
        let own = Own { run_id: view.run_id.to_owned(), pid: view.pid, since_ms };
        let keep_mark = self.wrote_running() && view.run.status == RunStatus::Running;
        let (entry, is_new) = self.registry.update(&self.place, lock, |found| {
            let (mut value, was_there) = registry_value(found, lock, warnings)?;
            let is_listed = registry::entry(&value, &key).is_some();
            let may_be_removed = was_there && !is_listed && was_written && !was_reopened;
            let is_lost = || match &self.listed {
                Some(listed) => listed.is_lost(&self.place, &path),
                None => Ok(is_restored(self.place.root(), &path)),
            };
            if may_be_removed && !is_lost()? {
                return Ok((Edit::Keep(Some(value)), (None, false)));
            }
            let is_marked = keep_mark && is_marked(&self.place, &path, registry::entry(&value, &key), &own);
            let project = self.place.root().to_string_lossy();
            let changed = registry::write_entry(&mut value, &key, view, &project, is_marked);
            let entry = registry::entry(&value, &key).cloned();
            Ok((Edit::write_if(changed, value), (entry, !is_listed)))
        })?;
        let since = if is_new { renamed_at(&path) } else { self.listed.take().and_then(|listed| listed.since) };
        let epoch = registry_epoch(&self.place)?;
        self.listed = Some(Listed { status: view.run.status, own, entry, epoch, since });
        Ok(())
    }

    pub(super) fn wrote_running(&self) -> bool {
        self.listed.as_ref().is_some_and(|listed| listed.status == RunStatus::Running)
    }

    /// Whether the run's entry was marked as killed by hand since it was written as running. Reads only the metadata of
    /// an unchanged file.
    pub fn is_marked_killed(&mut self) -> Result<bool, FilesError> {
        let key = registry_key(self.kind, &self.name);
        let path = self.registry.path(&self.place)?;
        let registry = self.registry.peek(&self.place)?;
        let entry = registry.and_then(|registry| registry::entry(registry, &key));
        let listed = self.listed.as_ref().filter(|listed| listed.status == RunStatus::Running);
        Ok(listed.is_some_and(|listed| is_marked(&self.place, &path, entry, &listed.own)))
    }

    /// Puts the entry of a running run back if the registry as a whole was lost, or if git put an older entry there.
    /// While the entry is there, this costs a look at the file's metadata. Returns warnings for the user.
    pub fn put_entry_back(&mut self) -> Result<Vec<String>, FilesError> {
        let Some(listed) = self.listed.as_mut().filter(|listed| listed.status == RunStatus::Running) else {
            return Ok(Vec::new());
        };
        let (Some(entry), own) = (listed.entry.clone(), listed.own.clone()) else { return Ok(Vec::new()) };
        let key = registry_key(self.kind, &self.name);
        let path = self.registry.path(&self.place)?;
        let is_listed = match self.registry.peek(&self.place)?.map(|registry| registry::entry(registry, &key)) {
            Some(Some(there)) => !registry::is_stale(there, &own),
            Some(None) => {
                let is_removed = !listed.is_lost(&self.place, &path)?;
                if is_removed {
                    // By a person, and it stays so whatever git does to the file from now on.
                    listed.entry = None;
                }
                is_removed
            }
            None => false,
        };
        // Look twice: an editor may be about to write what it has just emptied.
        if is_listed || !self.missed {
            self.missed = !is_listed;
            return Ok(Vec::new());
        }
        let lock = Lock::take(&self.place)?;
        let mut warnings = Vec::new();
        self.registry.update(&self.place, &lock, |found| {
            let (mut value, _) = registry_value(found, &lock, &mut warnings)?;
            let changed = registry::put_back(&mut value, &key, &entry, &own);
            Ok((Edit::write_if(changed, value), ()))
        })?;
        self.missed = false;
        let (epoch, since) = (registry_epoch(&self.place)?, renamed_at(&path));
        self.listed = Some(Listed { status: RunStatus::Running, own, entry: Some(entry), epoch, since });
        Ok(warnings)
    }
}

/// Whether an entry has a mark of a person. One without a date does not count in a file that git put back.
fn is_marked(place: &ProjectPlace, path: &Path, entry: Option<&Value>, own: &Own) -> bool {
    match entry.map(|entry| registry::mark(entry, own)) {
        Some(Mark::Valid) => true,
        Some(Mark::Undated) => !is_restored(place.root(), path),
        Some(Mark::Absent) | None => false,
    }
}

/// The registry, and whether it was there. One that was missing or broken begins a new epoch.
fn registry_value(found: FoundDocument, lock: &Lock, warnings: &mut Vec<String>) -> Result<(Value, bool), FilesError> {
    let was_there = matches!(found, FoundDocument::Value(_));
    if !was_there {
        lock.begin_registry_epoch()?;
    }
    Ok((found.value_or(json!({"sessions": {}}), warnings), was_there))
}
