//! Session memory with the real Claude Code: the client's own tools run, and their events are counted, found by search,
//! and recalled by the model.

use crate::client::Client;
use crate::memory::resume;
use crate::model::ScriptedModel;
use crate::reply::Reply;
use crate::with_steadfast::{client, steadfast_json};
use serde_json::{Value, json};

const TOOLS: [&str; 7] = ["--allowedTools", "Bash", "Write", "Edit", "Read", "TaskCreate", "TaskUpdate"];

/// The tool calls of the model, in order.
fn steps() -> Vec<(&'static str, Value)> {
    let bash = |command: &str| ("Bash", json!({"command": command, "description": "Work"}));
    vec![
        bash("cat lamp.txt"),
        ("Write", json!({"file_path": "lamp.txt", "content": "dark\n"})),
        ("Edit", json!({"file_path": "lamp.txt", "old_string": "dark", "new_string": "bright"})),
        bash("cat lamp.txt"),
        bash("git add . && git -c user.name=a -c user.email=a@b commit -q -m 'Light the lamp'"),
        ("Read", json!({"file_path": "lamp.txt"})),
        ("TaskCreate", json!({"subject": "Polish the lens", "description": "all of it"})),
        ("TaskUpdate", json!({"taskId": "1", "status": "in_progress"})),
    ]
}

/// Makes the tool calls; when asked to remember, searches for the words.
fn working() -> ScriptedModel {
    let steps = steps();
    ScriptedModel::start(move |request| {
        let id = |at: usize| format!("toolu_step{at}");
        if let Some((at, (tool, input))) = steps.iter().enumerate().find(|(at, _)| !request.has_tool_result(&id(*at))) {
            return Reply::default().and_tool_with_id(&id(at), *tool, input.clone());
        }
        match (request.tool_result("toolu_recall"), request.tool_named("__recall")) {
            _ if request.last_user_text() != "Remember." => Reply::text("Done."),
            (Some(found), _) => Reply::text(format!("FOUND {found}")),
            (None, Some(name)) => Reply::default().and_tool_with_id("toolu_recall", name, json!({"query": "lens"})),
            // The tool server may still be starting.
            (None, None) => {
                let wait = json!({"command": "sleep 0.3", "description": "Wait"});
                Reply::default().and_tool_with_id(&format!("toolu_wait{}", request.seq), "Bash", wait)
            }
        }
    })
}

fn session_json(client: &Client, arguments: &[&str]) -> Value {
    steadfast_json(client, &[&["session"], arguments, &["--json"]].concat())
}

#[test]
fn what_the_client_did_is_counted_and_found() {
    let model = working();
    let client = client(&model).env("CLAUDE_CODE_ENABLE_TASKS", "1");
    let arguments = [&["--output-format", "json"], &TOOLS[..]].concat();
    let session = client.print(&arguments, "Light the lamp of the harbour.").session_id();
    model.check_script();

    let shown = session_json(&client, &["show", &session]);
    let counted = json!({"intent": 1, "prompt": 1, "file": 3, "git": 2, "error": 1, "fix": 1, "task": 2});
    assert_eq!(shown["events"], counted, "{shown:#}");
    assert_eq!(shown["tasks"], json!([{"id": "1", "subject": "Polish the lens", "status": "in_progress"}]));

    for (words, category) in
        [("harbour", "prompt"), ("lamp.txt", "file"), ("\"No such file\"", "fix"), ("\"Light the lamp\"", "git")]
    {
        let found = session_json(&client, &["search", words]);
        let categories: Vec<&str> =
            found["hits"].as_array().expect("hits").iter().filter_map(|hit| hit["category"].as_str()).collect();
        assert!(categories.contains(&category), "{words}: {found:#}");
    }

    resume(&client, &session, "Remember.");
    model.check_script();
    let found = model.requests().last().and_then(|request| request.tool_result("toolu_recall")).expect("an answer");
    // This client shows its model the structured form of an answer.
    let found: Value = serde_json::from_str(&found).unwrap_or_else(|error| panic!("{error}: {found}"));
    let results = found["results"].as_array().expect("results");
    assert_eq!((results.len(), &results[0]["text"]), (1, &json!("task 1: Polish the lens")), "{found:#}");
}
