//! The evaluator as an agent of Codex: a table in `config.toml` that names a file with its instructions. They are those
//! of the Claude Code plugin.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::install::codex_config::toml_value;
use crate::install::codex_tables::EVALUATOR;

/// Its file in `CODEX_HOME`.
pub(crate) const FILE: &str = "agents/goal-evaluator.toml";
const SOURCE: &str = include_str!("../../../agents/goal-evaluator.md");

/// What stands in `config.toml`.
pub(crate) fn table(codex_home: &Path) -> Value {
    json!({ "description": description(), "config_file": path(codex_home).to_string_lossy() })
}

pub(crate) fn path(codex_home: &Path) -> PathBuf {
    codex_home.join(FILE)
}

/// The text of its file.
pub(crate) fn file() -> String {
    let fields = [("name", EVALUATOR.name), ("description", description()), ("developer_instructions", instructions())];
    fields.map(|(key, text)| format!("{key} = {}\n", toml_value(&json!(text)))).concat()
}

/// The two parts of the source: the heading between two lines of dashes, and the instructions.
fn parts() -> (&'static str, &'static str) {
    SOURCE.trim_start_matches("---\n").split_once("\n---\n").unwrap_or_default()
}

fn description() -> &'static str {
    parts().0.lines().find_map(|line| line.strip_prefix("description: ")).unwrap_or_default()
}

pub(crate) fn instructions() -> &'static str {
    parts().1.trim_start()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_says_what_the_plugin_says() {
        let file: toml::Table = file().parse().unwrap();
        assert_eq!(file["name"].as_str(), Some("goal-evaluator"));
        let instructions = file["developer_instructions"].as_str().unwrap();
        assert!(instructions.starts_with("You judge whether a goal is met."), "{instructions}");
        assert!(SOURCE.ends_with(instructions) && SOURCE.contains(file["description"].as_str().unwrap()));
        assert!(instructions.contains("record_verdict"));
    }
}
