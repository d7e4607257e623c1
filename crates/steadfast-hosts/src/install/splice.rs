//! Changes one member of a valid JSON text and leaves every other byte alone. The caller parses the result and compares it:
//! a case that this cannot handle, such as a duplicate key, loses the layout but never the content.

use std::ops::Range;

use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::ser::PrettyFormatter;
use serde_json::{Map, Value};

struct JsonObject {
    /// Of the opening and the closing brace.
    open: usize,
    close: usize,
    members: Vec<Member>,
}

struct Member {
    key: String,
    start: usize,
    value: Range<usize>,
}

/// Sets the member at `keys`; `indent` is one step of it, `None` for a text on one line.
pub(crate) fn set(text: &str, keys: &[String], value: &Value, indent: Option<&str>) -> Option<String> {
    let (mut object, mut depth) = (object_at(text, skip_space(text, 0))?, 1);
    let mut rest = keys;
    loop {
        let (key, below) = rest.split_first()?;
        let Some(member) = object.members.iter().rfind(|member| member.key == *key) else {
            let value = below
                .iter()
                .rev()
                .fold(value.clone(), |inner, key| Value::Object(Map::from_iter([(key.clone(), inner)])));
            return insert(text, &object, depth, key, &value, indent);
        };
        if below.is_empty() {
            let margin = margin(text, member.start);
            let line_break = format!("{}{}", newline(text), margin.unwrap_or_default());
            let value = layout(value, margin.and(indent), &line_break);
            return replace(text, member.value.clone(), &value);
        }
        object = object_at(text, member.value.start)?;
        rest = below;
        depth += 1;
    }
}

/// Removes the member at `keys` with the comma that belongs to it.
pub(crate) fn remove(text: &str, keys: &[String]) -> Option<String> {
    let (last, parents) = keys.split_last()?;
    let mut object = object_at(text, skip_space(text, 0))?;
    for key in parents {
        let member = object.members.iter().rfind(|member| member.key == *key)?;
        object = object_at(text, member.value.start)?;
    }
    let index = object.members.iter().rposition(|member| member.key == *last)?;
    let member = object.members.get(index)?;
    let previous = index.checked_sub(1).and_then(|previous| object.members.get(previous));
    let gap = match (previous, object.members.get(index + 1)) {
        (Some(previous), _) => previous.value.end..member.value.end,
        (None, Some(next)) => member.start..next.start,
        (None, None) => object.open + 1..object.close,
    };
    replace(text, gap, "")
}

fn insert(
    text: &str,
    object: &JsonObject,
    depth: usize,
    key: &str,
    value: &Value,
    indent: Option<&str>,
) -> Option<String> {
    let key = serde_json::to_string(key).ok()?;
    let Some(last) = object.members.last() else {
        let Some(step) = indent else {
            return replace(text, object.open + 1..object.close, &format!("{key}:{value}"));
        };
        let newline = newline(text);
        let (inner, outer) = (step.repeat(depth), step.repeat(depth - 1));
        let value = layout(value, Some(step), &format!("{newline}{inner}"));
        let body = format!("{newline}{inner}{key}: {value}{newline}{outer}");
        return replace(text, object.open + 1..object.close, &body);
    };
    // One member that starts a line is enough: the object is laid out over several, whatever the others do.
    let margin = object.members.iter().rev().find_map(|member| margin(text, member.start));
    let member = if let (Some(margin), Some(step)) = (margin, indent) {
        let line_break = format!("{}{margin}", newline(text));
        format!(",{line_break}{key}: {}", layout(value, Some(step), &line_break))
    } else if text.get(..last.value.start)?.ends_with(char::is_whitespace) {
        format!(", {key}: {value}")
    } else {
        format!(",{key}:{value}")
    };
    replace(text, last.value.end..last.value.end, &member)
}

/// The value as text; `line_break` goes between its lines: the line end and the margin of what follows.
pub(crate) fn layout(value: &Value, indent: Option<&str>, line_break: &str) -> String {
    let mut bytes = Vec::new();
    let laid_out = indent.map(|indent| {
        let formatter = PrettyFormatter::with_indent(indent.as_bytes());
        value.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, formatter))
    });
    match laid_out {
        Some(Ok(())) => String::from_utf8_lossy(&bytes).replace('\n', line_break),
        _ => value.to_string(),
    }
}

/// What stands between the line's start and this position, if that is white space only.
fn margin(text: &str, position: usize) -> Option<&str> {
    let (_, margin) = text.get(..position)?.rsplit_once('\n')?;
    margin.trim().is_empty().then_some(margin)
}

pub(super) fn newline(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

fn replace(text: &str, range: Range<usize>, with: &str) -> Option<String> {
    Some(format!("{}{with}{}", text.get(..range.start)?, text.get(range.end..)?))
}

fn object_at(text: &str, open: usize) -> Option<JsonObject> {
    let byte_at = |at: usize| text.as_bytes().get(at).copied();
    if byte_at(open) != Some(b'{') {
        return None;
    }
    let mut members = Vec::new();
    let mut at = skip_space(text, open + 1);
    while byte_at(at)? != b'}' {
        let start = at;
        let key_end = skip_value(text, start)?;
        let colon = skip_space(text, key_end);
        let value = skip_space(text, colon + 1);
        let end = skip_value(text, value)?;
        members.push(Member {
            key: serde_json::from_slice(text.get(start..key_end)?.as_bytes()).ok()?,
            start,
            value: value..end,
        });
        at = skip_space(text, end);
        if byte_at(at) == Some(b',') {
            at = skip_space(text, at + 1);
        }
    }
    Some(JsonObject { open, close: at, members })
}

fn skip_space(text: &str, from: usize) -> usize {
    from + text.bytes().skip(from).take_while(u8::is_ascii_whitespace).count()
}

/// Where the value that starts here ends.
fn skip_value(text: &str, from: usize) -> Option<usize> {
    let mut values = serde_json::Deserializer::from_str(text.get(from..)?).into_iter::<IgnoredAny>();
    values.next()?.ok()?;
    Some(from + values.byte_offset())
}
