//! The slash commands as Codex has them: skills, typed `$goal-start …`.

use crate::slash_commands::{AnsweredBy, SLASH_COMMANDS, SlashCommand};

/// Codex offers skills to the model unless this forbids it; only the user may call these.
const POLICY: &str = "policy:\n  allow_implicit_invocation: false\n";

/// Every file of the skills: its path below `skills/`, and its text.
pub(crate) fn files() -> Vec<(String, String)> {
    SLASH_COMMANDS
        .iter()
        .flat_map(|command| {
            let folder = format!("goal-{}", command.name);
            [
                (format!("{folder}/SKILL.md"), skill(command)),
                (format!("{folder}/agents/openai.yaml"), POLICY.to_owned()),
            ]
        })
        .collect()
}

fn skill(command: &SlashCommand) -> String {
    let SlashCommand { name, arguments, description, answered_by } = command;
    let usage = format!("$goal-{name} {arguments}");
    let (answer, sign) = match answered_by {
        AnsweredBy::Hook => {
            ("Steadfast answers this command itself, without a model.", "If you read this, its hook did not run")
        }
        AnsweredBy::Model => (
            "Steadfast has carried out this command and says in this turn what to do.",
            "If no text from Steadfast about a durable goal came with this message, its hook did not run",
        ),
    };
    format!(
        "---\nname: goal-{name}\ndescription: {description}\n---\n\n\
         `{}` is a command for Steadfast. {answer} {sign}, most often because Codex does not trust it yet: ask the user to \
         type `/hooks` and trust the hooks of Steadfast, or to run `steadfast doctor` in a terminal, and do nothing else.\n",
        usage.trim_end()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_becomes_a_skill_that_says_what_to_do_without_its_hook() {
        let files = files();
        assert_eq!(files.len(), 2 * SLASH_COMMANDS.len());
        for (path, text) in files.iter().filter(|(path, _)| path.ends_with("/SKILL.md")) {
            let name = path.strip_suffix("/SKILL.md").unwrap();
            assert!(text.starts_with(&format!("---\nname: {name}\ndescription: ")), "{text}");
            for part in [&format!("`${name}"), "its hook did not run", "`/hooks`", "`steadfast doctor`"] {
                assert_eq!(text.matches(part).count(), 1, "{part}: {text}");
            }
            assert!(!text.contains("disable-model-invocation") && !text.contains("/goal-"), "{text}");
        }
    }
}
