//! Secrets that a language or a kind of file marks in its own way: SQL, Dockerfiles, settings without `=`, `PuTTY`'s keys,
//! JSON web keys, Oracle's addresses.

use std::ops::Range;

use super::names::{self, Grade};
use super::values::value_at;
use super::words::{has, is_ordinary, is_reference, is_sentence, looks_random};
use super::{after, before, is_run, window};

const LINE_MAX: usize = 1_024;
/// Members of a JSON web key that are private.
const KEY_PARTS: &str = "d k p q dp dq qi";
const KEY_PART_MIN: usize = 20;

/// The secret that a word of a language announces.
pub(super) fn of_word(text: &str, at: usize, run: &str) -> Option<Range<usize>> {
    let end = at + run.len();
    match run {
        "IDENTIFIED" | "identified" => identified(text, end),
        "AUTH" | "PASS" | "stats" => protocol(text, at, run),
        "ENV" | "ARG" => variable(text, end),
        "Private-Lines" => putty(text, end),
        "requirepass"
        | "masterauth"
        | "bindpw"
        | "rootpw"
        | "ConvertTo-SecureString"
        | "enterprise.contribsys.com"
        | "gems.contribsys.com" => setting(text, end),
        "thin" => oracle(text, end),
        "PRAGMA" | "pragma" => pragma(text, end),
        "snmp-server" => after(text, end).strip_prefix(" community").and_then(|_| setting(text, end + 10)),
        "d" | "k" | "p" | "q" | "dp" | "dq" | "qi" => web_key(text, at, run),
        _ => None,
    }
}

/// `IDENTIFIED BY '…'`, with or without the name of a method.
fn identified(text: &str, end: usize) -> Option<Range<usize>> {
    let line = window(text, end, LINE_MAX).split('\n').next()?;
    let by = line.find(" BY ").or_else(|| line.find(" by ")).filter(|by| *by < 64)? + 4;
    let quote = after(line, by).trim_start().chars().next()?;
    let start = by + after(line, by).find(quote)?;
    if matches!(quote, '\'' | '"') {
        return plain(text, end + start + 1, after(line, start + 1).find(quote)?);
    }
    let length = after(line, start).bytes().take_while(|byte| !byte.is_ascii_whitespace() && *byte != b';').count();
    let word = after(line, start).get(..length)?;
    if looks_random(word) { plain(text, end + start, length) } else { None }
}

/// `AUTH …`, `PASS …` and `stats auth user:…` on a line of their own: what is said to a server, or to a proxy.
fn protocol(text: &str, at: usize, run: &str) -> Option<Range<usize>> {
    let line = window(text, at + run.len(), LINE_MAX).split(['\n', '\r', '"', '\'', '`']).next()?;
    let begun = before(text, at, 64).rsplit('\n').next()?.trim_start_matches(['>', '$', ' ', '"', '\'', '`']);
    let prompt = begun.is_empty() || begun.trim_end().ends_with(['>', ':']);
    let (_, word) = line.rsplit_once(' ').filter(|_| prompt)?;
    let word = match run {
        "stats" => line.strip_prefix(" auth ").and_then(|_| word.split_once(':'))?.1,
        _ => Some(word).filter(|word| looks_random(word) && line.split(' ').count() <= 3)?,
    };
    plain(text, at + run.len() + line.len() - word.len(), word.len())
}

/// `ENV NAME value` of a Dockerfile.
fn variable(text: &str, end: usize) -> Option<Range<usize>> {
    let line = window(text, end, LINE_MAX).split('\n').next()?.strip_prefix(' ')?;
    let name = line.bytes().take_while(|byte| is_run(*byte)).count();
    let value = after(line, name).strip_prefix(' ')?.trim_start();
    let named = matches!(names::grade(line.get(..name)?), Some(Grade::Strong | Grade::Token | Grade::Key));
    let start = end + 1 + line.len() - value.len();
    named.then(|| plain(text, start, value.trim_end().len())).flatten()
}

/// `requirepass …`: the value is the next word.
fn setting(text: &str, end: usize) -> Option<Range<usize>> {
    let rest = window(text, end, LINE_MAX).strip_prefix(' ')?;
    let value = rest.trim_start_matches([' ', '"', '\'']);
    let length = value.find(|c: char| c.is_whitespace() || "\"'".contains(c)).unwrap_or(value.len());
    let word = value.get(..length)?;
    if is_sentence(word) || length < 5 {
        return None;
    }
    plain(text, end + 1 + rest.len() - value.len(), length)
}

/// The private lines of a key of `PuTTY`, with the seal behind them.
fn putty(text: &str, end: usize) -> Option<Range<usize>> {
    let rest = after(text, end).strip_prefix(": ")?;
    let start = text.len() - rest.len() + window(rest, 0, LINE_MAX).find('\n')? + 1;
    let seal = after(text, start).find("Private-MAC").unwrap_or(after(text, start).len());
    let line = after(text, start + seal).find('\n').unwrap_or(after(text, start + seal).len());
    Some(start..start + seal + line)
}

/// `PRAGMA key = '…'`.
fn pragma(text: &str, end: usize) -> Option<Range<usize>> {
    let value = window(text, end, LINE_MAX).strip_prefix(" key")?.trim_start().strip_prefix('=')?.trim_start();
    let value = value.strip_prefix(['\'', '"'])?;
    let start = end + window(text, end, LINE_MAX).len() - value.len();
    plain(text, start, value.find(['\'', '"'])?)
}

/// `{"name": "DB_PASSWORD", "value": "…"}` in JSON and YAML, and the default of a variable: the name is itself a value.
pub(super) fn named(text: &str, end: usize) -> Option<Range<usize>> {
    let near = window(text, end, LINE_MAX);
    let rest = near.trim_start_matches(['"', '\'', ',', ' ', '\t', '\r', '\n', '{']);
    let between = near.get(..near.len() - rest.len())?;
    let word = rest.get(..5).filter(|word| word.eq_ignore_ascii_case("value"));
    let word = word.or_else(|| rest.get(..7).filter(|word| *word == "default" && between.contains('{')))?;
    let lists = between.contains(['\n', '{']) || (between.contains(',') && between.contains(['"', '\'']));
    if !lists {
        return None;
    }
    let joint = after(rest, word.len()).trim_start_matches(['"', '\'', ' ']);
    let value = joint.strip_prefix([':', '='])?.trim_start_matches(' ');
    let limit = end + near.len();
    let value = value_at(text.get(..limit)?, limit - value.len())?.range;
    plain(text, value.start, value.len())
}

/// `jdbc:oracle:thin:scott/…@host`.
fn oracle(text: &str, end: usize) -> Option<Range<usize>> {
    let user = window(text, end, LINE_MAX).strip_prefix(':')?;
    let slash = user.bytes().take_while(|byte| is_run(*byte)).count();
    let password = after(user, slash).strip_prefix('/')?;
    let length = password.find(['@', ' ', '\n', '"']).filter(|end| after(password, *end).starts_with('@'))?;
    plain(text, end + 2 + slash, length)
}

/// `"d": "…"` beside the kind of the key.
fn web_key(text: &str, at: usize, name: &str) -> Option<Range<usize>> {
    let rest = after(text, at + name.len());
    if !has(KEY_PARTS, name) || before(text, at, 1) != "\"" {
        return None;
    }
    let value = rest.strip_prefix('"')?.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
    let length = value.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || b"-_+/=".contains(byte)).count();
    let near = |text: &str| text.contains("\"kty\"");
    let key = length >= KEY_PART_MIN && (near(before(text, at, LINE_MAX)) || near(window(text, at, LINE_MAX)));
    let start = text.len() - value.len();
    key.then_some(start..start + length)
}

fn plain(text: &str, start: usize, length: usize) -> Option<Range<usize>> {
    let word = text.get(start..start + length)?;
    (!word.is_empty() && !is_reference(word) && !is_ordinary(word)).then_some(start..start + length)
}
