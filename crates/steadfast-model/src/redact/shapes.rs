//! Secrets that are recognized by their own shape, whatever stands before them.

use std::ops::Range;

use super::families::{Chars, FAMILIES, Size};
use super::words::{is_hex, is_random};
use super::{after, before, window};

/// Where a prefix stands in the table: its family, its first byte and its length.
#[derive(Clone, Copy)]
struct Prefix {
    family: usize,
    start: usize,
    length: usize,
    /// The next one whose first two bytes have the same slot, plus one.
    next: usize,
}

const SLOTS: usize = 1_024;
const PREFIXES_MAX: usize = 400;

const fn slot(first: u8, second: u8) -> usize {
    ((first as usize) * 37 + (second as usize) * 7) % SLOTS
}

/// The prefixes by their first two bytes: nearly all words are ruled out with one look.
static STARTS: ([usize; SLOTS], [Prefix; PREFIXES_MAX]) = {
    let mut slots = [0; SLOTS];
    let mut prefixes = [Prefix { family: 0, start: 0, length: 0, next: 0 }; PREFIXES_MAX];
    let (mut family, mut count) = (0, 0);
    while family < FAMILIES.len() {
        let names = FAMILIES[family].0.as_bytes();
        let (mut start, mut at) = (0, 0);
        while at <= names.len() {
            if at == names.len() || names[at] == b' ' {
                let slot = slot(names[start], names[start + 1]);
                prefixes[count] = Prefix { family, start, length: at - start, next: slots[slot] };
                count += 1;
                slots[slot] = count;
                start = at + 1;
            }
            at += 1;
        }
        family += 1;
    }
    (slots, prefixes)
};
/// In a shorter run a key begins only at its start.
const RUN_MIN: usize = 8;

/// Names are shorter.
const NAME_MAX: usize = 128;

const PUBLIC_MAX: usize = 8_192;

/// Keys of an exact length are shorter.
const EXACT_MAX: usize = 64;

/// The first key in a run, at its start or behind a character that is not alphanumeric.
pub(super) fn key(text: &str, from: usize, to: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let last = if to - from < RUN_MIN { from + 1 } else { to };
    let mut inside = from.checked_sub(1).and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_alphanumeric);
    for at in from..last {
        let first = bytes.get(at).copied().unwrap_or_default();
        let begins = !inside;
        inside = first.is_ascii_alphanumeric();
        let second = bytes.get(at + 1).copied().unwrap_or_default();
        let chain = STARTS.0.get(slot(first, second)).copied().unwrap_or_default();
        if begins
            && chain != 0
            && let Some(key) = of_families(text, at, chain)
        {
            return Some(key);
        }
    }
    None
}

fn of_families(text: &str, at: usize, chain: usize) -> Option<Range<usize>> {
    let rest = after(text, at);
    let mut next = chain;
    while let Some(prefix) = next.checked_sub(1).and_then(|at| STARTS.1.get(at)) {
        next = prefix.next;
        let (prefixes, chars, size) = FAMILIES.get(prefix.family)?;
        let prefix = prefixes.get(prefix.start..prefix.start + prefix.length)?;
        // `data:…;base64,…` is no key.
        if rest.starts_with(prefix)
            && before(text, at, 7) != "base64,"
            && let Some(key) = secret(prefix, *chars, *size, rest)
        {
            return Some(at + key.start..at + key.end);
        }
    }
    None
}

/// The key at the start of a text that begins with a prefix.
fn secret(prefix: &str, chars: Chars, size: Size, rest: &str) -> Option<Range<usize>> {
    let behind = after(rest, prefix.len());
    // What is not read to its end here is read again from the next start.
    let most = match size {
        Size::Least(_) | Size::Digit(_) => usize::MAX,
        Size::Exactly(_) | Size::Uuid => EXACT_MAX,
        Size::Random(_) | Size::Holding(..) => super::RUN_MAX,
    };
    let length = behind.bytes().take(most).take_while(|byte| chars.contain(*byte)).count();
    // A sentence goes on behind these.
    let body = behind.get(..length)?.trim_end_matches(['.', '/', ':', '|', '!']);
    let next = behind.as_bytes().get(body.len());
    let word_ends = next.is_none_or(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_');
    let ends = word_ends || chars != Chars::Uppercase;
    let has_digit = || body.bytes().any(|byte| byte.is_ascii_digit());
    let complete = match size {
        Size::Least(least) => body.len() >= least && ends,
        // A long name has no digit: `pk_constraint_users_email_…`.
        Size::Digit(least) => body.len() >= least && (has_digit() || (body.len() >= 45 && !is_name(body))) && ends,
        Size::Exactly(length) => body.len() == length && word_ends && has_digit(),
        Size::Uuid => is_uuid(body),
        Size::Random(least) => body.len() >= least && word_ends && is_random(body),
        Size::Holding(part, least) => body.len() >= least && has_digit() && body.contains(part),
    };
    let start = if chars == Chars::Path { prefix.len() } else { 0 };
    complete.then(|| start..prefix.len() + body.len())
}

fn is_name(body: &str) -> bool {
    // What is longer is returned, so that it is not read again.
    body.len() < NAME_MAX
        && body.contains(['_', '-'])
        && body.bytes().all(|byte| byte.is_ascii_lowercase() || b"_-".contains(&byte))
}

impl Chars {
    pub(super) fn contain(self, byte: u8) -> bool {
        let others: &[u8] = match self {
            Self::Uppercase => return byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::Hex => return byte.is_ascii_hexdigit(),
            Self::Alphanumeric => b"",
            Self::Url => b"-_",
            Self::Dotted => b"-_.",
            Self::Base64 => b"+/=",
            Self::Any => b"+/=-_.:$%!",
            Self::Path => b"-_./@",
        };
        byte.is_ascii_alphanumeric() || others.contains(&byte)
    }
}

pub(super) fn is_uuid(text: &str) -> bool {
    let mut lengths = [8, 4, 4, 4, 12].into_iter();
    let fits = |part: &str| lengths.next() == Some(part.len()) && is_hex(part);
    text.len() == 36 && text.split('-').all(fits)
}

/// `123456789:…`, the token of a Telegram bot; `at` is the colon.
pub(super) fn telegram_token(text: &str, at: usize) -> Option<Range<usize>> {
    const LENGTH: usize = 35;
    let digits = before(text, at, 12).bytes().rev().take_while(u8::is_ascii_digit).count();
    let length = after(text, at + 1).bytes().take(LENGTH + 1).take_while(|byte| Chars::Url.contain(*byte)).count();
    (length == LENGTH && digits >= 6).then_some(at + 1..at + 1 + LENGTH)
}

/// A private key in text. Without its end, the rest of the text is hidden; without its beginning, the body before the
/// end.
pub(super) fn private_key(text: &str, at: usize) -> Option<Range<usize>> {
    let (label, dashes) = label(text, at)?;
    let label_end = window(label, 0, 64).find("----").filter(|end| window(label, 0, *end).contains("PRIVATE KEY"))?;
    let end = at + dashes + label_end + dashes;
    if label.starts_with("BEGIN ") {
        let footer = after(text, end).find("---- END ").or_else(|| after(text, end).find("-----END "));
        let footer = footer.map(|footer| end + footer + 9);
        let footer_end = footer.and_then(|from| after(text, from).find("----").map(|length| from + length + dashes));
        return Some(at..footer_end.map_or(text.len(), |end| end.min(text.len())));
    }
    let body = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+/=\r\n\\".contains(byte);
    let length = text.as_bytes().get(..at)?.iter().rev().take_while(body).count();
    label.starts_with("END ").then_some(at - length..end.min(text.len()))
}

/// What stands behind the dashes before a key or a certificate, and how many there are.
fn label(text: &str, at: usize) -> Option<(&str, usize)> {
    let rest = after(text, at);
    rest.strip_prefix("-----").map(|label| (label, 5)).or_else(|| rest.strip_prefix("---- ").map(|label| (label, 5)))
}

/// The end of a certificate, a public key or a signature that begins here.
pub(super) fn public_block(text: &str, at: usize) -> Option<usize> {
    let (label, dashes) = label(text, at)?;
    let near = window(label.strip_prefix("BEGIN ")?, 0, PUBLIC_MAX);
    let named = near.find("----").filter(|end| *end < 64)?;
    let footer = near.find("----END ").filter(|_| !window(near, 0, named).contains("PRIVATE"))?;
    Some(at + dashes + "BEGIN ".len() + footer)
}

/// `<private>…</private>`, which may be nested. Without its end, the rest of the text is hidden.
pub(super) fn private_block(text: &str, at: usize) -> Option<Range<usize>> {
    let rest = after(text, at);
    tag_length(rest, "<private")?;
    let mut open = 0;
    for tag in memchr::memchr_iter(b'<', rest.as_bytes()) {
        if tag_length(after(rest, tag), "<private").is_some() {
            open += 1;
        } else if let Some(length) = tag_length(after(rest, tag), "</private") {
            open -= 1;
            if open == 0 {
                return Some(at..at + tag + length);
            }
        }
    }
    Some(at..text.len())
}

/// The length of a tag at the start of a text; only blanks may precede its `>`.
fn tag_length(text: &str, tag: &str) -> Option<usize> {
    let named = text.get(..tag.len())?.eq_ignore_ascii_case(tag);
    let behind = window(text, tag.len(), 64);
    let rest = behind.trim_start().strip_prefix('>').filter(|_| named)?;
    Some(tag.len() + behind.len() - rest.len())
}
