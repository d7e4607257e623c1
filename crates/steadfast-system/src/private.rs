//! Home and store are for their owner alone. What other users can read or write is closed to them; what another user
//! owns, or could have put there, is refused: the configuration names programs to run.

use std::fs::Metadata;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use fs_err as fs;

use crate::env_vars;

/// The rights of everyone but the owner, and those of them that allow changes.
const OTHERS: u32 = 0o077;
const OTHERS_WRITE: u32 = 0o022;
/// Everyone may add files, as in `/tmp`.
const STICKY: u32 = 0o1000;
/// How deep below the home files are closed, and how many. A closed home hides the rest.
const DEPTH: usize = 2;
const MOST_ENTRIES: usize = 2_000;
/// How deep another user's files are looked for.
const FOREIGN_DEPTH: usize = 4;

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PrivacyError {
    #[error("`{}` belongs to another user (uid {owner})", path.display())]
    Foreign { path: PathBuf, owner: u32 },
    #[error("other users can write to `{}` (mode {mode:04o})", path.display())]
    Writable { path: PathBuf, mode: u32 },
}

impl PrivacyError {
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Foreign { .. } => {
                "give it to your user with chown, or remove it; or set STEADFAST_HOME to a directory of your own"
            }
            Self::Writable { .. } => "run `chmod go-rwx` on it, or set STEADFAST_HOME to a directory of your own",
        }
    }
}

/// A file or directory that other users could use before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    pub path: PathBuf,
    /// Its mode before.
    pub mode: u32,
}

impl std::fmt::Display for Closed {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} (mode {:04o})", self.path.display(), self.mode)
    }
}

/// Closes the home to other users, and what is in it. Costs one look at the directory if it is closed already.
pub fn close_home(home: &Path) -> Result<Vec<Closed>, PrivacyError> {
    // Other errors are reported by the first use.
    let Some(found) = fs::metadata(home).ok().filter(Metadata::is_dir) else { return Ok(Vec::new()) };
    refuse_foreign(home, &found)?;
    if mode_of(&found) & OTHERS == 0 {
        return Ok(Vec::new());
    }
    let is_writable = mode_of(&found) & OTHERS_WRITE != 0;
    if is_writable {
        refuse_foreign_below(home, FOREIGN_DEPTH)?;
    }
    let mut closed = Vec::new();
    if is_ours_alone(home, &found) {
        close(home, &found, &mut closed)?;
        close_below(home, DEPTH, &mut closed);
        if is_writable {
            // Nothing was added while it was being closed.
            refuse_foreign_below(home, FOREIGN_DEPTH)?;
        }
    } else if is_writable && mode_of(&found) & STICKY == 0 {
        return Err(PrivacyError::Writable { path: home.to_owned(), mode: mode_of(&found) });
    }
    Ok(closed)
}

/// Closes a file and the files that SQLite keeps beside it to other users. A link is judged by what it leads to.
pub fn close_store(store: &Path) -> Result<Vec<Closed>, PrivacyError> {
    let Some(found) = fs::metadata(store).ok().filter(Metadata::is_file) else { return Ok(Vec::new()) };
    refuse_foreign(store, &found)?;
    let mut closed = Vec::new();
    if mode_of(&found) & OTHERS != 0 {
        close(store, &found, &mut closed)?;
        for end in ["-wal", "-shm"] {
            let mut beside = fs::canonicalize(store).unwrap_or_else(|_| store.to_owned()).into_os_string();
            beside.push(end);
            let beside = PathBuf::from(beside);
            if let Ok(found) = fs::symlink_metadata(&beside) {
                refuse_foreign(&beside, &found)?;
                close(&beside, &found, &mut closed)?;
            }
        }
    }
    Ok(closed)
}

/// The mode of a path if other users can use it.
pub fn open_mode(path: &Path) -> Option<u32> {
    let mode = mode_of(&fs::metadata(path).ok()?);
    (mode & OTHERS != 0).then_some(mode)
}

/// Whether this user owns what a path leads to.
pub fn is_own(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| refuse_foreign(path, &found).is_ok())
}

fn mode_of(found: &Metadata) -> u32 {
    found.mode() & 0o7777
}

fn refuse_foreign(path: &Path, found: &Metadata) -> Result<(), PrivacyError> {
    let owner = found.uid();
    if owner == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    Err(PrivacyError::Foreign { path: path.to_owned(), owner })
}

/// Refuses what another user owns in a directory to which others can write.
fn refuse_foreign_below(directory: &Path, depth: usize) -> Result<(), PrivacyError> {
    for (path, found) in entries(directory) {
        refuse_foreign(&path, &found)?;
        if found.is_dir() && mode_of(&found) & OTHERS_WRITE != 0 && depth > 1 {
            refuse_foreign_below(&path, depth - 1)?;
        }
    }
    Ok(())
}

/// Links are left alone: what they lead to may belong to something else.
fn close_below(directory: &Path, depth: usize, closed: &mut Vec<Closed>) {
    for (path, found) in entries(directory) {
        if mode_of(&found) & OTHERS != 0 && (found.is_file() || found.is_dir()) {
            // The directory above is closed, so an error here opens nothing.
            let _ = close(&path, &found, closed);
        }
        if found.is_dir() && depth > 1 {
            close_below(&path, depth - 1, closed);
        }
    }
}

fn entries(directory: &Path) -> Vec<(PathBuf, Metadata)> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let found = entries.flatten().take(MOST_ENTRIES);
    found.filter_map(|entry| Some((entry.path(), fs::symlink_metadata(entry.path()).ok()?))).collect()
}

/// Removes the rights of others. It is an error if they can still write, as on a disk that keeps no modes; on one that
/// is read-only they cannot.
fn close(path: &Path, found: &Metadata, closed: &mut Vec<Closed>) -> Result<(), PrivacyError> {
    let mode = mode_of(found);
    let wanted = std::fs::Permissions::from_mode(mode & !OTHERS & !STICKY);
    match fs::set_permissions(path, wanted) {
        Err(error) if error.kind() == std::io::ErrorKind::ReadOnlyFilesystem => return Ok(()),
        _ => {}
    }
    let left = fs::metadata(path).map_or(mode, |found| mode_of(&found));
    if left & OTHERS_WRITE != 0 {
        return Err(PrivacyError::Writable { path: path.to_owned(), mode: left });
    }
    if left & OTHERS == 0 {
        closed.push(Closed { path: path.to_owned(), mode });
    }
    Ok(())
}

/// Whether a directory can be closed without harm: it is not the user's home directory or one above it, not a directory
/// of the system, and not one that others share.
fn is_ours_alone(home: &Path, found: &Metadata) -> bool {
    let Ok(real) = fs::canonicalize(home) else { return false };
    let of_user = env_vars::path(env_vars::USER_HOME).and_then(|path| fs::canonicalize(path).ok());
    let is_above_user = of_user.is_some_and(|user| user.starts_with(&real));
    let is_of_system = real.components().count() <= 2;
    let names = ["goals.db", "config.toml", "log", "runs", "setup"];
    let has_ours = || names.iter().any(|name| real.join(name).exists());
    let is_empty = || fs::read_dir(&real).is_ok_and(|mut entries| entries.next().is_none());
    mode_of(found) & STICKY == 0 && !is_above_user && !is_of_system && (has_ours() || is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world() -> (tempfile::TempDir, PathBuf) {
        let world = tempfile::tempdir().unwrap();
        let home = world.path().join("home");
        fs::create_dir_all(home.join("log")).unwrap();
        for name in ["goals.db", "goals.db-wal", "config.toml", "log/hooks.log"] {
            fs::write(home.join(name), "").unwrap();
        }
        (world, home)
    }

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    fn mode(path: &Path) -> u32 {
        mode_of(&fs::metadata(path).unwrap())
    }

    #[test]
    fn an_open_home_is_closed_with_what_is_in_it_and_said_once() {
        let (_world, home) = world();
        for (name, open) in
            [("", 0o777), ("goals.db", 0o666), ("config.toml", 0o644), ("log", 0o755), ("log/hooks.log", 0o644)]
        {
            set(&home.join(name), open);
        }
        let closed = close_home(&home).unwrap();
        assert_eq!(closed.first(), Some(&Closed { path: home.clone(), mode: 0o777 }));
        assert!(closed.len() >= 5, "{closed:?}");
        for (name, expected) in [("", 0o700), ("goals.db", 0o600), ("config.toml", 0o600), ("log/hooks.log", 0o600)] {
            assert_eq!(mode(&home.join(name)), expected, "{name}");
        }
        assert_eq!(close_home(&home), Ok(Vec::new()));
        assert_eq!(close_home(&home.join("none")), Ok(Vec::new()));
    }

    #[test]
    fn a_link_is_judged_by_what_it_leads_to() {
        let (world, home) = world();
        let (elsewhere, link) = (world.path().join("elsewhere.db"), home.join("goals.db"));
        fs::write(&elsewhere, "").unwrap();
        set(&elsewhere, 0o644);
        fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &link).unwrap();
        assert_eq!(close_store(&link).unwrap(), [Closed { path: link.clone(), mode: 0o644 }]);
        assert_eq!(mode(&elsewhere), 0o600);
        let linked = world.path().join("link");
        std::os::unix::fs::symlink(&home, &linked).unwrap();
        set(&home, 0o755);
        assert!(!close_home(&linked).unwrap().is_empty());
        assert_eq!(mode(&home), 0o700);
    }

    #[test]
    fn a_directory_that_is_used_for_other_things_keeps_its_mode() {
        let world = tempfile::tempdir().unwrap();
        let shared = world.path().join("shared");
        fs::create_dir(&shared).unwrap();
        fs::write(shared.join("letter.txt"), "").unwrap();
        set(&shared, 0o755);
        assert_eq!(close_home(&shared), Ok(Vec::new()));
        assert_eq!((mode(&shared), open_mode(&shared)), (0o755, Some(0o755)));
        set(&shared, 0o777);
        assert_eq!(close_home(&shared), Err(PrivacyError::Writable { path: shared.clone(), mode: 0o777 }));
        set(&shared, 0o1777);
        assert_eq!(close_home(&shared), Ok(Vec::new()));
        assert_eq!(close_home(Path::new("/")).map(|closed| closed.len()), Ok(0));
    }
}
