//! Copies of a store that a killed backup, import or recovery left.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fs_err as fs;
use steadfast_system::unfinished;
use tempfile::NamedTempFile;

use crate::backup::{UNFINISHED, directory_of};
use crate::{disk, recover};

/// What has no lock to show that it is in use is left for so long.
const AGE: Duration = Duration::from_hours(1);

/// Makes a locked file beside a store, for a copy that is used only by this process.
pub(crate) fn new_copy(directory: &Path) -> std::io::Result<NamedTempFile> {
    let copy = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(directory)?;
    // A lock shows that it is in use; without one, its age does.
    let _ = copy.as_file().try_lock();
    Ok(copy)
}

/// Whether a path has the name of such a copy.
pub(crate) fn is_copy(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(UNFINISHED))
}

/// Removes what killed processes left beside a store: unfinished copies, with the files that SQLite keeps beside them,
/// and dry runs of a recovery.
pub fn remove_stray_backups(store: &Path) -> Vec<PathBuf> {
    let mut removed = remove_unlocked_copies(directory_of(store));
    let entries = fs::read_dir(directory_of(store)).into_iter().flatten().flatten();
    removed.extend(
        entries.map(|entry| entry.path()).filter(|path| is_old_beside_copy(path) && fs::remove_file(path).is_ok()),
    );
    removed.extend(recover::remove_dry_run(store));
    removed
}

/// Removes unfinished copies in a directory that no process uses any more: their lock shows it.
pub(crate) fn remove_unlocked_copies(directory: &Path) -> Vec<PathBuf> {
    let mut removed = Vec::new();
    for path in fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let is_copy = unfinished::is_left_over(&path, UNFINISHED, "", Duration::ZERO);
        if is_copy && std::fs::File::open(&path).is_ok_and(|file| file.try_lock().is_ok()) {
            for end in ["-journal", "-wal", "-shm"] {
                // Usually there is none of them.
                let _ = fs::remove_file(disk::with_end(&path, end));
            }
            removed.extend(fs::remove_file(&path).is_ok().then_some(path));
        }
    }
    removed
}

/// Whether SQLite made a file beside a copy that is gone.
fn is_old_beside_copy(path: &Path) -> bool {
    ["-journal", "-wal", "-shm"].iter().any(|end| {
        let copy = path.as_os_str().to_string_lossy().strip_suffix(end).map(PathBuf::from);
        unfinished::is_left_over(path, UNFINISHED, end, AGE) && copy.is_some_and(|copy| !copy.exists())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unfinished_copy_that_no_process_uses_is_removed_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let store = directory.path().join("goals.db");
        let names = [".steadfast-backupaB3xY9", ".steadfast-backupaB3xY9-journal", ".steadfast-backup.txt", "goals.db"];
        for name in names {
            fs::write(directory.path().join(name), "").unwrap();
        }
        let held = std::fs::File::open(directory.path().join(names[0])).unwrap();
        held.lock().unwrap();
        assert_eq!(remove_stray_backups(&store), Vec::<PathBuf>::new(), "it is in use");
        drop(held);
        assert_eq!(remove_stray_backups(&store).len(), 1);
        fs::write(directory.path().join(names[1]), "").unwrap();
        assert_eq!(remove_stray_backups(&store).len(), 0, "it may be in use");
        let file = std::fs::File::options().write(true).open(directory.path().join(names[1])).unwrap();
        let now = file.metadata().unwrap().modified().unwrap();
        file.set_modified(now - 2 * AGE).unwrap();
        assert_eq!(remove_stray_backups(&store).len(), 1);
        fs::write(directory.path().join(names[0]), "").unwrap();
        fs::write(directory.path().join(names[1]), "").unwrap();
        remove_unlocked_copies(directory.path());
        assert!(names[..2].iter().all(|name| !directory.path().join(name).exists()));
        assert!(store.exists() && directory.path().join(".steadfast-backup.txt").exists());
    }
}
