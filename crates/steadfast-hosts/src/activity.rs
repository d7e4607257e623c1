//! Whether the model worked since a moment, according to the session file, for when no hook recorded it. In doubt the
//! answer is no.

use std::ops::ControlFlow;
use std::path::Path;

use serde_json::Value;

use super::{adapter, backwards};
use steadfast_model::clock::{self, Millis};
use steadfast_model::host::Host;

/// Whatever was said after a start is among so many lines, or the start is long ago.
const LINES_READ: usize = 500;

/// Whether the file has an answer of the model or a call of a tool from after that moment.
pub fn worked_since(host: Host, transcript: &Path, moment: Millis) -> bool {
    let (mut worked, mut lines) = (false, 0);
    let read = backwards::read(transcript, None, |line, _| {
        lines += 1;
        let line: Value = serde_json::from_slice(line).unwrap_or_default();
        let at = line["timestamp"].as_str().and_then(clock::parse_rfc3339);
        worked = at.is_some_and(|at| at > moment) && (adapter(host).is_model_output)(&line);
        let over = worked || at.is_some_and(|at| at <= moment) || lines >= LINES_READ;
        if over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    read.is_ok() && worked
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn worked(host: Host, lines: &[Value], moment: &str) -> bool {
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join("file.jsonl");
        let text: Vec<String> = lines.iter().map(Value::to_string).collect();
        fs_err::write(&path, text.join("\n")).expect("file");
        worked_since(host, &path, clock::parse_rfc3339(moment).expect("a time"))
    }

    #[test]
    fn answers_and_tool_calls_are_work_and_what_clients_write_is_not() {
        let at = |second: u8| format!("2026-11-15T08:00:{second:02}.000Z");
        let claude = |kind: &str, model: &str, second| json!({"type": kind, "timestamp": at(second), "message": {"role": kind, "model": model, "content": []}});
        let codex =
            |payload: Value, second| json!({"timestamp": at(second), "type": "response_item", "payload": payload});
        let call = json!({"type": "custom_tool_call", "name": "exec"});
        let said = |role: &str| json!({"type": "message", "role": role, "content": []});
        for (host, line, is_work) in [
            (Host::Claude, claude("assistant", "claude-opus", 9), true),
            (Host::Claude, claude("assistant", "<synthetic>", 9), false),
            (Host::Claude, claude("user", "", 9), false),
            (Host::Claude, json!({"type": "assistant", "message": {"model": "claude-opus"}}), false),
            (Host::Codex, codex(call, 9), true),
            (Host::Codex, codex(said("assistant"), 9), true),
            (Host::Codex, codex(said("developer"), 9), false),
            (Host::Codex, json!({"timestamp": at(9), "type": "compacted", "payload": {"message": ""}}), false),
        ] {
            let last = json!({"type": "last-prompt"});
            assert_eq!(worked(host, &[line.clone(), last.clone()], &at(5)), is_work, "{line}");
            assert!(!worked(host, &[line.clone(), last], &at(9)), "before: {line}");
        }
        assert!(!worked_since(Host::Claude, Path::new("/nowhere"), 0));
    }
}
