//! Session memory with the real Codex: the client's own tools are run, and what they did is counted, found by search, and
//! found again by the model itself.

use super::client::Codex;
use super::goals::{call_ours, steadfast, trusted};
use super::model::ScriptedResponses;
use super::reply::Reply;
use serde_json::{Value, json};

const PATCH: &str = "*** Begin Patch\n*** Update File: lamp.txt\n@@\n-dark\n+bright\n*** End Patch\n";

/// What the model does, one call after the other.
fn step(at: usize) -> Option<Reply> {
    let id = format!("call_step{at}");
    Some(match at {
        0 => Reply::shell(&id, "cat lamp.txt"),
        1 => Reply::shell(&id, "echo dark >lamp.txt"),
        2 => Reply::shell(&id, &format!("apply_patch <<'EOF'\n{PATCH}EOF")),
        3 => Reply::shell(&id, "cat lamp.txt"),
        4 => Reply::shell(&id, "git add . && git -c user.name=a -c user.email=a@b commit -q -m 'Light the lamp'"),
        5 => Reply::tool(&id, "update_plan", json!({"plan": [{"step": "Polish the lens", "status": "in_progress"}]})),
        _ => return None,
    })
}

/// Makes the steps, and then, asked to remember, looks for the words.
fn working() -> ScriptedResponses {
    ScriptedResponses::start(|r| {
        let next = (0..).find(|at| !r.has_tool_result(&format!("call_step{at}")));
        if let Some(reply) = next.and_then(step) {
            return reply;
        }
        match r.tool_result("call_recall") {
            _ if r.last_user_text() != "Remember." => Reply::text("Done."),
            Some(found) => Reply::text(found),
            None => call_ours(r, "recall", "call_recall", json!({"query": "lens"})),
        }
    })
}

fn session_json(codex: &Codex, arguments: &[&str]) -> Value {
    let (_, text) = steadfast(codex, &[&["session"], arguments, &["--json"]].concat());
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {text}"))
}

#[test]
fn what_the_client_did_is_counted_and_found() {
    let model = working();
    let codex = trusted(Codex::new(&model));
    let thread = codex.exec(&[], "Light the lamp of the harbour.").thread_id();
    model.check_script();

    let shown = session_json(&codex, &["show", &thread]);
    let counted = json!({"intent": 1, "prompt": 1, "file": 1, "git": 2, "error": 1, "fix": 1, "task": 1});
    assert_eq!(shown["events"], counted, "{shown:#}");
    assert_eq!(shown["tasks"], json!([{"id": "list-1", "subject": "Polish the lens", "status": "in_progress"}]));

    for (words, category) in
        [("harbour", "prompt"), ("lamp.txt", "file"), ("\"No such file\"", "fix"), ("\"Light the lamp\"", "git")]
    {
        let found = session_json(&codex, &["search", words]);
        let hits = found["hits"].as_array().expect("hits");
        assert!(hits.iter().any(|hit| hit["category"] == category), "{words}: {found:#}");
    }

    let recalled = codex.exec(&["resume", &thread], "Remember.").last_message().expect("an answer");
    model.check_script();
    assert!(recalled.contains("Polish the lens") && !recalled.contains("harbour"), "{recalled}");
}
