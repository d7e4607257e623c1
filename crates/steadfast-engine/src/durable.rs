//! Files that are written whole or not at all, also across a crash. Only their owner can read them, except files of
//! the project.

use std::fs::Permissions;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use fs_err::os::unix::fs::OpenOptionsExt as _;
use serde::Serialize;
use steadfast_system::unfinished;
use tempfile::NamedTempFile;

/// Prefix and suffix of a temporary file, beside the file it will replace.
pub(crate) const UNFINISHED: [&str; 2] = [".steadfast-", ".tmp"];

/// An unfinished file of this age has no writer.
const LEFT_OVER: Duration = Duration::from_mins(1);

/// Who may read a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    Owner,
    /// Those who could read the file that is replaced; a new file follows the umask.
    Project,
}

/// Replaces a file that only its owner can read: write a temporary file, sync it, rename it.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    replace_for(Readers::Owner, path, content)
}

pub fn replace_for(readers: Readers, path: &Path, content: &[u8]) -> io::Result<()> {
    put_in_place(write_beside(readers, path, content)?, path)?;
    sync_beside(path)
}

/// Replaces a file in a directory of the user's choice. What a call that died left there is removed, because nothing else
/// cleans up such a directory.
pub fn replace_output(readers: Readers, path: &Path, content: &[u8]) -> io::Result<()> {
    remove_left_over(path)?;
    replace_for(readers, path, content)
}

fn remove_left_over(path: &Path) -> io::Result<()> {
    let [prefix, suffix] = UNFINISHED;
    for entry in fs_err::read_dir(directory_of(path)).into_iter().flatten().flatten() {
        if unfinished::is_left_over(&entry.path(), prefix, suffix, LEFT_OVER) {
            fs_err::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// The same for a file that only its owner can read and that is written piece by piece.
pub fn stream_output<T, E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut dyn io::Write) -> Result<T, E>,
) -> Result<T, E> {
    remove_left_over(path)?;
    let mut file = new_beside(Readers::Owner, path)?;
    let mut buffered = io::BufWriter::new(&mut file);
    let written = write(&mut buffered)?;
    buffered.flush().map_err(|error| at(path, "cannot write", &error))?;
    drop(buffered);
    file.as_file().sync_all().map_err(|error| at(path, "cannot write", &error))?;
    put_in_place(file, path)?;
    sync_beside(path)?;
    Ok(written)
}

/// Replaces a file without syncing it, for files that are not needed after a power cut.
pub(crate) fn hand_over(path: &Path, content: &[u8]) -> io::Result<()> {
    put_in_place(unforced_beside(Readers::Owner, path, content)?, path)
}

/// Writes and syncs the file that is to replace another. It is removed on drop unless the caller renames it.
pub(crate) fn write_beside(readers: Readers, path: &Path, content: &[u8]) -> io::Result<NamedTempFile> {
    let file = unforced_beside(readers, path, content)?;
    file.as_file().sync_all().map_err(|error| at(path, "cannot write", &error))?;
    Ok(file)
}

fn put_in_place(file: NamedTempFile, path: &Path) -> io::Result<()> {
    file.persist(path).map(drop).map_err(|error| at(path, "cannot replace", &error.error))
}

fn unforced_beside(readers: Readers, path: &Path, content: &[u8]) -> io::Result<NamedTempFile> {
    let mut file = new_beside(readers, path)?;
    file.write_all(content).map_err(|error| at(path, "cannot write", &error))?;
    Ok(file)
}

fn new_beside(readers: Readers, path: &Path) -> io::Result<NamedTempFile> {
    let directory = directory_of(path);
    let [prefix, suffix] = UNFINISHED;
    let mut builder = tempfile::Builder::new();
    builder.prefix(prefix).suffix(suffix);
    if readers == Readers::Project {
        // A temporary file is private by default.
        builder.permissions(Permissions::from_mode(0o666));
    }
    let file = builder.tempfile_in(directory).map_err(|error| at(directory, "cannot create a file in", &error))?;
    if readers == Readers::Project
        && let Ok(metadata) = std::fs::metadata(path)
    {
        file.as_file().set_permissions(metadata.permissions())?;
    }
    Ok(file)
}

/// Syncs the directory of a file that was renamed or created, which makes that durable.
pub(crate) fn sync_beside(path: &Path) -> io::Result<()> {
    fs_err::File::open(directory_of(path))?.sync_all()
}

/// Writes everything to the disk that any process wrote to the file system of a directory. A directory that is gone has
/// nothing to keep.
pub(crate) fn sync_file_system(directory: &Path) -> io::Result<()> {
    let Some(directory) = if_exists(fs_err::File::open(directory))? else { return Ok(()) };
    #[cfg(target_os = "linux")]
    rustix::fs::syncfs(directory.file()).map_err(|error| at(directory.path(), "cannot write", &error.into()))?;
    #[cfg(not(target_os = "linux"))]
    {
        drop(directory);
        rustix::fs::sync();
    }
    Ok(())
}

/// A name without a directory is in the current one.
fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|directory| *directory != Path::new("")).unwrap_or(Path::new("."))
}

/// An error with the path that it is about.
pub(crate) fn at(path: &Path, what: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what} `{}`: {error}", path.display()))
}

/// A value as the JSON text of one of our files.
pub(crate) fn json(value: &impl Serialize) -> String {
    // Plain structs with string keys always have a JSON form.
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}

/// `None` for a file that does not exist.
pub(crate) fn if_exists<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Creates an empty file whose existence is the message.
pub(crate) fn mark(path: &Path) -> io::Result<()> {
    open_to_append(path)?.sync_all()?;
    sync_beside(path)
}

/// Opens a file to append to it, creating it if it is missing.
pub(crate) fn open_to_append(path: &Path) -> io::Result<fs_err::File> {
    fs_err::OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_keeps_its_readers() {
        let directory = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs_err::metadata(path).unwrap().permissions().mode() & 0o777;
        let [ours, theirs] = ["ours", "theirs"].map(|name| directory.path().join(name));
        for path in [&ours, &theirs] {
            fs_err::write(path, "before, and longer").unwrap();
            fs_err::set_permissions(path, Permissions::from_mode(0o664)).unwrap();
        }
        replace(&ours, b"after").unwrap();
        replace_for(Readers::Project, &theirs, b"after").unwrap();
        let length = fs_err::metadata(&theirs).unwrap().len();
        assert_eq!((mode(&ours), mode(&theirs), length), (0o600, 0o664, 5));
        hand_over(&ours, b"at last").unwrap();
        assert_eq!((mode(&ours), fs_err::read_to_string(&ours).unwrap()), (0o600, "at last".to_owned()));
        assert_eq!(fs_err::read_dir(directory.path()).unwrap().count(), 2, "nothing is left beside them");

        let [old, young] = ["aB3xY9", "Fresh1"].map(|id| directory.path().join(format!(".steadfast-{id}.tmp")));
        for path in [&old, &young] {
            fs_err::write(path, "half").unwrap();
        }
        let file = fs_err::OpenOptions::new().write(true).open(&old).unwrap();
        let written = fs_err::metadata(&young).unwrap().modified().unwrap();
        file.file().set_modified(written - 2 * LEFT_OVER).unwrap();
        replace_output(Readers::Project, &theirs, b"again").unwrap();
        assert_eq!((old.exists(), young.exists()), (false, true), "a young one may have a writer");

        let nowhere = directory.path().join("no/such/file");
        let message = replace(&nowhere, b"").unwrap_err().to_string();
        assert!(message.starts_with("cannot create a file in `"), "{message}");
    }
}
