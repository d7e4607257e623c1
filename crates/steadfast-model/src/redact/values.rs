//! The value behind a name, in the ways people and programs write it (`NAME=value`, `"name": "value"`, `--name value`),
//! and whether it is a secret.

use std::ops::Range;

use super::layouts::wrapped;
use super::names::Grade;
use super::words::{
    is_certainly_code, is_code, is_hex, is_key, is_ordinary, is_path, is_reference, is_sentence, looks_random,
};
use super::{MARK, after, before, is_run, window};

/// How far the end of a quotation is searched.
const QUOTED_MAX: usize = 8_192;
/// How far a value is searched that does not stand right behind its name.
const LINE_MAX: usize = 512;
/// How far the type of a declaration is read.
const TYPE_MAX: usize = 48;
/// Quotes, backslashes before them, and a bracket.
const CLOSING_MAX: usize = 9;
const BLANKS: [char; 5] = [' ', '\t', '\u{a0}', '\u{202f}', '\u{3000}'];

/// What stands between a name and its value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Joint {
    /// `name=value`
    Equals,
    /// `name:value`
    Tight,
    /// `name = value`, and `name: value`, which sentences contain too.
    Spaced,
    /// `--name value`
    Flag,
}

pub(super) struct SecretValue {
    pub(super) range: Range<usize>,
    pub(super) quoted: bool,
    joint: Joint,
}

/// The secret behind the name at `at..end`.
pub(super) fn of_name(text: &str, at: usize, end: usize, grade: Grade, flag: bool) -> Option<Range<usize>> {
    if before(text, at, 1).starts_with(['?', '&']) && after(text, end).starts_with('=') {
        let rest = after(text, end + 1);
        let length = rest.find(|c: char| c.is_whitespace() || "&#\"'`<>\\)]}".contains(c)).unwrap_or(rest.len());
        let value = rest.get(..length).filter(|value| !value.is_empty() && !is_reference(value))?;
        let certain = !matches!(grade, Grade::Query | Grade::Key | Grade::Pin);
        return (certain || looks_random(value)).then_some(end + 1..end + 1 + length);
    }
    if grade == Grade::Query {
        // `Signature=…` of a request.
        if !text.get(at..end)?.to_ascii_lowercase().ends_with("nature") && !text.get(at..end)?.ends_with("sig") {
            return None;
        }
        let hex =
            after(text, end).strip_prefix('=').map_or(0, |rest| rest.bytes().take_while(u8::is_ascii_hexdigit).count());
        return (hex == 64).then(|| end + 1..end + 65);
    }
    // `${TOKEN:?…}` is what the shell says without it.
    if before(text, at, 2) == "${" && after(text, end).starts_with([':', '?']) && window(text, end, 2).contains('?') {
        return None;
    }
    let outer = before(text, at, 1).chars().next().filter(|quote| matches!(quote, '"' | '\''));
    if outer.is_some_and(|quote| is_only_name(after(text, end), quote)) {
        return None;
    }
    let mut value = typed(text, end).or_else(|| value_after(text, end, flag))?;
    if value.joint == Joint::Flag && after(text, value.range.start).starts_with("pass:") {
        value.range.start += "pass:".len();
    }
    let outer = outer.filter(|_| !value.quoted);
    // `-H 'X-Api-Key: …'`: a header is quoted together with its name.
    let header = || ["-H ", "-H", "--header ", "--header="].iter().any(|flag| before(text, at - 1, 9).ends_with(flag));
    value.quoted |= outer.is_some() && value.joint == Joint::Spaced && header();
    let name = text.get(at..end)?;
    // `credentials: admin / …`
    if grade == Grade::Strong && name.to_ascii_lowercase().starts_with("cred") {
        let pair =
            window(text, value.range.end, TYPE_MAX).strip_prefix(" / ").map(|rest| unquoted(rest, 0, value.joint));
        if let Some(second) = pair.flatten() {
            value.range.end += 3 + second.range.end;
        }
    }
    (is_secret(text, grade, &value) && !is_echo(name, text.get(value.range.clone())?, &value))
        .then(|| with_blanks(text, &value, outer))
}

/// Words about the name instead of a value: `token = token`, `"Forgot your password?"`, `a.password=b`.
fn is_echo(name: &str, word: &str, value: &SecretValue) -> bool {
    let last = name.rsplit(['.', '_', '-']).next().unwrap_or_default();
    let letter = word.len() == 1 && word.bytes().all(|byte| byte.is_ascii_alphabetic());
    let speaks = || ["assword", "oken", "required", "your "].iter().any(|part| word.contains(part));
    let colour = word.strip_prefix('#').is_some_and(|hex| hex.len() <= 8 && is_hex(hex));
    let variable = word.contains('_')
        && word.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && word.to_ascii_lowercase().ends_with(&last.to_ascii_lowercase());
    // A type or a variable that is named like this: `shutdown_token: CancellationToken`.
    let named = !value.quoted
        && word.len() > 6
        && word.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && ["token", "auth", "key"].iter().any(|part| word.to_ascii_lowercase().contains(part))
        && ["token", "auth", "key"].iter().any(|part| last.to_ascii_lowercase().contains(part));
    word.eq_ignore_ascii_case(last)
        || colour
        || (named && value.joint != Joint::Equals)
        || (variable && !value.quoted)
        || (letter && !value.quoted && (value.joint == Joint::Tight || name.contains('.')))
        || (value.quoted && word.contains(' ') && speaks())
}

/// `grep "password=" file`: the quotation ends before any value.
fn is_only_name(rest: &str, quote: char) -> bool {
    let behind = rest.strip_prefix(['=', ':']).and_then(|rest| rest.trim_start_matches(' ').strip_prefix(quote));
    behind.is_some_and(|behind| behind.is_empty() || behind.starts_with([' ', '\n', ')', ',', ';', '|']))
}

/// A value that is quoted together with its name may contain blanks: `-e "DB_PASSWORD=…"`. It ends before the next pair.
fn with_blanks(text: &str, value: &SecretValue, outer: Option<char>) -> Range<usize> {
    let Range { start, end } = value.range;
    let Some(quote) = outer.filter(|_| value.quoted || before(text, start, 1) == "=") else {
        return start..end;
    };
    let rest = window(text, end, QUOTED_MAX);
    let ends = |(at, c): &(usize, char)| match c {
        '\n' | '\\' => true,
        ' ' | ',' | ';' | '&' => begins_pair(after(rest, at + 1)),
        c => *c == quote,
    };
    start..end + rest.char_indices().find(ends).map_or(0, |(length, _)| length)
}

/// `name: Type = "value"`, as typed languages declare it.
fn typed(text: &str, end: usize) -> Option<SecretValue> {
    let near = window(text, end, TYPE_MAX);
    // `password <- "…"` and `password{"…"}`
    let joint =
        near.strip_prefix(" <- ").or_else(|| near.strip_prefix('{')).filter(|value| value.starts_with(['"', '\'']));
    if let Some(value) = joint {
        return quoted(text, end + near.len() - value.len(), Joint::Spaced);
    }
    // `Dim password As String = "…"`, `var password string = "…"`
    if let Some((kind, value)) = near.strip_prefix(' ').and_then(|rest| rest.split_once(" = "))
        && value.starts_with(['"', '\''])
        && kind.split(' ').count() <= 2
        && kind.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b' ')
    {
        return quoted(text, end + 1 + kind.len() + 3, Joint::Spaced);
    }
    let rest = near.strip_prefix(':')?;
    let (kind, behind) = rest.split_once('=')?;
    let plain = |c: char| c.is_ascii_alphanumeric() || " _<>&'[].".contains(c);
    if kind.trim().is_empty() || !kind.chars().all(plain) || behind.starts_with(['=', '>']) {
        return None;
    }
    let start = end + 1 + kind.len() + 1 + behind.len() - behind.trim_start_matches(' ').len();
    quoted(text, start, Joint::Spaced)
}

/// The value behind a name that ends at `end`.
pub(super) fn value_after(text: &str, end: usize, flag: bool) -> Option<SecretValue> {
    let rest = after(text, end);
    // The name may be quoted or an index: `"token": …`, `env['TOKEN'] = …`.
    let closed = rest.bytes().take(CLOSING_MAX).take_while(|byte| b"\"'`\\]".contains(byte)).count();
    let rest = after(rest, closed);
    let bare = rest.trim_start_matches(BLANKS);
    let spaced = bare.len() < rest.len();
    let (mut joint, behind) = if let Some(behind) = bare.strip_prefix("=>").or_else(|| bare.strip_prefix(":=")) {
        (Joint::Spaced, behind)
    } else if ["==", "=~", "::"].iter().any(|operator| bare.starts_with(operator)) {
        return None;
    } else if let Some(behind) = bare.strip_prefix('=') {
        (if spaced { Joint::Spaced } else { Joint::Equals }, behind)
    } else if let Some(behind) = bare.strip_prefix([':', '：', '＝']) {
        (Joint::Tight, behind)
    } else if flag && closed == 0 && spaced {
        (Joint::Flag, bare)
    } else {
        // A list of arguments: `"--password", "…"`.
        (Joint::Flag, bare.strip_prefix(',').filter(|_| flag && closed > 0)?)
    };
    let value = behind.trim_start_matches(BLANKS);
    // The end of what Markdown shows in bold, and the kind of a value in YAML.
    let value = value.strip_prefix("** ").or_else(|| value.strip_prefix("__ ")).unwrap_or(value);
    let tag = value.strip_prefix("!!").and_then(|tag| tag.split_once(' ')).filter(|(tag, _)| tag.len() < 8);
    let value = tag.map_or(value, |(_, value)| value).trim_start_matches(BLANKS);
    if value.is_empty() || value.starts_with(['\n', '\r']) {
        return None;
    }
    if joint != Joint::Flag && value.len() < behind.len() {
        joint = Joint::Spaced;
    }
    let start = text.len() - value.len();
    let listed = joint == Joint::Flag && closed > 0;
    // A block, whose lines are read with it.
    if joint == Joint::Spaced && value.trim_start_matches(['|', '>']).starts_with(['-', '+', '\n', '\r']) {
        let mark = value.bytes().take_while(|byte| b"|>-+0123456789".contains(byte)).count();
        if value.starts_with(['|', '>']) && after(value, mark).trim_start_matches(['\r', ' ']).starts_with('\n') {
            return None;
        }
    }
    if let Some(range) = wrapped(text, start).filter(|_| joint != Joint::Flag) {
        return Some(SecretValue { range, quoted: true, joint });
    }
    quoted(text, start, joint).or_else(|| (!listed).then(|| unquoted(text, start, joint)).flatten())
}

pub(super) fn value_at(text: &str, start: usize) -> Option<SecretValue> {
    quoted(text, start, Joint::Spaced).or_else(|| unquoted(text, start, Joint::Spaced))
}

fn quoted(text: &str, start: usize, joint: Joint) -> Option<SecretValue> {
    let rest = after(text, start);
    // `$'…'` of the shell, `b"…"` and the like of Python and Rust.
    let rest = rest
        .strip_prefix(['$', 'b', 'f', 'r', '@', 'u', 'L', 'N'])
        .filter(|rest| rest.starts_with(['"', '\'']))
        .unwrap_or(rest);
    // JSON in JSON writes several backslashes before a quote.
    let slashes = rest.bytes().take(CLOSING_MAX).take_while(|byte| *byte == b'\\').count();
    let sign = after(rest, slashes)
        .chars()
        .next()
        .filter(|sign| matches!(sign, '"' | '\'') || (*sign == '`' && slashes == 0))?;
    let mark = if rest.starts_with("\"\"\"") { "\"\"\"" } else { rest.get(..slashes + sign.len_utf8())? };
    let body = after(rest, mark.len());
    let from = text.len() - body.len();
    // What only closes a call follows the last quotation of it: `"Password: ")`.
    let says_something = || window(body, 0, LINE_MAX).split('\n').next().is_some_and(has_letter);
    let open = || says_something().then(|| body.find('\n').unwrap_or(body.len()));
    let length = closing(body, mark).or_else(open)?;
    (length > 0).then_some(SecretValue { range: from..from + length, quoted: true, joint })
}

fn has_letter(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii())
}

/// The quotation at a position.
pub(super) fn quoted_at(text: &str, start: usize) -> Option<Range<usize>> {
    let near = text.get(..text.floor_char_boundary(text.len().min(start + LINE_MAX)))?;
    quoted(near, start, Joint::Spaced).map(|value| value.range)
}

fn closing(body: &str, mark: &str) -> Option<usize> {
    let mut at = 0;
    while at < body.len().min(QUOTED_MAX) {
        let rest = body.as_bytes().get(at..)?;
        if rest.starts_with(mark.as_bytes()) {
            return Some(at);
        }
        at += if rest.starts_with(b"\\") && !mark.starts_with('\\') { 2 } else { 1 };
    }
    None
}

fn unquoted(text: &str, start: usize, joint: Joint) -> Option<SecretValue> {
    let rest = after(text, start);
    let placeholder = window(rest, 0, 64).strip_prefix('<').and_then(|inner| inner.split_once(['>', '\n']));
    if let Some((inner, _)) = placeholder.filter(|(inner, _)| after(rest, inner.len() + 1).starts_with('>')) {
        return Some(SecretValue { range: start..start + inner.len() + 2, quoted: false, joint });
    }
    let ends = |(at, c): &(usize, char)| match c {
        '"' | '\'' | '`' => true,
        '\\' => after(rest, at + 1).starts_with(['n', 'r', 't', '"', '\'']),
        ',' | ';' | '&' => begins_pair(after(rest, at + 1)),
        c => c.is_whitespace(),
    };
    let word = rest.get(..rest.char_indices().find(ends).map_or(rest.len(), |(end, _)| end))?;
    // `b""`: nothing is quoted.
    if word.len() == 1 && after(rest, 1).starts_with(['"', '\'']) {
        return None;
    }
    let length = if word.starts_with(MARK) { MARK.len() } else { without_closing(word).len() };
    (length > 0).then_some(SecretValue { range: start..start + length, quoted: false, joint })
}

/// The word without what closes the sentence, the call or the object around it; brackets opened in the word stay.
fn without_closing(word: &str) -> &str {
    let count = |open: char, close: char| (close, word.matches(open).count(), word.matches(close).count());
    let mut brackets = [count('(', ')'), count('[', ']'), count('{', '}'), count('<', '>')];
    word.trim_end_matches(|last| match brackets.iter_mut().find(|(close, ..)| *close == last) {
        Some((_, opened, closed)) => {
            let outer = *closed > *opened;
            *closed -= usize::from(outer);
            outer
        }
        None => matches!(last, ',' | ';' | '.' | ':'),
    })
}

fn begins_pair(text: &str) -> bool {
    let name = text.trim_start_matches(' ');
    let rest = name.trim_start_matches(|c: char| c.is_ascii() && is_run(c as u8));
    rest.len() < name.len() && rest.starts_with(['=', ':'])
}

pub(super) fn ends_clause(rest: &str) -> bool {
    let next = rest.trim_start_matches([',', ';', ')', ']', '}', '>', '.', '"', '\'', ' ', '\t', '\r']);
    next.is_empty() || next.starts_with('\n') || rest.starts_with([',', '.', ')', '"', '\''])
}

fn is_secret(text: &str, grade: Grade, value: &SecretValue) -> bool {
    let word = text.get(value.range.clone()).unwrap_or_default();
    // An object or a list; its names are read next.
    let opens = !value.quoted && word.bytes().all(|byte| b"[{(".contains(&byte));
    let number = word.bytes().all(|byte| byte.is_ascii_digit() || b".,%".contains(&byte));
    if grade == Grade::Pin {
        let rest = after(text, value.range.end);
        return word.bytes().all(|byte| byte.is_ascii_digit()) && (4..=8).contains(&word.len()) && ends_clause(rest);
    }
    // `accesskey="p"`
    let letter = value.quoted && word.len() == 1;
    let short_number = number && grade != Grade::Strong && word.len() < 6;
    if opens || letter || short_number || is_reference(word) || is_ordinary(word) {
        return false;
    }
    let rest = after(text, value.range.end);
    let weak = grade == Grade::Weak;
    // The shell runs what stands between these.
    let runs =
        value.quoted && value.joint == Joint::Equals && word.contains(' ') && before(text, value.range.start, 1) == "`";
    let version = number
        || word.strip_prefix(['^', '~', 'v']).is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit() || b == b'.'));
    // `arn:…:secret:prod/db`
    let named = value.joint == Joint::Tight && before(text, value.range.start, 8).starts_with(':');
    if is_path(word) || runs || named || (version && grade != Grade::Strong && word.len() < 12) {
        return false;
    }
    if grade == Grade::Key {
        return is_key(word);
    }
    value.quoted
        || match value.joint {
            // Shells, settings and connection strings: a password may look like code here.
            Joint::Equals => !is_certainly_code(word, rest),
            Joint::Flag => !is_certainly_code(word, rest) && !is_sentence(word),
            Joint::Tight => !is_code(word, rest) && (!weak || looks_random(word)),
            Joint::Spaced => {
                !is_code(word, rest) && (looks_random(word) || (grade == Grade::Strong && ends_clause(rest)))
            }
        }
}
