//! The Claude Code plugin, built into the binary so that `setup` needs nothing else. `plugin` and `marketplace` beside
//! `src` are links to the directories of the repository, since a published crate has only files of its own directory.

use std::path::{Path, PathBuf};

use steadfast_hosts::install::shell_word;
use steadfast_system::bounded;

use crate::programs;

pub(crate) const MARKETPLACE: &str = include_str!("../marketplace/marketplace.json");

/// The file of the hooks, in which the program is named.
const HOOKS: &str = "hooks/hooks.json";
/// Far above any file of the plugin.
const FILE_MAX: u64 = 1024 * 1024;

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
    "hooks/answer.sh",
    "hooks/every-client.json",
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
                HOOKS => in_hooks(text, &json_text(&in_shell)),
                ".mcp.json" => {
                    text.replace("\"command\": \"steadfast\"", &format!("\"command\": \"{}\"", json_text(&program)))
                }
                _ => (*text).to_owned(),
            };
            (*path, text)
        })
        .collect()
}

/// Names the program in the commands of the hooks: where they look for it, and where they start it.
fn in_hooks(text: &str, program: &str) -> String {
    let start = format!("exec {program} hook");
    text.replace("command -v steadfast ", &format!("command -v {program} ")).replace("exec steadfast hook", &start)
}

/// Whether the plugin that `setup` wrote below the home is that of this version; `None` if it wrote none.
pub(crate) fn is_current(home: &Path) -> Option<bool> {
    let plugin = home.join("claude/plugin");
    let installed = |path: &str| bounded::text(&plugin.join(path), FILE_MAX).ok();
    let hooks = installed(HOOKS)?;
    // The program may be in another place; the hooks say where.
    let program = hooks.split_once("; exec ").and_then(|(_, rest)| Some(rest.split_once(" hook claude")?.0));
    let is_same = |(path, text): &(&str, &str)| match *path {
        HOOKS => program.is_some_and(|program| in_hooks(text, program) == hooks),
        ".mcp.json" => installed(path).is_some(),
        path => installed(path).as_deref() == Some(text),
    };
    Some(FILES.iter().all(is_same))
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

#[cfg(test)]
mod tests {
    use steadfast_model::host::Host;

    use super::*;

    #[test]
    fn the_plugin_knows_the_oldest_client_that_works() {
        let (major, minor, patch) = Host::Claude.capabilities().version_check.as_ref().unwrap().oldest;
        let (_, text) = FILES.iter().find(|(path, _)| *path == "hooks/answer.sh").unwrap();
        for part in [format!("need {major}.{minor}.{patch} or later"), format!("-lt {patch} ]")] {
            assert!(text.contains(&part), "{part}");
        }
    }

    #[test]
    fn the_plugin_has_the_version_of_the_program() {
        let (_, text) = FILES.iter().find(|(path, _)| *path == ".claude-plugin/plugin.json").unwrap();
        let plugin: serde_json::Value = serde_json::from_str(text).unwrap();
        assert_eq!(plugin["version"], env!("CARGO_PKG_VERSION"));
    }

    #[test]
    fn every_hook_looks_for_the_program_before_it_starts_it() {
        let files = files_for(Path::new("/opt/it's here/steadfast"));
        let (_, hooks) = files.iter().find(|(path, _)| *path == HOOKS).unwrap();
        let starts = hooks.matches(r"; exec '/opt/it'\\''s here/steadfast' hook claude").count();
        assert!(starts > 20, "{hooks}");
        assert_eq!(hooks.matches(r"command -v '/opt/it'\\''s here/steadfast' >/dev/null || ex").count(), starts);
        assert_eq!(hooks.matches("\"command\": ").count(), starts);
    }
}
