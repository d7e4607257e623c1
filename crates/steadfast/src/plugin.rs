//! The Claude Code plugin, built into the binary so that `setup` needs nothing else. `plugin` and `marketplace` beside
//! `src` are links to the directories of the repository, since a published crate has only files of its own directory.

use std::path::{Path, PathBuf};

use steadfast_hosts::install::shell_word;
use steadfast_system::bounded;

use crate::programs;

pub(crate) const MARKETPLACE: &str = include_str!("../marketplace/marketplace.json");

macro_rules! plugin_files {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../plugin/", $path)))),*]
    };
}

/// Every file of `plugin/`: its path there, and its text.
pub(crate) const FILES: &[(&str, &str)] = plugin_files![
    ".claude-plugin/plugin.json",
    ".mcp.json",
    "agents/goal-evaluator.md",
    "commands/goal-abandon.md",
    "commands/goal-adopt.md",
    "commands/goal-block.md",
    "commands/goal-cleanup.md",
    "commands/goal-complete.md",
    "commands/goal-doctor.md",
    "commands/goal-edit.md",
    "commands/goal-extend.md",
    "commands/goal-history.md",
    "commands/goal-pause.md",
    "commands/goal-queue.md",
    "commands/goal-reconcile.md",
    "commands/goal-report.md",
    "commands/goal-resume.md",
    "commands/goal-start.md",
    "commands/goal-status.md",
    "commands/goal-verify.md",
    "commands/goal-wait.md",
    "hooks/hooks.json",
    "skills/durable-goal/SKILL.md",
];

/// The plugin's files with the program named by its full path, since a client started from a desktop may not
/// have the user's PATH.
pub(crate) fn files_for(program: &Path) -> Vec<(&'static str, String)> {
    let program = program.to_string_lossy();
    let in_shell = shell_word(&program);
    FILES
        .iter()
        .map(|(path, text)| {
            let text = match *path {
                "hooks/hooks.json" => text.replace("\"steadfast hook", &format!("\"{} hook", json_text(&in_shell))),
                ".mcp.json" => {
                    text.replace("\"command\": \"steadfast\"", &format!("\"command\": \"{}\"", json_text(&program)))
                }
                _ => (*text).to_owned(),
            };
            (*path, text)
        })
        .collect()
}

/// Whether the plugin that `setup` wrote below the home has the hooks of this version; `None` if it wrote none.
pub(crate) fn is_current(home: &Path) -> Option<bool> {
    let installed = bounded::text(&home.join("claude/plugin/hooks/hooks.json"), 1024 * 1024).ok()?;
    let (_, ours) = FILES.iter().find(|(path, _)| *path == "hooks/hooks.json")?;
    // The program may be in another place.
    let shape = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.rsplit_once("hook claude").map_or(line, |(_, rest)| rest).to_owned()).collect()
    };
    Some(shape(&installed) == shape(ours))
}

/// This program by a path that outlives an upgrade: the one on PATH if it leads here, since a package manager may keep
/// every version in a directory of its own.
pub(crate) fn lasting_program() -> std::io::Result<PathBuf> {
    let program = std::env::current_exe()?;
    let real = |path: &Path| fs_err::canonicalize(path).ok();
    let on_path =
        programs::on_path("steadfast").filter(|candidate| candidate.is_absolute() && real(candidate) == real(&program));
    Ok(on_path.unwrap_or(program))
}

fn json_text(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}
