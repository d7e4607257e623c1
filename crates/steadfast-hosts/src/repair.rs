//! JSON that is well formed but for its text: clients cut strings in the middle of a character, and what is left of
//! it, half of a pair of escapes, is refused by every strict reader. One such answer of a tool must not cost the hook.

use std::borrow::Cow;

/// The same JSON with a replacement character for each lone half and each byte that is no UTF-8.
pub(super) fn well_formed(stdin: &[u8]) -> Cow<'_, [u8]> {
    let text = match String::from_utf8_lossy(stdin) {
        Cow::Borrowed(_) => Cow::Borrowed(stdin),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    };
    // Clients write characters as they are; an escape of this range is nearly always half of one.
    if memchr::memmem::find(&text, br"\ud").is_none() && memchr::memmem::find(&text, br"\uD").is_none() {
        return text;
    }
    let mut repaired = text.into_owned();
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', repaired.get(at..).unwrap_or_default()) {
        at += found;
        match escape(&repaired, at) {
            Some(0xd800..=0xdbff) if matches!(escape(&repaired, at + 6), Some(0xdc00..=0xdfff)) => at += 12,
            Some(0xd800..=0xdfff) => {
                if let Some(half) = repaired.get_mut(at + 2..at + 6) {
                    half.copy_from_slice(b"fffd");
                }
                at += 6;
            }
            // Whatever is escaped, it is not the beginning of another escape.
            _ => at += 2,
        }
    }
    Cow::Owned(repaired)
}

/// The number of a `\uXXXX` at this place.
fn escape(text: &[u8], at: usize) -> Option<u16> {
    let digits = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
    let digits = std::str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lone_halves_are_replaced() {
        for (json, repaired) in [
            (r#"{"a":"x"}"#, r#"{"a":"x"}"#),
            (r#""\ud83d""#, r#""\ufffd""#),
            (r#""\uD83D x""#, r#""\ufffd x""#),
            (r#""\udc00\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (r#""\\ud83d""#, r#""\\ud83d""#),
            (r#""\\\ud83d""#, r#""\\\ufffd""#),
            (r#""\ud8"#, r#""\ud8"#),
        ] {
            assert_eq!(String::from_utf8_lossy(&well_formed(json.as_bytes())), repaired, "{json}");
        }
        assert_eq!(&*well_formed(b"\"a\xffb\""), "\"a\u{fffd}b\"".as_bytes());
    }
}
