//! `steadfast setup HOST`: adds Steadfast to a host's configuration and removes it without a trace. Everything is planned
//! first and written later ([`InstallPlan::apply`]), so that a broken settings file is found before anything changed. A manifest
//! in `$STEADFAST_HOME/setup/HOST.json` keeps the bytes that every file had before, so that uninstall restores them.

pub(crate) mod apply;
pub(crate) mod codex_config;
pub(crate) mod codex_tables;
mod describe;
pub(crate) mod json;
pub(crate) mod manifest;
mod service;
pub(crate) mod setup;
mod splice;
mod strays;
mod undo;

use std::io;
use std::path::{Path, PathBuf};

pub use manifest::{config_dirs, is_set_up};
pub use service::{ServiceRequest, ServiceSystem, plan_service, plan_service_removal};
pub use strays::{SetupLock, remove_strays};
pub use undo::plan_uninstall;

use super::command::SlashCommand;
use steadfast_system::disk::DiskFault;

/// Asks the user a yes-or-no question.
pub type Ask<'a> = &'a dyn Fn(&Question<'_>) -> io::Result<bool>;

/// A question that a new user can answer.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    pub text: &'a str,
    /// What a yes changes, and what it is good for.
    pub change: &'a str,
    /// What an empty answer means.
    pub default: bool,
}

/// What `setup` is asked for. Each adapter uses the parts that its host needs.
#[derive(Clone, Copy)]
pub struct InstallRequest<'a> {
    /// `$STEADFAST_HOME`, absolute.
    pub home: &'a Path,
    /// One of the host's configuration directories.
    pub config_dir: &'a Path,
    /// A path to this executable that survives upgrades.
    pub lasting_program: &'a Path,
    /// Text of the repository's `.claude-plugin/marketplace.json`; its plugin source must be `./plugin`.
    pub marketplace: &'a str,
    /// The repository's `plugin/`: path below it, content.
    pub plugin: &'a [(&'a str, &'a str)],
    pub commands: &'a [SlashCommand],
    pub statusline: Consent,
    pub block_cap: Consent,
    /// The block cap to set, if the user named one.
    pub block_cap_value: Option<u32>,
    /// Whether the host's dialog about a used-up plan, which keeps goals from waking, is answered by us.
    pub limit_dialog: Consent,
    /// `None` if there is no terminal to ask at.
    pub ask: Option<Ask<'a>>,
    /// The time, RFC 3339 in UTC.
    pub now: &'a str,
}

/// Quotes a word for the shell that runs hooks, unless it needs no quotes.
pub fn shell_word(word: &str) -> String {
    let plain = word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-+".contains(&byte));
    if plain { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// What the command line says about one optional setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// `--statusline`, `--block-cap N`.
    Given,
    /// `--no-statusline`, `--no-block-cap`.
    Refused,
    /// Neither, but `--yes`.
    Presumed,
    /// Neither: ask the user at the terminal, if there is one.
    Open,
}

/// Decides about `value`; `theirs` says that the user has set it themselves, which only an explicit flag may touch.
pub(crate) fn decide<T>(
    consent: Consent,
    value: T,
    theirs: bool,
    ask: Option<impl FnOnce() -> io::Result<bool>>,
) -> io::Result<Choice<T>> {
    let agreed = match (consent, ask) {
        (Consent::Given, _) => true,
        (Consent::Refused, _) => return Ok(Choice::Remove),
        _ if theirs => false,
        (Consent::Presumed, _) => true,
        (Consent::Open, Some(ask)) => ask()?,
        (Consent::Open, None) => false,
    };
    Ok(if agreed { Choice::Set(value) } else { Choice::Leave })
}

/// An optional setting. `Leave` keeps the choice of an earlier `setup`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice<T> {
    Set(T),
    Leave,
    Remove,
}

/// Changes that belong together: all of them are made, or none.
#[derive(Debug, Default)]
pub struct InstallPlan {
    changes: Vec<FileChange>,
    /// Removed after the changes if they are empty, deepest first.
    remove_dirs: Vec<PathBuf>,
    notes: Vec<String>,
    /// Names of our commands that stay the user's own.
    kept: Vec<String>,
}

/// One file's text before and after; `None` means that it does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileChange {
    path: PathBuf,
    before: Option<String>,
    after: Option<String>,
    access: Access,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Access {
    /// Below `$STEADFAST_HOME`: readable only by the user.
    Private,
    /// The user's own tree: the umask decides.
    Inherited,
}

/// What [`InstallPlan::apply`] did.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub written: Vec<PathBuf>,
    pub removed: Vec<PathBuf>,
    pub notes: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// From `fs_err`, which names the path.
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("{}: {problem}", path.display())]
    Broken { path: PathBuf, problem: String },
    #[error("the path {} is not valid Unicode", path.display())]
    PathNotUnicode { path: PathBuf },
    #[error("{} changed while setup was running", path.display())]
    Raced { path: PathBuf },
    #[error("{} is damaged: {source}", path.display())]
    Manifest { path: PathBuf, source: serde_json::Error },
    #[error("{} was written by a newer steadfast (format {found})", path.display())]
    ManifestFromTheFuture { path: PathBuf, found: u32 },
}

impl InstallError {
    fn broken(path: &Path, problem: impl Into<String>) -> Self {
        Self::Broken { path: path.into(), problem: problem.into() }
    }

    /// What the user can do about it, for the `hint:` line.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Io(error) => {
                DiskFault::of(error).map_or("check that the file and its directory are writable", DiskFault::hint)
            }
            Self::Broken { .. } => "repair the file, then run the command again",
            Self::PathNotUnicode { .. } => "set STEADFAST_HOME to a path that is valid Unicode",
            Self::Raced { .. } => "run the command again",
            Self::Manifest { .. } => "restore the file from a backup, or move it away and run `steadfast setup` again",
            Self::ManifestFromTheFuture { .. } => "update steadfast, then run the command again",
        }
    }
}

impl InstallPlan {
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Names of our commands that stay the user's own.
    pub fn kept(&self) -> &[String] {
        &self.kept
    }

    /// What the user should know: things left alone, and why.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    fn push(&mut self, change: FileChange) {
        if change.before != change.after {
            self.changes.push(change);
        }
    }
}

#[cfg(test)]
mod tests;
