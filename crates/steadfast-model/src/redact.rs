//! Removes secrets from text before it is stored. What counts as a secret is in the tables of these modules; a new one is
//! one line there. When in doubt, a value is removed. Written by hand, linear in the length of the text: a hook has no
//! time to compile regular expressions.

mod calls;
mod commands;
mod context;
mod families;
mod formats;
mod layouts;
mod markup;
mod names;
mod shapes;
mod unprefixed;
mod values;
mod words;

use std::borrow::Cow;
use std::ops::Range;

use crate::text;
use names::Grade;

pub const MARK: &str = "[redacted]";

/// Text is cut off where marks have made it longer by more than this.
const GROWTH_MAX: usize = 4_096;

/// A mark can reveal another secret, so passes repeat until nothing changes, at most this often.
const PASSES_MAX: usize = 8;

/// The longest run that is read at once. Names are shorter, and keys are read to their own end.
const RUN_MAX: usize = 512;

/// How many of the secrets found last may lie ahead.
const FOUND_MAX: usize = 64;

/// Returns the text with each secret replaced by [`MARK`]; borrows it when there is none. Looks through characters that
/// are not visible; a text with a secret is returned without them.
pub fn redact(text: &str) -> Cow<'_, str> {
    match text::without_invisible(text) {
        Cow::Borrowed(text) => redact_visible(text),
        Cow::Owned(visible) => match redact_visible(&visible) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(clean) => Cow::Owned(clean),
        },
    }
}

fn redact_visible(text: &str) -> Cow<'_, str> {
    let limit = text.len() + GROWTH_MAX;
    let mut clean = Cow::Borrowed(text);
    for _ in 0..PASSES_MAX {
        match pass(&clean, limit) {
            Some(cleaner) => clean = Cow::Owned(cleaner),
            None => break,
        }
    }
    clean
}

/// Replaces the secrets found in one pass; `None` when there are none.
fn pass(text: &str, limit: usize) -> Option<String> {
    let mut secrets = find(text);
    secrets.sort_unstable_by_key(|secret| secret.start);
    let mut clean = String::new();
    let mut copied = 0;
    for secret in secrets {
        // Two rules may find overlapping parts of one secret.
        if secret.start >= copied {
            clean.push_str(text.get(copied..secret.start).unwrap_or_default());
            clean.push_str(MARK);
        }
        copied = copied.max(secret.end);
        if clean.len() + (text.len() - copied) > limit {
            return Some(clean);
        }
    }
    (copied > 0).then(|| clean + after(text, copied))
}

/// The secrets in a text, in any order. `at` only moves forward, and rules look a bounded distance beyond it or return a
/// secret: the time is linear.
fn find(text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    let (mut words, mut nested): (Vec<Range<usize>>, Vec<Range<usize>>) = Default::default();
    while let Some(byte) = text.as_bytes().get(at).copied() {
        if byte == b'[' && after(text, at).starts_with(MARK) {
            at += MARK.len();
            continue;
        }
        if byte == b'-'
            && let Some(end) = shapes::public_block(text, at)
        {
            at = end;
            continue;
        }
        let end = run_end(text, at);
        let run = text.get(at..end).unwrap_or_default();
        let known = |words: &[Range<usize>]| words.binary_search_by_key(&at, |word| word.start).is_ok();
        if commands::begins(text, run, end) && !known(&words) && !known(&nested) {
            // A program inside a word of a command has that word for itself: `sh -c '…'`.
            let outer = words.get(words.partition_point(|word| word.end <= at)).filter(|word| word.start < at);
            let limit = outer.map_or(text.len(), |word| word.end);
            let command = commands::words(text.get(..limit).unwrap_or(text), at);
            found.extend(commands::find(text, &command));
            *(if limit < text.len() { &mut nested } else { &mut words }) = command;
        }
        // In an argument of a command: a flag with a glued password may look like a name.
        let mut newest = found.iter().rev().take(FOUND_MAX);
        if let Some(secret) = newest.find(|secret| secret.start < end && at < secret.end) {
            at = end.max(secret.end);
            continue;
        }
        let secret = match byte {
            b'<' => shapes::private_block(text, at),
            b':' => of_colon(text, at),
            b'$' | b'{' => unprefixed::hash(text, at),
            b'~' | b'|' => unprefixed::joined(text, at),
            0x80.. => names::foreign(text, at).and_then(|end| of_name(text, at, end, Grade::Strong, false)),
            _ if run.is_empty() => None,
            _ => of_shape(text, at, end).or_else(|| of_run(text, at, run)),
        };
        at = end.max(at + 1);
        if let Some(secret) = secret.filter(|secret| !after(text, secret.start).starts_with(MARK)) {
            at = at.max(secret.end);
            found.push(secret);
        }
    }
    found.retain(|secret| !secret.is_empty() && !after(text, secret.start).starts_with(MARK));
    found
}

fn of_shape(text: &str, at: usize, end: usize) -> Option<Range<usize>> {
    shapes::private_key(text, at)
        .or_else(|| shapes::key(text, at, end))
        .or_else(|| unprefixed::key(text, at, end))
        .or_else(|| unprefixed::base64_key(text, at))
}

fn of_colon(text: &str, at: usize) -> Option<Range<usize>> {
    context::url_password(text, at)
        .or_else(|| shapes::telegram_token(text, at))
        .or_else(|| unprefixed::joined(text, at))
        .or_else(|| unprefixed::field(text, at))
}

/// The secret that a name, a flag or a word announces.
fn of_run(text: &str, at: usize, run: &str) -> Option<Range<usize>> {
    let end = at + run.len();
    let name = run.trim_start_matches('-');
    let flag = run.len() > name.len() && (run.starts_with("--") || name.len() > 1);
    match names::spaced(text, at, name).or_else(|| names::grade(name)) {
        Some(Grade::Header) => context::header(text, at, end),
        Some(Grade::Cookie) => context::cookie(text, end, flag),
        Some(Grade::Token) if context::is_syntax(text, at) => None,
        Some(grade) => of_name(text, at, end, grade, flag)
            .or_else(|| context::netrc(text, at, name, end))
            .or_else(|| markup::value(text, at, end).filter(|_| grade != Grade::Query))
            .or_else(|| calls::of_name(text, at, end, name).filter(|_| grade != Grade::Query))
            .or_else(|| calls::of_function(text, run, end))
            .or_else(|| formats::named(text, end).filter(|_| grade != Grade::Query))
            .or_else(|| context::apart(text, at, end, grade))
            .or_else(|| formats::of_word(text, at, run)),
        None if run.eq_ignore_ascii_case("bearer") || run.eq_ignore_ascii_case("basic") => context::bearer(text, end),
        None => calls::of_function(text, run, end).or_else(|| formats::of_word(text, at, run)),
    }
}

fn of_name(text: &str, at: usize, end: usize, grade: Grade, flag: bool) -> Option<Range<usize>> {
    let name = text.get(at..end).unwrap_or_default();
    let certain = matches!(grade, Grade::Strong | Grade::Token | Grade::Key);
    let elsewhere = || {
        let found = layouts::below(text, at, end, flag).or_else(|| layouts::chosen(text, end));
        found.or_else(|| layouts::set_to(text, at, end, grade)).or_else(|| layouts::cell(text, at, end))
    };
    (certain.then(|| layouts::phrase(text, name, end)).flatten())
        .or_else(|| values::of_name(text, at, end, grade, flag))
        .or_else(|| certain.then(elsewhere).flatten())
        .or_else(|| context::sentence(text, end, grade))
}

/// Names, flags and keys consist of these.
fn is_run(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// The end of the run at a position; a long one is read in pieces.
fn run_end(text: &str, from: usize) -> usize {
    from + window(text, from, RUN_MAX).bytes().take_while(|byte| is_run(*byte)).count()
}

fn after(text: &str, from: usize) -> &str {
    text.get(from..).unwrap_or_default()
}

fn window(text: &str, from: usize, most: usize) -> &str {
    let to = text.floor_char_boundary(from.saturating_add(most).min(text.len()));
    text.get(from..to).unwrap_or_default()
}

fn before(text: &str, at: usize, most: usize) -> &str {
    text.get(text.ceil_char_boundary(at.saturating_sub(most))..at).unwrap_or_default()
}

#[cfg(test)]
mod tests;
