//! What the model will be sent: whether a goal is still in the conversation, so that it is not injected twice. In doubt
//! the answer is no: twice is better than never.
//! Words alone prove nothing ("fix it" is said all the time). A message holds a goal when it states it: as a directive
//! (`goal: …`) and nothing else, or inside the `<objective>` element of one of our own prompts.

use std::path::Path;

use memchr::memmem;

use super::{adapter, claude};
use steadfast_model::directive::{self, Directive};
use steadfast_model::host::Host;
use steadfast_model::memory::stated;
use steadfast_model::text;

/// Why the question is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// The client reads the conversation back from the session's file.
    Resume,
    /// The client just replaced the conversation. `noted_at` is the length of the file when that began.
    Compaction { noted_at: Option<u64> },
}

/// Whether the client will send the model a message that states this objective.
pub fn holds_text(host: Host, transcript: &Path, objective: &str, since: Since) -> bool {
    let holds = |statement| (adapter(host).holds)(transcript, &statement, since).unwrap_or(false);
    Statement::of(objective).is_some_and(holds)
}

/// A goal to look for.
pub struct Statement {
    objective: String,
    /// As our prompts quote it.
    quoted: String,
    /// A piece of it that looks the same however it is escaped.
    plain: memmem::Finder<'static>,
}

impl Statement {
    pub(super) fn of(objective: &str) -> Option<Self> {
        let objective = objective.trim();
        let quoted = format!("<objective>\n{}\n</objective>", text::escape_xml(objective));
        // Neither JSON nor XML changes these.
        let changes = |c: char| c.is_control() || matches!(c, '"' | '\'' | '\\' | '/' | '&' | '<' | '>');
        let plain = objective.split(changes).max_by_key(|piece| piece.len()).unwrap_or_default();
        let plain = memmem::Finder::new(plain).into_owned();
        (!objective.is_empty()).then(|| Self { objective: objective.to_owned(), quoted, plain })
    }

    /// Whether a line of a session's file is worth parsing.
    pub(super) fn may_be_in(&self, line: &[u8]) -> bool {
        self.plain.find(line).is_some()
    }

    pub(super) fn is_in(&self, message: &str) -> bool {
        if message.contains(&self.quoted) {
            return true;
        }
        // Codex escapes what a Stop hook says once more.
        if message.starts_with("<hook_prompt") {
            return unescape(message).contains(&self.quoted);
        }
        let typed = claude::hook::typed_command(message).unwrap_or_else(|| message.to_owned());
        match directive::read(&typed) {
            Some((_, Directive::State(words) | Directive::Edit(Some(words)))) => {
                words == self.objective || stated::kept(words).trim() == self.objective
            }
            _ => false,
        }
    }
}

/// Undoes one escaping for XML. Of `&amp;lt;` only the `&amp;` is undone.
fn unescape(escaped: &str) -> String {
    let plain = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&#39;", "'")];
    let plain = plain.iter().fold(escaped.to_owned(), |text, (from, to)| text.replace(from, to));
    plain.replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_states_a_goal_or_it_does_not() {
        let objective = "fix <it> & \"ship\"\nit's/\\目";
        let statement = Statement::of(objective).expect("a text");
        let quoted = format!("x <objective>\n{}\n</objective> y", text::escape_xml(objective));
        let twice = text::escape_xml(&quoted).replace('"', "&quot;").replace('\'', "&apos;");
        let command = format!(
            "<command-name>/goal</command-name>\n  <command-message>goal</command-message>\n  <command-args>{objective}</command-args>"
        );
        for (message, stated) in [
            (format!("Goal： {objective}\n"), true),
            (format!("/goal {objective}"), true),
            (format!("/goal edit {objective}"), true),
            (quoted.clone(), true),
            (format!("<hook_prompt hook_run_id=\"stop:9\">{twice}</hook_prompt>"), true),
            (command, true),
            (format!("goal: {objective} and more"), false),
            (objective.to_owned(), false),
            (twice, false),
            (quoted.replace("</objective>", "… (cut)</objective>"), false),
            (format!("<command-name>/other</command-name><command-args>{objective}</command-args>"), false),
        ] {
            assert_eq!(statement.is_in(&message), stated, "{message}");
            let json = serde_json::to_vec(&message).expect("JSON");
            assert!(!stated || statement.may_be_in(&json), "{message}");
        }
        assert!(Statement::of(" \n").is_none());
        assert!(Statement::of("<&>").expect("a text").may_be_in(b"anything"));
    }
}
