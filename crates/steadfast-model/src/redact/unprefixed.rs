//! Keys that have no prefix of their own: a part in the middle or at the end tells them, their length, or only that
//! nothing but chance writes such a word.

use std::ops::Range;

use super::families::Chars;
use super::shapes::is_uuid;
use super::words::{has, is_hex, is_random};
use super::{after, before, window};

/// Shorter runs have none of these.
const RUN_MIN: usize = 30;
/// The shortest word that is a key because it looks like one.
const RANDOM_MIN: usize = 32;
/// Such words are long, but not secret: ids, hashes and boundaries begin with these.
const IDS: &str = "msg toolu req resp chatcmpl call file thread run asst evt cus price sha1 sha256 sha384 sha512 h1";
/// How passwords are stored: what stands between the first two dollar signs.
const HASHES: &str = "1 2 2a 2b 2x 2y 5 6 7 y gy apr1 md5 sha1 argon2i argon2d argon2id scrypt pbkdf2 pbkdf2-sha256 \
    pbkdf2-sha512 bcrypt-sha256 P H S";
/// How directories of people mark a hash.
const SCHEMES: &str = "SSHA SHA SMD5 MD5 CRYPT SSHA256 SSHA512 SHA256 SHA512 PBKDF2";
const KIND_MAX: usize = 16;

/// The key that the run at `from..to` is, or that begins with it.
pub(super) fn key(text: &str, from: usize, to: usize) -> Option<Range<usize>> {
    if to - from < RUN_MIN {
        return None;
    }
    let run = text.get(from..to)?.trim_end_matches('.');
    let end = from + run.len();
    let next = text.as_bytes().get(end).copied().unwrap_or(b' ');
    let previous = before(text, from, 1);
    let base64 = next == b'+' || next == b'/' || next == b'=' || matches!(previous, "+" | "/" | "=");
    let found = (is_marked(run) || is_bot_token(run) || (run.len() == 52 && is_base32(run)))
        || (!base64 && is_random_word(run, previous) && !is_data(before(text, from, 7)));
    found.then_some(from..end)
}

/// Keys with `+` and `/`: 40 characters, or 88 with their filling.
pub(super) fn base64_key(text: &str, from: usize) -> Option<Range<usize>> {
    let begins = from == 0 || before(text, from, 1).starts_with([' ', '\n', '\t', '"', '\'', '`', '=', '(', ',']);
    if !begins || before(text, from, 7) == "base64," {
        return None;
    }
    let word = after(text, from).bytes().take(90).take_while(|byte| Chars::Base64.contain(*byte)).count();
    let word = text.get(from..from + word)?;
    let closed = after(text, from + word.len()).starts_with(|c: char| c.is_alphanumeric() || "-_.+/=:".contains(c));
    let fits = match word.len() {
        40 => !word.ends_with('='),
        52 => word.contains("+ACR") || word.contains("AzSe"),
        56 => word.contains("AzFu"),
        88 => word.ends_with("=="),
        _ => false,
    };
    (fits && !closed && is_random(word)).then(|| from..from + word.len())
}

/// Terraform, Mailchimp, Mailgun, New Relic, `MaxMind`, Azure, X.
fn is_marked(run: &str) -> bool {
    let after_hex = |count: usize| run.get(..count).filter(|hex| is_hex(hex)).map(|_| after(run, count));
    let data_centre = |rest: &str| {
        let number = rest.strip_prefix("-us");
        number.is_some_and(|number| matches!(number.len(), 1 | 2) && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let two_parts =
        |rest: &str| rest.len() == 18 && rest.split('-').skip(1).all(|part| part.len() == 8 && is_hex(part));
    run.find(".atlasv1.").is_some_and(|at| at >= 10)
        || after_hex(32).is_some_and(|rest| data_centre(rest) || two_parts(rest))
        || after_hex(32).and_then(|rest| rest.strip_prefix('.')).is_some_and(|rest| rest.len() == 16 && is_random(rest))
        || after_hex(36) == Some("NRAL")
        || (run.len() == 40 && run.ends_with("_mmk"))
        || (run.len() == 84 && run.get(76..80) == Some("AZDO"))
        || run.split_once('-').is_some_and(|(id, rest)| {
            (15..=20).contains(&id.len())
                && id.bytes().all(|byte| byte.is_ascii_digit())
                && rest.len() >= 25
                && is_random(rest)
        })
}

/// The token of a Discord bot: its id, a time and a signature.
fn is_bot_token(run: &str) -> bool {
    let mut parts = run.splitn(3, '.');
    let (Some(id), Some(time), Some(rest)) = (parts.next(), parts.next(), parts.next()) else { return false };
    id.starts_with(['M', 'N', 'O'])
        && (22..=28).contains(&id.len())
        && time.len() == 6
        && (25..=40).contains(&rest.len())
        && !rest.contains('.')
}

/// Data and checksums are named so.
fn is_data(before: &str) -> bool {
    ["base64,", "SHA256:", "sha256:", "sha512:", "h1:"].iter().any(|name| before.ends_with(name))
}

fn is_base32(run: &str) -> bool {
    run.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'2'..=b'7')) && run.bytes().any(|byte| byte.is_ascii_digit())
}

fn is_random_word(run: &str, previous: &str) -> bool {
    let name = run.find(['_', '-']).and_then(|end| run.get(..end)).unwrap_or_default();
    let public = (run.len() == 46 && run.starts_with("Qm"))
        || run.starts_with("AAAA")
        || run.starts_with("WebKitFormBoundary")
        || run.starts_with("----")
        || run.strip_prefix("0x").is_some_and(is_hex)
        || (run.len() <= 35 && run.starts_with(['1', '3']) && !run.contains(['_', '-']));
    run.len() >= RANDOM_MIN
        && !run.contains('.')
        && !matches!(previous, "/" | "+" | "=" | "@" | "#")
        && !public
        && !has(IDS, name)
        && !is_uuid(run)
        && is_random(run)
}

/// `$6$salt$hash` and `{SSHA}…`, as password files have them; `at` is the first sign.
pub(super) fn hash(text: &str, at: usize) -> Option<Range<usize>> {
    // Code is full of these signs.
    let next = text.as_bytes().get(at + 1)?;
    if !next.is_ascii_alphanumeric() || (next.is_ascii_lowercase() && text.as_bytes().get(at) == Some(&b'{')) {
        return None;
    }
    let (ends, kinds) = if after(text, at).starts_with('$') { ('$', HASHES) } else { ('}', SCHEMES) };
    let kind = window(text, at + 1, KIND_MAX).split_once(ends).map(|(kind, _)| kind)?;
    let start = at + 1 + kind.len() + 1;
    let inside = |byte: &u8| byte.is_ascii_alphanumeric() || b"./$+=,-_".contains(byte);
    let length = after(text, start).bytes().take_while(inside).count();
    (has(kinds, kind) && length >= 20).then_some(start..start + length)
}

/// Keys of two parts; `at` is the sign between them.
pub(super) fn joined(text: &str, at: usize) -> Option<Range<usize>> {
    let digits = || before(text, at, 20).bytes().rev().take_while(u8::is_ascii_digit).count();
    let follows = |chars: Chars| after(text, at + 1).bytes().take(128).take_while(|byte| chars.contain(*byte)).count();
    match text.as_bytes().get(at)? {
        // Azure: three characters, a digit, `Q~`.
        b'~' => {
            let first = before(text, at, 5).as_bytes();
            let fits = matches!(first, [.., digit, b'Q'] if digit.is_ascii_digit()) && first.len() == 5;
            let inside = |byte: &u8| Chars::Dotted.contain(*byte) || *byte == b'~';
            let length = if fits { after(text, at + 1).bytes().take(64).take_while(inside).count() } else { 0 };
            (length >= 30).then(|| at - 5..at + 1 + length)
        }
        // Facebook: the id of an app and its secret.
        b'|' => {
            let length = follows(Chars::Url);
            ((15..=17).contains(&digits()) && (25..=45).contains(&length)).then(|| at + 1..at + 1 + length)
        }
        // Asana: the id of a user and a secret. Fal: a UUID and a secret.
        _ => {
            let id = if is_uuid(before(text, at, 36)) { 37 } else { 0 };
            let has_id = (15..=17).contains(&digits()) || id > 0;
            let has_key = follows(Chars::Alphanumeric) == 32 && follows(Chars::Hex) == 32;
            (has_id && has_key).then(|| at + 1 - id..at + 33)
        }
    }
}

/// The last field of a line of `.pgpass`, or the second of `/etc/shadow`; `at` is a colon.
pub(super) fn field(text: &str, at: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    if !bytes.get(at + 1).is_some_and(|byte| byte.is_ascii_digit() || *byte == b'*')
        && bytes.get(at + 14) != Some(&b':')
    {
        return None;
    }
    let rest = window(text, at + 1, 200);
    let line = rest.split(['\n', '\r', '"', '\'', '`']).next()?;
    let first = line.split(':').next()?;
    let port = first == "*" || (first.len() >= 3 && first.len() <= 5 && first.bytes().all(|b| b.is_ascii_digit()));
    if port {
        let mut fields = line.splitn(4, ':');
        let mut plain = || {
            fields
                .next()
                .is_some_and(|field| !field.is_empty() && !field.contains(|c: char| c.is_whitespace() || c == '/'))
        };
        let named = plain() && plain() && plain();
        let host = before(text, at, 100).rsplit(|c: char| c.is_whitespace() || "\"'`".contains(c)).next()?;
        let host = !host.is_empty() && !host.contains([':', '/']);
        // In it, a colon is written with a backslash; a path is no password.
        let password = fields.next().filter(|_| host && named)?;
        let whole = !password.replace("\\:", "").contains(|c: char| c.is_whitespace() || c == ':');
        let drawn = !password.contains('/') || password.bytes().any(|byte| byte.is_ascii_digit());
        let end = at + 1 + line.len();
        return (!password.is_empty() && whole && drawn).then(|| end - password.len()..end);
    }
    let crypted = first.len() == 13 && first.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"./".contains(&byte));
    let days =
        || line.split(':').nth(1).is_some_and(|days| days.len() == 5 && days.bytes().all(|b| b.is_ascii_digit()));
    (crypted && days()).then(|| at + 1..at + 14)
}
