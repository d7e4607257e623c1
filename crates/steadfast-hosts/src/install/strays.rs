//! Temporary files that a killed setup left, and the lock that keeps setups of one home apart.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fs_err as fs;
use steadfast_system::{private, unfinished};

use super::manifest::Manifest;
use crate::adapters;

/// A temporary file: this, six letters or digits, and the end.
pub(crate) const PREFIX: &str = ".steadfast-";
pub(crate) const SUFFIX: &str = ".tmp";
/// A file that is being written is younger, and locked.
const AGE: Duration = Duration::from_mins(1);
/// Directories below a client's own in which files of ours are.
const PLACES: [&str; 4] = ["commands", "skills", "agents", "prompts"];
/// How deep files are below our own directories.
const DEPTH: usize = 5;
/// How long a setup waits for another one.
const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(20);

/// Held while a setup or an uninstall plans and works. The kernel releases it when the process ends.
#[derive(Debug)]
pub struct SetupLock {
    directory: Option<File>,
}

impl SetupLock {
    /// Waits for other setups of this home. What is locked is the directory above: the home itself comes and goes.
    pub fn take(home: &Path) -> io::Result<Self> {
        let Some(directory) = directory_to_lock(home) else { return Ok(Self { directory: None }) };
        let file = File::open(&directory)?;
        let end = Instant::now() + PATIENCE;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { directory: Some(file) }),
                Err(TryLockError::WouldBlock) if Instant::now() < end => std::thread::sleep(PAUSE),
                Err(TryLockError::WouldBlock) => {
                    let message = "another `steadfast setup` is running; try again when it is done";
                    return Err(io::Error::new(io::ErrorKind::ResourceBusy, message));
                }
                // Without locks, each file is still written whole.
                Err(TryLockError::Error(_)) => return Ok(Self { directory: None }),
            }
        }
    }
}

/// A directory of another user could be locked by that user for ever.
fn directory_to_lock(home: &Path) -> Option<PathBuf> {
    let home = std::path::absolute(home).ok()?;
    let is_own = |path: &&Path| private::is_own(path);
    let above = home.ancestors().skip(1).find(|path| path.is_dir()).filter(is_own);
    above.or_else(|| Some(home.as_path()).filter(is_own)).map(Path::to_path_buf)
}

/// Removes what killed setups left in the directories of the clients and in the home. Only plain files with our name that
/// no process writes to. With the lock of setups, no process is about to lock one.
pub fn remove_strays(home: &Path, lock: Option<&SetupLock>) -> Vec<PathBuf> {
    let age = if lock.is_some_and(|lock| lock.directory.is_some()) { Duration::ZERO } else { AGE };
    let mut places: Vec<PathBuf> = vec![home.to_owned(), home.join("setup")];
    for adapter in adapters() {
        places.extend(directories_below(&home.join(adapter.host.name()), DEPTH));
        for config_dir in (adapter.config_dirs)() {
            places.extend(PLACES.iter().flat_map(|name| directories_below(&config_dir.join(name), 2)));
            places.push(config_dir);
        }
        let manifest = Manifest::load(home, adapter.host.name()).map(|(manifest, _)| manifest);
        for entry in manifest.map(|manifest| manifest.files).unwrap_or_default() {
            // A link of a dotfile manager leads to where the temporary file is.
            let real = fs::canonicalize(&entry.path).unwrap_or(entry.path);
            places.extend(real.parent().map(Path::to_path_buf));
        }
    }
    places.sort();
    places.dedup();
    let strays = places.iter().filter_map(|place| fs::read_dir(place).ok()).flatten().flatten();
    strays.map(|entry| entry.path()).filter(|path| is_stray(path, age) && fs::remove_file(path).is_ok()).collect()
}

fn directories_below(directory: &Path, depth: usize) -> Vec<PathBuf> {
    const MOST: usize = 500;
    let is_dir = |path: &Path| fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    if !is_dir(directory) {
        return Vec::new();
    }
    let mut found = vec![directory.to_owned()];
    if depth > 1 {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten().take(MOST);
        found.extend(entries.flat_map(|entry| directories_below(&entry.path(), depth - 1)));
    }
    found
}

fn is_stray(path: &Path, age: Duration) -> bool {
    unfinished::is_left_over(path, PREFIX, SUFFIX, age) && File::open(path).is_ok_and(|file| file.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aged(path: &Path) {
        fs::write(path, "x").unwrap();
        let file = File::options().write(true).open(path).unwrap();
        let now = file.metadata().unwrap().modified().unwrap();
        file.set_modified(now - 2 * AGE).unwrap();
    }

    #[test]
    fn only_old_files_with_our_name_that_no_process_writes_are_strays() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for name in [".steadfast-aB3xY9.tmp", ".steadfast-notes.tmp", ".steadfast-aB3xY9", "steadfast-aB3xY9.tmp"] {
            aged(&at(name));
        }
        let locked = at(".steadfast-L0cked.tmp");
        aged(&locked);
        let held = File::open(&locked).unwrap();
        held.lock().unwrap();
        fs::write(at(".steadfast-Fresh1.tmp"), "").unwrap();
        for name in [".steadfast-notes.tmp", ".steadfast-aB3xY9", "steadfast-aB3xY9.tmp", ".steadfast-Fresh1.tmp"] {
            assert!(!is_stray(&at(name), AGE), "{name}");
        }
        assert!(!is_stray(&locked, Duration::ZERO) && is_stray(&at(".steadfast-aB3xY9.tmp"), AGE));
        drop(held);
        assert!(is_stray(&locked, AGE));
    }
}
