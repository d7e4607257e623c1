//! Git operations, recognized by the words of the command. A commit is kept with its message, the others as commands.

use super::shell::line;
use super::{MESSAGE_MAX, Notes, ONE_LINE_MAX};
use steadfast_model::memory::{Category, Importance};
use steadfast_model::text;

/// Operations that change the history or the branches, and those that only read or prepare.
const CHANGES: &str = "commit checkout switch branch merge rebase cherry-pick revert reset restore stash push pull tag \
    clone init worktree am apply clean remote submodule";
const READS: &str = "status log diff show add fetch rm mv";
/// Options of git itself whose value stands behind them.
const WITH_VALUE: [&str; 5] = ["-C", "-c", "--git-dir", "--work-tree", "--namespace"];

pub(super) struct GitOperation {
    kind: &'static str,
    importance: Importance,
    subject: String,
    text: String,
}

impl GitOperation {
    pub(super) fn note(&self, notes: &mut Notes) {
        let most = if self.kind == "commit" { MESSAGE_MAX } else { ONE_LINE_MAX };
        notes.keep(Category::Git, self.kind, self.importance, &self.subject, &self.text, most);
    }

    /// Whether git printed that the commit was made: `[main 1a2b3c4] message`.
    pub(super) fn is_confirmed_by(&self, output: &str) -> bool {
        let headline = self.text.lines().next().unwrap_or_default();
        !headline.is_empty() && text::tail(output, 16 * 1024).contains(&format!("] {headline}"))
    }
}

pub(super) fn operation(words: &[String]) -> Option<GitOperation> {
    let (name, arguments) = parts(words)?;
    if name == "commit" {
        return Some(committed(arguments));
    }
    let known = |list: &'static str| list.split(' ').find(|word| *word == name);
    let target = arguments.iter().find(|word| !word.starts_with('-')).cloned().unwrap_or_default();
    let (kind, importance) = match (known(CHANGES), known(READS)) {
        // Without a name these only list.
        (Some(kind @ ("branch" | "tag" | "remote")), _) if target.is_empty() || target == "show" => {
            (kind, Importance::Low)
        }
        // The history has these; they are kept to show what was done last.
        (Some("cherry-pick"), _) => ("cherry_pick", Importance::Normal),
        (Some(kind), _) => (kind, Importance::Normal),
        (None, Some(kind)) => (kind, Importance::Low),
        (None, None) => return None,
    };
    let text = format!("git {name} {}", arguments.join(" "));
    Some(GitOperation { kind, importance, subject: target, text: text.trim_end().to_owned() })
}

pub(super) fn commit(words: &[String]) -> Option<GitOperation> {
    let (name, arguments) = parts(words)?;
    (name == "commit").then(|| committed(arguments))
}

/// The operation and its arguments.
fn parts(words: &[String]) -> Option<(&str, &[String])> {
    let (program, mut rest) = words.split_first()?;
    if program.rsplit('/').next() != Some("git") {
        return None;
    }
    while let Some((word, more)) = rest.split_first() {
        rest = more;
        if WITH_VALUE.contains(&word.as_str()) {
            rest = rest.get(1..).unwrap_or_default();
        } else if !word.starts_with('-') {
            return Some((word, rest));
        }
    }
    None
}

fn committed(arguments: &[String]) -> GitOperation {
    let mut paragraphs = Vec::new();
    let mut words = arguments.iter().map(String::as_str);
    while let Some(word) = words.next() {
        let message = if let Some(message) = word.strip_prefix("--message=") {
            Some(message)
        } else if word == "--message" || is_short_message(word) {
            words.next()
        } else {
            word.strip_prefix("-m").filter(|message| !message.is_empty())
        };
        paragraphs.extend(message.map(line::unwrapped));
    }
    let message = paragraphs.join("\n\n");
    let text = if message.is_empty() { format!("git commit {}", arguments.join(" ")) } else { message };
    let subject = if paragraphs.is_empty() { String::new() } else { text::headline(&text, ONE_LINE_MAX) };
    GitOperation { kind: "commit", importance: Importance::Normal, subject, text: text.trim().to_owned() }
}

/// `-m`, `-am`, `-sm`: the message is the next word.
fn is_short_message(word: &str) -> bool {
    word.strip_prefix('-')
        .and_then(|flags| flags.strip_suffix('m'))
        .is_some_and(|flags| flags.chars().all(|c| "aqsvnepS".contains(c)))
}
