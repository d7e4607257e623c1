//! Which slash commands of Claude Code are ours. Users and repositories may have commands of their own with our names;
//! those are left alone.

use std::path::Path;

use steadfast_system::bounded;

use super::files;
use crate::command::{is_own_file, is_plain};

/// How the names of our commands begin, and how the client marks those of the plugin.
const PREFIX: &str = "goal-";
const PLUGIN: &str = "steadfast:";

/// The verb of a command, if it is ours. `source` says where the client found it; older clients do not.
pub(super) fn own_verb<'a>(name: &'a str, source: Option<&str>) -> Option<&'a str> {
    match (name.strip_prefix(PLUGIN), source) {
        (Some(of_plugin), None | Some("plugin")) => of_plugin.strip_prefix(PREFIX),
        (None, None) => name.strip_prefix(PREFIX),
        (None, Some("userSettings")) => name.strip_prefix(PREFIX).filter(|verb| is_installed(verb)),
        _ => None,
    }
}

/// The text of a repository's own command, which a command of ours with the same name hides: the client prefers the
/// user's files, and `setup` puts ours there.
pub(super) fn hidden(project: &str, name: &str, arguments: &str) -> Option<String> {
    const FILE_MAX: u64 = 64 * 1024;
    let file = Path::new(project).join(".claude/commands").join(format!("{name}.md"));
    if project.is_empty() || !is_plain(name) || is_own_file(&file) != Some(false) {
        return None;
    }
    let text = bounded::text(&file, FILE_MAX).ok()?;
    let body = text.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n")).map_or(&*text, |(_, body)| body);
    Some(body.trim().replace("$ARGUMENTS", arguments))
}

/// Whether a prompt calls a command with one of our names: `/goal-start …`, `/steadfast:goal-start …`.
pub(super) fn is_named_like_ours(prompt: &str) -> bool {
    let name = prompt.trim_start().strip_prefix('/').unwrap_or_default();
    name.strip_prefix(PLUGIN).unwrap_or(name).starts_with(PREFIX)
}

/// Whether the user's command of this verb is the one that `setup` installed.
fn is_installed(verb: &str) -> bool {
    let files = files::below_config_dirs("commands").into_iter().map(|dir| dir.join(format!("{PREFIX}{verb}.md")));
    is_plain(verb) && files.into_iter().any(|file| is_own_file(&file) == Some(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_commands_of_the_plugin_and_of_setup_are_ours() {
        for (name, source, verb) in [
            ("goal-status", None, Some("status")),
            ("steadfast:goal-status", None, Some("status")),
            ("steadfast:goal-status", Some("plugin"), Some("status")),
            // Another plugin, a repository, a folder `steadfast` of the user, a file that setup did not write.
            ("goal-status", Some("plugin"), None),
            ("other:goal-status", Some("plugin"), None),
            ("goal-status", Some("projectSettings"), None),
            ("steadfast:goal-status", Some("userSettings"), None),
            ("goal-no-such-verb", Some("userSettings"), None),
            ("goal-../../etc/passwd", Some("userSettings"), None),
            ("review", Some("userSettings"), None),
        ] {
            assert_eq!(own_verb(name, source), verb, "{name} {source:?}");
        }
    }

    #[test]
    fn a_command_of_the_repository_is_found_behind_ours() {
        let project = tempfile::tempdir().unwrap();
        let commands = project.path().join(".claude/commands");
        fs_err::create_dir_all(&commands).unwrap();
        let found = |name: &str| hidden(project.path().to_str().unwrap(), name, "Q3 $(id)");
        assert_eq!(found("goal-status"), None);
        for (text, expected) in [
            ("Report on: $ARGUMENTS\n", Some("Report on: Q3 $(id)")),
            ("---\ndescription: x\n---\n\nReport on: $ARGUMENTS\n", Some("Report on: Q3 $(id)")),
            ("If you read this, its hook did not run.\n", None),
        ] {
            fs_err::write(commands.join("goal-status.md"), text).unwrap();
            assert_eq!(found("goal-status").as_deref(), expected, "{text}");
        }
        assert_eq!(found("../commands/goal-status"), None);
        assert_eq!(found("steadfast:goal-status"), None);
    }

    #[test]
    fn prompts_with_our_names_are_commands() {
        for (prompt, expected) in [
            ("/goal-start x", true),
            ("  /steadfast:goal-edit \"y\"", true),
            ("/goal resume", false),
            ("say /goal-start", false),
            ("goal-start", false),
        ] {
            assert_eq!(is_named_like_ours(prompt), expected, "{prompt}");
        }
    }
}
