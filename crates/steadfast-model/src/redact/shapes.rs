//! Secrets that are known by how they look, whatever stands before them: keys of well-known services, signed tokens,
//! private keys, and what the user put between `<private>` and `</private>`.

use std::ops::Range;

use super::{after, window};

/// A kind of key: how it begins, what follows, and how much of that there is at least.
struct Key {
    prefix: &'static str,
    made_of: Alphabet,
    least: usize,
    /// Words begin like this too; a key has a digit.
    needs_digit: bool,
}

#[derive(Clone, Copy)]
enum Alphabet {
    Alphanumeric,
    Uppercase,
    /// With `-` and `_`.
    Url,
    /// With `-`, `_` and `.`.
    Dotted,
    /// With `+`, `/` and `=`.
    Base64,
    /// Lower-case hexadecimal digits, exactly as many as there must be.
    Hex,
}

const fn key(prefix: &'static str, made_of: Alphabet, least: usize, needs_digit: bool) -> Key {
    Key { prefix, made_of, least, needs_digit }
}

const KEYS: [Key; 46] = [
    key("sk-ant-", Alphabet::Url, 8, false),
    key("sk-proj-", Alphabet::Url, 8, false),
    key("sk-", Alphabet::Url, 8, true),
    key("sk_live_", Alphabet::Alphanumeric, 8, false),
    key("sk_test_", Alphabet::Alphanumeric, 8, false),
    key("rk_live_", Alphabet::Alphanumeric, 8, false),
    key("ghp_", Alphabet::Alphanumeric, 8, false),
    key("gho_", Alphabet::Alphanumeric, 8, false),
    key("ghs_", Alphabet::Alphanumeric, 8, false),
    key("ghu_", Alphabet::Alphanumeric, 8, false),
    key("ghr_", Alphabet::Alphanumeric, 8, false),
    key("github_pat_", Alphabet::Url, 8, false),
    key("glpat-", Alphabet::Url, 8, false),
    key("xoxb-", Alphabet::Url, 8, true),
    key("xoxa-", Alphabet::Url, 8, true),
    key("xoxp-", Alphabet::Url, 8, true),
    key("xoxe-", Alphabet::Url, 8, true),
    key("xoxr-", Alphabet::Url, 8, true),
    key("xoxs-", Alphabet::Url, 8, true),
    key("xapp-", Alphabet::Url, 8, true),
    key("AKIA", Alphabet::Uppercase, 12, false),
    key("ASIA", Alphabet::Uppercase, 12, true),
    key("AIza", Alphabet::Url, 20, false),
    key("npm_", Alphabet::Alphanumeric, 20, false),
    key("hf_", Alphabet::Alphanumeric, 16, false),
    key("pypi-", Alphabet::Url, 30, true),
    key("gsk_", Alphabet::Alphanumeric, 20, true),
    key("xai-", Alphabet::Alphanumeric, 20, true),
    key("shpat_", Alphabet::Alphanumeric, 16, true),
    key("dop_v1_", Alphabet::Alphanumeric, 16, true),
    key("dckr_pat_", Alphabet::Url, 16, false),
    key("ya29.", Alphabet::Dotted, 20, false),
    key("whsec_", Alphabet::Base64, 16, false),
    key("hvs.", Alphabet::Url, 16, false),
    key("hvb.", Alphabet::Url, 16, false),
    key("AGE-SECRET-KEY-", Alphabet::Uppercase, 20, false),
    key("lin_api_", Alphabet::Alphanumeric, 16, false),
    key("dapi", Alphabet::Hex, 32, false),
    key("glptt-", Alphabet::Url, 16, false),
    key("gldt-", Alphabet::Url, 16, true),
    key("dp.st.", Alphabet::Dotted, 16, false),
    key("dp.pt.", Alphabet::Dotted, 16, false),
    key("SK", Alphabet::Hex, 32, false),
    key("rk_test_", Alphabet::Alphanumeric, 8, false),
    key("xoxc-", Alphabet::Url, 8, true),
    key("xoxd-", Alphabet::Url, 8, true),
];

/// The first key in a run of characters, wherever in it a word begins.
pub(super) fn known_key(text: &str, from: usize, to: usize) -> Option<Range<usize>> {
    // Every shape is longer than this; most words are shorter.
    if to - from < 12 {
        return None;
    }
    let bytes = text.as_bytes();
    (from..to)
        .filter(|at| at.checked_sub(1).and_then(|at| bytes.get(at)).is_none_or(|b| !b.is_ascii_alphanumeric()))
        .find_map(|at| {
            let end = match bytes.get(at)? {
                b's' | b'r' | b'g' | b'x' | b'A' | b'n' | b'h' | b'p' | b'd' | b'y' | b'w' | b'l' => key_end(text, at),
                b'S' => key_end(text, at).or_else(|| two_parts_end(text, at)),
                b'e' => signed_token_end(text, at),
                _ => None,
            };
            end.map(|end| at..end)
        })
}

fn key_end(text: &str, at: usize) -> Option<usize> {
    let rest = after(text, at);
    KEYS.iter().find_map(|key| {
        let body = rest.strip_prefix(key.prefix)?;
        let mut length = body.bytes().take_while(|byte| key.made_of.has(*byte)).count();
        if matches!(key.made_of, Alphabet::Dotted) {
            // The end of a sentence is not the key's.
            length = body.get(..length)?.trim_end_matches('.').len();
        }
        let digits = body.bytes().take(length).any(|byte| byte.is_ascii_digit());
        let key_like = digits || !key.needs_digit || length >= 40;
        // A word of few letters that goes on in another way is a name.
        let ended = || body.as_bytes().get(length).is_none_or(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_');
        let whole = match key.made_of {
            Alphabet::Uppercase => ended(),
            Alphabet::Hex => length == key.least && ended(),
            _ => true,
        };
        (length >= key.least && key_like && whole).then_some(at + key.prefix.len() + length)
    })
}

impl Alphabet {
    fn has(self, byte: u8) -> bool {
        match self {
            Self::Alphanumeric => byte.is_ascii_alphanumeric(),
            Self::Uppercase => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::Url => byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'),
            Self::Dotted => byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'),
            Self::Base64 => byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='),
            Self::Hex => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        }
    }
}

/// `SG.….…`: two parts, each of them long.
fn two_parts_end(text: &str, at: usize) -> Option<usize> {
    const PART_MAX: usize = 128;
    let part = |text: &str| text.bytes().take(PART_MAX).take_while(|byte| Alphabet::Url.has(*byte)).count();
    let body = after(text, at).strip_prefix("SG.")?;
    let first = part(body);
    let second = part(after(body, first).strip_prefix('.')?);
    (first >= 16 && second >= 16).then_some(at + 3 + first + 1 + second)
}

/// `eyJ….….…`: JSON in base64, then at least one more part.
fn signed_token_end(text: &str, at: usize) -> Option<usize> {
    let rest = after(text, at);
    let part = |text: &str| text.bytes().take_while(|byte| Alphabet::Url.has(*byte)).count();
    if !rest.starts_with("eyJ") {
        return None;
    }
    let mut end = part(rest);
    let mut parts = 1;
    while parts < 5 && rest.as_bytes().get(end) == Some(&b'.') {
        let more = part(after(rest, end + 1));
        if more == 0 {
            break;
        }
        end += 1 + more;
        parts += 1;
    }
    (end >= 16 && (parts >= 2 || end >= 40)).then_some(at + end)
}

/// A private key in its armour. One that is cut off goes to the end of the text; of one whose beginning was cut off,
/// the body before its end goes.
pub(super) fn private_key(text: &str, at: usize) -> Option<Range<usize>> {
    let rest = after(text, at);
    let (begins, label) = match (rest.strip_prefix("-----BEGIN "), rest.strip_prefix("-----END ")) {
        (Some(label), _) => (true, label),
        (_, Some(label)) => (false, label),
        _ => return None,
    };
    let label_end = window(label, 0, 64).find("-----")?;
    if !label.get(..label_end)?.contains("PRIVATE KEY") {
        return None;
    }
    let header_end = at + (rest.len() - label.len()) + label_end + 5;
    if begins {
        let body = after(text, header_end);
        let Some(footer) = body.find("-----END ") else {
            return Some(at..text.len());
        };
        let tail = after(body, footer + 9);
        let end = tail.find("-----").map_or(text.len(), |end| header_end + footer + 9 + end + 5);
        return Some(at..end);
    }
    let body = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=\r\n\\".contains(byte);
    let length = text.as_bytes().get(..at)?.iter().rev().take_while(|byte| body(byte)).count();
    Some(at - length..header_end)
}

/// What the user marked as private, with the marks. A mark inside is closed by its own; of one that is never closed,
/// everything behind it goes.
pub(super) fn private_block(text: &str, at: usize) -> Option<Range<usize>> {
    if !opens_private(text, at) && !is_closed_private(text, at) {
        return None;
    }
    let mut open = 1;
    let mut from = at + 1;
    while let Some(found) = memchr::memchr(b'<', text.as_bytes().get(from..).unwrap_or_default()) {
        let mark = from + found;
        if opens_private(text, mark) {
            open += 1;
        } else if let Some(end) = private_end(text, mark) {
            open -= 1;
            if open == 0 {
                return Some(at..end);
            }
        }
        from = mark + 1;
    }
    Some(at..text.len())
}

const OPEN: &str = "<private";
const CLOSE: &str = "</private";

/// What follows the name of a mark, at most so much as matters.
fn behind_private<'t>(text: &'t str, at: usize, name: &str) -> Option<&'t str> {
    const BEHIND_MAX: usize = 64;
    let named = text.get(at..at + name.len())?.eq_ignore_ascii_case(name);
    named.then(|| window(text, at + name.len(), BEHIND_MAX))
}

/// `<private>`, also with blanks or attributes; `<private key>` is a place left for one.
fn opens_private(text: &str, at: usize) -> bool {
    let Some(behind) = behind_private(text, at, OPEN) else { return false };
    let attribute = behind.trim_start();
    let name = attribute.bytes().take_while(|byte| super::is_run(*byte)).count();
    let given = attribute.len() < behind.len() && name > 0 && after(attribute, name).trim_start().starts_with('=');
    attribute.starts_with('>') || given
}

/// `<private note>`: a mark too, if it is closed before anything like it begins.
fn is_closed_private(text: &str, at: usize) -> bool {
    const CLOSED_MAX: usize = 4_096;
    if !behind_private(text, at, OPEN).is_some_and(|behind| behind.starts_with(char::is_whitespace)) {
        return false;
    }
    memchr::memchr_iter(b'<', window(text, at, CLOSED_MAX).as_bytes())
        .skip(1)
        .map(|mark| at + mark)
        .find(|mark| private_end(text, *mark).is_some() || behind_private(text, *mark, OPEN).is_some())
        .is_some_and(|mark| private_end(text, mark).is_some())
}

/// Where `</private>` ends.
fn private_end(text: &str, at: usize) -> Option<usize> {
    let behind = behind_private(text, at, CLOSE)?;
    let rest = behind.trim_start().strip_prefix('>')?;
    Some(at + CLOSE.len() + behind.len() - rest.len())
}
