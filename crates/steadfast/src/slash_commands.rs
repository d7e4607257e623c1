//! The slash commands `/goal-VERB` (Claude Code) and `$goal-VERB` (Codex), as data. The files in `plugin/commands` and the
//! skills of Codex must agree with this table.

use steadfast_hosts::command::{AnsweredBy, SlashCommand};

const fn by_hook(name: &'static str, arguments: &'static str, description: &'static str) -> SlashCommand {
    SlashCommand { name, arguments, description, answered_by: AnsweredBy::Hook }
}

const fn by_model(name: &'static str, arguments: &'static str, description: &'static str) -> SlashCommand {
    SlashCommand { name, arguments, description, answered_by: AnsweredBy::Model }
}

const START: &str = "\"OBJECTIVE\" [--budget quick|standard|deep|overnight|auto|N] [--usd X] [--max-turns N] \
    [--max-hours H] [--deadline TIME] [--plan-percent N] [--verify CMD] [--item TEXT | --items FILE.md] [--judge] \
    [--sign-off] [--queue]";
const EXTEND: &str = "[--add-turns N] [--add-hours H] [--add-tokens N] [--add-usd X]";

const WAIT: &str = "[--until TIME | --for DURATION] [--command CMD | --file PATH | --pid N]";

pub(crate) const SLASH_COMMANDS: &[SlashCommand] = &[
    by_hook("abandon", "", "Abandon this session's goal"),
    by_model("adopt", "GOAL", "Move an orphaned goal to this session"),
    by_hook("block", "--reason \"...\"", "Mark the goal as blocked"),
    by_hook("cleanup", "[--list | --delete] [--older-than H]", "List or delete goals whose session is gone"),
    by_hook("complete", "", "Mark the goal as complete"),
    by_hook("doctor", "", "Check the installation of Steadfast"),
    by_model("edit", "\"NEW OBJECTIVE\"", "Replace the goal's objective"),
    by_hook("extend", EXTEND, "Raise the goal's limits"),
    by_hook("history", "[--all] [--events] [--format=json]", "List goals and their events"),
    by_hook("pause", "[--all]", "Stop driving the goal until it is resumed"),
    by_hook("queue", "[list | move N TO | drop N]", "Show or change the goals that wait for this one to end"),
    by_hook("reconcile", "--accept-reset", "Accept a gap in the token accounting and continue"),
    by_hook("report", "[GOAL] [--md]", "Show the evidence for the whole goal"),
    by_hook("resume", "", "Resume a paused or blocked goal"),
    by_model("start", START, "Start a durable goal in this session"),
    by_hook("status", "[--json]", "Show the state of this session's goal"),
    by_hook("verify", "", "Run the goal's verification commands now"),
    by_hook("wait", WAIT, "Pause the goal without cost until a time or a condition"),
];

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;
    use steadfast_hosts::{adapter, adapters};
    use steadfast_model::host::Host;

    use super::*;
    use crate::cli::SlashCli;
    use crate::plugin;

    #[test]
    fn the_plugin_has_exactly_the_files_of_these_commands() {
        let adapter = adapter(Host::Claude);
        let expected: Vec<(String, String)> =
            SLASH_COMMANDS.iter().flat_map(|command| (adapter.command_files)(command)).collect();
        let in_plugin = plugin::FILES.iter().filter_map(|(path, text)| Some((path.strip_prefix("commands/")?, *text)));
        let found: Vec<(String, String)> = in_plugin.map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn every_command_of_every_host_says_what_to_do_without_its_hook() {
        for (adapter, command) in
            adapters().flat_map(|adapter| SLASH_COMMANDS.iter().map(move |command| (adapter, command)))
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

    #[test]
    fn every_slash_command_but_doctor_is_a_verb_of_goal() {
        let cli = SlashCli::command();
        let unknown = SLASH_COMMANDS.iter().filter(|command| cli.find_subcommand(command.name).is_none());
        assert_eq!(unknown.map(|command| command.name).collect::<Vec<_>>(), ["doctor"]);
        let verbs = cli.get_subcommands().map(clap::Command::get_name);
        let missing = verbs.filter(|verb| SLASH_COMMANDS.iter().all(|command| command.name != *verb));
        assert_eq!(missing.collect::<Vec<_>>(), Vec::<&str>::new());
    }
}
