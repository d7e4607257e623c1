//! The terminal interface of Claude Code: how to start it and read its screen.

use crate::client::Client;
pub(crate) use crate::terminal::Tui;
use crate::terminal::{InTerminal, InputBox, dense, dense_with_end};
use crate::workspace::Workspace;
use std::ffi::OsString;
use std::time::Duration;

impl InTerminal for Client {
    const INPUT_BOX: InputBox = InputBox { text: input_box, holds: is_typed, quiet: Duration::ZERO };

    fn workspace(&self) -> &Workspace {
        self
    }

    fn command_line(&self) -> Vec<OsString> {
        let (program, args) = self.base_args();
        std::iter::once(program.into()).chain(args.into_iter().map(OsString::from)).collect()
    }
}

/// The text between the two rules around the input line. Dialogs have no such
/// rules, so this also shows that none is open.
fn input_box(screen: &str) -> Option<String> {
    let lines: Vec<&str> = screen.lines().collect();
    let mut rules = (0..lines.len()).rev().filter(|&at| lines[at].starts_with("────"));
    let below = rules.next()?;
    let above = rules.next()?;
    let inside = &lines[above + 1..below];
    inside.first()?.starts_with('❯').then(|| inside.join("\n"))
}

/// Whether the input box holds the end of the text.
fn is_typed(screen: &str, text: &str) -> bool {
    let (_, end) = dense_with_end(text);
    input_box(screen).is_some_and(|typed| dense(&typed).contains(&end))
}
