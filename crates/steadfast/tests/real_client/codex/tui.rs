//! The terminal interface of Codex: how to start it and read its screen.

use super::client::{Codex, MODEL};
pub(crate) use crate::terminal::Tui;
use crate::terminal::{InTerminal, InputBox, dense, dense_with_end};
use crate::workspace::Workspace;
use std::ffi::OsString;
use std::time::Duration;

const LIMIT: Duration = Duration::from_mins(1);

impl InTerminal for Codex {
    const INPUT_BOX: InputBox = InputBox { text: input_box, holds: is_typed, quiet: Duration::from_millis(300) };

    fn workspace(&self) -> &Workspace {
        self
    }

    fn command_line(&self) -> Vec<OsString> {
        vec![self.program().into()]
    }
}

impl Tui {
    /// Waits for the last text of a turn and for the end of that turn. The screen looks idle between the text and the
    /// Stop hook, and what is typed then belongs to the turn; the rollout names the end before the interface knows it.
    pub(crate) fn wait_for_turn(&self, text: &str) {
        self.wait_for_answer(text);
        self.wait_for("the end of the turn", LIMIT, |_| {
            self.history().rsplit(text).next().is_some_and(|after| after.contains("Worked for "))
        });
    }
}

/// The text of the input line: from the last `›` to the status line, which names the model. Dialogs have no status
/// line, so this also shows that none is open.
fn input_box(screen: &str) -> Option<String> {
    let lines: Vec<&str> = screen.lines().collect();
    let start = lines.iter().rposition(|line| line.starts_with('›'))?;
    let status = lines[start..].iter().position(|line| line.trim_start().starts_with(MODEL))?;
    Some(lines[start..start + status].join("\n"))
}

/// Whether the input box holds the text, or at least the end of a long one, of which it may not show all.
fn is_typed(screen: &str, text: &str) -> bool {
    let (text, end) = dense_with_end(text);
    let typed = input_box(screen).map(|typed| dense(typed.trim_start_matches('›')));
    typed.is_some_and(|typed| typed == text || end.len() < text.len() && typed.ends_with(&end))
}
