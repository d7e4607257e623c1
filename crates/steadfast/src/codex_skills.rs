//! The commands as Codex has them: skills, typed `$goal-start …`. Made from the Claude Code commands, so that there is
//! one list of them.

use crate::plugin;

/// Skills are offered to the model unless this says otherwise; these are the user's alone to call.
const POLICY: &str = "policy:\n  allow_implicit_invocation: false\n";

/// Every file of the skills: its path below `skills/`, and its text.
pub(crate) fn files() -> Vec<(String, String)> {
    let commands = plugin::commands();
    let skills = commands.iter().filter_map(|(file, text)| Some((file.strip_suffix(".md")?, *text)));
    skills
        .flat_map(|(name, text)| {
            let policy = (format!("{name}/agents/openai.yaml"), POLICY.to_owned());
            [(format!("{name}/SKILL.md"), skill(name, text)), policy]
        })
        .collect()
}

fn skill(name: &str, command: &str) -> String {
    let field = |key: &str| command.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default().trim();
    let description = field("description:");
    let arguments = field("argument-hint:").trim_matches('\'');
    let usage = [&format!("${name}"), arguments].join(" ");
    let usage = usage.trim_end();
    let body = command.rsplit("---\n").next().unwrap_or_default().trim();
    let answer = body.split(" If ").next().unwrap_or_default().replace("says above", "says in this turn");
    let sign = if answer.contains("answers this command itself") {
        "If you read this, its hook did not run"
    } else {
        "If no text from Steadfast about a durable goal came with this message, its hook did not run"
    };
    format!(
        "---\nname: {name}\ndescription: {description}\n---\n\n\
         `{usage}` is a command for Steadfast. {answer} {sign}, most often because Codex was not told to trust it: tell the user to \
         type `/hooks` and trust the hooks of Steadfast, or to run `steadfast doctor` in a terminal, and do nothing else.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_becomes_a_skill_that_says_what_to_do_without_its_hook() {
        let files = files();
        assert_eq!(files.len(), 2 * 15);
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
