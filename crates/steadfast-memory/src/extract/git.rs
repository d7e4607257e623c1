//! Git operations, recognized by the words of the command. A commit is kept with its message, the others as commands.

use super::shell::line::Command;
use super::{Notes, ONE_LINE_MAX};
use steadfast_model::memory::{Category, Importance};
use steadfast_model::text;

/// Operations that change the history or the branches, and those that only read or prepare.
const CHANGES: &str = "commit checkout switch branch merge rebase cherry-pick revert reset restore stash push pull tag \
    clone init worktree am apply clean remote submodule";
const READS: &str = "status log diff show add fetch rm mv";
/// Options of git itself whose value stands behind them.
const WITH_VALUE: [&str; 5] = ["-C", "-c", "--git-dir", "--work-tree", "--namespace"];

/// Notes the operation of a command; of one that failed, only a commit that git printed: `[main 1a2b3c4] message`.
pub(super) fn note(notes: &mut Notes, command: &Command, failed_with: Option<&str>) {
    let Some((name, arguments)) = operation(command) else { return };
    let message = if name == "commit" { message(arguments) } else { String::new() };
    if let Some(output) = failed_with {
        let headline = message.lines().next().unwrap_or_default();
        if headline.is_empty() || !text::tail(output, 16 * 1024).contains(&format!("] {headline}")) {
            return;
        }
    }
    if !message.is_empty() {
        let subject = text::headline(&message, ONE_LINE_MAX);
        return notes.keep(Category::Git, "commit", Importance::Normal, &subject, &message);
    }
    let known = |list: &'static str| list.split(' ').find(|word| *word == name);
    let target = arguments.iter().find(|word| !word.starts_with('-')).map_or("", String::as_str);
    let (kind, importance) = match (known(CHANGES), known(READS)) {
        // Without a name these only list.
        (Some(kind @ ("branch" | "tag" | "remote")), _) if matches!(target, "" | "show") => (kind, Importance::Low),
        (Some("cherry-pick"), _) => ("cherry_pick", Importance::Normal),
        (Some(kind), _) => (kind, Importance::Normal),
        (None, Some(kind)) => (kind, Importance::Low),
        (None, None) => return,
    };
    let text = format!("git {name} {}", arguments.join(" "));
    notes.keep(Category::Git, kind, importance, target, &text);
}

fn operation(command: &Command) -> Option<(&str, &[String])> {
    let mut rest = command.words.get(1..).filter(|_| command.program() == "git")?;
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

/// The message of a commit: `-m`, `-am` and `--message`, once for each paragraph.
fn message(arguments: &[String]) -> String {
    let mut paragraphs = Vec::new();
    let mut words = arguments.iter().map(String::as_str);
    while let Some(word) = words.next() {
        let flags = word.strip_prefix('-').and_then(|flags| flags.strip_suffix('m'));
        if word == "--message" || flags.is_some_and(|flags| flags.chars().all(char::is_alphabetic)) {
            paragraphs.extend(words.next());
        } else {
            paragraphs.extend(word.strip_prefix("--message="));
        }
    }
    paragraphs.join("\n\n").trim().to_owned()
}
