//! Tables in Codex's `config.toml` that are ours as a whole: the tool server and the evaluator.

use std::path::Path;

use serde_json::Value;
use toml_edit::{DocumentMut, Item};

use super::InstallError;
use super::codex_config::{section, table, toml_value};

/// One table of ours in one of the client's sections.
#[derive(Debug)]
pub(crate) struct OwnTable {
    pub(crate) section: &'static str,
    pub(crate) name: &'static str,
    /// The key whose value tells a table of ours from one of the user's.
    owner: &'static str,
    /// The keys that are ours to set.
    keys: &'static [&'static str],
}

pub(crate) const SERVER: OwnTable = OwnTable {
    section: "mcp_servers",
    name: "steadfast",
    owner: "command",
    keys: &["command", "args", "env_vars", "env"],
};

pub(crate) const EVALUATOR: OwnTable =
    OwnTable { section: "agents", name: "goal-evaluator", owner: "config_file", keys: &["description", "config_file"] };

impl OwnTable {
    /// How messages name it.
    pub(crate) fn key(&self) -> String {
        format!("{}.{}", self.section, self.name)
    }

    /// What the file has in its place.
    pub(crate) fn found<'a>(&self, content: &'a Value) -> &'a Value {
        &content[self.section][self.name]
    }

    pub(super) fn put(
        &self,
        path: &Path,
        document: &mut DocumentMut,
        present: &Value,
        wanted: &Value,
    ) -> Result<(), InstallError> {
        let present = self.found(present);
        let (tables, inline) = section(path, document, self.section)?;
        if let Some(table) = tables.get_mut(self.name).and_then(Item::as_table_like_mut) {
            for key in self.keys.iter().filter(|key| present.get(key) != wanted.get(key)) {
                match wanted.get(key) {
                    Some(value) => table.insert(key, Item::Value(toml_value(value))),
                    None => table.remove(key),
                };
            }
            return Ok(());
        }
        tables.insert(self.name, if inline { Item::Value(toml_value(wanted)) } else { Item::Table(table(wanted)) });
        Ok(())
    }

    /// Removes it, unless the user has made it theirs; returns whether it is removed.
    pub(super) fn remove(&self, document: &mut DocumentMut, present: &Value, ours: &Value) -> bool {
        let now = self.found(present);
        // Without its owner it is only what Codex noted about it.
        if !now.is_null() && !now[self.owner].is_null() && now[self.owner] != ours[self.owner] {
            return false;
        }
        if let Some(tables) = document.get_mut(self.section).and_then(Item::as_table_like_mut) {
            tables.remove(self.name);
        }
        true
    }
}
