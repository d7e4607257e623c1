//! What the user's prompts tell: the words themselves, what kind of work they ask for, what they decide, and which
//! rules they set. The rules look at punctuation and length, which every language has, and at short lists of words.

mod rule;

use super::{MESSAGE_MAX, Notes, PROMPT_MAX};
use steadfast_model::directive;
use steadfast_model::directive::{Directive, Form};
use steadfast_model::memory::{Category, Finding, Importance, stated};
use steadfast_model::text;

/// Nothing behind this many bytes is looked at.
const LOOKED_AT: usize = 64 * 1024;

const QUESTION_MARKS: [char; 4] = ['?', '？', '؟', '¿'];
const CLAUSE_MARKS: [char; 7] = [',', ';', '，', '；', '、', '،', '؛'];

/// How clauses begin that are only polite, or say that all is well: nothing is decided by them. Between bars.
const MANNERS: &str = "ok|okay|thanks|thank you|thx|great|perfect|cool|nice|good|awesome|sure|alright|right|please|sorry|hi|hey|\
    hello|hm|hmm|well|wait|looks good|looks great|lgtm|that works|it works|go ahead|go on|danke|gut|super|\
    das sieht gut aus|merci|c'est parfait|gracias|obrigado|obrigada|grazie|спасибо|хорошо|好的|谢谢你|谢谢|继续|看起来|\
    ありがとう|はい|いい感じ|감사합니다";
/// The most words of such a clause.
const MANNERS_WORDS: usize = 4;

pub(super) fn note(notes: &mut Notes, prompt: &str) {
    let prompt = prompt.trim();
    if let Some((form, directive)) = directive::read(prompt) {
        return steered(notes, form, directive.map(stated::kept));
    }
    if is_command(prompt) {
        return;
    }
    // What the user asked for is the thread of the session; only the newest matter as much as decisions.
    notes.keep(Category::Prompt, "typed", Importance::High, "", prompt, PROMPT_MAX);
    let seen = text::head(prompt, LOOKED_AT);
    if let Some(intent) = intent(seen) {
        notes.keep(Category::Intent, intent, Importance::Low, "", intent, MESSAGE_MAX);
    }
    if let Some(rule) = rule::standing_rule(seen) {
        notes.keep(Category::Rule, "standing", Importance::Critical, "", rule, MESSAGE_MAX);
    } else if decides(seen) {
        // Guessed from its form, unlike the answer to a question.
        notes.keep(Category::Decision, "prompt", Importance::High, "", seen, MESSAGE_MAX);
    }
}

/// The goal is a record of its own; the event tells when it was stated.
fn steered(notes: &mut Notes, form: Form, directive: Directive<String>) {
    let kind = if matches!(directive, Directive::State(_)) { "stated" } else { "edited" };
    match directive.text() {
        Some(text) if text.is_empty() => return,
        Some(text) => {
            notes.kept.findings.push(Finding {
                category: Category::Goal,
                kind,
                importance: Importance::Critical,
                subject: String::new(),
                text: text.clone(),
            });
            intended(notes, text);
        }
        None => {}
    }
    notes.kept.steering = Some((form, directive));
}

/// An objective has its mode as any other prompt; one too long to tell is something to do.
fn intended(notes: &mut Notes, objective: &str) {
    if objective.chars().any(char::is_alphabetic) {
        let intent = intent(objective).unwrap_or("implement");
        notes.keep(Category::Intent, intent, Importance::Low, "", intent, MESSAGE_MAX);
    }
}

/// `/command …` and our own skills. A path is no command: it has more than one slash.
fn is_command(prompt: &str) -> bool {
    let word = prompt.split_whitespace().next().unwrap_or_default();
    let slash = word.strip_prefix('/').is_some_and(|name| !name.contains('/') && !name.contains('.'));
    slash || ["$goal-", "$steadfast:goal-"].iter().any(|skill| word.starts_with(skill))
}

/// Whether it asks. A mark inside a word belongs to an address or to code.
fn asks(text: &str) -> bool {
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let ends = characters.peek().is_none_or(|next| !next.is_ascii_alphanumeric() && !"=.&[(".contains(*next));
        if QUESTION_MARKS.contains(&character) && (character != '?' || ends) {
            return true;
        }
    }
    false
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

/// A statement of more than one clause that asks nothing: the user made up their mind. Clauses of mere manners do not
/// count, whatever stands behind them.
fn decides(prompt: &str) -> bool {
    let length = prompt.chars().take(501).count();
    if !(15..=500).contains(&length) || asks(prompt) {
        return false;
    }
    let lower = prompt.to_lowercase();
    let says = |clause: &str| clause.chars().any(char::is_alphabetic);
    let short = |clause: &str| clause.split_whitespace().count() <= MANNERS_WORDS;
    let polite = |clause: &str| short(clause) && MANNERS.split('|').any(|word| strip_word(clause, word).is_some());
    lower.split(CLAUSE_MARKS).map(str::trim).filter(|clause| says(clause) && !polite(clause)).count() > 1
}

/// What follows a word at the start of a text in lower case; a letter right behind it makes it another word, except
/// in scripts without blanks.
fn strip_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let rest = text.strip_prefix(word)?;
    let spaced = word.chars().last().is_some_and(|last| (last as u32) < 0x2e80);
    (!spaced || !rest.starts_with(char::is_alphanumeric)).then_some(rest)
}
