//! Values that do not stand right behind their name: on the next lines, inside of a call, or as the last choice of an
//! expression.

use std::ops::Range;

use super::names::Grade;
use super::values::{SecretValue, quoted_at, value_at};
use super::words::{has, is_code, is_ordinary, is_reference, is_sentence, looks_random};
use super::{after, before, window};

const LINE_MAX: usize = 512;
const BLOCK_MAX: usize = 16_384;
/// How often a value is wrapped: `Some(String::from("…"))`.
const WRAPPED_MAX: usize = 3;
/// Calls whose argument is the value itself.
const WRAPPERS: &str = "SecretStr SecretBytes Secret SecretString SecureString Some Ok Just from new of str bytes String \
    Buffer Fernet Password Token ConvertTo-SecureString toCharArray sensitive Sensitive encode unicode Optional";
/// Verbs of calls that read a value from elsewhere.
const READERS: [&str; 22] = [
    "get", "env", "read", "load", "fetch", "prompt", "input", "ask", "find", "lookup", "require", "param", "var",
    "config", "file", "open", "query", "select", "field", "column", "key", "by",
];
/// Words of sentences about phrases, which no phrase of words has.
const SPEECH: &str = "the a an is are be must should can will not and or to of for in with your you it this that when if at \
    least from on has have as by no";
/// What stands before the last choice of an expression.
const CHOICES: [&str; 5] = [" : ", "|| ", "?? ", " or ", "unwrap_or("];

/// The value behind the colon of a name, if nothing follows on its line: the next line, or an indented block.
pub(super) fn below(text: &str, at: usize, end: usize, flag: bool) -> Option<Range<usize>> {
    let rest = after(text, end);
    let rest = rest.strip_prefix("\\\"").or_else(|| rest.strip_prefix(['"', '\''])).unwrap_or(rest);
    if flag {
        return item_below(text, rest);
    }
    let behind = rest.strip_prefix(':')?;
    let line = window(behind, 0, LINE_MAX).split('\n').next()?;
    let next = after(behind, line.len()).strip_prefix('\n')?;
    let indent = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let start_of_line = before(text, at, LINE_MAX).rsplit('\n').next()?;
    let least = indent(start_of_line) + 1;
    let from = text.len() - next.len();
    match line.trim() {
        "" => {
            let line = window(next, 0, LINE_MAX).split('\n').next()?;
            let value = near_value(text, from + indent(line)).filter(|_| indent(line) >= least)?;
            let word = text.get(value.range.clone())?;
            let alone = line.trim().trim_end_matches(',').trim_matches(['"', '\'']) == word;
            let plain = is_reference(word) || is_ordinary(word) || is_code(word, "");
            (alone && !plain && (value.quoted || looks_random(word))).then_some(value.range)
        }
        mark if mark.starts_with(['|', '>']) && mark.len() <= 3 => {
            let mut length = 0;
            for line in window(next, 0, BLOCK_MAX).split_inclusive('\n') {
                if !line.trim().is_empty() && indent(line) < least {
                    break;
                }
                length += line.len();
            }
            let block = window(next, 0, length);
            let start = from + block.len() - block.trim_start().len();
            let block = block.trim();
            let plain = block.is_empty() || is_reference(block) || is_ordinary(block) || block.starts_with("${{");
            // Sentences stand in blocks too.
            let word = !block.contains(' ') || block.starts_with("-----BEGIN ");
            (word && !plain).then(|| start..start + block.len())
        }
        _ => None,
    }
}

/// `- --password` and `"--password",`, with the value as the next item of the list.
fn item_below(text: &str, rest: &str) -> Option<Range<usize>> {
    let next = rest.trim_start_matches([',', ' ']).strip_prefix('\n')?;
    let item = next.trim_start_matches([' ', '\t']);
    let value = item.strip_prefix("- ").or_else(|| Some(item).filter(|item| item.starts_with(['"', '\''])))?;
    let value = near_value(text, text.len() - value.len())?;
    let word = text.get(value.range.clone())?;
    (!is_reference(word) && !is_ordinary(word) && !is_sentence(word)).then_some(value.range)
}

/// The quoted argument of the call that the value is: `SecretStr("…")`, `ConvertTo-SecureString "…"`.
pub(super) fn wrapped(text: &str, start: usize) -> Option<Range<usize>> {
    let mut at = start;
    let mut known = false;
    for depth in 0..WRAPPED_MAX {
        let rest = after(text, at);
        let rest = rest.strip_prefix("new ").unwrap_or(rest);
        let name = rest.bytes().take(64).take_while(|byte| byte.is_ascii_alphanumeric() || b"_.:-".contains(byte));
        let name = rest.get(..name.count()).filter(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()))?;
        let behind = after(rest, name.len());
        let last = name.rsplit(['.', ':']).next()?;
        known |= has(WRAPPERS, last);
        let lower = last.to_ascii_lowercase();
        if !known && READERS.iter().any(|verb| lower.contains(verb)) {
            return None;
        }
        let argument = match behind.strip_prefix('(') {
            Some(argument) => argument.trim_start_matches(' '),
            // A command of PowerShell.
            None if depth == 0 && name.contains('-') => {
                let argument = behind.strip_prefix(' ')?;
                argument.strip_prefix("-String ").unwrap_or(argument)
            }
            None => return None,
        };
        at = text.len() - argument.len();
        if let Some(range) = quoted_at(text, at) {
            let word = text.get(range.clone())?;
            let variable = word.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
            let plain = is_reference(word) || is_ordinary(word) || variable || word.contains(' ');
            let has = |kind: fn(&u8) -> bool| word.as_bytes().iter().any(kind);
            let both = has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic) && word.len() >= 6;
            return (!plain && (both || (known && word.len() >= 4))).then_some(range);
        }
    }
    None
}

/// `password = cond ? x : "…"`, `unwrap_or("…")`, and a comparison: `password == "…"`.
pub(super) fn chosen(text: &str, end: usize) -> Option<Range<usize>> {
    let line = window(text, end, LINE_MAX).split('\n').next()?;
    let closed = line.trim_start_matches(['"', '\'', ']', ')']);
    let joint = closed.trim_start_matches(' ');
    let compared = ["=== ", "== ", "!== ", "!= "].iter().find_map(|sign| joint.strip_prefix(sign));
    let from = if let Some(value) = compared {
        line.len() - value.len()
    } else {
        let value = joint.strip_prefix(":=").or_else(|| joint.strip_prefix(['=', ':']))?;
        let choice = CHOICES.iter().filter_map(|sign| Some(value.rfind(sign)? + sign.len())).max()?;
        let is_condition = value.contains('?') || !value.get(..choice)?.ends_with(" : ");
        Some(line.len() - value.len() + choice).filter(|_| is_condition)?
    };
    let range = quoted_at(text, end + from)?;
    let word = text.get(range.clone())?;
    let has = |kind: fn(&u8) -> bool| word.as_bytes().iter().any(kind);
    let drawn = has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic) && word.len() >= 6;
    (drawn && !is_reference(word) && !word.contains(' ')).then_some(range)
}

/// `Passphrase: correct horse battery staple`: words only, and none of a sentence.
pub(super) fn phrase(text: &str, name: &str, end: usize) -> Option<Range<usize>> {
    let lower = name.to_ascii_lowercase();
    if !["phrase", "mnemonic"].iter().any(|kind| lower.ends_with(kind)) {
        return None;
    }
    let rest = window(text, end, LINE_MAX).trim_start_matches(['"', '\'', '*']);
    let rest = rest.strip_prefix([':', '=']).or_else(|| rest.strip_prefix(" is"))?;
    let value = rest.trim_start_matches([' ', ':', '*', '"', '\'']);
    let line = value.split(['\n', '"', '\'', '.', ',']).next()?.trim_end();
    let mut words = line.split(' ');
    let plain =
        |word: &str| word.len() >= 3 && word.bytes().all(|byte| byte.is_ascii_lowercase()) && !has(SPEECH, word);
    let start = end + window(text, end, LINE_MAX).len() - value.len();
    (line.split(' ').count() >= 3 && words.all(plain)).then(|| start..start + line.len())
}

/// `set the password to …`.
pub(super) fn set_to(text: &str, at: usize, end: usize, grade: Grade) -> Option<Range<usize>> {
    let behind = after(text, end);
    let value = behind.strip_prefix(" to ").or_else(|| behind.strip_prefix(" auf "))?;
    let clause = before(text, at, 32).to_ascii_lowercase();
    let verb = ["set ", "change ", "changed ", "reset ", "update ", "updated ", "setze ", "rotated "];
    if grade != Grade::Strong || !verb.iter().any(|verb| clause.contains(verb)) {
        return None;
    }
    let value = near_value(text, text.len() - value.len())?;
    let word = text.get(value.range.clone())?;
    let plain = is_reference(word) || is_ordinary(word) || is_code(word, "") || word.contains(' ');
    (!plain && looks_random(&word.replace('_', ""))).then_some(value.range)
}

/// `| password | … |`, a row of a table.
pub(super) fn cell(text: &str, at: usize, end: usize) -> Option<Range<usize>> {
    let value = after(text, end).trim_start_matches(['*', '`']).trim_start_matches(' ').strip_prefix('|')?;
    let row = before(text, at, 1) == " " || before(text, at, 1) == "|";
    let line = window(value, 0, LINE_MAX).split('\n').next()?.split('|').next().filter(|_| row)?;
    let word = line.trim().trim_matches('`');
    let start = text.len() - value.len() + line.find(word)?;
    let plain = word.is_empty() || word.contains(' ') || is_reference(word) || is_code(word, "");
    let both = word.bytes().any(|byte| byte.is_ascii_digit()) && word.bytes().any(|byte| byte.is_ascii_alphabetic());
    (both && !plain && word.len() >= 7).then(|| start..start + word.len())
}

fn near_value(text: &str, start: usize) -> Option<SecretValue> {
    value_at(text.get(..text.floor_char_boundary(text.len().min(start + LINE_MAX)))?, start)
}
