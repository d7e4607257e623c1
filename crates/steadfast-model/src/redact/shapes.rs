//! Secrets that are recognized by their own shape, whatever stands before them.

use std::ops::Range;

use super::{after, window};

/// A prefix, then at least `least` characters of a set.
struct Shape {
    prefix: &'static str,
    chars: Chars,
    least: usize,
    /// Words begin like this too; a key has a digit or at least 40 characters.
    needs_digit: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Chars {
    Alphanumeric,
    /// Capitals and digits up to the end of the word.
    Uppercase,
    /// Alphanumeric, `-` and `_`.
    Url,
    /// `Url` and `.`.
    Dotted,
    /// Alphanumeric, `+`, `/` and `=`.
    Base64,
    /// Exactly `least` lower-case hexadecimal digits up to the end of the word.
    Hex,
    /// `Dotted` and `/`. The prefix is an address and stays.
    Path,
}

use Chars::{Alphanumeric, Base64, Dotted, Hex, Path, Uppercase, Url};

const fn shape(prefix: &'static str, chars: Chars, least: usize) -> Shape {
    Shape { prefix, chars, least, needs_digit: false }
}

const fn with_digit(prefix: &'static str, chars: Chars, least: usize) -> Shape {
    Shape { prefix, chars, least, needs_digit: true }
}

/// Grouped by their first character, in ASCII order.
const SHAPES: [Shape; 57] = [
    shape("AGE-SECRET-KEY-", Uppercase, 20),
    shape("AIza", Url, 20),
    shape("AKIA", Uppercase, 12),
    with_digit("ASIA", Uppercase, 12),
    with_digit("SG.", Dotted, 33),
    shape("SK", Hex, 32),
    shape("dapi", Hex, 32),
    shape("dckr_pat_", Url, 16),
    shape("discord.com/api/v10/webhooks/", Path, 1),
    shape("discord.com/api/v9/webhooks/", Path, 1),
    shape("discord.com/api/webhooks/", Path, 1),
    shape("discordapp.com/api/v10/webhooks/", Path, 1),
    shape("discordapp.com/api/v9/webhooks/", Path, 1),
    shape("discordapp.com/api/webhooks/", Path, 1),
    with_digit("dop_v1_", Alphanumeric, 16),
    shape("dp.pt.", Dotted, 16),
    shape("dp.st.", Dotted, 16),
    shape("eyJ", Dotted, 13),
    shape("gho_", Alphanumeric, 8),
    shape("ghp_", Alphanumeric, 8),
    shape("ghr_", Alphanumeric, 8),
    shape("ghs_", Alphanumeric, 8),
    shape("ghu_", Alphanumeric, 8),
    shape("github_pat_", Url, 8),
    with_digit("gldt-", Url, 16),
    shape("glpat-", Url, 8),
    shape("glptt-", Url, 16),
    with_digit("gsk_", Alphanumeric, 20),
    shape("hf_", Alphanumeric, 16),
    shape("hooks.slack.com/services/", Path, 1),
    shape("hooks.slack.com/triggers/", Path, 1),
    shape("hooks.slack.com/workflows/", Path, 1),
    shape("hvb.", Url, 16),
    shape("hvs.", Url, 16),
    shape("lin_api_", Alphanumeric, 16),
    shape("npm_", Alphanumeric, 20),
    with_digit("pypi-", Url, 30),
    shape("rk_live_", Alphanumeric, 8),
    shape("rk_test_", Alphanumeric, 8),
    with_digit("shpat_", Alphanumeric, 16),
    with_digit("sk-", Url, 8),
    shape("sk-ant-", Url, 8),
    shape("sk-proj-", Url, 8),
    shape("sk_live_", Alphanumeric, 8),
    shape("sk_test_", Alphanumeric, 8),
    shape("whsec_", Base64, 16),
    with_digit("xai-", Alphanumeric, 20),
    with_digit("xapp-", Url, 8),
    with_digit("xoxa-", Url, 8),
    with_digit("xoxb-", Url, 8),
    with_digit("xoxc-", Url, 8),
    with_digit("xoxd-", Url, 8),
    with_digit("xoxe-", Url, 8),
    with_digit("xoxp-", Url, 8),
    with_digit("xoxr-", Url, 8),
    with_digit("xoxs-", Url, 8),
    shape("ya29.", Dotted, 20),
];

/// For each ASCII character, the shapes that begin with it.
const BY_FIRST: [(usize, usize); 128] = {
    let mut groups = [(0, 0); 128];
    let mut at = 0;
    while at < SHAPES.len() {
        let first = SHAPES[at].prefix.as_bytes()[0] as usize;
        let from = if groups[first].1 == 0 { at } else { groups[first].0 };
        groups[first] = (from, at + 1);
        at += 1;
    }
    groups
};

/// No run that holds a shape is shorter.
const RUN_MIN: usize = "discord.com".len();

/// The first key in a run, at its start or behind a character that is not alphanumeric.
pub(super) fn key(text: &str, from: usize, to: usize) -> Option<Range<usize>> {
    if to - from < RUN_MIN {
        return None;
    }
    let bytes = text.as_bytes();
    let begins = |at: &usize| at.checked_sub(1).and_then(|at| bytes.get(at)).is_none_or(|b| !b.is_ascii_alphanumeric());
    (from..to).filter(begins).find_map(|at| {
        let (first, last) = *BY_FIRST.get(usize::from(*bytes.get(at)?))?;
        SHAPES.get(first..last)?.iter().find_map(|shape| shape.secret(text, at))
    })
}

impl Shape {
    fn secret(&self, text: &str, at: usize) -> Option<Range<usize>> {
        let body = after(text, at).strip_prefix(self.prefix)?;
        let mut length = body.bytes().take_while(|byte| self.chars.contain(*byte)).count();
        if matches!(self.chars, Dotted | Path) {
            // These end a sentence.
            length = body.get(..length)?.trim_end_matches(['.', '/']).len();
        }
        let word_ends = body.as_bytes().get(length).is_none_or(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_');
        let complete = match self.chars {
            Uppercase => word_ends,
            Hex => word_ends && length == self.least,
            _ => true,
        };
        let digit = length >= 40 || body.bytes().take(length).any(|byte| byte.is_ascii_digit());
        let secret = at + self.prefix.len()..at + self.prefix.len() + length;
        let start = if self.chars == Path { secret.start } else { at };
        (length >= self.least && complete && (digit || !self.needs_digit)).then_some(start..secret.end)
    }
}

impl Chars {
    fn contain(self, byte: u8) -> bool {
        let others: &[u8] = match self {
            Uppercase => return byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Hex => return matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
            Alphanumeric => b"",
            Url => b"-_",
            Dotted => b"-_.",
            Base64 => b"+/=",
            Path => b"-_./",
        };
        byte.is_ascii_alphanumeric() || others.contains(&byte)
    }
}

/// `123456789:…`, the token of a Telegram bot; `at` is the colon.
pub(super) fn telegram_token(text: &str, at: usize) -> Option<Range<usize>> {
    const LENGTH: usize = 35;
    let (id, token) = text.as_bytes().split_at_checked(at)?;
    let length = token.iter().skip(1).take(LENGTH + 1).take_while(|byte| Url.contain(**byte)).count();
    let digits = id.iter().rev().take(13).take_while(|byte| byte.is_ascii_digit()).count();
    let front = id.get(..at - digits)?;
    let begins = front.ends_with(b"bot") || front.last().is_none_or(|byte| !byte.is_ascii_alphanumeric());
    (length == LENGTH && (6..=12).contains(&digits) && begins).then_some(at + 1..at + 1 + LENGTH)
}

/// A PEM private key. Without its end, the rest of the text is hidden; without its beginning, the body before the end.
pub(super) fn private_key(text: &str, at: usize) -> Option<Range<usize>> {
    let label = after(text, at).strip_prefix("-----")?;
    let label_end = window(label, 0, 64).find("-----").filter(|end| window(label, 0, *end).contains("PRIVATE KEY"))?;
    let end = at + 5 + label_end + 5;
    if label.starts_with("BEGIN ") {
        let footer = after(text, end).find("-----END ").map(|footer| end + footer + 9);
        let footer_end = footer.and_then(|from| after(text, from).find("-----").map(|length| from + length + 5));
        return Some(at..footer_end.unwrap_or(text.len()));
    }
    let body = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+/=\r\n\\".contains(byte);
    let length = text.as_bytes().get(..at)?.iter().rev().take_while(body).count();
    label.starts_with("END ").then_some(at - length..end)
}

/// `<private>…</private>`, which may be nested. Without its end, the rest of the text is hidden.
pub(super) fn private_block(text: &str, at: usize) -> Option<Range<usize>> {
    const CLOSED_MAX: usize = 4_096;
    let behind = behind_tag(text, at, "<private")?;
    let tags = |from: usize, most: usize| {
        memchr::memchr_iter(b'<', window(text, from, most).as_bytes()).map(move |tag| from + tag)
    };
    // `<private note>` opens a block only if the next tag closes one: `<private key>` is a placeholder.
    let closed = || {
        let next = tags(at + 1, CLOSED_MAX).find(|tag| is_tag(text, *tag));
        behind.starts_with(char::is_whitespace) && next.is_some_and(|tag| close_end(text, tag).is_some())
    };
    if !opens(behind) && !closed() {
        return None;
    }
    let mut open = 1;
    for tag in tags(at + 1, text.len()) {
        if behind_tag(text, tag, "<private").is_some_and(opens) {
            open += 1;
        } else if let Some(end) = close_end(text, tag) {
            open -= 1;
            if open == 0 {
                return Some(at..end);
            }
        }
    }
    Some(at..text.len())
}

fn behind_tag<'t>(text: &'t str, at: usize, tag: &str) -> Option<&'t str> {
    let named = text.get(at..at + tag.len())?.eq_ignore_ascii_case(tag);
    named.then(|| window(text, at + tag.len(), 64))
}

/// Whether `<private` with this behind it is certainly a tag: nothing but blanks, or an attribute.
fn opens(behind: &str) -> bool {
    let attribute = behind.trim_start();
    let rest = attribute.trim_start_matches(|c: char| c.is_ascii() && super::is_run(c as u8));
    let given = attribute.len() < behind.len() && rest.len() < attribute.len() && rest.trim_start().starts_with('=');
    attribute.starts_with('>') || given
}

fn is_tag(text: &str, at: usize) -> bool {
    behind_tag(text, at, "<private").is_some() || close_end(text, at).is_some()
}

fn close_end(text: &str, at: usize) -> Option<usize> {
    let behind = behind_tag(text, at, "</private")?;
    let rest = behind.trim_start().strip_prefix('>')?;
    Some(at + "</private".len() + behind.len() - rest.len())
}
