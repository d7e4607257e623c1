//! Stores of plugins beside the one in use. Without `setup`, hooks keep their goals in the plugin's own directory, where
//! a terminal does not look.

use std::path::{Path, PathBuf};

use steadfast_hosts::adapters;
use steadfast_model::host::Host;
use steadfast_model::text;
use steadfast_store::{StoreError, goals_missing};
use steadfast_system::paths::Paths;

/// Our plugin's data directories begin with this name.
const OWN: &str = "steadfast";
const PREDECESSOR: &str = "claude-goal";

pub(super) struct OtherStore {
    pub(super) host: Host,
    pub(super) path: PathBuf,
    /// How many of its goals are not in the store in use.
    pub(super) missing: Result<usize, StoreError>,
}

/// The stores of our plugin with goals that the store in use lacks, and those that cannot be read.
pub(super) fn with_goals(paths: &Paths) -> Vec<OtherStore> {
    let real = |path: &Path| fs_err::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let others = plugin_stores(OWN).into_iter().filter(|(_, path)| real(path) != real(&paths.store));
    let counted = others.map(|(host, path)| {
        let missing = goals_missing(&paths.store, &path);
        OtherStore { host, path, missing }
    });
    counted.filter(|other| !matches!(other.missing, Ok(0))).collect()
}

/// Where goals are that a terminal does not see, and what to type; `None` if there are none.
pub(super) fn note(paths: &Paths) -> Option<String> {
    with_goals(paths).iter().find_map(|other| {
        let goals = count(*other.missing.as_ref().ok()?);
        Some(format!("{goals} in the plugin's store {}; {}", other.path.display(), other.way_here()))
    })
}

impl OtherStore {
    pub(super) fn way_here(&self) -> String {
        format!("`steadfast setup {}` imports its goals and makes hooks and terminal use one store", self.host)
    }
}

pub(super) fn count(goals: usize) -> String {
    text::count(goals, "goal")
}

/// The newest store of the claude-goal plugin, if that plugin was used here.
pub(super) fn predecessor() -> Option<PathBuf> {
    plugin_stores(PREDECESSOR).into_iter().next().map(|(_, path)| path)
}

/// Stores in plugin data directories whose name begins with `prefix`.
fn plugin_stores(prefix: &str) -> Vec<(Host, PathBuf)> {
    let directories =
        adapters().flat_map(|adapter| (adapter.plugin_data_dirs)().into_iter().map(|dir| (adapter.host, dir)));
    let mut stores = Vec::new();
    for (host, directory) in directories {
        let entries = fs_err::read_dir(directory).into_iter().flatten().flatten();
        let of_plugin = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
        stores.extend(of_plugin.map(|entry| (host, entry.path().join("goals.db"))));
    }
    stores.retain(|(_, store)| store.metadata().is_ok_and(|meta| meta.len() > 0));
    stores.sort_by(|(_, one), (_, other)| one.cmp(other));
    stores
}
