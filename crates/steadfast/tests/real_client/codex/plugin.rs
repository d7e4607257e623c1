//! Plugins, installed by the client's own commands.

use super::client::Codex;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

impl Codex {
    /// Installs `name@market` from a marketplace directory and trusts its hooks, as a person would in the review.
    pub(crate) fn with_plugin(self, marketplace: &Path, plugin: &str) -> Self {
        let (codex, installed) = self.with_untrusted_plugin(marketplace, plugin);
        let hooks = fs::read_to_string(installed.join("hooks/hooks.json"));
        if let Ok(text) = hooks {
            let hooks: Value = serde_json::from_str(&text).expect("hooks.json");
            codex.trust_hooks(&format!("{plugin}:hooks/hooks.json"), &hooks["hooks"]);
        }
        codex
    }

    /// The same without the review: the client skips the hooks. Returns the path of the plugin's copy.
    pub(crate) fn with_untrusted_plugin(self, marketplace: &Path, plugin: &str) -> (Self, PathBuf) {
        let codex = self.feature("plugins", true);
        let added = codex.run(&["plugin", "marketplace", "add", &marketplace.to_string_lossy()]);
        assert!(added.status.success(), "{added:?}");
        let added = codex.run(&["plugin", "add", plugin, "--json"]);
        assert!(added.status.success(), "{added:?}");
        let answer: Value = serde_json::from_str(&added.stdout).expect("answer of plugin add");
        let installed = answer["installedPath"].as_str().expect("installedPath");
        (codex, PathBuf::from(installed))
    }
}
