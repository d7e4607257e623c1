//! What a repository brings for Codex, which loads it in projects that it trusts itself.

use std::io;
use std::path::PathBuf;

use crate::project_files::{ProjectFile, bytes, commands_in, files_below, json};

/// Folders whose files the model reads or that say which commands need no approval.
const FOLDERS: [(&str, &str); 4] =
    [(".codex/skills", "skill"), (".agents/skills", "skill"), (".codex/agents", "agent"), (".codex/rules", "rules")];

pub(super) fn files(directories: &[PathBuf]) -> io::Result<Vec<ProjectFile>> {
    let mut found = Vec::new();
    for directory in directories {
        let file = directory.join(".codex/config.toml");
        if let Some(bytes) = bytes(&file)? {
            let text = String::from_utf8_lossy(&bytes);
            let table: toml::Table = toml::from_str(&text).unwrap_or_default();
            let mut commands = Vec::new();
            commands_in(&serde_json::to_value(&table).unwrap_or_default(), &mut commands);
            let notify = table.get("notify").map(|notify| format!("notify: {notify}"));
            let settings = notify.into_iter().collect();
            found.push(ProjectFile { commands, settings, ..ProjectFile::text(file, "configuration") });
        }
        let file = directory.join(".codex/hooks.json");
        if let Some(value) = json(&file)? {
            let mut commands = Vec::new();
            commands_in(&value, &mut commands);
            found.push(ProjectFile { commands, ..ProjectFile::text(file, "hooks") });
        }
        for (folder, what) in FOLDERS {
            let files = files_below(&directory.join(folder))?;
            found.extend(files.into_iter().map(|file| ProjectFile::text(file, what)));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_hooks_and_skills_of_a_project_are_found() {
        let project = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = project.path().join(path);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, text).unwrap();
        };
        put(".codex/config.toml", "notify = [\"x\"]\n[mcp_servers.a]\ncommand = \"node\"\nargs = [\"s.js\"]\n");
        put(".codex/hooks.json", r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "touch x"}]}]}}"#);
        put(".agents/skills/s/SKILL.md", "x");
        let files = files(&[project.path().to_owned()]).unwrap();
        let found: Vec<_> = files.iter().map(|file| (file.what, file.commands.join("; "))).collect();
        assert_eq!(
            found,
            [("configuration", "node s.js".to_owned()), ("hooks", "touch x".to_owned()), ("skill", String::new())]
        );
        assert_eq!(files[0].settings, ["notify: [\"x\"]"]);
    }
}
