//! The branches and worktrees that a run left behind, and the removal of those without unsaved work.

use std::path::{Path, PathBuf};

use steadfast_model::run::{AttemptId, StagePlan};

use super::{STAYS, Worktree, WorktreeError};
use crate::process::Cancel;

/// Where the work of an iteration is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptWork {
    pub branch: String,
    /// While it exists.
    pub worktree: Option<PathBuf>,
    /// Why it was not removed when the iteration ended.
    pub stays: Option<String>,
}

/// Whether a run ever had worktrees.
pub fn are_there(home: &Path, run_id: &str) -> bool {
    home.join("worktrees").join(run_id).is_dir()
}

/// The worktree of the whole run.
pub(crate) const OF_RUN: &str = "run";

/// Which worktree of its run an iteration works in, if it does not work in the project: its own, that of its lane, or
/// that of the run.
pub(crate) fn part_of(stage: &StagePlan, id: AttemptId) -> String {
    match &stage.lane {
        _ if stage.parallel => format!("{}-{}", id.stage, id.iteration),
        Some(lane) => part_of_lane(lane),
        None => OF_RUN.to_owned(),
    }
}

/// The worktree of a lane. Its name becomes a part of a path and of a branch.
pub(crate) fn part_of_lane(lane: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    format!("lane-{}", lane.chars().map(plain).collect::<String>())
}

/// The branch that an iteration worked on, unless it worked in the project itself.
pub fn kept(home: &Path, run_id: &str, stage: &StagePlan, id: AttemptId) -> Option<KeptWork> {
    let worktree = Worktree::new(home, Path::new(""), run_id, "", &part_of(stage, id));
    let branch = worktree.chosen().ok()??;
    let stays = fs_err::read_to_string(worktree.beside(STAYS)).ok();
    Some(KeptWork { branch, worktree: worktree.path.is_dir().then_some(worktree.path), stays })
}

/// Removes the worktrees of a run that has ended, if all of their work is on branches. The branches stay. Returns the
/// removed worktrees.
pub fn remove_clean(
    home: &Path,
    project: &Path,
    run_id: &str,
    name: &str,
    dry_run: bool,
) -> Result<Vec<PathBuf>, WorktreeError> {
    let Ok(entries) = fs_err::read_dir(home.join("worktrees").join(run_id)) else { return Ok(Vec::new()) };
    let mut removed = Vec::new();
    for entry in entries.flatten() {
        let file = entry.file_name();
        let Some(part) = file.to_str().and_then(|name| name.strip_suffix(".branch")) else { continue };
        let worktree = Worktree::new(home, project, run_id, name, part);
        if !worktree.path.join(".git").exists() {
            continue;
        }
        let guard = worktree.lock(&Cancel::default())?;
        let is_saved = worktree.require_own(&guard).is_ok()
            && worktree.is_on_branch(&guard).unwrap_or(false)
            && worktree.unsaved(&guard).is_ok_and(|why| why.is_none());
        if is_saved {
            if !dry_run {
                worktree.clear(&guard)?;
            }
            removed.push(worktree.path.clone());
        }
    }
    removed.sort();
    Ok(removed)
}
