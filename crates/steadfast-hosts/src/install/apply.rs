//! Carries a plan out: every file whole or not at all, and all of them or none.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use fs_err as fs;
use steadfast_system::bounded;
use tempfile::NamedTempFile;

use super::{Access, FileChange, InstallError, InstallPlan, Report, strays};

/// As many links as Linux follows before it says that they go round in circles.
const MAX_LINKS: usize = 40;

/// A file's text; `None` if there is no such file.
pub(crate) fn read(path: &Path) -> Result<Option<String>, InstallError> {
    const MOST: u64 = 16 * 1024 * 1024;
    match bounded::whole(path, MOST) {
        Ok(bytes) => String::from_utf8(bytes).map(Some).map_err(|_| InstallError::broken(path, "not valid UTF-8")),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl InstallPlan {
    /// Makes the changes. After an error everything is as it was.
    pub fn apply(self) -> Result<Report, InstallError> {
        for change in &self.changes {
            // The client writes these files as well; what it wrote after we planned must not be lost.
            if read(&change.path)? != change.before {
                return Err(InstallError::Raced { path: change.path.clone() });
            }
        }
        let mut new_dirs = Vec::new();
        for (index, change) in self.changes.iter().enumerate() {
            if let Err(error) = write(&change.path, change.after.as_deref(), change.access, &mut new_dirs) {
                roll_back(self.changes.get(..index).unwrap_or_default(), &new_dirs);
                return Err(error.into());
            }
        }
        if let Err(error) = sync_directories(&self.changes, &new_dirs) {
            roll_back(&self.changes, &new_dirs);
            return Err(error.into());
        }
        for dir in &self.remove_dirs {
            // Not empty, or gone already: both are fine, and neither is ours to force.
            let _ = std::fs::remove_dir(dir);
        }
        let (written, removed) = self.changes.into_iter().partition::<Vec<_>, _>(|change| change.after.is_some());
        let paths = |changes: Vec<FileChange>| changes.into_iter().map(|change| change.path).collect();
        Ok(Report { written: paths(written), removed: paths(removed), notes: self.notes })
    }
}

/// Best effort: the error that brought us here is the one to report.
fn roll_back(done: &[FileChange], new_dirs: &[PathBuf]) {
    for change in done.iter().rev() {
        let _ = write(&change.path, change.before.as_deref(), change.access, &mut Vec::new());
    }
    for dir in new_dirs.iter().rev() {
        let _ = std::fs::remove_dir(dir);
    }
}

fn write(path: &Path, text: Option<&str>, access: Access, new_dirs: &mut Vec<PathBuf>) -> io::Result<()> {
    // Dotfile managers link settings into a repository: replace the file behind the link, not the link.
    let target = follow_links(path)?;
    let Some(text) = text else {
        return match fs::remove_file(&target) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
    };
    let parent = target.parent().unwrap_or(Path::new("."));
    create_dirs(parent, access, new_dirs)?;
    let mut file = new_file(parent, access).map_err(|error| at(parent, "cannot create a file in", &error))?;
    file.write_all(text.as_bytes())?;
    if let Ok(metadata) = fs::metadata(&target) {
        file.as_file().set_permissions(metadata.permissions())?;
    }
    file.as_file().sync_all()?;
    file.persist(&target).map_err(|error| at(&target, "cannot replace", &error.error))?;
    Ok(())
}

/// Syncs each changed directory once: a file that was renamed or removed is so after a power cut only if its directory
/// was synced.
fn sync_directories(changes: &[FileChange], new_dirs: &[PathBuf]) -> io::Result<()> {
    let mut directories = BTreeSet::new();
    for change in changes {
        directories.extend(follow_links(&change.path)?.parent().map(Path::to_owned));
    }
    directories.extend(new_dirs.iter().filter_map(|dir| dir.parent().map(Path::to_owned)));
    for directory in directories {
        match fs::File::open(&directory) {
            Ok(directory) => directory.sync_all()?,
            // A file in a directory that is gone was removed with it.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn follow_links(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        match std::fs::read_link(&target) {
            Ok(next) => target = target.parent().unwrap_or(Path::new("")).join(next),
            // Not a link, or nothing there yet.
            Err(_) => return Ok(target),
        }
    }
    Err(io::Error::other(format!("too many links at `{}`", path.display())))
}

fn create_dirs(dir: &Path, access: Access, new_dirs: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut missing: Vec<_> = dir.ancestors().take_while(|dir| !dir.exists()).collect();
    missing.reverse();
    for dir in missing {
        let mut builder = std::fs::DirBuilder::new();
        #[cfg(unix)]
        if access == Access::Private {
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        }
        builder.create(dir).map_err(|error| at(dir, "cannot create", &error))?;
        new_dirs.push(dir.to_path_buf());
    }
    Ok(())
}

fn new_file(dir: &Path, access: Access) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(strays::PREFIX).suffix(strays::SUFFIX);
    #[cfg(unix)]
    if access == Access::Inherited {
        // `tempfile` makes private files; here the umask should decide, as for any other program.
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    }
    let file = builder.tempfile_in(dir)?;
    // A lock shows that it is being written; without one, its age does.
    let _ = file.as_file().try_lock();
    Ok(file)
}

fn at(path: &Path, what: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what} `{}`: {error}", path.display()))
}
