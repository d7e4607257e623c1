//! Secrets in XML: `<password>…</password>`, `<property name="password" value="…"/>`, `<key>TOKEN</key><string>…`.

use std::ops::Range;

use super::words::{is_ordinary, is_reference};
use super::{after, before, window};

const TAG_MAX: usize = 256;
const VALUE_MAX: usize = 8_192;

/// The secret that belongs to the name at `at..end`, if that is the name of an element or in an attribute of one.
pub(super) fn value(text: &str, at: usize, end: usize) -> Option<Range<usize>> {
    let rest = after(text, end);
    let range = match before(text, at, 1) {
        "<" => content(text, end),
        ">" => listed(text, end),
        "\"" | "'" if before(text, at - 1, 5).ends_with(['=']) => {
            let rest = rest.strip_prefix(['"', '\''])?;
            let behind = rest.trim_start();
            let value = behind.strip_prefix("value=").and_then(|value| value.strip_prefix(['"', '\'']));
            match value {
                Some(value) if behind.len() < rest.len() => {
                    let start = text.len() - value.len();
                    window(value, 0, VALUE_MAX).find(['"', '\'', '\n']).map(|length| start..start + length)
                }
                _ => content(text, end + 1),
            }
        }
        _ => None,
    }?;
    let word = text.get(range.clone())?;
    let echo = text.get(at..end).is_some_and(|name| word.eq_ignore_ascii_case(name));
    (!echo && !word.trim().is_empty() && !is_reference(word) && !is_ordinary(word)).then_some(range)
}

/// What stands between the end of the tag that goes on at `from` and the next tag.
fn content(text: &str, from: usize) -> Option<Range<usize>> {
    let tag = window(text, from, TAG_MAX);
    let close = tag.find(['<', '>', '\n']).filter(|close| after(tag, *close).starts_with('>'))?;
    if tag.get(..close)?.ends_with('/') {
        return None;
    }
    let start = from + close + 1;
    let length = window(text, start, VALUE_MAX).find("</")?;
    // `<password><![CDATA[…]]></password>`
    let data = window(text, start, length).trim();
    if let Some(inner) = data.strip_prefix("<![CDATA[").and_then(|data| data.strip_suffix("]]>")) {
        let start = start + window(text, start, length).find("<![CDATA[")? + "<![CDATA[".len();
        return Some(start..start + inner.len());
    }
    let plain = !window(text, start, length).contains('<');
    plain.then_some(start..start + length)
}

/// `<key>NAME</key>` of a property list, and the element behind it.
fn listed(text: &str, end: usize) -> Option<Range<usize>> {
    let next = after(text, end).strip_prefix("</key>")?.trim_start().strip_prefix("<string>")?;
    let start = text.len() - next.len();
    Some(start..start + window(next, 0, VALUE_MAX).find('<')?)
}
