//! A shell hook for every event: it logs its input and prints the answer that the test prepared for the event.

use super::client::Codex;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

const EVENTS: [&str; 9] = [
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PreCompact",
    "PostCompact",
    "SubagentStop",
    "Stop",
    "SessionEnd",
];

/// Answers with `answer-EVENT` and removes the file, so that it answers once. Hooks of a thread and its subagent run side
/// by side, so each line is appended in one piece.
const SCRIPT: &str = r#"dir=$(dirname "$0")
echo "$PATH" >"$dir/path"
{ cat; echo; } >"$dir/input.$$"
cat "$dir/input.$$" >>"$dir/log"
rollout=$(sed -n 's/.*"transcript_path":"\([^"]*\)".*/\1/p' "$dir/input.$$")
[ -f "$rollout" ] && cp "$rollout" "$dir/rollout-$1"
if mv "$dir/answer-$1" "$dir/answered-$1" 2>/dev/null; then cat "$dir/answered-$1"; fi
"#;

pub(crate) struct LabHooks {
    dir: PathBuf,
}

impl LabHooks {
    pub(crate) fn install(codex: Codex) -> (Codex, Self) {
        let dir = codex.root().join("lab");
        fs::create_dir_all(&dir).expect("directory");
        fs::write(dir.join("hook.sh"), SCRIPT).expect("script");
        let hooks: Value = EVENTS
            .iter()
            .map(|event| {
                let command = format!("sh {}/hook.sh {event}", dir.display());
                ((*event).to_owned(), json!([{"hooks": [{"type": "command", "command": command}]}]))
            })
            .collect();
        (codex.with_hooks(&hooks), Self { dir })
    }

    /// The answer to the next event of this name.
    pub(crate) fn answer(&self, event: &str, answer: &Value) {
        fs::write(self.dir.join(format!("answer-{event}")), answer.to_string()).expect("answer");
    }

    /// PATH of the hook that ran last.
    pub(crate) fn path(&self) -> String {
        fs::read_to_string(self.dir.join("path")).expect("a hook ran")
    }

    /// A copy of the rollout as the last hook of this event found it.
    pub(crate) fn rollout_at(&self, event: &str) -> PathBuf {
        self.dir.join(format!("rollout-{event}"))
    }

    pub(crate) fn log(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.dir.join("log")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).expect("hook input")).collect()
    }

    pub(crate) fn log_of(&self, event: &str) -> Vec<Value> {
        self.log().into_iter().filter(|input| input["hook_event_name"] == event).collect()
    }

    /// `SessionStart:startup`, `UserPromptSubmit`... in order.
    pub(crate) fn names(&self) -> Vec<String> {
        let name = |input: &Value| {
            let event = input["hook_event_name"].as_str().unwrap_or_default().to_owned();
            match input["source"].as_str().or(input["trigger"].as_str()) {
                Some(detail) => format!("{event}:{detail}"),
                None => event,
            }
        };
        self.log().iter().map(name).collect()
    }
}
