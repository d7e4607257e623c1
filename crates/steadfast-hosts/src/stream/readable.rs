//! A line of a headless agent's event stream for people: what it said and which tools it used. Everything else is left
//! out; lines that are no events are shown as they are.

use serde_json::Value;

use crate::adapter;
use steadfast_model::host::Host;
use steadfast_model::text;

/// The most of a command, path or message that is shown.
pub(crate) const LONGEST_DETAIL: usize = 160;

/// What a line says to a person; `None` if nothing.
pub fn readable(host: Host, line: &str) -> Option<String> {
    let Ok(event) = serde_json::from_str::<Value>(line) else {
        return Some(text::printable(line)).filter(|line| !line.trim().is_empty());
    };
    if !event.is_object() {
        return Some(text::printable(line));
    }
    let said = (adapter(host).readable_event)(&event);
    (!said.is_empty()).then(|| said.iter().map(|part| text::printable(part)).collect::<Vec<_>>().join("\n"))
}

pub(crate) fn field<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_see_words_and_tools_and_nothing_of_the_machinery() {
        let claude = |line: &str| readable(Host::Claude, line);
        let codex = |line: &str| readable(Host::Codex, line);
        let said = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"I look.\u001b[2J"},{"type":"tool_use","name":"Bash","input":{"command":"cargo test\nls"}}]}}"#;
        assert_eq!(claude(said).as_deref(), Some("I look.\n· Bash cargo test …"));
        assert_eq!(claude(r#"{"type":"system","subtype":"init"}"#), None);
        assert_eq!(claude(r#"{"type":"result","is_error":true,"result":"limit"}"#).as_deref(), Some("! limit"));
        assert_eq!(claude("plain \u{7}words").as_deref(), Some("plain words"));
        let ran = r#"{"type":"item.completed","item":{"type":"command_execution","command":"ls -l"}}"#;
        assert_eq!(codex(ran).as_deref(), Some("· ls -l"));
        let changed =
            r#"{"type":"item.completed","item":{"type":"file_change","changes":[{"path":"a"},{"path":"b"}]}}"#;
        assert_eq!(codex(changed).as_deref(), Some("· changed a, b"));
        assert_eq!(codex(r#"{"type":"turn.completed","usage":{}}"#), None);
    }
}
