//! The slash commands `/goal-VERB` (Claude Code) and `$goal-VERB` (Codex), as data. The files in `plugin/commands` and the
//! skills of Codex must agree with this table.

/// Who answers a slash command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnsweredBy {
    /// The hook prints the answer; no model is called.
    Hook,
    /// The hook changes the goal, and the model gets the prompt to work on it.
    Model,
}

#[derive(Debug)]
pub(crate) struct SlashCommand {
    /// The word after `goal-`.
    pub(crate) name: &'static str,
    /// The hint that clients show after the name; empty without arguments.
    pub(crate) arguments: &'static str,
    pub(crate) description: &'static str,
    pub(crate) answered_by: AnsweredBy,
}

const fn by_hook(name: &'static str, arguments: &'static str, description: &'static str) -> SlashCommand {
    SlashCommand { name, arguments, description, answered_by: AnsweredBy::Hook }
}

const fn by_model(name: &'static str, arguments: &'static str, description: &'static str) -> SlashCommand {
    SlashCommand { name, arguments, description, answered_by: AnsweredBy::Model }
}

const START: &str = "\"OBJECTIVE\" [--budget quick|standard|deep|overnight|auto|N] [--usd X] [--max-turns N] \
    [--max-hours H] [--deadline TIME] [--verify CMD]";
const EXTEND: &str = "[--add-turns N] [--add-hours H] [--add-tokens N] [--add-usd X]";

pub(crate) const SLASH_COMMANDS: &[SlashCommand] = &[
    by_hook("abandon", "", "Abandon this session's goal"),
    by_model("adopt", "GOAL", "Move an orphaned goal to this session"),
    by_hook("block", "--reason \"...\"", "Mark the goal as blocked until you resume it"),
    by_hook("cleanup", "[--list | --delete] [--older-than H]", "List or delete goals whose session is gone"),
    by_hook("complete", "", "Mark the goal as complete"),
    by_hook("doctor", "", "Diagnose the installation of Steadfast"),
    by_model("edit", "\"NEW OBJECTIVE\"", "Replace the goal's objective"),
    by_hook("extend", EXTEND, "Raise the goal's limits"),
    by_hook("history", "[--all] [--events] [--format=json]", "List goals and their events"),
    by_hook("pause", "", "Pause the goal"),
    by_hook("reconcile", "--accept-reset", "Accept a gap in the token accounting and resume"),
    by_hook("resume", "", "Resume a paused or blocked goal"),
    by_model("start", START, "Start a durable goal in this session"),
    by_hook("status", "[--json]", "Show the goal's status, spending and limits"),
    by_hook("verify", "", "Run the goal's verification commands now"),
];

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::SlashCli;
    use crate::plugin;

    #[test]
    fn the_plugin_has_a_command_file_for_every_slash_command() {
        let files = plugin::commands();
        let names: Vec<String> = SLASH_COMMANDS.iter().map(|command| format!("goal-{}.md", command.name)).collect();
        assert_eq!(files.iter().map(|(file, _)| *file).collect::<Vec<_>>(), names);
        for (command, (file, text)) in SLASH_COMMANDS.iter().zip(&files) {
            let field = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default().trim();
            assert_eq!(field("description:"), command.description, "{file}");
            assert_eq!(field("argument-hint:").trim_matches('\''), command.arguments, "{file}");
            let answered_by_hook = text.contains("answers this command itself");
            assert_eq!(answered_by_hook, command.answered_by == AnsweredBy::Hook, "{file}");
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
