//! What came of an action, in a sentence or two.

use serde_json::Value;
use steadfast_app::overview::now::Action;
use steadfast_engine::process::Captured;
use steadfast_model::text;

use super::ActionCommand;

const LONGEST_MESSAGE: usize = 1_000;

/// What came of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandAnswer {
    pub is_ok: bool,
    pub message: String,
    /// What to do next; empty if nothing.
    pub hint: String,
    pub(crate) status: u16,
}

impl CommandAnswer {
    pub(super) fn done(message: impl Into<String>) -> Self {
        Self { is_ok: true, message: message.into(), hint: String::new(), status: 200 }
    }

    pub(crate) fn refused(status: u16, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { is_ok: false, message: message.into(), hint: hint.into(), status }
    }

    /// The answer of a command: with `--json`, an error is an object with a message and a hint.
    pub(super) fn of(command: &ActionCommand, ended: std::io::Result<Captured>) -> Self {
        let captured = match ended {
            Ok(captured) => captured,
            Err(error) => return Self::refused(500, format!("cannot start the command: {error}"), "try it again"),
        };
        if captured.timed_out {
            return Self::refused(504, "the command took too long and was ended", "try it in a terminal");
        }
        let printed: Value = serde_json::from_slice(&captured.stdout).unwrap_or_default();
        if captured.exit_code == Some(0) {
            return Self::done(done(command.action(), &printed));
        }
        let part = |name: &str| printed["error"][name].as_str().map(shown);
        let last = || captured.stderr_tail.lines().last().map(shown).filter(|line| !line.is_empty());
        let message = part("message").or_else(last).unwrap_or_else(|| "the command failed".into());
        Self::refused(409, message, part("hint").unwrap_or_default())
    }

    /// Message and hint in one text.
    pub fn text(&self) -> String {
        if self.hint.is_empty() { self.message.clone() } else { format!("{}\n{}", self.message, self.hint) }
    }
}

fn shown(said: &str) -> String {
    text::cut(text::printable(said).trim(), LONGEST_MESSAGE)
}

/// What an action did, and what happens next to the goal.
fn done(action: Action, printed: &Value) -> String {
    let what = match action {
        Action::Pause => "goal paused",
        Action::Resume if printed["goal"].is_object() => "goal resumed",
        Action::Resume => "the run continues in the background",
        Action::Extend => "limits raised",
        Action::Verify => "the checks passed",
        Action::Complete => "goal completed by you",
        Action::Abandon => "goal abandoned",
        Action::Reconcile => "accounting reset",
        Action::Adopt => "goal adopted",
        Action::QueueMove => "moved in the queue",
        Action::QueueDrop => "removed from the queue",
        Action::Kill => "the run is stopped",
        Action::Approve => "approved",
        Action::Reject => "rejected",
        Action::Say => "the next iteration reads it",
    };
    match printed["goal"]["next"].as_str().map(shown).filter(|next| !next.is_empty()) {
        Some(next) => format!("{what}; next: {next}"),
        None => what.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn captured(exit_code: i32, stdout: &Value, stderr: &str) -> Captured {
        let stdout = stdout.to_string().into_bytes();
        Captured { exit_code: Some(exit_code), timed_out: false, stdout, stderr_tail: stderr.into() }
    }

    #[test]
    fn an_answer_says_what_the_command_said() {
        let pause = ActionCommand::for_test(Action::Pause);
        let goal = json!({"goal": {"next": "waits for\u{1b}[31m you"}});
        let done = CommandAnswer::of(&pause, Ok(captured(0, &goal, "")));
        assert_eq!(done, CommandAnswer::done("goal paused; next: waits for you"));
        let error = json!({"error": {"kind": "wrong_state", "message": "it is over", "hint": "start one"}});
        let refused = CommandAnswer::of(&pause, Ok(captured(3, &error, "")));
        assert_eq!(refused, CommandAnswer::refused(409, "it is over", "start one"));
        assert_eq!(refused.text(), "it is over\nstart one");
        let broken = CommandAnswer::of(&pause, Ok(captured(1, &Value::Null, "warning: a\nerror: b\n")));
        assert_eq!(broken, CommandAnswer::refused(409, "error: b", ""));
        let late = Captured { exit_code: None, timed_out: true, stdout: vec![], stderr_tail: String::new() };
        assert_eq!(CommandAnswer::of(&pause, Ok(late)).status, 504);
    }
}
