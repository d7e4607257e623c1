//! Session memory with the real Codex: the client's own tools run, and their events are counted, found by search, and
//! recalled by the model.

use super::client::Codex;
use super::goals::{call_ours, steadfast, trusted};
use super::model::ScriptedResponses;
use super::reply::Reply;
use serde_json::{Value, json};

/// As with models that the client knows: one tool that runs code, in which the others are called.
const WORK: &str = r"
const sh = async (cmd) => text((await tools.exec_command({cmd})).output);
await sh('bash ./light.sh');
await tools.apply_patch('*** Begin Patch\n*** Add File: light.sh\n+echo bright\n*** End Patch\n');
await sh('bash ./light.sh');
await sh('git add . && git -c user.name=a -c user.email=a@b commit -q -m Harbour');
";

fn working() -> ScriptedResponses {
    ScriptedResponses::start(|r| {
        if r.last_user_text() != "Remember." {
            return match r.tool_result("call_work") {
                Some(result) => Reply::text(result),
                None => Reply::default().and_code("call_work", "exec", WORK),
            };
        }
        match r.tool_result("call_recall") {
            Some(found) => Reply::text(found),
            None => call_ours(r, "recall", "call_recall", json!({"query": "light.sh", "category": "fix"})),
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
    let worked = codex.exec(&["-m", "gpt-6.1-sol"], "Make the lighthouse work.");
    model.check_script();
    let thread = worked.thread_id();
    assert!(worked.last_message().is_some_and(|said| said.contains("bright")), "{worked:?}");

    let shown = session_json(&codex, &["show", &thread]);
    let counted = json!({"intent": 1, "prompt": 1, "file": 1, "git": 2, "error": 1, "fix": 1});
    assert_eq!(shown["events"], counted, "{shown:#}");

    for (words, category) in
        [("lighthouse", "prompt"), ("light.sh", "file"), ("No such file", "fix"), ("Harbour", "git")]
    {
        let found = session_json(&codex, &["search", words]);
        let hits = found["hits"].as_array().expect("hits");
        assert!(hits.iter().any(|hit| hit["category"] == category), "{words}: {found:#}");
    }

    let recalled = codex.exec(&["resume", &thread], "Remember.").last_message().expect("an answer");
    model.check_script();
    let story = "shell: bash ./light.sh failed: bash: ./light.sh: No such file or directory; works now after changes to light.sh";
    assert!(recalled.contains(story) && !recalled.contains("lighthouse"), "{recalled}");
}
