//! Which directories are one project: a git repository with its subdirectories and all its worktrees, else a directory
//! alone. Only files of git are looked at, no program is run, and what they say is only compared.

use std::path::{Path, PathBuf};

use crate::bounded;

/// No path that git writes is longer.
const READ_MOST: u64 = 8_192;

/// The key of the project that a directory belongs to, the same for all its directories. A directory that is gone
/// belongs where the nearest one above it does.
pub fn key(directory: &Path) -> PathBuf {
    let there = directory.ancestors().find_map(|path| fs_err::canonicalize(path).ok());
    let repository = there.as_deref().and_then(|there| there.ancestors().find_map(repository_at));
    repository.unwrap_or_else(|| fs_err::canonicalize(directory).unwrap_or_else(|_| directory.to_owned()))
}

/// The directory that all worktrees of the repository share, if `directory` is the top of one.
fn repository_at(directory: &Path) -> Option<PathBuf> {
    let git = directory.join(".git");
    if git.is_dir() {
        return fs_err::canonicalize(git).ok();
    }
    // A worktree or submodule: the file names the directory, which names the shared one.
    let line = first_line(&git)?;
    let own = directory.join(line.strip_prefix("gitdir:")?.trim());
    let shared = first_line(&own.join("commondir")).map_or_else(|| own.clone(), |shared| own.join(shared));
    fs_err::canonicalize(shared).ok()
}

fn first_line(path: &Path) -> Option<String> {
    let text = String::from_utf8(bounded::start_of(path, READ_MOST).ok()?.bytes).ok()?;
    text.lines().next().map(|line| line.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(path: PathBuf, text: &str) {
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
    }

    #[test]
    fn a_repository_its_subdirectories_and_its_worktrees_are_one_project() {
        let root = tempfile::TempDir::new().unwrap();
        let top = fs_err::canonicalize(root.path()).unwrap();
        let git = top.join("web/.git");
        put(git.join("worktrees/fix/commondir"), "../..\n");
        put(top.join("fix/.git"), &format!("gitdir: {}\n", git.join("worktrees/fix").display()));
        put(top.join("web/src/main.rs"), "");
        put(top.join("other/readme"), "");
        std::os::unix::fs::symlink(top.join("web"), top.join("link")).unwrap();
        for inside in ["web", "web/src", "web/gone/deeper", "fix", "link/src"] {
            assert_eq!(key(&top.join(inside)), git, "{inside}");
        }
        assert_eq!(key(&top.join("other")), top.join("other"));
        assert_eq!(key(&top.join("gone")), top.join("gone"));
    }

    #[test]
    fn a_broken_git_file_makes_a_directory_its_own_project() {
        let root = tempfile::TempDir::new().unwrap();
        let top = fs_err::canonicalize(root.path()).unwrap();
        for text in ["", "gitdir: ", "gitdir: /nowhere/at/all", "nonsense", "\0\0"] {
            put(top.join(".git"), text);
            let found = key(&top);
            assert!(found == top || found.starts_with(&top), "{text:?}: {found:?}");
        }
    }
}
