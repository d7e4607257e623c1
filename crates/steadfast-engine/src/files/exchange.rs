//! Replacing a file that people replace, too, without asking for a lock. The new file is whole and on the disk before
//! the last look at the old one; where the system can exchange two files, what came out is looked at as well, and put
//! back if it is not what was read. So an edit by hand is never overwritten unseen.

use std::fs::Metadata;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use tempfile::NamedTempFile;

use super::FilesError;
use crate::durable::{self, Readers};

/// Whoever replaces a file this often at the same moment is not editing it.
const TRIES: u32 = 1_000;

/// Whether a file is still the one we know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stamp {
    inode: (u64, u64),
    modified: Option<SystemTime>,
    pub(super) length: u64,
}

impl Stamp {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self { inode: (metadata.dev(), metadata.ino()), modified: metadata.modified().ok(), length: metadata.len() }
    }

    /// Of what is there now; a link is not followed.
    fn at(path: &Path) -> io::Result<Option<Self>> {
        match fs_err::symlink_metadata(path) {
            Ok(metadata) => Ok(Some(Self::of(&metadata))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// When something of ours was put in a file's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Placed {
    inode: (u64, u64),
    at: SystemTime,
}

impl Placed {
    /// Of the file that was put there just now: the rename is its last change.
    pub(super) fn now(path: &Path) -> Option<Self> {
        let metadata = fs_err::symlink_metadata(path).ok()?;
        let since = Duration::new(metadata.ctime().try_into().ok()?, metadata.ctime_nsec().try_into().ok()?);
        Some(Self { inode: Stamp::of(&metadata).inode, at: SystemTime::UNIX_EPOCH.checked_add(since)? })
    }

    /// Whether what is there now was begun before that, as by somebody whose `jq … > tmp` read the file as it was and
    /// whose `mv` came after us. Unknown where the system does not tell when a file was made.
    pub(super) fn is_older_there(&self, path: &Path) -> bool {
        fs_err::symlink_metadata(path).is_ok_and(|metadata| {
            Stamp::of(&metadata).inode != self.inode && metadata.created().is_ok_and(|made| made < self.at)
        })
    }
}

/// Replaces the file that was `known`, or creates one where none was. `None` if somebody changed it meanwhile: then
/// theirs is in its place and nothing of ours is left.
pub(super) fn replace(path: &Path, text: &[u8], known: Option<&Stamp>) -> Result<Option<Stamp>, FilesError> {
    let file = durable::write_beside(Readers::Project, path, text)?;
    let stamp = Stamp::of(&file.as_file().metadata()?);
    // From here on, every moment counts.
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
        Ok(_) => Ok(true),
        Err(error) if error.error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error.error),
    }
}

/// Puts a file, `ours`, in the place of the one that was `known`; whether that is what it replaced.
fn swap_in(file: NamedTempFile, path: &Path, ours: &Stamp, known: &Stamp) -> io::Result<bool> {
    match exchange(file.path(), path)? {
        Exchanged::Gone => return Ok(false),
        // Nothing better than the look a moment ago.
        Exchanged::Unsupported => return file.persist(path).map(|_| true).map_err(|error| error.error),
        Exchanged::Done => {}
    }
    let mut came_out = Stamp::at(file.path())?;
    if came_out.as_ref() == Some(known) {
        return Ok(true);
    }
    // Somebody's edit came out. It goes back, and so does whatever was put over ours in the meantime.
    let mut placed = Some(ours.clone());
    for _ in 0..TRIES {
        if !matches!(exchange(file.path(), path)?, Exchanged::Done) {
            create(file, path)?;
            break;
        }
        let put_back = came_out;
        came_out = Stamp::at(file.path())?;
        if came_out == placed {
            break;
        }
        placed = put_back;
    }
    Ok(false)
}

enum Exchanged {
    Done,
    /// There is nothing to exchange it with any more.
    Gone,
    Unsupported,
}

#[cfg(target_os = "linux")]
fn exchange(one: &Path, other: &Path) -> io::Result<Exchanged> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;

    match renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(Exchanged::Done),
        Err(Errno::NOENT) => Ok(Exchanged::Gone),
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Ok(Exchanged::Unsupported),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn exchange(_one: &Path, _other: &Path) -> io::Result<Exchanged> {
    Ok(Exchanged::Unsupported)
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
        // The same when the last look came too early to see it.
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
