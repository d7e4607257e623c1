//! Paths of the public files of a project. Every component is checked: a link that leaves the project, or a directory
//! where a file belongs, is refused, because the repository and the agents that work in it must not decide where
//! Steadfast writes.

use std::fs::FileType;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::FilesError;
use crate::durable::if_exists;

/// A project's directory, with links resolved.
#[derive(Debug, Clone)]
pub(super) struct ProjectPlace {
    root: PathBuf,
}

impl ProjectPlace {
    pub(super) fn of(project: &Path) -> Result<Self, FilesError> {
        let root = fs_err::canonicalize(project)?;
        if !root.is_dir() {
            return Err(FilesError::NotADirectory { path: root });
        }
        Ok(Self { root })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The path of a file, whether or not it exists. Creates nothing.
    pub(super) fn file(&self, parts: &[impl AsRef<str>]) -> Result<PathBuf, FilesError> {
        self.walk(parts, false)
    }

    /// The path of a file that is about to be written. Creates its directories.
    pub(super) fn file_to_write(&self, parts: &[impl AsRef<str>]) -> Result<PathBuf, FilesError> {
        self.walk(parts, true)
    }

    /// The path of a directory, whether or not it exists.
    pub(super) fn directory(&self, parts: &[impl AsRef<str>]) -> Result<PathBuf, FilesError> {
        self.enter(parts, false)
    }

    fn walk(&self, parts: &[impl AsRef<str>], make: bool) -> Result<PathBuf, FilesError> {
        let Some((name, directories)) = parts.split_last() else {
            return Err(FilesError::Part { name: String::new() });
        };
        let path = self.enter(directories, make)?.join(checked(name.as_ref())?);
        match self.resolve(&path)? {
            None => Ok(path),
            Some((path, kind)) if kind.is_file() => Ok(path),
            Some((path, _)) => Err(FilesError::NotAFile { path }),
        }
    }

    fn enter(&self, parts: &[impl AsRef<str>], make: bool) -> Result<PathBuf, FilesError> {
        let mut at = self.root.clone();
        for part in parts {
            at.push(checked(part.as_ref())?);
            match self.resolve(&at)? {
                Some((path, kind)) if kind.is_dir() => at = path,
                Some((path, _)) => return Err(FilesError::NotADirectory { path }),
                None if make => match fs_err::create_dir(&at) {
                    Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error.into()),
                    _ => {}
                },
                None => {}
            }
        }
        Ok(at)
    }

    /// Where a path leads and what is there; `None` if nothing is.
    fn resolve(&self, path: &Path) -> Result<Option<(PathBuf, FileType)>, FilesError> {
        let Some(metadata) = if_exists(fs_err::symlink_metadata(path))? else { return Ok(None) };
        if !metadata.is_symlink() {
            return Ok(Some((path.to_owned(), metadata.file_type())));
        }
        let leaves = || FilesError::LeavesProject { path: path.to_owned() };
        // A dangling link is refused too: its target could be created outside.
        let target = fs_err::canonicalize(path).map_err(|_| leaves())?;
        if !target.starts_with(&self.root) {
            return Err(leaves());
        }
        let kind = fs_err::symlink_metadata(&target)?.file_type();
        Ok(Some((target, kind)))
    }
}

/// A single path component that is not empty, `.` or `..`.
fn checked(part: &str) -> Result<&str, FilesError> {
    let plain = !matches!(part, "" | "." | "..") && !part.contains(['/', '\\', '\0']) && part.len() <= 255;
    if plain { Ok(part) } else { Err(FilesError::Part { name: part.to_owned() }) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn paths_stay_in_the_project() {
        let world = tempfile::tempdir().unwrap();
        let project = world.path().join("project");
        fs_err::create_dir_all(project.join("inside")).unwrap();
        fs_err::create_dir(world.path().join("outside")).unwrap();
        let place = ProjectPlace::of(&project).unwrap();
        let root = place.root().to_owned();

        assert_eq!(place.file(&[".claude", "x.json"]).unwrap(), root.join(".claude/x.json"));
        assert!(!root.join(".claude").exists(), "asking makes nothing");
        for name in ["..", "../x", "a/b", "", ".", "x\0y", "a\\b"] {
            assert!(matches!(place.file(&[".claude", name]), Err(FilesError::Part { .. })), "{name:?}");
        }

        symlink("inside", project.join(".claude")).unwrap();
        assert_eq!(place.file_to_write(&[".claude", "x.json"]).unwrap(), root.join("inside/x.json"));
        for target in ["../outside", "/etc", "nowhere"] {
            fs_err::remove_file(project.join(".claude")).unwrap();
            symlink(target, project.join(".claude")).unwrap();
            let refused = place.file_to_write(&[".claude", "x.json"]);
            assert!(matches!(refused, Err(FilesError::LeavesProject { .. })), "{target}: {refused:?}");
        }
        fs_err::remove_file(project.join(".claude")).unwrap();

        fs_err::create_dir_all(project.join(".claude/x.json")).unwrap();
        assert!(matches!(place.file(&[".claude", "x.json"]), Err(FilesError::NotAFile { .. })));
        symlink("/etc/passwd", project.join(".claude/y.json")).unwrap();
        assert!(matches!(place.file(&[".claude", "y.json"]), Err(FilesError::LeavesProject { .. })));
        fs_err::write(project.join(".claude/loop-progress"), "").unwrap();
        let refused = place.file_to_write(&[".claude", "loop-progress", "p.txt"]);
        assert!(matches!(refused, Err(FilesError::NotADirectory { .. })), "{refused:?}");
    }
}
