//! Hooks Steadfast into Claude Code and Codex (`steadfast setup HOST`) and out again without a trace.
//!
//! Everything is first planned ([`plan`], [`plan_uninstall`]) and only then written ([`Plan::apply`]), so that `--dry-run`
//! shows exactly what would happen and an unreadable settings file is found before anything changed. A manifest in
//! `$STEADFAST_HOME/setup/HOST.json` keeps the bytes every touched file had before, which is what makes the way back exact.

mod apply;
mod claude;
mod codex;
mod codex_toml;
mod codex_trust;
mod consent;
mod describe;
mod json;
mod manifest;
mod setup;
mod splice;
mod toml;
mod undo;

use std::io;
use std::path::{Path, PathBuf};

pub use claude::{Current, current, plan};
pub use codex::{CodexWanted, per_run_flags, plan_codex};
pub use codex_trust::{CodexHooks, HookTrust, codex_hooks};
pub use consent::{Consent, decide};
pub use undo::plan_uninstall;

use super::Host;

/// What `setup claude` should leave behind.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// `$STEADFAST_HOME`.
    pub home: &'a Path,
    /// `$CLAUDE_CONFIG_DIR`, else `~/.claude`.
    pub config_dir: &'a Path,
    /// Text of the repository's `.claude-plugin/marketplace.json`; its plugin source must be `./plugin`.
    pub marketplace: &'a str,
    /// The repository's `plugin/`: path below it, content.
    pub plugin: &'a [(&'a str, &'a str)],
    /// User-level commands: file name, content.
    pub commands: &'a [(&'a str, &'a str)],
    /// The status line's shell command.
    pub statusline: Choice<&'a str>,
    /// How many Stop blocks in a row the client should allow.
    pub block_cap: Choice<u32>,
    /// The one store that hooks and command line share.
    pub db: &'a Path,
    /// The time, RFC 3339 in UTC. The client calls its whole marketplace file corrupt if an entry lacks it.
    pub now: &'a str,
}

/// An optional setting: nobody's answer must undo an answer given at an earlier `setup`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice<T> {
    Set(T),
    Leave,
    Remove,
}

/// Changes that belong together: all of them are made, or none.
#[derive(Debug, Default)]
pub struct Plan {
    changes: Vec<Change>,
    /// Removed after the changes if nobody put anything into them, deepest first.
    remove_dirs: Vec<PathBuf>,
    notes: Vec<String>,
}

/// One file's text before and after; `None` means that it does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Change {
    path: PathBuf,
    before: Option<String>,
    after: Option<String>,
    access: Access,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    /// Below `$STEADFAST_HOME`: nobody else may read it.
    Private,
    /// The user's own tree: the umask decides.
    Inherited,
}

/// What [`Plan::apply`] did.
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
    #[error("{} is not valid JSON: {source}", path.display())]
    Json { path: PathBuf, source: serde_json::Error },
    #[error("{} does not hold a JSON object", path.display())]
    NotAnObject { path: PathBuf },
    #[error("`{key}` in {} is not a JSON object", path.display())]
    KeyNotAnObject { path: PathBuf, key: String },
    #[error("`{key}` in {} is not a list", path.display())]
    KeyNotAList { path: PathBuf, key: String },
    #[error("{} is not valid TOML: {message}", path.display())]
    Toml { path: PathBuf, message: String },
    #[error("{} is not valid UTF-8", path.display())]
    NotText { path: PathBuf },
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
    /// What the user can do about it, for the `hint:` line.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Io(_) => "nothing was changed; check that the file and its directory are writable",
            Self::Json { .. }
            | Self::NotAnObject { .. }
            | Self::KeyNotAnObject { .. }
            | Self::KeyNotAList { .. }
            | Self::Toml { .. }
            | Self::NotText { .. } => "nothing was changed; repair the file, then run the command again",
            Self::PathNotUnicode { .. } => "set STEADFAST_HOME to a path that is valid Unicode",
            Self::Raced { .. } => "nothing was changed; run the command again",
            Self::Manifest { .. } => "restore the file from a backup, or move it away and run `steadfast setup` again",
            Self::ManifestFromTheFuture { .. } => "update steadfast, then run the command again",
        }
    }
}

/// Takes everything out that [`plan`] put in; [`plan_uninstall`] shows it first.
pub fn uninstall(home: &Path, host: Host, config_dir: &Path) -> Result<Report, InstallError> {
    plan_uninstall(home, host, config_dir, &[])?.apply()
}

impl Plan {
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// What the user should know: things left alone, and why.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    fn push(&mut self, change: Change) {
        if change.before != change.after {
            self.changes.push(change);
        }
    }
}

#[cfg(test)]
mod tests;
