//! Which slash commands of Claude Code are ours. Users and repositories may have commands of their own with our names;
//! those are left alone.

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
