//! Takes secrets out of text before it is kept: known shapes of keys, values whose name says what they are, passwords
//! in URLs, headers and sentences, and what the user marked `<private>`. A scanner written by hand, one pass from left to right,
//! because it runs inside every hook; clean text comes back as it is. When in doubt a value goes: memory is the
//! wrong place for it.

mod arguments;
mod flags;
mod names;
mod operands;
mod pipes;
mod places;
mod plain;
mod prose;
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

/// The most of a run that is looked at in one go; names are shorter, and keys are read to their own end.
const RUN_MAX: usize = 512;

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
    let mut command = flags::Command::default();
    while at < text.len() {
        match secret_at(text, at, &mut command) {
            Found::Nothing { next } => at = next,
            // What is marked already stays as it is, with what stands behind it.
            Found::Secret(hidden) if after(text, hidden.start).starts_with(MARK) => {
                command.see_gap(text, at..hidden.start);
                at = hidden.start + MARK.len();
            }
            Found::Secret(hidden) => {
                command.see_gap(text, at..hidden.start);
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

/// Looks at the piece that begins at `at`: a run of the characters that names and keys are made of, or one byte. What
/// is looked at beyond the piece is near, or it is the secret itself: the time for a text is in proportion to it.
fn secret_at(text: &str, at: usize, command: &mut flags::Command) -> Found {
    let Some(byte) = text.as_bytes().get(at).copied() else {
        return Found::Nothing { next: at + 1 };
    };
    if !is_run(byte) {
        command.see_byte(text, at, byte);
        let hidden = match byte {
            b'<' => shapes::private_block(text, at).or_else(|| command.input_of(text, at)),
            b':' => places::password_of_url(text, at).or_else(|| places::of_bot(text, at)),
            0x80.. => prose::foreign_name(text, at).and_then(|end| of_password(text, at, end)),
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
    command.see_word(text, at, run);
    let found = shapes::known_key(text, at, end)
        .or_else(|| command.secret_of(text, at, run))
        .or_else(|| of_run(text, at, run, end));
    found.map_or(Found::Nothing { next: end }, Found::Secret)
}

/// What a name, a flag or a word announces.
fn of_run(text: &str, at: usize, run: &str, end: usize) -> Option<Range<usize>> {
    let name = run.trim_start_matches('-');
    let dashes = run.len() - name.len();
    let flag = dashes > 1 || (dashes == 1 && name.len() > 1);
    match names::spaced_key(text, at, name).or_else(|| names::grade(name)) {
        Some(Grade::Header) => places::of_header(text, at, end),
        Some(Grade::Cookie) => places::of_cookie(text, end, flag),
        Some(grade) => values::of_name(text, at, end, grade, flag)
            .or_else(|| prose::said(text, end, grade))
            .or_else(|| prose::of_netrc(text, at, name, end)),
        None if run.eq_ignore_ascii_case("bearer") => places::of_bearer(text, end),
        None => places::of_webhook(text, run, end)
            .or_else(|| prose::half_foreign_name(text, run, end).and_then(|end| of_password(text, at, end))),
    }
}

/// What the name of a password announces, in whatever language.
fn of_password(text: &str, at: usize, end: usize) -> Option<Range<usize>> {
    values::of_name(text, at, end, Grade::Strong, false).or_else(|| prose::said(text, end, Grade::Strong))
}

/// Names, flags and keys are made of these.
fn is_run(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// Where a run ends. A long one is looked at in pieces, since every key in it begins another one.
fn run_end(text: &str, from: usize) -> usize {
    let rest = window(text, from, RUN_MAX).as_bytes();
    from + rest.iter().position(|byte| !is_run(*byte)).unwrap_or(rest.len())
}

/// What follows a place in the text.
fn after(text: &str, from: usize) -> &str {
    text.get(from..).unwrap_or_default()
}

/// What follows a place in the text, at most so many bytes of it.
fn window(text: &str, from: usize, most: usize) -> &str {
    let to = text.floor_char_boundary(from.saturating_add(most).min(text.len()));
    text.get(from..to).unwrap_or_default()
}

/// What stands before a place in the text, at most so many bytes of it.
fn before(text: &str, at: usize, most: usize) -> &str {
    text.get(text.ceil_char_boundary(at.saturating_sub(most))..at).unwrap_or_default()
}

#[cfg(test)]
mod tests;
