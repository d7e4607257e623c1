//! Replacing a file that people replace too, without a lock. The stamp is compared right before the rename; where the
//! system can exchange two files, what came out is compared as well and put back if it is an edit. On a busy machine many
//! milliseconds pass between comparing and renaming, so comparing alone loses edits.

use std::fs::Metadata;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use tempfile::NamedTempFile;

use crate::durable::{self, Readers};

/// A file that changes this often at the same moment is not being edited by hand.
const MAX_EXCHANGES: u32 = 1_000;

/// Whether a file is still the one that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stamp {
    inode: (u64, u64),
    modified: (i64, i64),
    pub(super) length: u64,
}

impl Stamp {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            inode: (metadata.dev(), metadata.ino()),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            length: metadata.len(),
        }
    }

    /// Of the file at a path; a link is not followed.
    pub(super) fn at(path: &Path) -> io::Result<Option<Self>> {
        Ok(durable::if_exists(fs_err::symlink_metadata(path))?.as_ref().map(Self::of))
    }
}

/// Replaces the file that was `known`, or creates it. `None` if it was edited meanwhile: the edit stays in place.
pub(super) fn replace(path: &Path, text: &[u8], known: Option<&Stamp>) -> io::Result<Option<Stamp>> {
    let file = durable::write_beside(Readers::Owner, path, text)?;
    let stamp = Stamp::of(&file.as_file().metadata()?);
    if Stamp::at(path)?.as_ref() != known {
        return Ok(None);
    }
    let is_replaced = match known {
        Some(known) => swap_in(file, path, &stamp, known)?,
        None => create(file, path)?,
    };
    if is_replaced {
        durable::sync_beside(path)?;
    }
    Ok(is_replaced.then_some(stamp))
}

fn create(file: NamedTempFile, path: &Path) -> io::Result<bool> {
    match file.persist_noclobber(path) {
        Err(error) if error.error.kind() != ErrorKind::AlreadyExists => {
            Err(durable::at(path, "cannot create", &error.error))
        }
        created => Ok(created.is_ok()),
    }
}

/// Puts a file, `ours`, in the place of the one that was `known`; false if another one was there, which is put back.
#[cfg(target_os = "linux")]
fn swap_in(file: NamedTempFile, path: &Path, ours: &Stamp, known: &Stamp) -> io::Result<bool> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;

    let (mut put, mut expected) = (Some(ours.clone()), Some(known.clone()));
    for tries in 0..MAX_EXCHANGES {
        match renameat_with(CWD, file.path(), CWD, path, RenameFlags::EXCHANGE) {
            Ok(()) => {}
            // Removed meanwhile: the edit that was taken out goes back, ours does not.
            Err(Errno::NOENT) if tries > 0 => return create(file, path).map(|_| false),
            Err(Errno::NOENT) => return Ok(false),
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) if tries == 0 => return rename(file, path),
            Err(error) => return Err(durable::at(path, "cannot replace", &error.into())),
        }
        let out = Stamp::at(file.path())?;
        if out == expected {
            return Ok(tries == 0);
        }
        (expected, put) = (put, out);
    }
    Ok(false)
}

#[cfg(not(target_os = "linux"))]
fn swap_in(file: NamedTempFile, path: &Path, _ours: &Stamp, _known: &Stamp) -> io::Result<bool> {
    rename(file, path)
}

fn rename(file: NamedTempFile, path: &Path) -> io::Result<bool> {
    file.persist(path).map(|_| true).map_err(|error| durable::at(path, "cannot replace", &error.error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_only_if_it_is_the_one_that_was_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let read = || fs_err::read_to_string(&path).unwrap();
        let ours = replace(&path, b"ours", None).unwrap().unwrap();
        assert_eq!((read(), Stamp::at(&path).unwrap().unwrap()), ("ours".to_owned(), ours.clone()));
        assert_eq!(replace(&path, b"again", None).unwrap(), None, "it is there");

        fs_err::write(directory.path().join("theirs"), "theirs").unwrap();
        fs_err::rename(directory.path().join("theirs"), &path).unwrap();
        assert_eq!(replace(&path, b"ours again", Some(&ours)).unwrap(), None);
        // The same when the edit comes after the check.
        for gone in [false, true] {
            if gone {
                fs_err::remove_file(&path).unwrap();
            }
            let file = durable::write_beside(Readers::Project, &path, b"late").unwrap();
            let late = Stamp::of(&file.as_file().metadata().unwrap());
            assert!(!swap_in(file, &path, &late, &ours).unwrap());
            assert_eq!(path.exists().then(read), (!gone).then(|| "theirs".to_owned()));
        }
        let file = durable::write_beside(Readers::Project, &path, b"late").unwrap();
        assert!(create(file, &path).unwrap());
        let known = Stamp::at(&path).unwrap().unwrap();
        assert!(replace(&path, b"in time", Some(&known)).unwrap().is_some());
        assert_eq!((read(), fs_err::read_dir(directory.path()).unwrap().count()), ("in time".to_owned(), 1));
    }
}
