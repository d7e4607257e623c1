//! Our commands, from which the adapters make command files and skills. `plugin/commands/*.md` are the files of Claude
//! Code's adapter; a test compares them.

use steadfast_core::host::command::{AnsweredBy, SlashCommand};

pub(crate) const COMMANDS: &[SlashCommand] = &[
    hook("abandon", "", "Abandon this session's goal"),
    model("adopt", "GOAL", "Move an orphaned goal to this session"),
    hook("block", "--reason \"...\"", "Mark the goal as blocked"),
    hook("cleanup", "[--list | --delete] [--older-than H]", "List or delete goals whose session is gone"),
    hook("complete", "", "Mark the goal as complete"),
    hook("doctor", "", "Check the installation of Steadfast"),
    model("edit", "\"NEW OBJECTIVE\"", "Replace the goal's objective"),
    hook("extend", "[--add-turns N] [--add-hours H] [--add-tokens N] [--add-usd X]", "Raise the goal's limits"),
    hook("history", "[--all] [--events] [--format=json]", "List goals and their events"),
    hook("pause", "", "Stop driving the goal until it is resumed"),
    hook("reconcile", "--accept-reset", "Accept a gap in the token accounting and continue"),
    hook("resume", "", "Resume a paused or blocked goal"),
    model(
        "start",
        "\"OBJECTIVE\" [--budget quick|standard|deep|overnight|auto|N] [--usd X] [--max-turns N] [--max-hours H] [--deadline TIME] [--verify CMD]",
        "Start a durable goal in this session",
    ),
    hook("status", "[--json]", "Show the state of this session's goal"),
    hook("verify", "", "Run the goal's verification commands now"),
];

const fn hook(name: &'static str, arguments: &'static str, description: &'static str) -> SlashCommand {
    SlashCommand { name, arguments, description, answered_by: AnsweredBy::Hook }
}

const fn model(name: &'static str, arguments: &'static str, description: &'static str) -> SlashCommand {
    SlashCommand { name, arguments, description, answered_by: AnsweredBy::Model }
}

#[cfg(test)]
mod tests {
    use steadfast_core::host::{Host, adapter, adapters};

    use super::*;
    use crate::plugin;

    #[test]
    fn the_plugin_has_exactly_the_files_of_these_commands() {
        let adapter = adapter(Host::Claude);
        let expected: Vec<(String, String)> =
            COMMANDS.iter().flat_map(|command| (adapter.command_files)(command)).collect();
        let in_plugin = plugin::FILES.iter().filter_map(|(path, text)| Some((path.strip_prefix("commands/")?, *text)));
        let found: Vec<(String, String)> = in_plugin.map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn every_command_of_every_host_says_what_to_do_without_its_hook() {
        for (adapter, command) in adapters().flat_map(|adapter| COMMANDS.iter().map(move |command| (adapter, command)))
        {
            let files = (adapter.command_files)(command);
            let (path, text) = &files[0];
            assert!(path.starts_with(&format!("goal-{}", command.name)), "{path}");
            for part in [command.description, "its hook did not run", "`steadfast doctor`", command.arguments] {
                assert!(text.contains(part), "{part}: {text}");
            }
            let other_prefixes = Host::ALL.iter().filter(|host| **host != adapter.host);
            for prefix in other_prefixes.map(|host| host.capabilities().command_prefix) {
                assert!(!text.contains(prefix), "{text}");
            }
        }
    }
}
