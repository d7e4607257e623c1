//! Takes secrets out of text before it is kept: known shapes of keys, values whose name says what they are, passwords
//! in URLs and headers, and what the user marked `<private>`. A scanner written by hand, one pass from left to right,
//! because it runs inside every hook; clean text comes back as it is. When in doubt a value goes: memory is the
//! wrong place for it.

mod names;
mod places;
mod plain;
mod shapes;
mod values;

use std::borrow::Cow;
use std::ops::Range;

use names::Grade;

/// What stands where a secret was.
pub const MARK: &str = "[redacted]";

/// A text so full of secrets that it grows by more than this is dropped from there on.
const GROWTH_MAX: usize = 4_096;

/// How often a text is looked at. What a mark replaced may have kept another secret from being seen.
const PASSES_MAX: usize = 8;

/// The text without its secrets; what stands around them is kept.
pub fn redact(text: &str) -> Cow<'_, str> {
    let most = text.len() + GROWTH_MAX;
    let Some(mut clean) = pass(text, most) else {
        return Cow::Borrowed(text);
    };
    for _ in 1..PASSES_MAX {
        match pass(&clean, most) {
            Some(cleaner) => clean = cleaner,
            None => break,
        }
    }
    Cow::Owned(clean)
}

/// Marks the secrets it sees; `None` when there are none.
fn pass(text: &str, most: usize) -> Option<String> {
    let mut clean = String::new();
    let mut copied = 0;
    let mut at = 0;
    while at < text.len() {
        match secret_at(text, at) {
            Found::Nothing { next } => at = next,
            // What is marked already stays as it is, with what stands behind it.
            Found::Secret(hidden) if after(text, hidden.start).starts_with(MARK) => at = hidden.start + MARK.len(),
            Found::Secret(hidden) => {
                clean.push_str(text.get(copied..hidden.start).unwrap_or_default());
                clean.push_str(MARK);
                copied = hidden.end;
                at = hidden.end;
                if clean.len() + (text.len() - copied) > most {
                    return Some(clean);
                }
            }
        }
    }
    (copied > 0).then(|| clean + after(text, copied))
}

/// What is at one place of the text, and where to look next. Places only ever move forward.
enum Found {
    Nothing { next: usize },
    Secret(Range<usize>),
}

/// Looks at the piece that begins at `at`: a run of the characters that names and keys are made of, or one byte.
fn secret_at(text: &str, at: usize) -> Found {
    let Some(byte) = text.as_bytes().get(at).copied() else {
        return Found::Nothing { next: at + 1 };
    };
    if !is_run(byte) {
        let hidden = match byte {
            b'<' => shapes::private_block(text, at),
            b':' => places::password_of_url(text, at),
            _ => None,
        };
        return hidden.map_or(Found::Nothing { next: at + 1 }, Found::Secret);
    }
    if byte == b'-'
        && let Some(hidden) = shapes::private_key(text, at)
    {
        return Found::Secret(hidden);
    }
    let end = run_end(text, at);
    let run = text.get(at..end).unwrap_or_default();
    if let Some(hidden) = shapes::known_key(text, at, end) {
        return Found::Secret(hidden);
    }
    let name = run.trim_start_matches('-');
    let found = match names::spaced_key(text, at, name).or_else(|| names::grade(name)) {
        Some(Grade::Header) => places::of_header(text, end),
        Some(grade) => {
            let flag = run.len() - name.len();
            values::of_name(text, at, end, grade, flag > 1 || (flag == 1 && name.len() > 1))
        }
        None if run.eq_ignore_ascii_case("bearer") => places::of_bearer(text, end),
        None => places::of_short_flag(text, at, run, end),
    };
    found.map_or(Found::Nothing { next: end }, Found::Secret)
}

/// Names, flags and keys are made of these.
fn is_run(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

fn run_end(text: &str, from: usize) -> usize {
    let rest = text.as_bytes().get(from..).unwrap_or_default();
    from + rest.iter().position(|byte| !is_run(*byte)).unwrap_or(rest.len())
}

/// What follows a place in the text.
fn after(text: &str, from: usize) -> &str {
    text.get(from..).unwrap_or_default()
}

/// What stands before a place in its line, at most a few hundred bytes of it.
fn line_before(text: &str, at: usize) -> &str {
    let mut from = at.saturating_sub(300);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let before = text.get(from..at).unwrap_or_default();
    before.rsplit(['\n', ';', '|']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests;
