//! Secrets that are recognized by their own shape, whatever stands before them.

use std::ops::Range;

use super::{after, before, window};

/// One of some prefixes, then at least so many characters of a set.
type Shape = (&'static [&'static str], Chars, usize);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Chars {
    Alphanumeric,
    /// Capitals and digits up to the end of the word.
    Uppercase,
    Url,
    Dotted,
    Base64,
    /// Exactly `least` lower-case hexadecimal digits up to the end of the word.
    Hex,
    /// The prefix is an address and stays.
    Path,
}

use Chars::{Alphanumeric, Base64, Dotted, Hex, Path, Uppercase, Url};

const SHAPES: [Shape; 13] = [
    (&["gho_", "ghp_", "ghr_", "ghs_", "ghu_"], Alphanumeric, 8),
    (&["rk_live_", "rk_test_", "sk_live_", "sk_test_"], Alphanumeric, 8),
    (&["hf_", "lin_api_", "npm_"], Alphanumeric, 16),
    (&["AKIA", "AGE-SECRET-KEY-"], Uppercase, 12),
    (&["github_pat_", "glpat-", "sk-ant-", "sk-proj-"], Url, 8),
    (&["AIza", "dckr_pat_", "glptt-", "hvb.", "hvs."], Url, 16),
    (&["eyJ"], Dotted, 13),
    (&["dp.pt.", "dp.st.", "ya29."], Dotted, 16),
    (&["SK", "dapi"], Hex, 32),
    (&["whsec_"], Base64, 16),
    (&["hooks.slack.com/services/", "hooks.slack.com/triggers/", "hooks.slack.com/workflows/"], Path, 1),
    (&["discord.com/api/webhooks/", "discord.com/api/v10/webhooks/"], Path, 1),
    (&["discordapp.com/api/webhooks/", "discordapp.com/api/v10/webhooks/"], Path, 1),
];

/// Words begin like these too; a key has a digit or at least 45 characters.
const WITH_DIGIT: [Shape; 5] = [
    (&["dop_v1_", "gsk_", "shpat_", "xai-"], Alphanumeric, 16),
    (&["ASIA"], Uppercase, 12),
    (&["sk-", "xapp-", "xoxa-", "xoxb-", "xoxc-", "xoxd-", "xoxe-", "xoxp-", "xoxr-", "xoxs-"], Url, 8),
    (&["gldt-", "pypi-"], Url, 16),
    (&["SG."], Dotted, 33),
];

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
        let plain = SHAPES.iter().find_map(|shape| secret(shape, text, at));
        let has_digit = |key: &Range<usize>| {
            key.len() >= 45 || text.get(key.clone()).is_some_and(|key| key.contains(|c: char| c.is_ascii_digit()))
        };
        plain.or_else(|| WITH_DIGIT.iter().filter_map(|shape| secret(shape, text, at)).find(has_digit))
    })
}

fn secret((prefixes, chars, least): &Shape, text: &str, at: usize) -> Option<Range<usize>> {
    let rest = after(text, at);
    let prefix = prefixes.iter().find(|prefix| rest.starts_with(**prefix))?;
    let body = after(rest, prefix.len());
    let mut length = body.bytes().take_while(|byte| chars.contain(*byte)).count();
    if matches!(chars, Dotted | Path) {
        // These end a sentence.
        length = body.get(..length)?.trim_end_matches(['.', '/']).len();
    }
    let word_ends = body.as_bytes().get(length).is_none_or(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_');
    let complete = match chars {
        Uppercase => word_ends,
        Hex => word_ends && length == *least,
        _ => true,
    };
    let start = if *chars == Path { at + prefix.len() } else { at };
    (length >= *least && complete).then(|| start..at + prefix.len() + length)
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
    let digits = before(text, at, 12).bytes().rev().take_while(u8::is_ascii_digit).count();
    let length = after(text, at + 1).bytes().take(LENGTH + 1).take_while(|byte| Url.contain(*byte)).count();
    (length == LENGTH && digits >= 6).then_some(at + 1..at + 1 + LENGTH)
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
