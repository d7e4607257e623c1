//! What tells a hook from a command in the agent's shell, in the real clients. The product decides by these facts.

use crate::client::Client;
use crate::codex::{self, Codex, ScriptedResponses};
use crate::lab_plugin::LabPlugin;
use crate::model::ScriptedModel;
use crate::reply::Reply;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

const PROBE: &str = include_str!("probe.py");

/// Writes the probe, and returns its command without the label.
fn probe(root: &Path) -> String {
    fs::write(root.join("probe.py"), PROBE).expect("probe");
    format!("python3 {0}/probe.py {0}/facts", root.display())
}

fn facts(root: &Path, label: &str) -> Vec<Value> {
    let text = fs::read_to_string(root.join("facts")).unwrap_or_default();
    let all = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("facts"));
    all.filter(|facts| facts["label"] == label).collect()
}

#[test]
fn what_claude_gives_its_hooks_and_its_shell() {
    let model = ScriptedModel::start(|request| match request.tool_result("toolu_1") {
        None => Reply::default().and_tool_with_id(
            "toolu_1",
            "Bash",
            json!({"command": "$PROBE shell; exec $PROBE exec", "description": "Look"}),
        ),
        Some(_) => Reply::text("Done."),
    });
    let client = Client::new(&model);
    let probe = probe(&client.root());
    let hooks: Value = ["SessionStart", "UserPromptSubmit", "PreToolUse", "Stop"]
        .iter()
        .map(|event| {
            let command = format!("{probe} hook");
            ((*event).to_owned(), json!([{"hooks": [{"type": "command", "command": command}]}]))
        })
        .collect();
    let lab = LabPlugin::write_with_hooks(&client, "", &hooks);
    let client = client.plugin_dir(&lab.dir).env("PROBE", &probe);
    client.print(&["--allowedTools", "Bash"], "look");
    eprintln!("{}", fs::read_to_string(client.root().join("facts")).unwrap_or_default());
}

#[test]
fn what_codex_gives_its_hooks_and_its_shell() {
    let model = ScriptedResponses::start(|r| match r.tool_result("call_1") {
        None => codex::Reply::shell("call_1", "$PROBE shell; exec $PROBE exec <<<hello"),
        Some(_) => codex::Reply::text("Done."),
    });
    let codex = Codex::new(&model);
    let probe = probe(&codex.root());
    let hooks: Value = ["SessionStart", "UserPromptSubmit", "PreToolUse", "Stop"]
        .iter()
        .map(|event| {
            let command = format!("{probe} hook");
            ((*event).to_owned(), json!([{"hooks": [{"type": "command", "command": command}]}]))
        })
        .collect();
    let codex = codex.with_hooks(&hooks).env("PROBE", &probe);
    codex.exec(&[], "look");
    eprintln!("{}", fs::read_to_string(codex.root().join("facts")).unwrap_or_default());
}
