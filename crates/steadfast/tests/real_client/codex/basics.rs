//! `codex exec` with the scripted model: what the test support and the client do.

use super::client::Codex;
use super::lab_hooks::LabHooks;
use super::model::ScriptedResponses;
use super::reply::{Reply, Usage};
use super::request::Kind;
use super::rollout;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

#[test]
fn an_answer_and_its_usage() {
    let model = ScriptedResponses::start(|r| {
        assert_eq!(r.last_user_text(), "say hello");
        Reply::text("hello from the script").usage(Usage::new(1000, 200, 50, 20))
    });
    let codex = Codex::new(&model);
    let output = codex.exec(&[], "say hello");
    model.check_script();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(output.last_message().as_deref(), Some("hello from the script"));
    assert_eq!(output.thread_usage(), Some(Usage::new(1000, 200, 50, 20)));
    assert_eq!(codex.usage(), model.ledger());
    assert_eq!(model.requests()[0].thread_id(), Some(output.thread_id()));
    assert_eq!(codex.rollouts(), [codex.rollout(&output.thread_id())]);
}

#[test]
fn a_shell_call_comes_back_and_hooks_see_it() {
    let model = ScriptedResponses::start(|r| match r.tool_result("call_shell") {
        None => Reply::shell("call_shell", "lab-tool $((40 + 2)); env | grep ^CODEX_ | sort"),
        Some(result) => {
            assert!(result.contains("out-42"), "{result}");
            Reply::text(result)
        }
    });
    let bin = tempfile::tempdir().expect("tempdir");
    let tool = bin.path().join("lab-tool");
    fs::write(&tool, "#!/bin/sh\necho \"$LAB_WORD-$1\"\n").expect("tool");
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).expect("mode");
    let (codex, hooks) = LabHooks::install(Codex::new(&model).bin_dir(bin.path()).env("LAB_WORD", "out"));
    let output = codex.exec(&[], "use the shell");
    model.check_script();
    assert_eq!(output.items("command_execution")[0]["exit_code"], 0, "{output:?}");
    assert!(hooks.path().contains(&*bin.path().to_string_lossy()), "{}", hooks.path());
    let names = ["SessionStart:startup", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd"];
    assert_eq!(hooks.names(), names);
    assert_eq!(hooks.log_of("PreToolUse")[0]["tool_name"], "Bash");
    assert!(output.last_message().expect("message").contains(&output.thread_id()), "{output:?}");
    assert_eq!(codex.usage(), model.ledger());
}

/// A server with one tool that returns its arguments and its environment.
const MCP_SERVER: &str = r#"
import json, os, sys
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    if m["method"] == "initialize":
        r = {"protocolVersion": m["params"]["protocolVersion"], "capabilities": {"tools": {}},
             "serverInfo": {"name": "lab", "version": "1"}, "instructions": "LAB INSTRUCTIONS"}
    elif m["method"] == "tools/list":
        r = {"tools": [{"name": "look", "description": "d", "inputSchema": {"type": "object",
             "properties": {"q": {"type": "string"}}}}]}
    elif m["method"] == "tools/call":
        r = {"content": [{"type": "text", "text": json.dumps({"params": m["params"], "env": dict(os.environ)})}]}
    else:
        r = {}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
"#;

#[test]
fn an_mcp_tool_gets_the_thread_and_a_small_environment() {
    let model = ScriptedResponses::start(|r| match r.tool_result("call_look") {
        None => {
            let tool = r.tool_named("look").unwrap_or_else(|| panic!("no look in {:?}", r.tools()));
            Reply::tool("call_look", tool, json!({"q": "x"}))
        }
        Some(result) => Reply::text(result),
    });
    let codex = Codex::new(&model);
    let script = codex.root().join("server.py");
    fs::write(&script, MCP_SERVER).expect("server");
    let (codex, hooks) = LabHooks::install(codex.table(&format!(
        "[mcp_servers.lab]\ncommand = \"/usr/bin/env\"\nargs = [\"python3\", {}]\nenv_vars = [\"CODEX_HOME\"]\n",
        json!(script)
    )));
    let output = codex.exec(&[], "look");
    model.check_script();
    assert_eq!(hooks.log_of("PreToolUse")[0]["tool_name"], "mcp__lab__look");
    let text = output.last_message().unwrap_or_else(|| panic!("{output:?}"));
    let seen: Value =
        serde_json::from_str(&text[text.find('{').expect("JSON")..]).unwrap_or_else(|e| panic!("{e}: {text}"));
    assert_eq!(seen["params"]["_meta"]["threadId"], output.thread_id());
    assert_eq!(seen["params"]["_meta"]["callId"], "call_look");
    assert_eq!(seen["env"]["CODEX_HOME"], json!(codex.codex_home()));
    assert!(seen["env"]["HTTP_PROXY"].is_null());
}

#[test]
fn a_stop_hook_that_blocks_continues_the_same_turn() {
    let model = ScriptedResponses::start(|r| {
        if r.seq == 2 {
            assert!(r.last_user_text().starts_with("<hook_prompt"), "{}", r.last_user_text());
            assert!(r.last_user_text().contains("KEEP GOING"));
        }
        Reply::text(format!("answer {}", r.seq))
    });
    let (codex, hooks) = LabHooks::install(Codex::new(&model));
    hooks.answer("Stop", &json!({"decision": "block", "reason": "KEEP GOING"}));
    let output = codex.exec(&[], "work");
    model.check_script();
    assert_eq!(output.last_message().as_deref(), Some("answer 2"));
    let stops = hooks.log_of("Stop");
    assert_eq!(stops.iter().map(|s| s["stop_hook_active"] == true).collect::<Vec<_>>(), [false, true]);
    assert_eq!(stops[0]["turn_id"], stops[1]["turn_id"]);
}

#[test]
fn a_blocked_prompt_never_reaches_the_model() {
    let model = ScriptedResponses::start(|_| Reply::text("no"));
    let (codex, hooks) = LabHooks::install(Codex::new(&model));
    hooks.answer("UserPromptSubmit", &json!({"decision": "block", "reason": "LOCAL ANSWER"}));
    let output = codex.exec(&[], "status");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(model.requests().len(), 0);
    assert_eq!(output.last_message(), None);
    // Only the TUI shows the reason.
    assert!(!format!("{}{}", output.stdout, output.stderr).contains("LOCAL ANSWER"), "{output:?}");
}

#[test]
fn a_compaction_in_the_middle_of_a_turn() {
    let model = ScriptedResponses::start(|r| {
        if r.seq == 1 {
            return Reply::shell("call_big", "echo big").usage(Usage::new(60_000, 0, 10, 0));
        }
        assert!(r.all_text().contains("SCRIPTED SUMMARY"), "{}", r.all_text());
        Reply::text("done").usage(Usage::new(100, 0, 10, 0))
    });
    let (codex, hooks) = LabHooks::install(Codex::new(&model).setting("model_auto_compact_token_limit", "50000"));
    let output = codex.exec(&[], "grow");
    model.check_script();
    assert_eq!(output.last_message().as_deref(), Some("done"));
    assert_eq!(model.requests_of(Kind::Compaction).len(), 1);
    assert_eq!(model.requests_of(Kind::Compaction)[0].turn_metadata()["compaction"]["phase"], "mid_turn");
    assert!(model.handed_out_of(Kind::Compaction).total() > 0);
    let names = hooks.names();
    assert_eq!(names[4..7], ["PreCompact:auto", "PostCompact:auto", "SessionStart:compact"], "{names:?}");
    assert_eq!(codex.usage(), model.ledger());
    assert_eq!(rollout::payloads(&codex.rollout(&output.thread_id()), "compacted").len(), 1);
}

#[test]
fn resume_keeps_the_thread_and_fork_makes_a_new_one() {
    let model = ScriptedResponses::start(|r| Reply::text(format!("answer {}", r.seq)).usage(Usage::new(100, 0, 10, 0)));
    let (codex, hooks) = LabHooks::install(Codex::new(&model));
    let first = codex.exec(&[], "one");
    let thread = first.thread_id();
    let second = codex.exec(&["resume", &thread], "two");
    let forked = codex.exec(&["fork", &thread], "three");
    model.check_script();
    assert_eq!(second.thread_id(), thread);
    assert_ne!(forked.thread_id(), thread);
    assert!(model.requests()[2].all_text().contains("answer 2"));
    assert_eq!(second.thread_usage(), Some(Usage::new(200, 0, 20, 0)));
    assert_eq!(forked.thread_usage(), Some(Usage::new(300, 0, 30, 0)));
    assert_eq!(codex.usage(), model.ledger());
    assert_eq!(rollout::usage_of(&codex.rollout(&forked.thread_id())).len(), 1);
    let sources: Vec<Value> = hooks.log_of("SessionStart").iter().map(|s| s["source"].clone()).collect();
    assert_eq!(sources, ["startup", "resume", "fork"]);
}

#[test]
fn failures_end_the_turn_without_a_stop() {
    let model = ScriptedResponses::start(|r| match r.last_user_text().as_str() {
        "limit" => Reply::usage_limit(1_900_000_000),
        _ => Reply::error(500, "boom"),
    });
    let (codex, hooks) = LabHooks::install(Codex::new(&model));
    for (prompt, info) in [("limit", "usage_limit_exceeded"), ("error", "internal_server_error")] {
        let output = codex.exec(&[], prompt);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(output.failure().is_some(), "{output:?}");
        let ends = rollout::events(&codex.rollout(&output.thread_id()), "task_complete");
        assert_eq!(ends[0]["error"]["codex_error_info"], info, "{ends:?}");
    }
    assert_eq!(hooks.log_of("Stop").len(), 0);
    assert_eq!(model.handed_out().len(), 0);
}

#[test]
fn a_skill_is_sent_as_typed_with_its_text_beside_it() {
    let model = ScriptedResponses::start(|_| Reply::text("ok"));
    let codex = Codex::new(&model).with_skill("x", "A skill of the lab.", "SKILL BODY");
    let (codex, hooks) = LabHooks::install(codex);
    codex.exec(&[], "$x now please");
    let request = &model.requests()[0];
    assert_eq!(hooks.log_of("UserPromptSubmit")[0]["prompt"], "$x now please");
    assert_eq!(request.last_user_text(), "$x now please");
    assert!(request.all_text().contains("SKILL BODY"));
}

#[test]
fn a_subagent_has_a_rollout_and_a_ledger_of_its_own() {
    let model = ScriptedResponses::start(|r| {
        if r.is_subagent("CHILD TASK") {
            return Reply::text("child finished").usage(Usage::new(500, 0, 5, 0));
        }
        let spawned = r.tool_result("call_spawn");
        match (spawned, r.has_tool_result("call_wait")) {
            (None, _) => {
                let tool = r.tool_named("spawn_agent").unwrap_or_else(|| panic!("no spawn_agent in {:?}", r.tools()));
                Reply::tool("call_spawn", tool, json!({"message": "CHILD TASK"}))
            }
            (Some(result), false) => {
                let made: Value = serde_json::from_str(&result).unwrap_or_else(|e| panic!("{e}: {result}"));
                let tool = r.tool_named("wait_agent").unwrap_or_else(|| panic!("no wait_agent in {:?}", r.tools()));
                Reply::tool("call_wait", tool, json!({"targets": [made["agent_id"]]}))
            }
            _ => Reply::text("parent done"),
        }
    });
    let (codex, hooks) = LabHooks::install(Codex::new(&model).limit(Duration::from_mins(1)));
    let output = codex.exec(&[], "delegate");
    model.check_script();
    assert_eq!(output.last_message().as_deref(), Some("parent done"), "{output:?}");
    assert_eq!(model.handed_out_of(Kind::Subagent), Usage::new(500, 0, 5, 0));
    let child = model.handed_out().into_iter().find(|h| h.kind == Kind::Subagent).and_then(|h| h.session_id);
    assert_eq!(hooks.log_of("SubagentStop")[0]["agent_id"], json!(child));
    let own = rollout::usage_of(&codex.rollout(&child.expect("thread of the subagent")));
    assert_eq!(own.into_values().sum::<Usage>(), Usage::new(500, 0, 5, 0));
    assert_eq!(codex.rollouts().len(), 2);
    assert_eq!(codex.usage(), model.ledger());
    assert_eq!(hooks.log_of("SubagentStop")[0]["session_id"], output.thread_id());
}

/// Models the client knows get one tool that runs code; hooks see the calls inside it.
#[test]
fn code_mode_calls_tools_from_code() {
    let model = ScriptedResponses::start(|r| match r.tool_result("call_code") {
        None => {
            assert!(r.tool_named("exec").is_some(), "{:?}", r.tools());
            let code = "const r = await tools.exec_command({cmd: \"echo in-$((40 + 2))\"}); text(r.output);";
            Reply::default().and_code("call_code", "exec", code)
        }
        Some(result) => Reply::text(result),
    });
    let (codex, hooks) = LabHooks::install(Codex::new(&model));
    let output = codex.exec(&["-m", "gpt-6.1-sol"], "run code");
    model.check_script();
    assert!(output.last_message().unwrap_or_default().contains("in-42"), "{output:?}");
    assert_eq!(hooks.log_of("PreToolUse")[0]["tool_input"]["command"], "echo in-$((40 + 2))");
    assert_eq!(codex.usage(), model.ledger());
}
