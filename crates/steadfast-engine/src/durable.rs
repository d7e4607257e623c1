//! Files that are there whole or not at all, also after a crash. Unless they are for the project, only their owner can
//! read them.

use std::fs::{File, Metadata, Permissions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use fs_err::os::unix::fs::OpenOptionsExt as _;
use tempfile::NamedTempFile;

/// What to do where files cannot be locked.
pub const LOCK_HINT: &str = "put `STEADFAST_HOME` and the project on local file systems";
/// How a file that is not whole yet is called, beside the one that it will replace.
pub(crate) const UNFINISHED: [&str; 2] = [".steadfast-", ".tmp"];

/// Who may read a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    Owner,
    /// Whoever could read the file that is replaced; of a new one, everybody whom the umask lets.
    Project,
}

/// Replaces a file that only its owner can read: written beside it, brought to the disk, renamed.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    replace_for(Readers::Owner, path, content).map(|_| ())
}

/// Replaces a file, and tells what it is now.
pub(crate) fn replace_for(readers: Readers, path: &Path, content: &[u8]) -> io::Result<Metadata> {
    let file = put_in_place(write_beside(readers, path, content)?, path)?;
    sync_beside(path)?;
    file.metadata()
}

/// Replaces a file that only processes of this run of the machine need: after a power cut nobody asks for it.
pub(crate) fn hand_over(path: &Path, content: &[u8]) -> io::Result<()> {
    put_in_place(unforced_beside(Readers::Owner, path, content)?, path).map(|_| ())
}

/// Writes what is to replace a file, whole and on the disk. It goes again unless somebody puts it in its place.
pub(crate) fn write_beside(readers: Readers, path: &Path, content: &[u8]) -> io::Result<NamedTempFile> {
    let file = unforced_beside(readers, path, content)?;
    file.as_file().sync_all()?;
    Ok(file)
}

fn put_in_place(file: NamedTempFile, path: &Path) -> io::Result<File> {
    file.persist(path).map_err(|error| at(path, "cannot replace", &error.error))
}

fn unforced_beside(readers: Readers, path: &Path, content: &[u8]) -> io::Result<NamedTempFile> {
    let directory = directory_of(path);
    let [prefix, suffix] = UNFINISHED;
    let mut builder = tempfile::Builder::new();
    builder.prefix(prefix).suffix(suffix);
    if readers == Readers::Project {
        // Without this it is private.
        builder.permissions(Permissions::from_mode(0o666));
    }
    let mut file = builder.tempfile_in(directory).map_err(|error| at(directory, "cannot create a file in", &error))?;
    if readers == Readers::Project
        && let Ok(metadata) = std::fs::metadata(path)
    {
        file.as_file().set_permissions(metadata.permissions())?;
    }
    file.write_all(content)?;
    Ok(file)
}

/// Brings it to the disk that a file took the place of another.
pub(crate) fn sync_beside(path: &Path) -> io::Result<()> {
    sync_directory(directory_of(path))
}

fn directory_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}

fn at(path: &Path, what: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what} `{}`: {error}", path.display()))
}

/// Creates an empty file that says something by being there.
pub(crate) fn mark(path: &Path) -> io::Result<()> {
    let mut options = fs_err::OpenOptions::new();
    options.create(true).append(true).mode(0o600).open(path)?.sync_all()?;
    sync_directory(directory_of(path))
}

/// Opens a file to add to it, creating it if need be.
pub(crate) fn open_to_append(path: &Path) -> io::Result<fs_err::File> {
    fs_err::OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

/// Opens a lock file, creating it if need be. What is in it means nothing.
pub(crate) fn open_lock(path: &Path) -> io::Result<File> {
    let file = fs_err::OpenOptions::new().create(true).append(true).read(true).mode(0o600).open(path)?;
    Ok(file.into_parts().0)
}

/// Takes the lock of a file if nobody has it; tells whether it did. A file system that knows no locks is an error: as
/// somebody else's lock it would never go away.
pub(crate) fn try_lock(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(std::fs::TryLockError::WouldBlock) => Ok(false),
        Err(std::fs::TryLockError::Error(error)) => {
            Err(io::Error::new(ErrorKind::Unsupported, format!("files cannot be locked here: {error}")))
        }
    }
}

/// A rename is on the disk once its directory is.
fn sync_directory(directory: &Path) -> io::Result<()> {
    fs_err::File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_for_those_who_may_read_it() {
        let directory = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs_err::metadata(path).unwrap().permissions().mode() & 0o777;
        let [ours, theirs] = ["ours", "theirs"].map(|name| directory.path().join(name));
        for path in [&ours, &theirs] {
            fs_err::write(path, "before, and longer").unwrap();
            fs_err::set_permissions(path, Permissions::from_mode(0o664)).unwrap();
        }
        replace(&ours, b"after").unwrap();
        let metadata = replace_for(Readers::Project, &theirs, b"after").unwrap();
        assert_eq!((mode(&ours), mode(&theirs), metadata.len()), (0o600, 0o664, 5));
        hand_over(&ours, b"at last").unwrap();
        assert_eq!((mode(&ours), fs_err::read_to_string(&ours).unwrap()), (0o600, "at last".to_owned()));
        assert_eq!(fs_err::read_dir(directory.path()).unwrap().count(), 2, "nothing is left beside them");

        let nowhere = directory.path().join("no/such/file");
        let told = replace(&nowhere, b"").unwrap_err().to_string();
        assert!(told.starts_with("cannot create a file in `"), "{told}");
    }

    #[test]
    fn a_lock_is_taken_held_by_somebody_or_not_to_be_had_at_all() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let mine = open_lock(&path).unwrap();
        assert!(try_lock(&mine).unwrap());
        assert!(!try_lock(&open_lock(&path).unwrap()).unwrap());
        // Such a handle is good for nothing but its path, as files are for locks where there are none.
        let flags = rustix::fs::OFlags::PATH.bits().cast_signed();
        let bare = fs_err::OpenOptions::new().read(true).custom_flags(flags).open(&path).unwrap();
        let error = try_lock(bare.file()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().starts_with("files cannot be locked here: "), "{error}");
    }
}
