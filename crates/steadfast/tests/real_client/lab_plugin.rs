//! A small plugin whose hooks log their input, to test the test support
//! itself and facts about the client.

use crate::client::Client;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

const EVENTS: [&str; 12] = [
    "SessionStart",
    "SessionEnd",
    "UserPromptSubmit",
    "UserPromptExpansion",
    "PreToolUse",
    "PostToolUse",
    "Stop",
    "StopFailure",
    "SubagentStart",
    "SubagentStop",
    "PreCompact",
    "PostCompact",
];

pub(crate) struct LabPlugin {
    pub(crate) dir: PathBuf,
    log: PathBuf,
}

impl LabPlugin {
    /// `answer` is shell code run in each hook after its input was logged. It
    /// finds the event in `$event`, the input in `$input`, the number of times
    /// this event was logged so far in `$count`; its stdout is the hook's.
    pub(crate) fn write(client: &Client, answer: &str) -> Self {
        let hooks: serde_json::Map<String, Value> = EVENTS
            .iter()
            .map(|event| {
                let command = format!("sh \"${{CLAUDE_PLUGIN_ROOT}}/hook.sh\" {event}");
                (event.to_string(), json!([{"hooks": [{"type": "command", "command": command}]}]))
            })
            .collect();
        Self::write_with_hooks(client, answer, &Value::Object(hooks))
    }

    /// The same with a `hooks` object of the caller's making.
    pub(crate) fn write_with_hooks(client: &Client, answer: &str, hooks: &Value) -> Self {
        let dir = client.root().join("lab-plugin");
        let log = client.root().join("hooks.jsonl");
        fs::create_dir_all(dir.join(".claude-plugin")).expect("plugin directory");
        fs::create_dir_all(dir.join("hooks")).expect("hooks directory");
        let manifest = json!({"name": "lab", "version": "1.0.0", "description": "Logs hooks"});
        fs::write(dir.join(".claude-plugin/plugin.json"), manifest.to_string()).expect("manifest");
        fs::write(dir.join("hooks/hooks.json"), json!({"hooks": hooks}).to_string()).expect("hooks");
        let script = format!(
            "event=$1\ninput=$(cat)\nlog='{}'\nprintf '%s\\n' \"$input\" >> \"$log\"\n\
             count=$(grep -c \"\\\"hook_event_name\\\":\\\"$event\\\"\" \"$log\")\n{answer}\n",
            log.display()
        );
        fs::write(dir.join("hook.sh"), script).expect("hook script");
        Self { dir, log }
    }

    /// The inputs of all hooks so far, in the order they ran.
    pub(crate) fn inputs(&self) -> Vec<Value> {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    pub(crate) fn inputs_of(&self, event: &str) -> Vec<Value> {
        self.inputs().into_iter().filter(|input| input["hook_event_name"] == event).collect()
    }

    pub(crate) fn events(&self) -> Vec<String> {
        let name = |input: &Value| Some(input["hook_event_name"].as_str()?.to_owned());
        self.inputs().iter().filter_map(name).collect()
    }
}
