//! Our commands as Codex's skills, the only commands a user can add there. A hook answers them; the text of a skill is
//! what the model reads if the hook did not run.

use crate::command::{AnsweredBy, SlashCommand};
use steadfast_model::host::Host;

/// Only the user may invoke a skill, never the model by itself.
const POLICY: &str = "policy:\n  allow_implicit_invocation: false\n";

/// The files of a skill: path below `skills/`, text.
pub(super) fn files(command: &SlashCommand) -> Vec<(String, String)> {
    let name = format!("goal-{}", command.name);
    vec![(format!("{name}/SKILL.md"), skill(&name, command)), (format!("{name}/agents/openai.yaml"), POLICY.to_owned())]
}

fn skill(name: &str, command: &SlashCommand) -> String {
    let usage = format!("{}{} {}", Host::Codex.capabilities().command_prefix, command.name, command.arguments);
    let (answer, no_hook) = match command.answered_by {
        AnsweredBy::Hook => {
            ("Steadfast answers this command itself, without a model.", "If you read this, its hook did not run")
        }
        AnsweredBy::Model => (
            "Steadfast has carried out this command and says in this turn what to do.",
            "If no text from Steadfast about a durable goal came with this message, its hook did not run",
        ),
    };
    format!(
        "---\nname: {name}\ndescription: {}\n---\n\n\
         `{}` is a command for Steadfast. {answer} {no_hook}, usually because Codex does not trust it yet: ask the user to type \
         `/hooks` and trust the hooks of Steadfast, or to run `steadfast doctor` in a terminal, and do nothing else.\n",
        command.description,
        usage.trim_end(),
    )
}
