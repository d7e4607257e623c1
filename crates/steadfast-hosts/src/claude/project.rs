//! What a repository brings for Claude Code. `claude -p` shows no trust dialog: it runs the hooks and servers at once.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::files;
use crate::project_files::{ProjectFile, commands_in, files_below, json};
use steadfast_system::env_vars;

const SETTINGS: [&str; 2] = [".claude/settings.json", ".claude/settings.local.json"];
const SERVERS: &str = ".mcp.json";
/// Folders whose files the model reads; they may name commands and hooks too.
const FOLDERS: [(&str, &str); 4] = [
    (".claude/agents", "agent"),
    (".claude/commands", "slash command"),
    (".claude/skills", "skill"),
    (".claude/output-styles", "output style"),
];
/// Settings that are commands themselves.
const PROGRAMS: [&str; 5] =
    ["apiKeyHelper", "awsAuthRefresh", "awsCredentialExport", "gcpAuthRefresh", "otelHeadersHelper"];

pub(super) fn files(directories: &[PathBuf]) -> io::Result<Vec<ProjectFile>> {
    let mut found = Vec::new();
    for directory in directories {
        for name in SETTINGS {
            let file = directory.join(name);
            found.extend(json(&file)?.map(|value| settings(file, &value)));
        }
        let file = directory.join(SERVERS);
        if let Some(value) = json(&file)? {
            let mut commands = Vec::new();
            commands_in(&value, &mut commands);
            found.push(ProjectFile { commands, ..ProjectFile::text(file, "MCP servers") });
        }
        for (folder, what) in FOLDERS {
            let files = files_below(&directory.join(folder))?;
            found.extend(files.into_iter().map(|file| ProjectFile::text(file, what)));
        }
    }
    Ok(found)
}

fn settings(file: PathBuf, value: &Value) -> ProjectFile {
    let mut settings = ProjectFile::text(file, "settings");
    let Value::Object(fields) = value else { return settings };
    for (key, value) in fields {
        match (key.as_str(), value) {
            ("hooks" | "statusLine", _) => commands_in(value, &mut settings.commands),
            (program, Value::String(command)) if PROGRAMS.contains(&program) => settings.commands.push(command.clone()),
            ("$schema", _) => {}
            _ => settings.settings.push(format!("{key}: {value}")),
        }
    }
    settings
}

/// Whether the user accepted the client's own trust dialog for this directory, or for the repository it is in.
pub(super) fn is_trusted(directory: &Path) -> bool {
    let home = || etcetera::home_dir().ok();
    let place =
        env_vars::text(env_vars::CLAUDE_CONFIG_DIR).map_or_else(home, |_| files::config_dirs().into_iter().next());
    let notes = place.and_then(|place| json(&place.join(".claude.json")).ok().flatten()).unwrap_or_default();
    let projects = notes.get("projects").and_then(Value::as_object);
    let is_accepted = |directory: &Path| {
        let note = projects.and_then(|projects| projects.get(directory.to_str()?));
        note.is_some_and(|note| note["hasTrustDialogAccepted"] == Value::Bool(true))
    };
    for above in directory.ancestors() {
        if is_accepted(above) {
            return true;
        }
        if above.join(".git").exists() {
            return false;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_that_the_client_loads_is_found_with_what_it_runs() {
        let project = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = project.path().join(path);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, text).unwrap();
        };
        let found = || {
            let files = files(&[project.path().join("sub"), project.path().to_owned()]).unwrap();
            let line = |mut file: ProjectFile| {
                file.commands.sort();
                let path = file.file.strip_prefix(project.path()).unwrap().display().to_string();
                (path, file.what, file.commands.join("; "), file.settings.join("; "))
            };
            files.into_iter().map(line).collect::<Vec<_>>()
        };
        assert_eq!(found(), []);
        put(
            "sub/.mcp.json",
            r#"{"mcpServers": {"a": {"command": "node", "args": ["s.js", "x"]}, "b": {"url": "http://h"}}}"#,
        );
        put(
            ".claude/settings.json",
            r#"{"$schema": "s", "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "touch x"}]}]},
                "statusLine": {"type": "command", "command": "bar"}, "apiKeyHelper": "key.sh", "env": {"A": "b"}}"#,
        );
        put(".claude/settings.local.json", "not JSON");
        put(".claude/skills/deep/er/run.sh", "x");
        put(".claude/agents/a.md", "x");
        put(".claude/loops/ours/loop.yaml", "x");
        std::os::unix::fs::symlink(".", project.path().join(".claude/skills/round")).unwrap();
        let line = |path: &str, what, commands: &str, settings: &str| {
            (path.to_owned(), what, commands.to_owned(), settings.to_owned())
        };
        assert_eq!(
            found(),
            [
                line("sub/.mcp.json", "MCP servers", "node s.js x", ""),
                line(".claude/settings.json", "settings", "bar; key.sh; touch x", r#"env: {"A":"b"}"#),
                line(".claude/settings.local.json", "settings", "", ""),
                line(".claude/agents/a.md", "agent", "", ""),
                line(".claude/skills/deep/er/run.sh", "skill", "", ""),
            ]
        );
    }
}
