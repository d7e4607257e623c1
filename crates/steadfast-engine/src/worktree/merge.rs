//! Merging branches of a run into the branch that is checked out where a stage works: one after the other, never by
//! force. What is under way is recorded first. So everything can be repeated after a crash, and only a merge that was
//! begun here is continued, finished or aborted.

mod cut_off;
mod place;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use steadfast_model::text;
use steadfast_system::bounded;

use self::place::MergePlace;
use super::Worktree;
use super::git::{FALLBACK, Git, Guard, WorktreeError};
use crate::crash::{self, CrashPoint};
use crate::durable;
use crate::process::Cancel;
use crate::run_folder::RunFolder;

const MERGE: [&str; 6] = ["-c", "rerere.autoUpdate=false", "merge", "--no-ff", "--no-edit", "--no-autostash"];
/// Longer records and conflicting files are not read.
const RECORD_BYTES: u64 = 4 << 20;
const FILE_BYTES: u64 = 16 << 20;
const MOST_LISTED: u64 = 16 << 20;
/// How many conflicting files are recorded, and how many files a message names.
const MOST_FILES: usize = 1_000;
const MOST_NAMED: usize = 3;

/// What is merged now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct MergeRecord {
    directory: PathBuf,
    branch: String,
    /// The commit that was checked out before.
    before: String,
    /// The commit that is merged.
    tip: String,
    /// The files with conflicts.
    files: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Merged {
    All,
    /// Git stopped at this branch, and left conflicts in these files.
    Conflict {
        branch: String,
        files: Vec<String>,
    },
}

/// The merge of one stage of a run.
#[derive(Debug, Clone)]
pub(crate) struct Merge {
    /// Where the worktrees of the run and their lock are.
    worktrees: PathBuf,
    record: PathBuf,
    worktree: Option<Worktree>,
}

impl Merge {
    /// `worktree` is where the stage works, if not in the project.
    pub(crate) fn new(home: &Path, run_id: &str, stage: u32, worktree: Option<Worktree>) -> Self {
        let record = RunFolder::at(home, run_id).merge_record(stage);
        Self { worktrees: home.join("worktrees").join(run_id), record, worktree }
    }

    /// Merges branches in their order into what is checked out in a directory. Those that are merged are skipped.
    pub(crate) fn begin(
        &self,
        directory: &Path,
        branches: &[String],
        cancel: &Cancel,
    ) -> Result<Merged, WorktreeError> {
        let guard = Guard::take(&self.worktrees, cancel)?;
        let place = MergePlace { guard: &guard, directory, worktree: self.worktree.as_ref() };
        if let Some(conflict) = self.resume(&place)? {
            return Ok(conflict);
        }
        for branch in branches {
            let full = full_name(branch);
            if place.has(&full)? {
                continue;
            }
            place.require_clean()?;
            let record = MergeRecord {
                directory: directory.to_owned(),
                branch: branch.clone(),
                before: place.commit_of("HEAD")?,
                tip: place.commit_of(&full)?,
                files: Vec::new(),
            };
            self.save(&record)?;
            crash::point(CrashPoint::MergeBegun);
            if let Some(conflict) = self.merge_one(&place, &record)? {
                return Ok(conflict);
            }
            durable::sync_file_system(directory)?;
            crash::point(CrashPoint::BranchMerged);
        }
        self.forget()?;
        Ok(Merged::All)
    }

    /// Continues a merge of an earlier attempt, or finishes one that had no conflict.
    fn resume(&self, place: &MergePlace<'_>) -> Result<Option<Merged>, WorktreeError> {
        let (record, head) = (self.read()?, place.merge_head());
        if record.is_some() {
            place.remove_stale_locks(&self.record)?;
        }
        match (record, head) {
            (None, None) => Ok(None),
            (Some(record), Some(head)) if record.tip == head => {
                let files = place.unmerged()?;
                // The agent has resolved them, and the merge is not committed.
                let files = if files.is_empty() { record.files.clone() } else { files };
                if files.is_empty() {
                    place.commit()?;
                    durable::sync_file_system(place.directory)?;
                    return Ok(None);
                }
                self.conflict(record, files).map(Some)
            }
            (_, Some(_)) => Err(WorktreeError::OtherMerge(place.directory.to_owned())),
            (Some(record), None) => {
                if record.directory == place.directory {
                    if place.commit_of("HEAD")? == record.before {
                        cut_off::take_back(place, &record)?;
                    } else {
                        cut_off::complete(place, &record)?;
                        durable::sync_file_system(place.directory)?;
                    }
                }
                self.forget()?;
                Ok(None)
            }
        }
    }

    fn merge_one(&self, place: &MergePlace<'_>, record: &MergeRecord) -> Result<Option<Merged>, WorktreeError> {
        let full = full_name(&record.branch);
        let message = format!("Merge branch '{}'", record.branch);
        let merge = [&MERGE[..], &["-m", &message, &full]].concat();
        let merged = place.git(&merge).or_else(|error| match place.merge_head() {
            None => place.git(&[&FALLBACK[..], &merge].concat()),
            Some(_) => Err(error),
        });
        let Err(error) = merged else { return Ok(None) };
        if place.merge_head().as_ref() != Some(&record.tip) {
            self.forget()?;
            return Err(error);
        }
        let files = place.unmerged()?;
        if files.is_empty() {
            place.commit()?;
            return Ok(None);
        }
        self.conflict(record.clone(), files).map(Some)
    }

    fn conflict(&self, record: MergeRecord, mut files: Vec<String>) -> Result<Merged, WorktreeError> {
        files.truncate(MOST_FILES);
        let branch = record.branch.clone();
        self.save(&MergeRecord { files: files.clone(), ..record })?;
        crash::point(CrashPoint::MergeConflict);
        Ok(Merged::Conflict { branch, files })
    }

    /// Why the merge that was handed to an agent is not done, if it is not.
    pub(crate) fn not_done(&self, directory: &Path) -> Result<Option<String>, WorktreeError> {
        let Some(record) = self.read()? else { return Ok(None) };
        let guard = Guard::take(&self.worktrees, &Cancel::default())?;
        let place = MergePlace { guard: &guard, directory, worktree: self.worktree.as_ref() };
        let branch = &record.branch;
        let unmerged = place.unmerged()?;
        if !unmerged.is_empty() {
            return Ok(Some(format!("conflicts are not resolved: {}", named(&unmerged))));
        }
        if place.merge_head().is_some() {
            return Ok(Some(format!("the merge of {branch} is not committed")));
        }
        let marked = place.marked(&record)?;
        if !marked.is_empty() {
            return Ok(Some(format!("conflict markers are left in {}", named(&marked))));
        }
        let is_merged = place.has(&record.tip)?;
        Ok((!is_merged).then(|| format!("{branch} is not merged")))
    }

    /// Aborts a merge that is in progress, so that the files are as before. Returns its branch and where it was.
    pub(crate) fn abort(&self) -> Result<Option<(String, PathBuf)>, WorktreeError> {
        let Some(record) = self.read()? else { return Ok(None) };
        let guard = Guard::take(&self.worktrees, &Cancel::default())?;
        let place = MergePlace { guard: &guard, directory: &record.directory, worktree: self.worktree.as_ref() };
        let is_begun = record.directory.is_dir() && place.commit_of("HEAD").is_ok_and(|head| head == record.before);
        if is_begun {
            place.remove_stale_locks(&self.record)?;
        }
        let head = place.merge_head().filter(|_| is_begun);
        let is_ours = head.as_ref() == Some(&record.tip);
        if is_ours {
            place.git(&["merge", "--abort"])?;
            crash::point(CrashPoint::MergeAborted);
        } else if is_begun && head.is_none() {
            cut_off::take_back(&place, &record)?;
        }
        self.forget()?;
        Ok(is_ours.then_some((record.branch, record.directory)))
    }

    fn read(&self) -> Result<Option<MergeRecord>, WorktreeError> {
        let Some(bytes) = durable::if_exists(bounded::whole(&self.record, RECORD_BYTES))? else { return Ok(None) };
        // An agent can reach the file. Without it, only a merge that is in progress is not ours any more.
        Ok(serde_json::from_slice(&bytes).ok())
    }

    fn save(&self, record: &MergeRecord) -> Result<(), WorktreeError> {
        Ok(durable::replace(&self.record, durable::json(record).as_bytes())?)
    }

    fn forget(&self) -> Result<(), WorktreeError> {
        durable::if_exists(fs_err::remove_file(&self.record))?;
        Ok(())
    }
}

/// Those of these branches that are not merged into what is checked out in a directory.
pub(crate) fn not_merged(directory: &Path, branches: &[String]) -> Result<Vec<String>, WorktreeError> {
    let mut left = Vec::new();
    for branch in branches {
        if !has(Git::reading(directory), &full_name(branch))? {
            left.push(branch.clone());
        }
    }
    Ok(left)
}

fn full_name(branch: &str) -> String {
    format!("refs/heads/{branch}")
}

/// Whether the commit that is checked out contains another one. A missing one is an error.
fn has(git: Git<'_>, commit: &str) -> Result<bool, WorktreeError> {
    let arguments = ["merge-base", "--is-ancestor", commit, "HEAD"];
    match git.capture(&arguments, 0)?.exit_code {
        Some(0) => Ok(true),
        Some(1) => Ok(false),
        _ => git.text(&arguments).map(|_| false),
    }
}

/// The first of several names.
fn named(files: &[String]) -> String {
    let shown: Vec<String> = files.iter().take(MOST_NAMED).map(|file| text::headline(file, 100)).collect();
    let more = files.len().saturating_sub(shown.len());
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("{}{more}", shown.join(", "))
}

#[cfg(test)]
mod tests;
