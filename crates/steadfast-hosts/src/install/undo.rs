//! Uninstall: what a file would contain if setup had never changed it.

use std::path::{Path, absolute};

use super::apply::read;
use super::json::{JsonDocument, same_members};
use super::manifest::{Manifest, ManifestContent, ManifestEntry};
use super::setup::DB;
use super::{Access, FileChange, InstallError, InstallPlan, codex_config};
use crate::adapter;
use steadfast_model::host::Host;

/// A file without our part, and the keys that the user has changed since.
pub(crate) struct Undone {
    pub(crate) text: Option<String>,
    pub(crate) kept: Vec<String>,
}

/// Unchanged since setup: the original bytes. Changed since: the file as it is now, minus what is still ours.
pub(crate) fn undo(entry: &ManifestEntry, current: Option<String>) -> Result<Undone, InstallError> {
    let path = &entry.path;
    let mut kept = Vec::new();
    let text = match (&entry.content, current) {
        (_, current) if current == entry.before => current,
        (_, current) if current == entry.after => entry.before.clone(),
        (_, None) => None,
        // A file below our own home is ours even if edited; elsewhere an edited file is the user's.
        (ManifestContent::Whole, Some(_)) if entry.config_dir.is_none() => entry.before.clone(),
        (ManifestContent::Whole, edited) => {
            kept.push("the whole file".to_owned());
            edited
        }
        (ManifestContent::Json { edits, empty }, Some(text)) => {
            let nothing = empty.to_string();
            let before = JsonDocument::parse(path, entry.before.as_deref().or(Some(&nothing)))?;
            let mut document = JsonDocument::parse(path, Some(&text))?;
            let untouched = document.root.clone();
            kept = document.undo(path, edits, &before)?;
            if same_members(&document.root, &before.root) {
                // Only the layout differs, because the client rewrote the file: restore the user's own, or remove the file.
                entry.before.clone()
            } else if document.root == untouched {
                Some(text)
            } else {
                Some(document.render())
            }
        }
        (ManifestContent::Toml { db }, Some(text)) => {
            let mut document = codex_config::parse(path, Some(&text))?;
            // Another value is the user's and stays.
            if document.get(DB).and_then(|item| item.as_str()) == Some(db) {
                document.remove(DB);
            }
            let rest = document.to_string();
            (entry.before.is_some() || !rest.trim().is_empty()).then_some(rest)
        }
        (ManifestContent::Codex(edits), Some(text)) => {
            let (rest, theirs) = codex_config::without(path, &text, edits, entry.before.as_deref())?;
            kept = theirs;
            rest
        }
    };
    Ok(Undone { text, kept })
}

/// Plans the removal of everything set up for this configuration directory, and of what all of them share if it is the last.
/// `gone` are the hosts that the same command has already removed.
pub fn plan_uninstall(home: &Path, host: Host, config_dir: &Path, gone: &[Host]) -> Result<InstallPlan, InstallError> {
    let (home, config_dir) = (absolute(home)?, absolute(config_dir)?);
    let manifest_path = Manifest::path(&home, host.name());
    let (manifest, manifest_text) = Manifest::load(&home, host.name())?;
    let other_hosts = Manifest::load_others(&home, &[gone, &[host]].concat())?;
    let mut plan = InstallPlan::default();
    let is_here = |entry: &ManifestEntry| entry.config_dir.as_ref() == Some(&config_dir);
    if !manifest.files.iter().any(is_here) {
        plan.notes.push(format!("nothing is set up for {}", config_dir.display()));
        return Ok(plan);
    }
    let others_remain = manifest.files.iter().any(|entry| entry.config_dir.is_some() && !is_here(entry));
    let (leaving, staying) = manifest
        .files
        .into_iter()
        .partition::<Vec<_>, _>(|entry| is_here(entry) || (entry.config_dir.is_none() && !others_remain));

    // Registration first, the plugin's files last: a client that starts in between must not find a dangling marketplace.
    for entry in leaving.iter().rev() {
        let shared = entry.config_dir.is_none() && other_hosts.iter().any(|other| other.entry(&entry.path).is_some());
        if !shared {
            plan.undo(entry)?;
        }
    }
    let mut rest = Manifest { files: staying, ..manifest };
    rest.refused.retain(|(dir, _)| *dir != config_dir);
    plan.remove_dirs = [rest.dirs.clone(), (adapter(host).directories_made_for_us)(&config_dir)].concat();
    plan.remove_dirs.sort_by_key(|dir| std::cmp::Reverse(dir.components().count()));
    // The manifest goes last, so that an interrupted uninstall can be repeated.
    plan.push(FileChange {
        after: if others_remain { Some(rest.render(&manifest_path)?) } else { None },
        path: manifest_path,
        before: manifest_text,
        access: Access::Private,
    });
    Ok(plan)
}

impl InstallPlan {
    /// Plans the restoration of one file and records what stays.
    pub(crate) fn undo(&mut self, entry: &ManifestEntry) -> Result<(), InstallError> {
        let current = read(&entry.path)?;
        let undone = undo(entry, current.clone())?;
        for kept in undone.kept {
            self.notes.push(format!("kept {kept} in {}: changed since setup", entry.path.display()));
        }
        self.push(FileChange { path: entry.path.clone(), before: current, after: undone.text, access: access(entry) });
        Ok(())
    }
}

pub(crate) fn access(entry: &ManifestEntry) -> Access {
    if entry.config_dir.is_some() { Access::Inherited } else { Access::Private }
}
