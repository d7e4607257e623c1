//! Deletes branches that runs left behind once their work is merged. A branch that is needed again, because its run is
//! resumed, begins at HEAD then, which has the work.

use std::path::Path;

use super::git::{Git, WorktreeError};
use super::{BRANCH, Worktree};
use crate::process::Cancel;

/// The branches of a run that has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MergedBranches {
    pub deleted: Vec<String>,
    /// With the reason.
    pub kept: Vec<(String, String)>,
}

/// Deletes the branches of a run that has ended, if the current branch of the project has all of their work.
pub fn remove_merged(
    home: &Path,
    project: &Path,
    run_id: &str,
    name: &str,
    dry_run: bool,
) -> Result<MergedBranches, WorktreeError> {
    let mut branches = MergedBranches::default();
    let Ok(entries) = fs_err::read_dir(home.join("worktrees").join(run_id)) else { return Ok(branches) };
    let mut parts: Vec<String> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.strip_suffix(&format!(".{BRANCH}")).map(str::to_owned))
        .collect();
    parts.sort();
    for part in parts {
        let worktree = Worktree::new(home, project, run_id, name, &part);
        let Some(branch) = worktree.chosen()? else { continue };
        let guard = worktree.lock(&Cancel::default())?;
        let git = Git::locked(&guard, project);
        let (own, former) = (format!("refs/heads/{branch}"), format!("refs/heads/{branch}-former-*"));
        let found = git.text(&["for-each-ref", "--format=%(refname:strip=2)", &own, &former])?;
        for branch in found.lines() {
            let full = format!("refs/heads/{branch}");
            if git.text(&["merge-base", "--is-ancestor", &full, "HEAD"]).is_err() {
                branches.kept.push((branch.to_owned(), "not merged into the current branch".to_owned()));
                continue;
            }
            // Git refuses a branch that is checked out somewhere, and one whose remote branch has not got its work.
            let deleted =
                if dry_run { Ok(String::new()) } else { git.text(&["branch", "--quiet", "-d", "--", branch]) };
            match deleted {
                Ok(_) => branches.deleted.push(branch.to_owned()),
                Err(error) => branches.kept.push((branch.to_owned(), error.to_string())),
            }
        }
    }
    Ok(branches)
}
