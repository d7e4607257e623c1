//! Looks for files and lists folders. What does not exist is absent; what cannot be looked at is an error, because a
//! caller that takes it for absent goes on without it.

use std::fs::Metadata;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// What is at a path, behind links, if there is something.
pub fn entry(path: &Path) -> io::Result<Option<Metadata>> {
    unless_absent(fs_err::metadata(path))
}

pub fn is_file(path: &Path) -> io::Result<bool> {
    Ok(entry(path)?.is_some_and(|found| found.is_file()))
}

/// What is in a folder, sorted; of more than `most`, any of them. Nothing if there is no such folder.
pub fn paths(folder: &Path, most: usize) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in unless_absent(fs_err::read_dir(folder))?.into_iter().flatten().take(most) {
        paths.push(entry?.path());
    }
    paths.sort();
    Ok(paths)
}

/// The names in a folder that are text.
pub fn names(folder: &Path, most: usize) -> io::Result<Vec<String>> {
    let paths = paths(folder, most)?;
    Ok(paths.iter().filter_map(|path| path.file_name()?.to_str()).map(str::to_owned).collect())
}

fn unless_absent<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_folder_is_empty_and_one_that_cannot_be_listed_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs_err::write(at("b"), "").unwrap();
        fs_err::write(at("a"), "").unwrap();
        assert_eq!(names(directory.path(), 9).unwrap(), ["a", "b"]);
        assert_eq!(names(directory.path(), 1).unwrap().len(), 1);
        assert!(names(&at("none"), 9).unwrap().is_empty());
        assert!(names(&at("a/below"), 9).unwrap().is_empty());
        assert!(is_file(&at("a")).unwrap());
        assert!(!is_file(directory.path()).unwrap());
        assert!(!is_file(&at("none")).unwrap());

        // Root may read everything, so permissions would not do.
        std::os::unix::fs::symlink("round", at("round")).unwrap();
        assert!(names(&at("round"), 9).is_err());
        assert!(is_file(&at("round/file")).is_err());
    }
}
