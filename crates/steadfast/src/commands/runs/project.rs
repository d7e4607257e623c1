//! The project that a command about runs means. In a subdirectory it is the directory above that has runs or
//! definitions, or the root of the git repository: a second `.claude` there would hide the runs of the first.

use std::path::{Path, PathBuf};

use steadfast_system::env_vars;

/// What shows that a directory has runs or definitions.
const SIGNS: [&str; 4] = ["loops", "pipelines", "loop-sessions.json", "pipeline-runs"];

/// The project of a directory; the directory itself if none is above it.
pub(super) fn of(directory: &Path) -> PathBuf {
    let home = env_vars::path(env_vars::USER_HOME).and_then(|home| home.canonicalize().ok());
    let has_runs = |place: &Path| SIGNS.iter().any(|sign| place.join(".claude").join(sign).exists());
    for place in directory.ancestors() {
        // The `.claude` of the home directory is the client's own, unless the user works there.
        let is_home = home.as_deref() == Some(place) && place != directory;
        if !is_home && (has_runs(place) || place.join(".git").exists()) {
            return place.to_owned();
        }
    }
    directory.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_project_is_the_nearest_directory_with_runs_or_the_repository() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        let deep = root.join("repo/part/deep");
        fs_err::create_dir_all(&deep).unwrap();
        assert_eq!(of(&deep), deep);
        fs_err::create_dir_all(root.join("repo/.git")).unwrap();
        assert_eq!(of(&deep), root.join("repo"));
        // Settings of a client are no runs.
        fs_err::create_dir_all(root.join("repo/part/.claude/agents")).unwrap();
        assert_eq!(of(&deep), root.join("repo"));
        fs_err::create_dir_all(root.join("repo/part/.claude/pipeline-runs")).unwrap();
        assert_eq!(of(&deep), root.join("repo/part"));
        // Another repository, or a worktree, has runs of its own.
        fs_err::write(deep.join(".git"), "gitdir: elsewhere").unwrap();
        assert_eq!(of(&deep), deep);
    }
}
