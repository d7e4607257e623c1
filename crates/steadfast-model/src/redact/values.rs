//! Where the value of a name begins and ends, in the many ways people and programs write it (`NAME=value`,
//! `"name": "value"`, `--name value`), and whether it is a secret at all.

use std::ops::Range;

use super::names::Grade;
use super::plain::{is_certainly_code, is_code, is_ordinary, is_reference, is_sentence, looks_random};
use super::{MARK, after, before, window};

/// The farthest that the end of a quotation is looked for.
const QUOTED_MAX: usize = 8_192;

/// How a value stands behind its name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Joint {
    /// `name=value`, `name:value`: nothing between.
    Tight,
    /// `name = value`.
    Assigned,
    /// `name: value`, also how sentences go on.
    Colon,
    /// `--name value`.
    Flag,
}

pub(super) struct Value {
    pub(super) range: Range<usize>,
    pub(super) quoted: bool,
    joint: Joint,
}

/// The secret that a name announces; `end` is where the name ends.
pub(super) fn of_name(text: &str, at: usize, end: usize, grade: Grade, flag: bool) -> Option<Range<usize>> {
    let in_query = before_is(text, at, b'?') || before_is(text, at, b'&');
    if in_query && text.as_bytes().get(end) == Some(&b'=') {
        let rest = after(text, end + 1);
        let length = rest.find(|c: char| c.is_whitespace() || "&#\"'`<>\\)]}".contains(c)).unwrap_or(rest.len());
        let value = rest.get(..length)?;
        let secret = !value.is_empty() && !is_reference(value) && (grade != Grade::Query || looks_random(value));
        return secret.then_some(end + 1..end + 1 + length);
    }
    if grade == Grade::Query {
        return None;
    }
    let quote = quote_around(text, at);
    if quote.is_some_and(|quote| is_only_name(after(text, end), quote)) {
        return None;
    }
    let mut value = value_after(text, end, flag)?;
    let quote = quote.filter(|_| !value.quoted);
    // A header is quoted whole; a sentence may be, too.
    value.quoted |= quote.is_some() && value.joint == Joint::Colon && is_header(text, at);
    is_secret(text, grade, &value).then(|| with_blanks(text, &value, quote))
}

/// The quote right before the name at a place, which goes around the value, too.
fn quote_around(text: &str, at: usize) -> Option<char> {
    before(text, at, 1).chars().next().filter(|quote| matches!(quote, '"' | '\''))
}

/// `grep "password=" file`: the quotation ends before any value.
fn is_only_name(rest: &str, quote: char) -> bool {
    let behind = rest.strip_prefix(['=', ':']).and_then(|rest| rest.trim_start_matches(' ').strip_prefix(quote));
    behind.is_some_and(|behind| behind.is_empty() || behind.starts_with([' ', '\n', ')', ',', ';', '|']))
}

/// `-H 'X-Api-Key: …'`, where `at` is the beginning of the name.
fn is_header(text: &str, at: usize) -> bool {
    let flag = before(text, at.saturating_sub(1), "--header ".len());
    ["-H ", "-H", "--header ", "--header="].iter().any(|known| flag.ends_with(known))
}

/// Where a secret ends that may have blanks, since it is quoted together with its name: `-e "DB_PASSWORD=…"`. Another
/// pair ends it too.
fn with_blanks(text: &str, value: &Value, quote: Option<char>) -> Range<usize> {
    let Range { start, end } = value.range.clone();
    let spread = before_is(text, start, b'=') || value.quoted;
    let Some(quote) = quote.filter(|_| spread && !after(text, start).starts_with(MARK)) else {
        return start..end;
    };
    let rest = window(text, end, QUOTED_MAX);
    let ends = |(at, c): (usize, char)| match c {
        '\n' | '\\' => true,
        ' ' | ',' | ';' | '&' => begins_pair(after(rest, at + 1)),
        c => c == quote,
    };
    let more = rest.char_indices().find(|place| ends(*place)).map_or(0, |(length, _)| length);
    start..end + more
}

fn before_is(text: &str, at: usize, byte: u8) -> bool {
    at.checked_sub(1).and_then(|at| text.as_bytes().get(at)) == Some(&byte)
}

pub(super) fn value_after(text: &str, end: usize, flag: bool) -> Option<Value> {
    let bytes = text.as_bytes();
    let skip = |from: usize, which: &[u8]| {
        from + bytes.get(from..).unwrap_or_default().iter().take_while(|byte| which.contains(byte)).count()
    };
    // The name may be quoted, or an index: `"token": …`, `env['TOKEN'] = …`.
    let closed = skip(end, b"\"'`\\]").min(end + 4);
    // French has a blank of its own before the colon.
    let separator = text.len() - after(text, closed).trim_start_matches([' ', '\t', '\u{a0}', '\u{202f}']).len();
    let (joint, from) = match bytes.get(separator) {
        Some(b'=') if bytes.get(separator + 1) == Some(&b'>') => (Joint::Assigned, separator + 2),
        Some(b'=') if matches!(bytes.get(separator + 1), Some(b'=' | b'~')) => return None,
        Some(b'=') => (if separator == closed { Joint::Tight } else { Joint::Assigned }, separator + 1),
        Some(b':') if bytes.get(separator + 1) == Some(&b'=') => (Joint::Assigned, separator + 2),
        Some(b':') if bytes.get(separator + 1) == Some(&b':') => return None,
        Some(b':') => (Joint::Tight, separator + 1),
        Some(b',') if flag && closed > end => (Joint::Flag, separator + 1),
        Some(_) if flag && closed == end && separator > end => (Joint::Flag, separator),
        _ if after(text, separator).starts_with('：') => (Joint::Tight, separator + '：'.len_utf8()),
        _ => return None,
    };
    let start = text.len() - after(text, from).trim_start_matches([' ', '\t', '\u{a0}', '\u{202f}', '\u{3000}']).len();
    let joint = match joint {
        Joint::Tight if start > from && bytes.get(separator) == Some(&b'=') => Joint::Assigned,
        Joint::Tight if start > from => Joint::Colon,
        joint => joint,
    };
    if matches!(bytes.get(start), None | Some(b'\n' | b'\r')) {
        return None;
    }
    // A list of arguments goes on with a quoted one.
    let listed = joint == Joint::Flag && closed > end;
    let value = quoted(text, start, joint).or_else(|| (!listed).then(|| unquoted(text, start, joint)).flatten())?;
    Some(value)
}

/// The value that begins at a place of a sentence.
pub(super) fn value_at(text: &str, start: usize) -> Option<Value> {
    quoted(text, start, Joint::Colon).or_else(|| unquoted(text, start, Joint::Colon))
}

fn quoted(text: &str, start: usize, joint: Joint) -> Option<Value> {
    let rest = after(text, start);
    // `$'…'` of the shell, `b"…"`, `f"…"` and `r"…"` of Python and Rust.
    let prefix = usize::from(
        matches!(rest.as_bytes().first(), Some(b'$' | b'b' | b'f' | b'r' | b'@'))
            && matches!(rest.as_bytes().get(1), Some(b'"' | b'\'')),
    );
    let rest = after(rest, prefix);
    let mark = ["\"\"\"", "\\\"", "\\'", "\"", "'", "`"].into_iter().find(|mark| rest.starts_with(mark))?;
    let from = start + prefix + mark.len();
    let body = after(text, from);
    let length = closing(body, mark).unwrap_or_else(|| body.find('\n').unwrap_or(body.len()));
    (length > 0).then_some(Value { range: from..from + length, quoted: true, joint })
}

fn closing(body: &str, mark: &str) -> Option<usize> {
    let bytes = body.as_bytes();
    let mut at = 0;
    while at < bytes.len().min(QUOTED_MAX) {
        if body.get(at..).is_some_and(|rest| rest.starts_with(mark)) {
            return Some(at);
        }
        at += if bytes.get(at) == Some(&b'\\') && !mark.starts_with('\\') { 2 } else { 1 };
    }
    None
}

fn unquoted(text: &str, start: usize, joint: Joint) -> Option<Value> {
    let rest = after(text, start);
    if let Some(end) = window(rest, 0, 64).strip_prefix('<').and_then(|inner| inner.find(['>', '\n']))
        && rest.get(end + 1..=end + 1) == Some(">")
    {
        return Some(Value { range: start..start + end + 2, quoted: false, joint });
    }
    let mut end = rest.len();
    for (at, character) in rest.char_indices() {
        let next = after(rest, at + character.len_utf8());
        let ends = match character {
            '"' | '\'' | '`' => true,
            '\\' => next.starts_with(['n', 'r', 't', '"', '\'']),
            // A list goes on with the next name.
            ',' | ';' | '&' => begins_pair(next),
            other => other.is_whitespace(),
        };
        if ends {
            end = at;
            break;
        }
    }
    let word = rest.get(..end)?;
    // A mark has brackets of its own.
    let length = if word.starts_with(MARK) { MARK.len() } else { without_closing(word).len() };
    (length > 0).then_some(Value { range: start..start + length, quoted: false, joint })
}

/// The word without what closes the sentence, the call or the object around it. A bracket that the word itself opened
/// is its own.
fn without_closing(word: &str) -> &str {
    let own = |open: char, close: char| (close, word.matches(open).count(), word.matches(close).count());
    let mut brackets = [own('(', ')'), own('[', ']'), own('{', '}'), own('<', '>')];
    let mut kept = word;
    while let Some(last) = kept.chars().next_back() {
        match brackets.iter_mut().find(|(close, ..)| *close == last) {
            Some((_, opened, closed)) if *closed > *opened => *closed -= 1,
            None if matches!(last, ',' | ';' | '.' | ':') => {}
            _ => break,
        }
        kept = kept.get(..kept.len() - last.len_utf8()).unwrap_or_default();
    }
    kept
}

fn begins_pair(text: &str) -> bool {
    let name = text.trim_start_matches(' ');
    let length = name.bytes().take_while(|byte| super::is_run(*byte)).count();
    length > 0 && name.get(length..).is_some_and(|rest| rest.starts_with(['=', ':']))
}

/// Whether a clause ends before `rest`.
pub(super) fn ends_clause(rest: &str) -> bool {
    let last = rest.trim_start_matches([',', ';', ')', ']', '}', '>', '.', '"', '\'', ' ', '\t', '\r']);
    last.is_empty() || last.starts_with('\n') || rest.starts_with([',', '.', ')', '"', '\''])
}

fn is_secret(text: &str, grade: Grade, value: &Value) -> bool {
    let Some(word) = text.get(value.range.clone()) else {
        return false;
    };
    if word == MARK {
        return true;
    }
    // What an object or a list begins with; the names in it are looked at next.
    let opens = !value.quoted && word.bytes().all(|byte| b"[{(".contains(&byte));
    if opens || is_reference(word) || is_ordinary(word) {
        return false;
    }
    let numeric = word.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b',' | b'%'));
    if numeric && grade != Grade::Strong && word.len() < 6 {
        return false;
    }
    if value.quoted {
        return true;
    }
    let rest = after(text, value.range.end);
    let behind_equals = before_is(text, value.range.start, b'=');
    let code = match value.joint {
        // Shells, settings and connection strings write it like this, and a password may look like anything.
        Joint::Tight if behind_equals => is_certainly_code(word, rest),
        Joint::Flag => is_certainly_code(word, rest),
        Joint::Tight | Joint::Assigned | Joint::Colon => is_code(word, rest),
    };
    if code {
        return false;
    }
    match (value.joint, grade) {
        (Joint::Flag, _) => !is_sentence(word),
        (Joint::Tight, Grade::Weak) => looks_random(word) || behind_equals,
        (Joint::Tight, _) => true,
        (Joint::Assigned | Joint::Colon, Grade::Weak) => looks_random(word),
        (Joint::Assigned | Joint::Colon, _) => looks_random(word) || ends_clause(rest),
    }
}
