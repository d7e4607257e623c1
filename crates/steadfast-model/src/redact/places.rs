//! Secrets that are known by their place: behind `Authorization` and `Bearer`, in cookies, and in URLs, before the
//! host or as the address of a webhook.

use std::ops::Range;

use super::plain::{is_ordinary, is_reference, looks_random};
use super::values::value_after;
use super::{MARK, after, before, is_run, window};

/// The farthest that the `@` of a URL is looked for.
const URL_MAX: usize = 1_024;
const COOKIE_NAME_MAX: usize = 128;

/// `Authorization: Bearer …`: the scheme stays. `at` and `end` are where the name begins and ends.
pub(super) fn of_header(text: &str, at: usize, end: usize) -> Option<Range<usize>> {
    let value = value_after(text, end, false)?;
    let start = value.range.start;
    let stop = if value.quoted { value.range.end } else { text.len() };
    let ends = |c: char| c == '\n' || (!value.quoted && matches!(c, '"' | '\'' | '`' | '\\'));
    let word_at = |from: usize| {
        let rest = text.get(from..stop)?;
        let length = rest.find(|c: char| c.is_whitespace() || ends(c)).unwrap_or(rest.len());
        rest.get(..length).filter(|word| !word.is_empty())
    };
    let past_blanks = |from: usize| {
        let rest = text.get(from..stop).unwrap_or_default();
        stop - rest.trim_start_matches(|c: char| c.is_whitespace() && c != '\n').len()
    };
    let first = word_at(start)?;
    let scheme = first.bytes().all(|byte| byte.is_ascii_alphabetic());
    let second_at = past_blanks(start + first.len());
    let (from, word) = match word_at(second_at) {
        Some(word) if scheme => (second_at, word),
        _ => (start, first),
    };
    let word = if word.starts_with(MARK) { MARK } else { word.trim_end_matches([',', ';', ')', '.']) };
    let rest = text.get(past_blanks(from + word.len())..stop).unwrap_or_default();
    let last = rest.is_empty() || rest.starts_with(ends);
    // A sentence does not quote the name together with what follows.
    let whole = last && (from > start || before(text, at, 1).starts_with(['"', '\'']));
    let secret = word == MARK || (!is_reference(word) && !is_ordinary(word) && (looks_random(word) || whole));
    if !secret {
        return None;
    }
    // One scheme goes on: `Digest username="…", response="…"`.
    let length = if word == MARK {
        word.len()
    } else if value.quoted {
        stop - from
    } else if first.eq_ignore_ascii_case("digest") {
        let rest = after(text, from);
        rest.find('\n').unwrap_or(rest.len())
    } else {
        word.len()
    };
    Some(from..from + length)
}

/// `Bearer …` without its header.
pub(super) fn of_bearer(text: &str, end: usize) -> Option<Range<usize>> {
    let word = after(text, end).strip_prefix(' ')?;
    let length = word.find(|c: char| c.is_whitespace() || "\"'`,;)\\".contains(c)).unwrap_or(word.len());
    let word = word.get(..length)?;
    let secret = word.len() >= 8 && looks_random(word) && !is_reference(word);
    secret.then_some(end + 1..end + 1 + length)
}

/// `Cookie: a=…; b=…` with its names, since those say nothing; `flag` for `--cookie a=…`.
pub(super) fn of_cookie(text: &str, end: usize, flag: bool) -> Option<Range<usize>> {
    let rest = after(text, end);
    let closed = rest.trim_start_matches(['"', '\'', '`', '\\', ']']);
    let blank = closed.trim_start_matches([' ', '\t']);
    let value = match blank.strip_prefix([':', '=']) {
        Some(value) => value,
        None if flag && blank.len() < rest.len() => blank,
        None => return None,
    };
    let spread = value.trim_start_matches([' ', '\t', '[']);
    let (from, quoted) = spread
        .strip_prefix('\\')
        .unwrap_or(spread)
        .strip_prefix(['"', '\'', '`'])
        .map_or((spread, false), |inner| (inner, true));
    let in_line = !flag || quoted;
    let stops = |c: char| matches!(c, '\n' | '"' | '\'' | '`' | '\\') || (!in_line && c.is_whitespace());
    cookies(text, text.len() - from.len(), stops)
}

/// The cookies that begin at a place, up to where their text stops; a file of cookies is none.
pub(super) fn cookies(text: &str, start: usize, stops: impl Fn(char) -> bool) -> Option<Range<usize>> {
    let rest = after(text, start);
    if rest.starts_with(MARK) {
        return Some(start..start + MARK.len());
    }
    let name = rest.bytes().take(COOKIE_NAME_MAX).take_while(|byte| is_run(*byte) || b"%$!#*".contains(byte)).count();
    let value = after(rest, name).strip_prefix('=').filter(|value| name > 0 && !value.starts_with(['=', '>', ' ']))?;
    let length = rest.find(stops).unwrap_or(rest.len());
    let value = value.get(..length.checked_sub(name + 1)?)?.trim_end();
    let hidden = !value.is_empty() && !is_reference(value) && !is_ordinary(value);
    hidden.then_some(start..start + name + 1 + value.len())
}

/// The address of a webhook is all it takes to write to it; `end` is where the name of the host ends.
pub(super) fn of_webhook(text: &str, host: &str, end: usize) -> Option<Range<usize>> {
    let path = window(text, end, 64);
    let marks: &[&str] = match host {
        "hooks.slack.com" => &["/services/", "/workflows/", "/triggers/"],
        "discord.com" | "discordapp.com" | "canary.discord.com" | "ptb.discord.com" if path.starts_with("/api/") => {
            &["/webhooks/"]
        }
        _ => return None,
    };
    let from = marks.iter().find_map(|mark| path.find(mark).filter(|at| *at < 12).map(|at| at + mark.len()))?;
    let secret = after(text, end + from);
    if secret.starts_with(MARK) {
        return Some(end + from..end + from + MARK.len());
    }
    let length = secret.bytes().take_while(|byte| is_run(*byte) || *byte == b'/').count();
    let length = secret.get(..length)?.trim_end_matches(['.', '/']).len();
    (length > 0).then_some(end + from..end + from + length)
}

/// `123456789:…`, what a bot of Telegram is known by; `at` is where its colon stands.
pub(super) fn of_bot(text: &str, at: usize) -> Option<Range<usize>> {
    const LENGTH: usize = 35;
    let bytes = text.as_bytes();
    let url = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let token = bytes.get(at + 1..)?.iter().take(LENGTH + 1).take_while(|byte| url(byte)).count();
    if token != LENGTH {
        return None;
    }
    let id = bytes.get(..at)?.iter().rev().take(13).take_while(|byte| byte.is_ascii_digit()).count();
    let before = bytes.get(..at - id)?;
    let begins = before.ends_with(b"bot") || before.last().is_none_or(|byte| !byte.is_ascii_alphanumeric());
    ((6..=12).contains(&id) && begins).then_some(at + 1..at + 1 + LENGTH)
}

fn ends_url(character: char) -> bool {
    character.is_whitespace() || matches!(character, '"' | '\'' | '`' | '<' | '>')
}

/// `scheme://user:password@host`; `at` is where `://` may begin.
pub(super) fn password_of_url(text: &str, at: usize) -> Option<Range<usize>> {
    let rest = after(text, at).strip_prefix("://")?;
    let start = at + 3;
    let near = window(rest, 0, URL_MAX);
    // Most addresses name nobody.
    memchr::memchr(b'@', near.as_bytes())?;
    let authority = near.find(|c: char| matches!(c, '/' | '?' | '#') || ends_url(c)).unwrap_or(near.len());
    let by_rule = near.get(..authority)?.rfind('@');
    let (url, sign) = if let Some(sign) = by_rule {
        (near.get(..authority)?, sign)
    } else {
        // A password may hold a slash all the same; a port may not.
        let port = near.get(..authority)?.split_once(':').map_or("", |(_, port)| port);
        if port.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let url = near.get(..near.find(ends_url).unwrap_or(near.len()))?;
        (url, url.rfind('@')?)
    };
    let scheme = before(text, at, "https".len()).to_ascii_lowercase();
    let web = scheme == "https" || scheme.ends_with("http");
    let colon = url.find(':').unwrap_or(url.len());
    let (from, secret) = match url.get(..colon) {
        // Some services take a token for the user, and anything for its password.
        Some(user) if web && matches!(url.get(colon..sign), Some(":" | ":x-oauth-basic")) => (0, user),
        Some(_) if colon < sign => (colon + 1, url.get(colon + 1..sign)?),
        _ => (0, url.get(..sign).filter(|user| is_token_user(user, web))?),
    };
    (!secret.is_empty() && !is_reference(secret)).then_some(start + from..start + sign.min(from + secret.len()))
}

/// Whether the only name in a URL is a token. On the web hardly anything else stands there, elsewhere it is a user.
fn is_token_user(user: &str, web: bool) -> bool {
    const USERS: [&str; 12] =
        ["git", "user", "username", "root", "admin", "anonymous", "hg", "svn", "oauth2", "x-access-token", "www", "me"];
    if web { !USERS.contains(&user) } else { user.len() >= 16 && looks_random(user) }
}
