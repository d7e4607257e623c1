//! What the user's prompts tell: the words themselves, what kind of work they ask for, what they decide, and which
//! rules they set. The rules look at punctuation and length, which every language has, and at a short list of openings.

use super::{MESSAGE_MAX, Notes, PROMPT_MAX};
use crate::directive::{self, Directive, Form};
use crate::memory::{Category, Finding, Importance, stated};
use crate::text;

/// Nothing behind this many bytes is looked at.
const LOOKED_AT: usize = 64 * 1024;

const QUESTION_MARKS: [char; 4] = ['?', '？', '؟', '¿'];
const CLAUSE_MARKS: [char; 7] = [',', ';', '，', '；', '、', '،', '؛'];

/// Words before an opening that change nothing.
const FILLERS: [&str; 17] = [
    "ok",
    "okay",
    "sure",
    "please",
    "and",
    "also",
    "so",
    "well",
    "hey",
    "hi",
    "note",
    "important",
    "remember",
    "bitte",
    "por favor",
    "s'il te plaît",
    "请",
];

/// How rules for the time to come and roles begin. Those of scripts with blanks end where the word ends.
const OPENINGS: [&str; 58] = [
    "always",
    "never",
    "from now on",
    "from here on",
    "going forward",
    "in the future",
    "you are",
    "you're",
    "act as",
    "respond",
    "reply in",
    "answer in",
    "do not ever",
    "don't ever",
    "remember to",
    "remember that",
    "every time",
    "immer",
    "nie",
    "niemals",
    "ab jetzt",
    "ab sofort",
    "du bist",
    "antworte",
    "toujours",
    "jamais",
    "ne jamais",
    "tu es",
    "vous êtes",
    "désormais",
    "à partir de maintenant",
    "réponds",
    "siempre",
    "nunca",
    "eres",
    "a partir de ahora",
    "sempre",
    "a partir de agora",
    "você é",
    "d'ora in poi",
    "mai",
    "всегда",
    "никогда",
    "отныне",
    "你是",
    "总是",
    "始终",
    "永远",
    "从现在",
    "不要再",
    "あなたは",
    "常に",
    "必ず",
    "今後",
    "これから",
    "항상",
    "절대",
    "앞으로",
];

/// Openings that only look like rules.
const TALK: [&str; 10] = [
    "never mind",
    "you are right",
    "you're right",
    "you are correct",
    "you are wrong",
    "you're wrong",
    "you are welcome",
    "you're welcome",
    "you are done",
    "always has been",
];

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
    if let Some(rule) = standing_rule(seen) {
        notes.keep(Category::Rule, "standing", Importance::Critical, "", rule, MESSAGE_MAX);
    } else if decides(seen) {
        notes.keep(Category::Decision, "prompt", Importance::Critical, "", seen, MESSAGE_MAX);
    }
}

/// The goal is a record of its own; the event tells when it was stated.
fn steered(notes: &mut Notes, form: Form, directive: Directive<String>) {
    let kind = if matches!(directive, Directive::State(_)) { "stated" } else { "edited" };
    match directive.text() {
        Some(text) if text.is_empty() => return,
        Some(text) => notes.kept.findings.push(Finding {
            category: Category::Goal,
            kind,
            importance: Importance::Critical,
            subject: String::new(),
            text: text.clone(),
        }),
        None => {}
    }
    notes.kept.steering = Some((form, directive));
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

/// A statement of more than one clause that asks nothing: the user made up their mind.
fn decides(prompt: &str) -> bool {
    let length = prompt.chars().take(501).count();
    (15..=500).contains(&length)
        && !asks(prompt)
        && prompt.contains(CLAUSE_MARKS)
        && prompt.chars().any(char::is_alphabetic)
}

/// The first sentence, if it sets a rule or a role.
fn standing_rule(prompt: &str) -> Option<&str> {
    let sentence = first_sentence(prompt);
    let length = sentence.chars().take(201).count();
    let least = if sentence.is_ascii() { 8 } else { 5 };
    if !(least..=200).contains(&length) || asks(sentence) {
        return None;
    }
    let lower = sentence.to_lowercase();
    let mut words = lower.as_str();
    while let Some(rest) = FILLERS.iter().find_map(|filler| strip_word(words, filler)) {
        // `remember that …` is an opening of its own.
        if OPENINGS.iter().any(|opening| strip_word(words, opening).is_some()) {
            break;
        }
        words = rest.trim_start_matches([',', ':', '，', '-', ' ']);
    }
    let talk = TALK.iter().any(|talk| strip_word(words, talk).is_some());
    let opens = OPENINGS.iter().any(|opening| strip_word(words, opening).is_some());
    (opens && !talk).then_some(sentence)
}

fn first_sentence(prompt: &str) -> &str {
    let end = prompt.char_indices().find_map(|(at, character)| {
        let next = prompt.get(at + character.len_utf8()..).and_then(|rest| rest.chars().next());
        let ends = match character {
            '.' | '!' => next.is_none_or(char::is_whitespace),
            '。' | '！' | '\n' => true,
            _ => false,
        };
        ends.then_some(at)
    });
    prompt.get(..end.unwrap_or(prompt.len())).unwrap_or_default().trim()
}

/// What follows a word at the start of a text in lower case; a letter right behind it makes it another word, except
/// in scripts without blanks.
fn strip_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let rest = text.strip_prefix(word)?;
    let spaced = word.chars().last().is_some_and(|last| (last as u32) < 0x2e80);
    (!spaced || !rest.starts_with(char::is_alphanumeric)).then_some(rest)
}
