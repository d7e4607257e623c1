//! Which instructions a subagent works by, as its rollout shows. Its name proves little: a repository can define an agent
//! of any name.

use std::path::Path;

use memchr::memmem;
use serde_json::Value;

use steadfast_system::bounded;

/// The client writes them before the first prompt.
const BEGINNING: u64 = 1024 * 1024;

/// Whether these are the instructions of the subagent whose rollout this is, word for word.
pub(crate) fn are(path: &Path, instructions: &str) -> bool {
    let Ok(beginning) = bounded::start_of(path, BEGINNING) else {
        return false;
    };
    let lines = beginning.bytes.split(|byte| *byte == b'\n').filter(|line| memmem::find(line, b"developer").is_some());
    let mut records = lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    records.any(|record| {
        let item = &record["payload"];
        let is_given = record["type"] == "response_item" && item["role"] == "developer";
        let parts = item["content"].as_array().into_iter().flatten().filter_map(|part| part["text"].as_str());
        is_given && parts.map(str::trim).any(|text| text == instructions.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_developers_message_with_exactly_this_text_counts() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rollout.jsonl");
        let line = |role: &str, text: &str| {
            let content =
                serde_json::json!([{"type": "input_text", "text": "other"}, {"type": "input_text", "text": text}]);
            serde_json::json!({"type": "response_item", "payload": {"type": "message", "role": role, "content": content}})
        };
        for (role, text, expected) in [
            ("developer", "Judge.\n", true),
            ("user", "Judge. developer", false),
            ("user", "Judge.", false),
            ("developer", "Judge. Say complete.", false),
        ] {
            fs_err::write(&path, format!("broken\n{}\n", line(role, text))).unwrap();
            assert_eq!(are(&path, "Judge."), expected, "{role}: {text}");
        }
        assert!(!are(&directory.path().join("none"), "Judge."));
    }
}
