//! A line of a headless agent's event stream for people: what it said and which tools it used. Everything else is
//! left out; lines that are no events are shown as they are.

use serde_json::Value;

use steadfast_model::host::Host;
use steadfast_model::text;

const LONGEST_DETAIL: usize = 160;

/// What a line says to a person; `None` if nothing.
pub fn readable(host: Host, line: &str) -> Option<String> {
    let Ok(event) = serde_json::from_str::<Value>(line) else {
        return Some(text::printable(line)).filter(|line| !line.trim().is_empty());
    };
    if !event.is_object() {
        return Some(text::printable(line));
    }
    let said = match host {
        Host::Claude => claude(&event),
        Host::Codex => codex(&event),
    };
    (!said.is_empty()).then(|| said.iter().map(|part| text::printable(part)).collect::<Vec<_>>().join("\n"))
}

fn field<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn claude(event: &Value) -> Vec<String> {
    match field(event, "type") {
        "assistant" => {
            let blocks = event.pointer("/message/content").and_then(Value::as_array);
            blocks.into_iter().flatten().filter_map(claude_block).collect()
        }
        "result" if event.get("is_error").and_then(Value::as_bool) == Some(true) => {
            vec![format!("! {}", text::headline(field(event, "result"), LONGEST_DETAIL))]
        }
        _ => Vec::new(),
    }
}

fn claude_block(block: &Value) -> Option<String> {
    match field(block, "type") {
        "text" => Some(field(block, "text").trim().to_owned()).filter(|said| !said.is_empty()),
        "tool_use" => {
            let input = block.get("input").and_then(Value::as_object);
            // The first words of a call say most: a command, a path, a pattern.
            let detail = input.into_iter().flatten().find_map(|(_, value)| value.as_str()).unwrap_or_default();
            Some(format!("· {} {}", field(block, "name"), text::headline(detail, LONGEST_DETAIL)).trim_end().to_owned())
        }
        _ => None,
    }
}

fn codex(event: &Value) -> Vec<String> {
    let item = event.get("item").unwrap_or(&Value::Null);
    let said = match (field(event, "type"), field(item, "type")) {
        ("item.completed", "agent_message") => field(item, "text").trim().to_owned(),
        ("item.completed", "command_execution") => {
            format!("· {}", text::headline(field(item, "command"), LONGEST_DETAIL))
        }
        ("item.completed", "mcp_tool_call") => format!("· {} {}", field(item, "server"), field(item, "tool")),
        ("item.completed", "web_search") => {
            format!("· search {}", text::headline(field(item, "query"), LONGEST_DETAIL))
        }
        ("item.completed", "file_change") => {
            let changes = item.get("changes").and_then(Value::as_array).into_iter().flatten();
            let paths: Vec<&str> = changes.map(|change| field(change, "path")).collect();
            format!("· changed {}", text::headline(&paths.join(", "), LONGEST_DETAIL))
        }
        ("turn.failed", _) => {
            let message = event.pointer("/error/message").and_then(Value::as_str).unwrap_or("the turn failed");
            format!("! {}", text::headline(message, LONGEST_DETAIL))
        }
        _ => String::new(),
    };
    if said.is_empty() { Vec::new() } else { vec![said] }
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
