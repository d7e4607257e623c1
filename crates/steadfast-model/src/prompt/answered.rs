//! What the model reads beside a command that the user typed in mid-turn, or together with other text.

use minijinja::context;

use super::{PromptError, render};
use crate::goal::Goal;
use crate::host::Host;

/// `stopped` is the goal that the command stopped. `other_text` says that the prompt has more than commands.
pub fn answered(host: Host, verbs: &[&str], stopped: Option<&Goal>, other_text: bool) -> Result<String, PromptError> {
    let prefix = host.capabilities().command_prefix;
    let commands: Vec<String> = verbs.iter().map(|verb| format!("{prefix}{verb}")).collect();
    let values = context! {
        commands => commands.join(", "), other_text, stops => stopped.is_some(), state => stopped.map(Goal::state),
    };
    render(include_str!("../../prompts/answered.md"), values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goal::NewGoal;
    use crate::goal::change;

    #[test]
    fn only_a_command_that_stops_the_goal_ends_the_turn() {
        let status = answered(Host::Codex, &["status"], None, false).unwrap();
        assert!(status.contains("$goal-status") && status.ends_with("Continue with your work."), "{status}");
        let new = NewGoal { objective: "x".into(), ..NewGoal::default() };
        let paused = change::pause(&Goal::start(new, "s", Host::Codex, None, 0), 0).unwrap().goal;
        let stopped = answered(Host::Codex, &["extend", "pause"], Some(&paused), false).unwrap();
        assert!(stopped.contains("$goal-extend, $goal-pause") && stopped.contains("paused (user) now. End your turn"));
        let rest = answered(Host::Codex, &["pause"], Some(&paused), true).unwrap();
        assert!(rest.ends_with("The rest of the message is for you.") && !rest.contains("End your turn"), "{rest}");
    }
}
