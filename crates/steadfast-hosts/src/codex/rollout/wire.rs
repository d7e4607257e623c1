//! What a line of a rollout looks like: its head, which decides whether the rest must be parsed, the fields of
//! token usage, and the time inside an id.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::lines::token_count;
use steadfast_model::clock::Millis;
use steadfast_model::reading;

/// The beginning of a line as Codex writes it: `{"timestamp":…,"ordinal":…,"type":…,"payload":{"type":…`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Head<'a> {
    pub(super) timestamp: &'a [u8],
    /// Absent in older files.
    pub(super) ordinal: Option<u64>,
    pub(super) kind: &'a [u8],
    /// The payload's own type; empty if it has none or does not begin with it.
    pub(super) inner: &'a [u8],
}

impl<'a> Head<'a> {
    /// `None` when the line begins in another way; such a line must be parsed whole.
    pub(super) fn of(line: &'a [u8]) -> Option<Self> {
        let rest = after(line, b"{")?;
        let (timestamp, mut rest) = text(after_key(rest, b"timestamp")?)?;
        rest = after(rest, b",")?;
        let mut ordinal = None;
        if let Some(number) = after_key(rest, b"ordinal") {
            let digits = number.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let (number, behind) = number.split_at(digits);
            ordinal = Some(std::str::from_utf8(number).ok()?.parse().ok()?);
            rest = after(behind, b",")?;
        }
        let (kind, rest) = text(after_key(rest, b"type")?)?;
        let inner = after(rest, b",")
            .and_then(|rest| after(after_key(rest, b"payload")?, b"{"))
            .and_then(|rest| text(after_key(rest, b"type")?))
            .map_or(&b""[..], |(inner, _)| inner);
        Some(Self { timestamp, ordinal, kind, inner })
    }
}

fn after<'a>(bytes: &'a [u8], what: &[u8]) -> Option<&'a [u8]> {
    bytes.trim_ascii_start().strip_prefix(what)
}

fn after_key<'a>(bytes: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let rest = after(bytes, b"\"")?.strip_prefix(key)?.strip_prefix(b"\"")?;
    after(rest, b":").map(<[u8]>::trim_ascii_start)
}

/// A string without escapes, and what follows it.
fn text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = bytes.strip_prefix(b"\"")?;
    let end = memchr::memchr2(b'"', b'\\', rest)?;
    let (text, rest) = rest.split_at(end);
    Some((text, rest.strip_prefix(b"\"")?))
}

/// Token counts as Codex writes them: `input` holds `cached` and `written`, `output` holds the reasoning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::codex) struct WireTokens {
    pub(super) input: i64,
    pub(super) cached: i64,
    pub(super) written: i64,
    pub(super) output: i64,
}

impl WireTokens {
    /// Reads a usage object; the name of the field that is no whole number, if one is not.
    pub(in crate::codex) fn read(usage: &Value) -> Result<Self, &'static str> {
        Ok(Self {
            input: token_count(usage, "input_tokens")?,
            cached: token_count(usage, "cached_input_tokens")?,
            written: token_count(usage, "cache_write_input_tokens")?,
            output: token_count(usage, "output_tokens")?,
        })
    }

    /// The same as the ledger counts: there, input does not hold what was cached.
    pub(in crate::codex) fn split(self) -> reading::Tokens {
        reading::Tokens {
            input: (self.input - self.cached - self.written).max(0),
            output: self.output,
            cache_creation: self.written,
            cache_creation_1h: 0,
            cache_read: self.cached,
        }
    }

    /// What was added since an earlier total; `None` if the total shrank, so that it is no longer the same count.
    pub(super) fn since(self, earlier: Self) -> Option<Self> {
        let grown = Self {
            input: self.input - earlier.input,
            cached: self.cached - earlier.cached,
            written: self.written - earlier.written,
            output: self.output - earlier.output,
        };
        let fields = [grown.input, grown.cached, grown.written, grown.output];
        fields.iter().all(|count| *count >= 0).then_some(grown)
    }
}

/// The service tier of a thread; the client leaves it out for the standard one.
pub(super) fn tier(word: Option<&Value>) -> reading::Tier {
    match word.filter(|word| !word.is_null()).map(|word| word.as_str().unwrap_or_default()) {
        None | Some("standard" | "default" | "auto") => reading::Tier::Standard,
        // Priority processing was renamed to fast mode.
        Some("fast" | "priority") => reading::Tier::Fast,
        Some("flex") => reading::Tier::Flex,
        Some("batch") => reading::Tier::Batch,
        Some(_) => reading::Tier::Unknown,
    }
}

/// When an id of version 7 was made: such ids begin with the time.
pub(super) fn made_at(id: &str) -> Option<Millis> {
    let bytes = id.as_bytes();
    if bytes.len() != 36 || bytes.get(14) != Some(&b'7') || bytes.get(8) != Some(&b'-') {
        return None;
    }
    let time = format!("{}{}", id.get(..8)?, id.get(9..13)?);
    Millis::from_str_radix(&time, 16).ok()
}
