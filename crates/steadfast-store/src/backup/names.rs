//! The names of backups: `goals.db.2026-11-15T120000Z.weekly.bak`.

use std::path::{Path, PathBuf};

use steadfast_model::clock::{self, Millis};

/// A copy in the directory of backups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backup {
    pub path: PathBuf,
    pub kind: BackupKind,
    pub made_at_ms: Millis,
    pub bytes: u64,
}

/// Why a backup was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BackupKind {
    /// By itself, once a week.
    Weekly,
    /// `steadfast db backup`; kept until the user removes it.
    Manual,
    /// Before a change of this version of the schema.
    Before(String),
}

impl std::fmt::Display for BackupKind {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Weekly => formatter.write_str("weekly"),
            Self::Manual => formatter.write_str("manual"),
            Self::Before(version) => write!(formatter, "v{version}"),
        }
    }
}

/// The name of a backup of `store`. Names of one kind sort by their time.
pub(super) fn of(store: &Path, kind: &BackupKind, now: Millis) -> String {
    let at = clock::to_rfc3339(now).replace(':', "");
    format!("{}.{at}.{kind}.bak", file_name(store))
}

/// The backup of `store` at a path; `None` if the file is something else.
pub(super) fn read(store: &Path, path: &Path) -> Option<Backup> {
    let name = path.file_name()?.to_str()?;
    let rest = name.strip_prefix(&file_name(store))?.strip_prefix('.')?.strip_suffix(".bak")?;
    let (at, kind) = rest.split_once('.')?;
    let kind = match kind {
        "weekly" => BackupKind::Weekly,
        "manual" => BackupKind::Manual,
        other => BackupKind::Before(other.strip_prefix('v')?.to_owned()),
    };
    // Jiff reads a time with colons in both parts or in none.
    let (date, time) = at.split_once('T')?;
    let (hour, minute, second) = (time.get(..2)?, time.get(2..4)?, time.get(4..)?);
    let made_at_ms = clock::parse_rfc3339(&format!("{date}T{hour}:{minute}:{second}"))?;
    let bytes = fs_err::metadata(path).ok().filter(std::fs::Metadata::is_file)?.len();
    Some(Backup { path: path.to_owned(), kind, made_at_ms, bytes })
}

fn file_name(store: &Path) -> String {
    store.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
