//! Every event as the client sent it, and every reply against the fields the client knows for that event.

use std::path::Path;

use super::*;
use crate::adapter::{AgentCall, ToolCallOrigin};
use serde_json::Map;
use steadfast_model::hook::StartSource;

const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/samples/codex/hooks");

fn sample(name: &str) -> Vec<u8> {
    fs_err::read(Path::new(SAMPLES).join(name)).unwrap()
}

fn read(name: &str) -> Option<HookInput> {
    read_hook(&sample(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn event_of(name: &str) -> Option<HookEvent> {
    read(name).map(|input| input.event)
}

fn prompted(prompt: &str) -> HookEvent {
    let stdin = json!({"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": prompt});
    read_hook(stdin.to_string().as_bytes()).unwrap().unwrap().event
}

/// `SubagentStop` is `subagent-stop` in the list of fields.
fn kebab(event_name: &str) -> String {
    let mut name = String::new();
    for character in event_name.chars() {
        if character.is_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.extend(character.to_lowercase());
    }
    name
}

#[test]
fn captured_events_are_understood() {
    let start = |source| Some(HookEvent::SessionStart(source));
    assert_eq!(event_of("SessionStart.startup.json"), start(StartSource::Startup));
    assert_eq!(event_of("SessionStart.resume.json"), start(StartSource::Resume));
    assert_eq!(event_of("SessionStart.clear.json"), start(StartSource::Clear));
    assert_eq!(event_of("SessionStart.compact.json"), start(StartSource::Compact));
    assert_eq!(event_of("SessionStart.fork.json"), start(StartSource::Fork));
    assert_eq!(event_of("SessionEnd.json"), Some(HookEvent::SessionEnd { reason: "other".into() }));
    assert_eq!(event_of("UserPromptSubmit.json"), Some(HookEvent::Prompt { typed: true }));
    assert_eq!(event_of("UserPromptSubmit.exec-slash-goal.json"), Some(HookEvent::Prompt { typed: true }));
    let status = HookEvent::Command { verb: "status".into(), arguments: "now please".into() };
    assert_eq!(event_of("UserPromptSubmit.skill-mention.json"), Some(status));
    let stop = |after_continuation, said: &str| {
        Some(HookEvent::Stop { after_continuation, last_message: Some(said.into()), background_work: false })
    };
    assert_eq!(event_of("Stop.first.json"), stop(false, "ok"));
    assert_eq!(event_of("Stop.after-block.json"), stop(true, "continued once"));
    assert_eq!(event_of("Interrupt.json"), Some(HookEvent::Interrupt));
    assert_eq!(event_of("PreCompact.auto.json"), Some(HookEvent::PreCompact));
    assert_eq!(event_of("PreCompact.manual.json"), Some(HookEvent::PreCompact));
    assert_eq!(event_of("PostToolUse.Bash.json"), Some(HookEvent::ToolBatch { agent: None }));
    let native = NativeGoal::Active("write three haikus".into());
    assert_eq!(event_of("PostToolUse.create_goal.json"), Some(HookEvent::NativeGoal(native)));
    assert_eq!(event_of("PostToolUse.update_goal.json"), Some(HookEvent::NativeGoal(NativeGoal::Over)));
    assert_eq!(event_of("PostModelRequest.completed.json"), Some(HookEvent::ModelAnswered));
    let Some(HookEvent::StopFailure { error, message }) = event_of("PostModelRequest.failed.json") else {
        panic!("a failed request is a failure");
    };
    assert_eq!(error, "rate_limit");
    assert!(message.contains("try again at Nov 16th, 2026 3:33 AM"), "{message}");
    for nothing in
        ["PreModelRequest.json", "PostModelRequest.cancelled.json", "PostCompact.auto.json", "PermissionRequest.json"]
    {
        assert_eq!(event_of(nothing), None, "{nothing}");
    }
}

#[test]
fn a_tool_that_is_about_to_run_is_asked_about() {
    let asked = |agent_type: Option<&str>| Some(HookEvent::ToolAsked { agent_type: agent_type.map(str::to_owned) });
    assert_eq!(event_of("PreToolUse.Bash.json"), asked(None));
    assert_eq!(event_of("PreToolUse.mcp.json"), asked(None));
    assert_eq!(event_of("PreToolUse.Bash.in-subagent.json"), asked(Some("default")));
    let ours = json!({"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "mcp__steadfast__get_goal"});
    assert_eq!(read_hook(ours.to_string().as_bytes()).unwrap(), None, "our own tools always run");
}

#[test]
fn prompts_tools_and_ends_of_a_turn_name_it() {
    for name in ["UserPromptSubmit.json", "PostToolUse.Bash.json", "Stop.first.json", "Interrupt.json"] {
        assert!(read(name).unwrap().turn_id.is_some(), "{name}");
    }
}

#[test]
fn a_failure_is_judged_by_what_it_says() {
    for (message, kind) in [
        ("You've hit your usage limit. Upgrade to Pro or try again at Nov 16th, 2026 3:33 AM.", "rate_limit"),
        (
            "unexpected status 401 Unauthorized: Missing bearer or basic authentication in header",
            "authentication_failed",
        ),
        ("unexpected status 403 Forbidden: Country, region, or territory not supported", "authentication_failed"),
        ("unexpected status 400 Bad Request: {\"type\":\"invalid_request_error\"}", "invalid_request"),
        ("exceeded retry limit, last status: 429 Too Many Requests, request id: 98401a", "server_error"),
        ("stream disconnected before completion: request 0a401f42 was closed", "server_error"),
        ("unexpected status 500 Internal Server Error: the usage limit service is down", "server_error"),
        (
            "Rate limit reached for gpt-5 on tokens per min (TPM): Limit 40100. Please try again in 1.2s.",
            "server_error",
        ),
        ("", "server_error"),
    ] {
        let expected = HookEvent::StopFailure { error: kind.into(), message: message.into() };
        assert_eq!(failure(Some(&json!({"message": message}))), expected);
        assert_eq!(failure(Some(&json!(message))), expected);
    }
}

#[test]
fn a_subagent_is_counted_and_drives_nothing() {
    for nothing in ["UserPromptSubmit.in-subagent.json", "PostModelRequest.in-subagent.json"] {
        assert_eq!(event_of(nothing), None, "{nothing}");
    }
    let started = read("SubagentStart.json").unwrap();
    let HookEvent::SubagentStart { agent } = started.event else { panic!("{:?}", started.event) };
    assert_eq!(started.session_id, "01a1de5a-6ea7-72c1-b185-58481c18109f");
    assert_eq!((agent.id.as_str(), started.transcript), ("01a1de5a-7344-7911-a33c-85462129068d", None));
    let stopped = read("SubagentStop.first.json").unwrap();
    let HookEvent::SubagentStop { agent: ended } = stopped.event else { panic!("{:?}", stopped.event) };
    assert_eq!(ended, agent);
    assert!(stopped.transcript.unwrap().to_string_lossy().ends_with("01a1de5a-6ea7-72c1-b185-58481c18109f.jsonl"));
}

#[test]
fn a_call_of_our_own_tools_inside_a_subagent_is_noted_with_its_kind() {
    let event = |tool: &str, agent: Value| {
        let mut stdin = json!({"hook_event_name": "PreToolUse", "session_id": "s", "tool_use_id": "exec-1",
            "tool_name": tool, "agent_type": "goal-evaluator"});
        stdin["agent_id"] = agent;
        read_hook(stdin.to_string().as_bytes()).unwrap().map(|input| input.event)
    };
    let noted = HookEvent::OwnTool {
        tool_use_id: "exec-1".into(),
        tool_name: "record_verdict".into(),
        agent_id: "a1".into(),
        agent_type: "goal-evaluator".into(),
    };
    assert_eq!(event("mcp__steadfast__record_verdict", json!("a1")), Some(noted));
    let asked = HookEvent::ToolAsked { agent_type: Some("goal-evaluator".into()) };
    assert_eq!(event("mcp__other__record_verdict", json!("a1")), Some(asked));
}

#[test]
fn skills_and_markers_in_a_prompt() {
    let command = |verb: &str, arguments: &str| HookEvent::Command { verb: verb.into(), arguments: arguments.into() };
    assert_eq!(prompted(" $goal-start fix it --budget 10M"), command("start", "fix it --budget 10M"));
    assert_eq!(prompted("$steadfast:goal-pause"), command("pause", ""));
    assert_eq!(prompted("$goal-reconcile please --accept-reset"), command("reconcile", "please --accept-reset"));
    assert_eq!(prompted("$goal-edit one\n two"), command("edit", "one\n two"));
    assert_eq!(prompted("$goal-planner plan it"), command("planner", "plan it"));
    assert_eq!(prompted("what does $goal-status do?"), HookEvent::Prompt { typed: true });
    assert_eq!(prompted("Goal： 目標\n二"), HookEvent::Directive { objective: "目標\n二".into() });
    assert_eq!(prompted("/goal clear"), HookEvent::Prompt { typed: true });
}

#[test]
fn each_line_that_begins_with_a_skill_is_a_command() {
    let typed = |verb: &str, arguments: &str| TypedCommand { verb: verb.into(), arguments: arguments.into() };
    let several =
        |commands: &[TypedCommand], other_text| HookEvent::Commands { commands: commands.to_vec(), other_text };
    let pending = "$goal-pause\n$steadfast:goal-verify\r\n$goal-start --budgte 5 x\n- one\n- two";
    let expected = [typed("pause", ""), typed("verify", ""), typed("start", "--budgte 5 x\n- one\n- two")];
    assert_eq!(prompted(pending), several(&expected, false));
    assert_eq!(prompted("look at this\n$goal-status now"), several(&[typed("status", "now")], true));
    assert_eq!(prompted("see\n  $goal-status"), HookEvent::Prompt { typed: true }, "an indented example");
}

#[test]
fn our_own_message_is_no_prompt_of_the_user() {
    let stdin = json!({"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "◎ goal continues"});
    let input = read_hook(stdin.to_string().as_bytes()).unwrap().unwrap();
    assert_eq!((input.event, input.observations), (HookEvent::Woken, Vec::new()));
    assert_eq!(prompted("◎ goal continues?"), HookEvent::Prompt { typed: true });
}

#[test]
fn what_is_no_event_of_ours_is_ignored() {
    for stdin in [
        json!({}),
        json!({"hook_event_name": "Stop", "session_id": ""}),
        json!({"hook_event_name": "New", "session_id": "s", "x": 1}),
        json!({"hook_event_name": 5, "session_id": "s"}),
    ] {
        assert_eq!(read_hook(stdin.to_string().as_bytes()).unwrap(), None, "{stdin}");
    }
    assert!(read_hook(b"not json").is_err());
    let asked =
        json!({"hook_event_name": "PermissionRequest", "session_id": "s", "tool_name": "mcp__steadfast__get_goal"});
    let event = read_hook(asked.to_string().as_bytes()).unwrap().unwrap().event;
    assert_eq!(event, HookEvent::OwnToolAsked);
}

/// Whatever a handler wants to say, only what the client knows for the event is printed.
#[test]
fn every_reply_is_within_the_fields_of_its_event() {
    let fields: Value = serde_json::from_slice(&sample("fields.json")).unwrap();
    let everything = HookReply {
        wake_at_ms: Some(7),
        has_news: true,
        block: Some("no".into()),
        context: Some("context".into()),
        message: Some("message".into()),
        allow_tool: true,
        refuse_tool: None,
        end_turn: None,
    };
    let names = [
        "SessionStart",
        "SessionEnd",
        "UserPromptSubmit",
        "PreToolUse",
        "PermissionRequest",
        "PostToolUse",
        "PreCompact",
        "PostCompact",
        "SubagentStart",
        "SubagentStop",
        "Stop",
        "Interrupt",
        "PreModelRequest",
        "PostModelRequest",
        "SomethingNew",
    ];
    let refusal = HookReply { refuse_tool: Some("end".into()), allow_tool: false, ..everything.clone() };
    for (name, reply) in names.iter().map(|name| (*name, &everything)).chain([("PreToolUse", &refusal)]) {
        let printed = write_reply(name, reply);
        let output = &fields[kebab(name)]["output"];
        let Some(known) = output.get("optional").and_then(Value::as_array) else {
            assert_eq!(printed, None, "{name} takes no output");
            continue;
        };
        let reply: Map<String, Value> = serde_json::from_str(&printed.unwrap()).unwrap();
        for field in reply.keys() {
            assert!(known.contains(&json!(field)), "{name} does not know {field}");
        }
        let Some(specific) = reply.get("hookSpecificOutput").and_then(Value::as_object) else { continue };
        let wire = &output["nested"][format!("{name}HookSpecificOutputWire")];
        for field in specific.keys() {
            let listed = |list: &str| wire[list].as_array().is_some_and(|known| known.contains(&json!(field)));
            assert!(listed("required") || listed("optional"), "{name} does not know {field}");
        }
        assert_eq!(specific["hookEventName"], name);
    }
}

#[test]
fn nothing_to_say_prints_nothing() {
    assert_eq!(write_reply("Stop", &HookReply::default()), None);
    assert_eq!(write_reply("Stop", &HookReply { block: Some("  ".into()), ..HookReply::default() }), None);
    let context = HookReply { context: Some("x".into()), ..HookReply::default() };
    assert_eq!(write_reply("Stop", &context), None, "a Stop with context would be dropped whole");
    let allowed = HookReply { allow_tool: true, ..HookReply::default() };
    assert_eq!(write_reply("PreToolUse", &allowed), None, "a bare allow fails");
}

#[test]
fn a_native_goal_is_seen_in_the_rollout_too() {
    let file = Path::new(SAMPLES).join("../rollout/native-goal-mid-turn-compaction.jsonl");
    let reading = crate::codex::rollout::read(&file, &steadfast_model::reading::Position::default()).unwrap();
    assert_eq!(reading.native_goal, Some(NativeGoal::Active("UNIQUE-OBJECTIVE-XYZ".into())));
}

#[test]
fn a_call_of_a_tool_names_its_root_session() {
    let origin = |meta: Value| crate::codex::files::tool_call_origin(meta.as_object().unwrap());
    let root = |agent| Some(ToolCallOrigin::Session { session_id: "root".into(), agent });
    let agent = AgentCall { agent_id: "child".into(), tool_use_id: "call_1".into() };
    assert_eq!(origin(json!({"threadId": "child", "sessionId": "root", "callId": "call_1"})), root(Some(agent)));
    assert_eq!(origin(json!({"threadId": "root", "sessionId": "root", "callId": "call_1"})), root(None));
    let metadata = json!({"session_id": "root", "thread_id": "child"});
    assert_eq!(origin(json!({"threadId": "child", "x-codex-turn-metadata": metadata})), root(None));
    assert_eq!(origin(json!({"threadId": "root", "progressToken": 1})), root(None));
    assert_eq!(origin(json!({"claudecode/toolUseId": "toolu_1"})), None);
}

#[test]
fn the_end_of_a_call_of_our_own_tools_is_read_and_is_a_batch() {
    let call = |tool: &str, status: &str, response: Value| {
        let stdin = json!({
            "hook_event_name": "PostToolUse", "session_id": "s", "tool_name": tool, "tool_input": {"status": status},
            "tool_response": response,
        });
        read_hook(stdin.to_string().as_bytes()).unwrap().unwrap().event
    };
    let answer = |text: &str, is_error: bool| json!({"content": [{"type": "text", "text": text}], "isError": is_error});
    let done = |claims_complete, refusal: Option<&str>| {
        let refusal = refusal.map(str::to_owned);
        HookEvent::OwnToolDone(OwnToolDone {
            tool_name: "update_goal".into(),
            claims_complete,
            refusal,
            is_batch: true,
        })
    };
    let update = "mcp__steadfast__update_goal";
    assert_eq!(call(update, "blocked", answer("{}", false)), done(false, None));
    assert_eq!(call(update, "complete", answer("no verdict", true)), done(true, Some("no verdict")));
    let batch = HookEvent::ToolBatch { agent: None };
    for other in ["mcp__steadfast__get_goal", "mcp__steadfast__recall", "mcp__other__update_goal"] {
        assert_eq!(call(other, "complete", answer("{}", false)), batch, "{other}");
    }
}
