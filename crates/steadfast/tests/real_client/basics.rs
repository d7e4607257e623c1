//! Each way to use the client, tried once with a small plugin: the basis of the other tests.

use crate::client::Client;
use crate::lab_plugin::LabPlugin;
use crate::model::ScriptedModel;
use crate::reply::{Reply, Usage};
use crate::request::Kind;
use crate::transcript::{records, usage_by_message};
use crate::tui::Tui;
use serde_json::json;

#[test]
fn print_answers() {
    let model = ScriptedModel::start(|request| {
        assert_eq!(request.last_user_text(), "What is it?");
        Reply::text("It is 42.").usage(Usage::new(100, 20, 30, 40))
    });
    let client = Client::new(&model);
    let lab = LabPlugin::write(&client, "");
    let client = client.plugin_dir(&lab.dir);

    let output = client.print(&["--output-format", "json"], "What is it?");

    model.check_script();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(output.json()["result"], "It is 42.");
    assert_eq!(client.session_ids(), [output.session_id()]);
    assert_eq!(lab.events(), ["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"]);
    assert_eq!(model.handed_out_of(Kind::Main), Usage::new(100, 20, 30, 40));
    assert_eq!(model.handed_out()[0].session_id, Some(output.session_id()));
    assert_eq!(client.usage(), model.ledger());
}

#[test]
fn print_uses_a_tool() {
    let model = ScriptedModel::start(|request| {
        if let Some(result) = request.tool_result("toolu_echo") {
            Reply::text(format!("It said: {result}"))
        } else {
            let bash = request.tool_named("Bash").expect("Bash is offered");
            let input = json!({"command": "echo from-the-shell", "description": "Say something"});
            Reply::text("I will look.").and_tool_with_id("toolu_echo", bash, input)
        }
    });
    let client = Client::new(&model);
    let lab = LabPlugin::write(&client, "");
    let client = client.plugin_dir(&lab.dir);

    let output = client.print(&["--allowedTools", "Bash"], "Ask the shell.");

    model.check_script();
    assert_eq!(output.stdout.trim(), "It said: from-the-shell");
    assert_eq!(lab.inputs_of("PreToolUse")[0]["tool_use_id"], "toolu_echo");
    assert_eq!(client.usage(), model.ledger());
    // The first message has two blocks, so two lines with the same usage.
    let lines = records(&client.transcripts()[0]);
    let assistant = lines.iter().filter(|r| r["type"] == "assistant").count();
    assert_eq!((assistant, model.ledger().len()), (3, 2));
}

#[test]
fn stop_hook_blocks_twice() {
    let model = ScriptedModel::start(|request| Reply::text(format!("Turn {}", request.seq)));
    let client = Client::new(&model);
    let block = r#"[ "$event" = Stop ] && [ "$count" -le 2 ] && echo '{"decision":"block","reason":"GO ON"}'
        exit 0"#;
    let lab = LabPlugin::write(&client, block);
    let client = client.plugin_dir(&lab.dir);

    let output = client.print(&[], "Begin.");

    assert_eq!(output.stdout.trim(), "Turn 3");
    let active: Vec<bool> = lab.inputs_of("Stop").iter().map(|stop| stop["stop_hook_active"] == true).collect();
    assert_eq!(active, [false, true, true]);
    let texts: Vec<String> = model.requests().iter().map(super::request::Request::last_user_text).collect();
    assert_eq!(texts, ["Begin.", "Stop hook feedback:\nGO ON", "Stop hook feedback:\nGO ON"]);
    assert_eq!(client.usage(), model.ledger());
}

#[test]
fn tui_compacts_and_clears() {
    let model = ScriptedModel::start(|request| Reply::text(format!("Answer {}.", request.seq)));
    let client = Client::new(&model);
    let lab = LabPlugin::write(&client, "");
    let client = client.plugin_dir(&lab.dir);

    let tui = Tui::start(&client, &[]);
    // With fewer turns the client says "Not enough messages to compact".
    tui.submit("First question");
    tui.wait_for_text("Answer 1.");
    tui.submit("Second question");
    tui.wait_for_text("Answer 2.");
    tui.submit("/compact");
    tui.wait_for_text("Compacted (ctrl+o");
    tui.submit("Third question");
    tui.wait_for_text("Answer 3.");
    tui.submit("/clear");
    tui.wait_for("an empty conversation", std::time::Duration::from_mins(1), |screen| !screen.contains("Answer 3."));
    tui.submit("Fourth question");
    tui.wait_for_text("Answer 4.");
    assert!(tui.history().contains("Fourth question"), "{}", tui.history());
    tui.exit();

    model.check_script();
    assert_eq!(model.requests().iter().filter(|r| r.is_compaction()).count(), 1);
    let third = model.requests().into_iter().find(|r| r.seq == 3).expect("third turn");
    assert!(third.all_text().contains("SCRIPTED SUMMARY"), "{}", third.all_text());
    let sources: Vec<String> = lab.inputs_of("SessionStart").iter().map(|s| s["source"].to_string()).collect();
    assert_eq!(sources, [r#""startup""#, r#""compact""#, r#""clear""#]);
    let reasons: Vec<String> = lab.inputs_of("SessionEnd").iter().map(|s| s["reason"].to_string()).collect();
    assert_eq!(reasons, [r#""clear""#, r#""prompt_input_exit""#]);
    assert_eq!(client.session_ids().len(), 2);
    // The summary and the titles were billed, but are in no transcript.
    assert_ne!(model.handed_out_of(Kind::Side), Usage::default());
    assert_eq!(client.usage(), model.ledger());
}

#[test]
fn subagent_is_counted_apart() {
    let model = ScriptedModel::start(|request| {
        let usage = Usage::new(10, 2, 0, 0);
        if request.is_subagent("COUNT FILES") {
            return if request.has_tool_result("toolu_ls") {
                Reply::text("There are none.").usage(usage)
            } else {
                Reply::default()
                    .and_tool_with_id("toolu_ls", "Bash", json!({"command": "ls", "description": "List"}))
                    .usage(usage)
            };
        }
        if request.has_tool_result("toolu_agent") {
            return Reply::text("The helper found none.").usage(Usage::new(1000, 200, 0, 0));
        }
        let agent = request.tool_named("Agent").expect("Agent is offered");
        let input = json!({"description": "Count", "prompt": "COUNT FILES", "subagent_type": "general-purpose"});
        Reply::default().and_tool_with_id("toolu_agent", agent, input).usage(Usage::new(1000, 200, 0, 0))
    });
    let client = Client::new(&model);
    let lab = LabPlugin::write(&client, "");
    let client = client.plugin_dir(&lab.dir);

    let output = client.print(&["--output-format", "json", "--allowedTools", "Bash", "Agent"], "Delegate it.");

    model.check_script();
    assert_eq!(output.json()["result"], "The helper found none.");
    assert_eq!(model.handed_out_of(Kind::Main), Usage::new(2000, 400, 0, 0));
    assert_eq!(model.handed_out_of(Kind::Subagent), Usage::new(20, 4, 0, 0));
    let subagents = client.subagent_transcripts(&output.session_id());
    assert_eq!(subagents.len(), 1);
    let in_subagent: Usage = usage_by_message(&subagents).into_values().sum();
    assert_eq!(in_subagent, Usage::new(20, 4, 0, 0));
    assert_eq!(lab.inputs_of("SubagentStop").len(), 1);
    assert_eq!(client.usage(), model.ledger());
}

#[test]
fn resume_keeps_the_session() {
    let model = ScriptedModel::start(|request| Reply::text(format!("Answer {}.", request.seq)));
    let client = Client::new(&model);
    let lab = LabPlugin::write(&client, "");
    let client = client.plugin_dir(&lab.dir);

    let first = client.print(&["--output-format", "json"], "Remember the number 7.");
    let id = first.session_id();
    let second = client.print(&["--output-format", "json", "--resume", &id], "Which number?");

    assert_eq!(second.session_id(), id);
    let last = model.requests().pop().expect("a request");
    assert!(last.all_text().contains("Remember the number 7."), "{}", last.summary());
    assert!(last.all_text().contains("Answer 1."), "{}", last.summary());
    assert_eq!(lab.inputs_of("SessionStart")[1]["source"], "resume");
    assert_eq!(client.session_ids(), [id.as_str()]);
    assert_eq!(client.usage(), model.ledger());

    // The TUI resumes the same session too.
    let tui = Tui::start(&client, &["--resume", &id]);
    tui.submit("And now?");
    tui.wait_for_text("Answer 3.");
    tui.exit();
    assert_eq!(client.session_ids(), [id]);
    assert_eq!(client.usage(), model.ledger());
}
