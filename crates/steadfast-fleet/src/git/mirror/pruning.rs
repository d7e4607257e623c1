//! Keeps mirrors from growing for ever: deletes those that were not used for days, and packs the others. One that a process
//! uses is left alone; its lock file says so, and when it was used last.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use steadfast_model::clock::{self, Millis};

use super::{GitCall, Refs, WorkError};

/// The ending of the file that is locked while a mirror is in use. It stays, because a process may wait for its lock.
const USE: &str = "use";
/// The ending of a mirror that is being deleted.
const GONE: &str = "gone";
const DAY: Duration = Duration::from_hours(24);

pub(crate) fn mirrors_of(home: &Path) -> PathBuf {
    home.join("fleet").join("mirrors")
}

fn time_of(at: Millis) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(u64::try_from(at).unwrap_or(0))
}

fn use_file(mirror: &Path) -> std::io::Result<File> {
    let file = fs_err::OpenOptions::new().create(true).append(true).open(mirror.with_extension(USE))?;
    Ok(file.into_parts().0)
}

/// Marks a mirror as used, now and until the file is closed.
pub(super) fn use_of(mirror: &Path) -> std::io::Result<File> {
    let file = use_file(mirror)?;
    file.lock_shared()?;
    file.set_modified(time_of(clock::now()))?;
    Ok(file)
}

/// Deletes the mirrors that were not used for so many days, 0 for none of them, and packs the others. Returns how many
/// were deleted.
pub(crate) fn prune(home: &Path, days: u32, now: Millis) -> Result<usize, WorkError> {
    let Ok(entries) = fs_err::read_dir(mirrors_of(home)) else { return Ok(0) };
    let mut deleted = 0;
    for path in entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()) {
        if path.extension().is_some_and(|extension| extension == GONE) {
            // Left by a worker that was killed meanwhile.
            fs_err::remove_dir_all(&path)?;
            continue;
        }
        let file = use_file(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => continue,
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        let unused = time_of(now).duration_since(file.metadata()?.modified()?).unwrap_or_default();
        if days > 0 && unused >= DAY * days {
            let gone = path.with_extension(GONE);
            fs_err::rename(&path, &gone)?;
            // The next process that needs the mirror makes a new one, and need not wait for the deletion.
            drop(file);
            fs_err::remove_dir_all(&gone)?;
            deleted += 1;
        } else {
            pack(&path)?;
        }
    }
    Ok(deleted)
}

/// Forgets the branches of attempts, which are fetched again where they are needed, and packs what is loose.
fn pack(mirror: &Path) -> Result<(), WorkError> {
    let attempts = Refs::kept("refs/heads/steadfast-attempts/");
    let git = || GitCall::at(mirror);
    let found = git().text(&["for-each-ref", "--format=delete %(refname)", &attempts])?;
    if !found.is_empty() {
        let mut commands = tempfile::tempfile()?;
        std::io::Write::write_all(&mut commands, format!("{found}\n").as_bytes())?;
        std::io::Seek::rewind(&mut commands)?;
        git().stdin(commands).text(&["update-ref", "--stdin"])?;
    }
    git().text(&["-c", "gc.auto=6700", "-c", "gc.autoDetach=false", "gc", "--auto", "--quiet"]).map(drop)
}
