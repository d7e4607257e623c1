//! Secrets that are known by their place: behind `Authorization` and `Bearer`, before the host of a URL, and behind
//! the short flags of two programs.

use std::ops::Range;

use super::plain::{is_ordinary, is_reference, looks_random};
use super::values::value_after;
use super::{MARK, after, line_before};

/// `Authorization: Bearer …`: the scheme stays.
pub(super) fn of_header(text: &str, end: usize) -> Option<Range<usize>> {
    let value = value_after(text, end, false)?;
    let start = value.range.start;
    let region = if value.quoted {
        text.get(value.range.clone())?
    } else {
        let rest = after(text, start);
        rest.get(..rest.find(['\n', '"', '\'', '`', '\\']).unwrap_or(rest.len()))?
    };
    let word_at = |from: usize| {
        let rest = region.get(from..)?;
        let length = rest.find(char::is_whitespace).unwrap_or(rest.len());
        rest.get(..length).filter(|word| !word.is_empty())
    };
    let first = word_at(0)?;
    let scheme = first.bytes().all(|byte| byte.is_ascii_alphabetic());
    let gap = region.get(first.len()..)?;
    let second_at = first.len() + (gap.len() - gap.trim_start().len());
    let (from, word) = match word_at(second_at) {
        Some(word) if scheme => (second_at, word),
        _ => (0, first),
    };
    let word = if word.starts_with(MARK) { MARK } else { word.trim_end_matches([',', ';', ')', '.']) };
    let last = region.get(from + word.len()..).is_none_or(|rest| rest.trim().is_empty());
    let secret =
        word == MARK || (!is_reference(word) && !is_ordinary(word) && (looks_random(word) || (last && from > 0)));
    if !secret {
        return None;
    }
    // One scheme goes on: `Digest username="…", response="…"`.
    let length = if word == MARK {
        word.len()
    } else if value.quoted {
        region.len() - from
    } else if first.eq_ignore_ascii_case("digest") {
        let rest = after(text, start + from);
        rest.find('\n').unwrap_or(rest.len())
    } else {
        word.len()
    };
    Some(start + from..start + from + length)
}

/// `Bearer …` without its header.
pub(super) fn of_bearer(text: &str, end: usize) -> Option<Range<usize>> {
    let word = after(text, end).strip_prefix(' ')?;
    let length = word.find(|c: char| c.is_whitespace() || "\"'`,;)\\".contains(c)).unwrap_or(word.len());
    let word = word.get(..length)?;
    let secret = word.len() >= 8 && looks_random(word) && !is_reference(word);
    secret.then_some(end + 1..end + 1 + length)
}

/// `curl -u user:password` and `sshpass -p password`; for other programs these flags mean something else.
pub(super) fn of_short_flag(text: &str, at: usize, run: &str, end: usize) -> Option<Range<usize>> {
    let has = |program: &str| line_before(text, at).split(|c: char| !c.is_ascii_alphanumeric()).any(|w| w == program);
    let curl = (run.starts_with("-u") || run == "--user" || run == "--proxy-user") && has("curl");
    let sshpass = run == "-p" && has("sshpass");
    if !curl && !sshpass {
        return None;
    }
    let from = if curl && !run.starts_with("--") && run.len() > 2 { at + 2 } else { end };
    let rest = after(text, from).trim_start_matches([' ', '=']);
    let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
    let rest = quote.and_then(|quote| rest.strip_prefix(quote)).unwrap_or(rest);
    let start = text.len() - rest.len();
    let ends = |c: char| quote.map_or_else(|| c.is_whitespace() || "\"'`".contains(c), |quote| c == quote || c == '\n');
    let word = rest.get(..rest.find(ends).unwrap_or(rest.len()))?;
    let skipped = if curl { word.find(':')? + 1 } else { 0 };
    let password = word.get(skipped..).filter(|password| !password.is_empty() && !is_reference(password))?;
    Some(start + skipped..start + skipped + password.len())
}

/// `scheme://user:password@host`; `at` is where `://` may begin.
pub(super) fn password_of_url(text: &str, at: usize) -> Option<Range<usize>> {
    let rest = after(text, at).strip_prefix("://")?;
    let start = at + 3;
    let end = rest.find(|c: char| c.is_whitespace() || "\"'`<>".contains(c)).unwrap_or(rest.len()).min(2_048);
    let url = rest.get(..end)?;
    let authority = url.find(['/', '?', '#']).unwrap_or(url.len());
    let colon = url.find(':').unwrap_or(url.len());
    let by_rule = url.get(..authority)?.rfind('@');
    // A password may hold a slash all the same; a port may not.
    let sign = by_rule.or_else(|| {
        let port = url.get(colon + 1..authority)?;
        (!port.bytes().all(|byte| byte.is_ascii_digit())).then(|| url.rfind('@')).flatten()
    })?;
    let (from, secret) = match url.get(..colon) {
        Some(_) if colon < sign => (colon + 1, url.get(colon + 1..sign)?),
        _ => (0, url.get(..sign).filter(|user| user.len() >= 16 && looks_random(user))?),
    };
    (!secret.is_empty() && !is_reference(secret)).then_some(start + from..start + sign)
}
