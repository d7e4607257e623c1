//! Copies of the store that a killed backup left unfinished.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fs_err as fs;
use steadfast_system::unfinished;

use crate::backup::UNFINISHED;
use crate::disk;

/// A backup writes all the time, so a copy this old has no writer.
const AGE: Duration = Duration::from_hours(1);

/// Removes unfinished copies beside a store, with the files that SQLite keeps beside them.
pub fn remove_stray_backups(store: &Path) -> Vec<PathBuf> {
    let directory = store.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| is_stray(path) && fs::remove_file(path).is_ok()).collect()
}

/// Removes unfinished copies in a directory that no process writes to any more: their lock shows it.
pub(crate) fn remove_unlocked_copies(directory: &Path) {
    for path in fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let is_copy = unfinished::is_left_over(&path, UNFINISHED, "", Duration::ZERO);
        if is_copy && std::fs::File::open(&path).is_ok_and(|file| file.try_lock().is_ok()) {
            for end in ["-journal", "-wal", "-shm", ""] {
                // Usually there is only one of them.
                let _ = fs::remove_file(disk::with_end(&path, end));
            }
        }
    }
}

fn is_stray(path: &Path) -> bool {
    ["", "-journal", "-wal", "-shm"].iter().any(|end| unfinished::is_left_over(path, UNFINISHED, end, AGE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_unfinished_copy_is_removed_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let store = directory.path().join("goals.db");
        let names = [".steadfast-backupaB3xY9", ".steadfast-backupaB3xY9-journal", ".steadfast-backup.txt", "goals.db"];
        for name in names {
            fs::write(directory.path().join(name), "").unwrap();
        }
        assert_eq!(remove_stray_backups(&store), Vec::<PathBuf>::new(), "they may be in use");
        for name in names {
            let file = std::fs::File::options().write(true).open(directory.path().join(name)).unwrap();
            let now = file.metadata().unwrap().modified().unwrap();
            file.set_modified(now - 2 * AGE).unwrap();
        }
        let held = std::fs::File::open(directory.path().join(names[0])).unwrap();
        held.lock().unwrap();
        remove_unlocked_copies(directory.path());
        assert!(directory.path().join(names[0]).exists(), "it is being written");
        drop(held);
        assert_eq!(remove_stray_backups(&store).len(), 2);
        fs::write(directory.path().join(names[0]), "").unwrap();
        fs::write(directory.path().join(names[1]), "").unwrap();
        remove_unlocked_copies(directory.path());
        assert!(names[..2].iter().all(|name| !directory.path().join(name).exists()));
        assert!(store.exists() && directory.path().join(".steadfast-backup.txt").exists());
    }
}
