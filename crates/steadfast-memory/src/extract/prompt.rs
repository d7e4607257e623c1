//! What a prompt contains: its text, whether it asks or orders, and the rules and decisions that the user marked as such.
//! Free talk is a prompt and nothing more: guessed rules would be restored into every later context.

use super::Notes;
use steadfast_model::directive::{self, Directive, Form};
use steadfast_model::memory::{Category, Importance, stated};
use steadfast_model::{redact, text};

const LOOKED_AT: usize = 64 * 1024;

/// At the start of a line, before an ASCII or full-width colon, in any case.
const MARKERS: [(&str, Category); 3] =
    [("rule", Category::Rule), ("remember", Category::Rule), ("decision", Category::Decision)];
const MARKED_MAX: usize = 20;

const QUESTION_MARKS: [char; 4] = ['?', '？', '؟', '¿'];

pub(super) fn note(notes: &mut Notes, prompt: &str) {
    let prompt = prompt.trim();
    if let Some((form, directive)) = directive::read(prompt) {
        steered(notes, form, directive.map(stated::kept));
        return marked(notes, text::head(prompt, LOOKED_AT));
    }
    if is_command(prompt) {
        return;
    }
    notes.keep(Category::Prompt, "typed", Importance::High, "", prompt);
    let seen = text::head(prompt, LOOKED_AT);
    if let Some(intent) = intent(seen) {
        notes.keep(Category::Intent, intent, Importance::Low, "", intent);
    }
    marked(notes, seen);
}

/// Keeps the lines that the user marked as a rule or a decision.
fn marked(notes: &mut Notes, prompt: &str) {
    if !prompt.lines().any(|line| marker(line).is_some()) {
        return;
    }
    // Redacted as a whole: a secret may span several lines.
    let safe = redact::redact(prompt);
    for (category, text) in safe.lines().filter_map(marker).take(MARKED_MAX) {
        notes.keep(category, "stated", Importance::Critical, "", text);
    }
}

/// What a line is marked as, and its text behind the colon.
fn marker(line: &str) -> Option<(Category, &str)> {
    let (word, text) = line.split_once([':', '：'])?;
    let word = word.trim();
    let (_, category) = MARKERS.iter().find(|(marker, _)| word.eq_ignore_ascii_case(marker))?;
    Some((*category, text.trim())).filter(|(_, text)| !text.is_empty())
}

/// The goal is a record of its own; the event records when it was stated.
fn steered(notes: &mut Notes, form: Form, directive: Directive<String>) {
    let kind = if matches!(directive, Directive::State(_)) { "stated" } else { "edited" };
    if let Some(text) = directive.text() {
        if text.is_empty() {
            return;
        }
        notes.keep(Category::Goal, kind, Importance::Critical, "", text);
        // A long objective counts as work to do.
        if text.chars().any(char::is_alphabetic) {
            let intent = intent(text).unwrap_or("implement");
            notes.keep(Category::Intent, intent, Importance::Low, "", intent);
        }
    }
    notes.0.steering = Some((form, directive));
}

/// `/command …` and our own skills. A path has more than one slash.
fn is_command(prompt: &str) -> bool {
    let word = prompt.split_whitespace().next().unwrap_or_default();
    let slash = word.strip_prefix('/').is_some_and(|name| !name.contains('/') && !name.contains('.'));
    slash || ["$goal-", "$steadfast:goal-"].iter().any(|skill| word.starts_with(skill))
}

/// Whether a text contains a question. A mark inside a word belongs to an address or to code.
fn asks(text: &str) -> bool {
    text.match_indices(QUESTION_MARKS).any(|(at, mark)| {
        let next = text.get(at + mark.len()..).and_then(|rest| rest.chars().next());
        mark != "?" || next.is_none_or(|next| !next.is_ascii_alphanumeric() && !"=.&[(".contains(next))
    })
}

fn intent(prompt: &str) -> Option<&'static str> {
    let short = prompt.chars().take(60).count() < 60;
    if asks(prompt) {
        Some("investigate")
    } else if short && prompt.chars().any(char::is_alphabetic) {
        Some("implement")
    } else {
        None
    }
}
