//! What setup touched, with the text each file had before: the memory that `--uninstall` works from.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf, absolute};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::apply::read;
use super::codex_config::CodexEdits;
use super::json::JsonEdit;
use super::{FileChange, InstallError};
use steadfast_model::host::Host;

const FORMAT: u32 = 1;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) format: u32,
    pub(crate) files: Vec<ManifestEntry>,
    /// Directories that did not exist before, shallowest first.
    pub(crate) dirs: Vec<PathBuf>,
    /// Optional settings that the user refused, with the client configuration that they belong to.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) refused: BTreeSet<(PathBuf, OptionalSetting)>,
}

/// What `setup` sets only with the user's consent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OptionalSetting {
    StatusLine,
    BlockCap,
    LimitDialog,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ManifestEntry {
    pub(crate) path: PathBuf,
    /// The client configuration this file belongs to; `None` for what all of them share, below `$STEADFAST_HOME`.
    pub(crate) config_dir: Option<PathBuf>,
    pub(crate) before: Option<String>,
    pub(crate) after: Option<String>,
    pub(crate) content: ManifestContent,
}

/// How much of a file is ours, which decides what to take out of it once the user has changed it too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ManifestContent {
    Whole,
    Json {
        edits: Vec<JsonEdit>,
        /// A file that did not exist before goes away again once no more than this is left in it.
        empty: Value,
    },
    Toml {
        db: String,
    },
    /// Codex's own `config.toml`.
    Codex(CodexEdits),
}

/// Whether `setup` has set up this host, or the service of this name.
pub fn is_set_up(home: &Path, name: &str) -> bool {
    Manifest::path(home, name).is_file()
}

/// The configuration directories of a host that `setup` has set up.
pub fn config_dirs(home: &Path, host: Host) -> Result<BTreeSet<PathBuf>, InstallError> {
    let (manifest, _) = Manifest::load(&absolute(home)?, host.name())?;
    Ok(manifest.files.into_iter().filter_map(|entry| entry.config_dir).collect())
}

impl ManifestEntry {
    /// A file that all hosts share.
    pub(crate) fn shared(
        path: PathBuf,
        before: Option<String>,
        after: Option<String>,
        content: ManifestContent,
    ) -> Self {
        Self { path, config_dir: None, before, after, content }
    }
}

impl Manifest {
    /// One manifest for each host and for the service, so that each can leave alone.
    pub(crate) fn path(home: &Path, name: &str) -> PathBuf {
        home.join("setup").join(format!("{name}.json"))
    }

    /// The manifest and its text; empty if there is none yet.
    pub(crate) fn load(home: &Path, name: &str) -> Result<(Self, Option<String>), InstallError> {
        let path = Self::path(home, name);
        let Some(text) = read(&path)? else {
            return Ok((Self::new(), None));
        };
        match serde_json::from_slice::<Self>(text.as_bytes()) {
            Ok(manifest) if manifest.format <= FORMAT => Ok((manifest, Some(text))),
            Ok(manifest) => Err(InstallError::ManifestFromTheFuture { path, found: manifest.format }),
            Err(source) => Err(InstallError::Manifest { path, source }),
        }
    }

    /// The manifests of the hosts not named here.
    pub(crate) fn load_others(home: &Path, but: &[Host]) -> Result<Vec<Self>, InstallError> {
        let others = Host::ALL.iter().copied().filter(|host| !but.contains(host));
        others.map(|host| Ok(Self::load(home, host.name())?.0)).collect()
    }

    pub(crate) fn render(&self, path: &Path) -> Result<String, InstallError> {
        let mut text = serde_json::to_string_pretty(self)
            .map_err(|source| InstallError::Manifest { path: path.into(), source })?;
        text.push('\n');
        Ok(text)
    }

    pub(crate) fn entry(&self, path: &Path) -> Option<&ManifestEntry> {
        self.files.iter().find(|entry| entry.path == path)
    }

    pub(crate) fn new() -> Self {
        Self { format: FORMAT, files: Vec::new(), dirs: Vec::new(), refused: BTreeSet::new() }
    }

    /// Remembers the directories that writing these files will create.
    pub(crate) fn note_missing_dirs(&mut self, changes: &[FileChange], manifest_path: &Path) {
        let written = changes.iter().filter(|change| change.after.is_some()).map(|change| change.path.as_path());
        let missing =
            written.chain([manifest_path]).flat_map(|path| path.ancestors().skip(1).take_while(|dir| !dir.exists()));
        self.dirs.extend(missing.map(Path::to_path_buf));
        self.dirs.sort();
        self.dirs.dedup();
    }
}
