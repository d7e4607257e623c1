//! What Claude Code's hooks sent on a real machine, and what we answer. The samples are captures of version
//! 2.1.197; each file holds the calls of one event.

use std::path::Path;

use super::*;
use steadfast_model::hook::{OwnToolDone, StartSource};

const EVALUATOR_CALL: &str = r#"{"session_id":"s","hook_event_name":"PreToolUse","tool_use_id":"toolu_1",
    "agent_id":"a1","agent_type":"steadfast:goal-evaluator","tool_name":"mcp__plugin_steadfast_steadfast__record_verdict"}"#;

/// The stdin of each captured call of an event.
fn samples(event: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("samples/claude/hooks/{event}.json"));
    let calls: Vec<Value> = serde_json::from_str(&fs_err::read_to_string(path).unwrap()).unwrap();
    calls.into_iter().map(|call| call["stdin"].clone()).collect()
}

fn read(stdin: &Value) -> Option<HookInput> {
    read_hook(stdin.to_string().as_bytes()).unwrap()
}

fn read_text(stdin: &str) -> Option<HookEvent> {
    read_hook(stdin.as_bytes()).unwrap().map(|input| input.event)
}

fn prompt(typed: bool) -> HookEvent {
    HookEvent::Prompt { typed }
}

fn start(source: StartSource) -> HookEvent {
    HookEvent::SessionStart(source)
}

fn end(reason: &str) -> HookEvent {
    HookEvent::SessionEnd { reason: reason.into() }
}

fn stop(after_continuation: bool, last_message: &str, background_work: bool) -> HookEvent {
    HookEvent::Stop { after_continuation, last_message: Some(last_message.into()), background_work }
}

fn failure(error: &str, message: &str) -> HookEvent {
    HookEvent::StopFailure { error: error.into(), message: message.into() }
}

fn subagent_stop(session: &str, id: &str) -> HookEvent {
    let file = format!("/home/user/.claude/projects/-home-user-project/{session}/subagents/agent-{id}.jsonl");
    let agent = Agent { id: id.into(), transcript: Some(file.into()) };
    HookEvent::SubagentStop { agent }
}

/// What each captured call means to us, in the order of the files.
fn meanings() -> Vec<(&'static str, Vec<Option<HookEvent>>)> {
    use StartSource::{Clear, Compact, Resume, Startup};
    let overloaded = "API Error: 529 scripted 529. This is a server-side issue, usually temporary \
                      — try again in a moment. If it persists, check your inference gateway (127.0.0.1:8080).";
    vec![
        (
            "SessionStart",
            vec![
                Some(start(Startup)),
                Some(start(Startup)),
                Some(start(Resume)),
                Some(start(Clear)),
                Some(start(Compact)),
            ],
        ),
        ("SessionEnd", vec![Some(end("other")), Some(end("clear")), Some(end("prompt_input_exit"))]),
        // Typed, two slash commands, and two prompts that the client made itself.
        (
            "UserPromptSubmit",
            vec![Some(prompt(true)), Some(prompt(true)), Some(prompt(true)), Some(prompt(false)), Some(prompt(false))],
        ),
        ("UserPromptExpansion", vec![None]),
        (
            "PreToolUse",
            vec![
                Some(HookEvent::ToolAsked { agent_type: None }),
                Some(HookEvent::ToolAsked { agent_type: None }),
                Some(HookEvent::ToolAsked { agent_type: Some("labplug:labagent".into()) }),
            ],
        ),
        ("PermissionRequest", vec![Some(HookEvent::PermissionAsked)]),
        ("Notification", vec![Some(HookEvent::Idle), Some(HookEvent::Idle)]),
        ("PostToolBatch", vec![Some(HookEvent::ToolBatch { agent: None })]),
        (
            "Stop",
            vec![
                Some(stop(false, "All done.", false)),
                Some(stop(true, "turn seq 3 msgs 4", false)),
                Some(stop(false, "finished main", true)),
                Some(stop(false, "after launch", true)),
            ],
        ),
        (
            "StopFailure",
            vec![
                Some(failure("rate_limit", "API Error: Request rejected (429) · scripted 429")),
                Some(failure("server_error", overloaded)),
                Some(failure("authentication_failed", "Failed to authenticate. API Error: 401 scripted 401")),
                Some(failure("unknown", "API Error: 400 scripted 400")),
            ],
        ),
        // The third is compaction's, which names a file that does not exist.
        (
            "SubagentStop",
            vec![
                Some(subagent_stop("bd216a1f-d1a9-49dd-94fd-e2d7b4b540e6", "ae13b9d0730311a9c")),
                Some(subagent_stop("f71f6760-849a-465d-a4ee-8a856d4cc21e", "a8f92ede61716b955")),
                None,
            ],
        ),
        ("PreCompact", vec![Some(HookEvent::PreCompact), Some(HookEvent::PreCompact)]),
        ("PostToolUse", vec![Some(HookEvent::Seen); 4]),
        ("PostToolUseFailure", vec![Some(HookEvent::Seen)]),
        ("TaskCreated", vec![Some(HookEvent::Seen)]),
        ("TaskCompleted", vec![Some(HookEvent::Seen)]),
        ("SubagentStart", vec![Some(HookEvent::Seen)]),
        ("InstructionsLoaded", vec![Some(HookEvent::Seen)]),
    ]
}

#[test]
fn every_captured_call_is_read_as_what_it_means() {
    for (event, expected) in meanings() {
        let read: Vec<Option<HookEvent>> =
            samples(event).iter().map(|stdin| read(stdin).map(|input| input.event)).collect();
        assert_eq!(read, expected, "{event}");
    }
}

/// An event that is not registered never comes; one that means nothing to us costs a process for nothing.
#[test]
fn the_plugin_registers_exactly_the_events_that_mean_something() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugin/hooks/hooks.json");
    let plugin: Value = serde_json::from_str(&fs_err::read_to_string(path).unwrap()).unwrap();
    let mut registered: Vec<&str> = plugin["hooks"].as_object().unwrap().keys().map(String::as_str).collect();
    let mut meant: Vec<&str> = meanings().iter().map(|(event, _)| *event).collect();
    registered.sort_unstable();
    meant.sort_unstable();
    assert_eq!(registered, meant);
    let matched: Vec<&String> = plugin["hooks"]
        .as_object()
        .unwrap()
        .iter()
        .filter(|(_, it)| it[0].get("matcher").is_some())
        .map(|(event, _)| event)
        .collect();
    assert_eq!(matched, ["Notification"], "everything else is seen whatever tool it is about");
}

#[test]
fn every_other_event_of_the_client_is_ignored() {
    let ours: Vec<&str> = meanings().iter().map(|(event, _)| *event).collect();
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/claude/hooks");
    let mut others = 0;
    for entry in fs_err::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let event = path.file_stem().unwrap().to_str().unwrap();
        if !ours.contains(&event) {
            others += 1;
            for stdin in samples(event) {
                assert_eq!(read(&stdin), None, "{event}");
            }
        }
    }
    assert_eq!(others, 9);
}

#[test]
fn the_session_its_file_and_its_directories_are_taken_from_the_call() {
    let stdin = &samples("Stop")[2];
    let input = read(stdin).unwrap();
    let session = "f70cacfb-3618-444c-846b-c28b54e6b54f";
    let cwd = "/home/user/project/sub".to_owned();
    let expected = HookInput {
        host: Host::Claude,
        turn_id: None,
        event_name: "Stop".into(),
        session_id: session.into(),
        transcript: Some(format!("/home/user/.claude/projects/-home-user-project/{session}.jsonl").into()),
        project_dir: env_vars::text(env_vars::CLAUDE_PROJECT_DIR).unwrap_or_else(|| cwd.clone()),
        cwd,
        event: stop(false, "finished main", true),
        observations: vec![],
    };
    assert_eq!(input, expected);
}

#[test]
fn unknown_fields_and_missing_ones_are_no_reason_to_fail() {
    let mut stdin = samples("Stop")[0].clone();
    stdin["a_field_of_next_week"] = json!({"deep": [1, 2, 3]});
    assert_eq!(read(&stdin).unwrap().event, stop(false, "All done.", false));
    let bare = r#"{"session_id":"s","hook_event_name":"Stop"}"#;
    let expected = HookEvent::Stop { after_continuation: false, last_message: None, background_work: false };
    assert_eq!(read_text(bare), Some(expected));
    let new_source = r#"{"session_id":"s","hook_event_name":"SessionStart","source":"teleport"}"#;
    assert_eq!(read_text(new_source), Some(start(StartSource::Startup)));
    let finished = r#"{"session_id":"s","hook_event_name":"Stop","last_assistant_message":"x",
        "background_tasks":[{"id":"b","status":"completed"},{}]}"#;
    assert_eq!(read_text(finished), Some(stop(false, "x", false)));
}

#[test]
fn calls_that_are_not_for_us_are_told_from_calls_that_are_broken() {
    for ignored in [
        "{}",
        r#"{"hook_event_name":"Stop"}"#,
        r#"{"session_id":"s"}"#,
        r#"{"session_id":"","hook_event_name":"Stop"}"#,
        r#"{"session_id":7,"hook_event_name":"Stop"}"#,
        r#"{"session_id":"a\nb","hook_event_name":"Stop"}"#,
        r#"{"session_id":"s","hook_event_name":"Stop","background_tasks":"many"}"#,
        r#"{"session_id":"s","hook_event_name":"NextWeek"}"#,
    ] {
        assert!(matches!(read_hook(ignored.as_bytes()), Ok(None)), "{ignored}");
    }
    let long = format!(r#"{{"session_id":"{}","hook_event_name":"Stop"}}"#, "x".repeat(201));
    assert!(matches!(read_hook(long.as_bytes()), Ok(None)));
    for broken in ["", "  \n", "null", "[]", "7", "{", "{\"session_id\":\"s\"", "not json", "\u{0}"] {
        assert!(read_hook(broken.as_bytes()).is_err(), "{broken:?}");
    }
    assert!(read_hook(b"\xff\xfe").is_err());
}

#[test]
fn our_own_commands_are_known_with_and_without_the_plugins_name() {
    let command = |name: &str| {
        let stdin = json!({
            "session_id": "s", "hook_event_name": "UserPromptExpansion", "command_name": name, "command_args": "--add $(id) \"x\n y\"",
        });
        read(&stdin).map(|input| input.event)
    };
    for name in ["goal-extend", "steadfast:goal-extend"] {
        let expected = HookEvent::Command { verb: "extend".into(), arguments: "--add $(id) \"x\n y\"".into() };
        assert_eq!(command(name), Some(expected), "{name}");
    }
    for name in ["goal", "other:goal-extend", "extend", "steadfast:extend", ""] {
        assert_eq!(command(name), None, "{name}");
    }
}

#[test]
fn our_own_tools_are_known_by_their_full_name_and_carry_who_called_them() {
    let expected = HookEvent::OwnTool {
        tool_use_id: "toolu_1".into(),
        tool_name: "record_verdict".into(),
        agent_id: "a1".into(),
        agent_type: "steadfast:goal-evaluator".into(),
    };
    assert_eq!(read_text(EVALUATOR_CALL), Some(expected));
    let by_hand = EVALUATOR_CALL.replace("plugin_steadfast_", "");
    assert!(read_text(&by_hand).is_some());
    // Bug 10 of the plugin: any tool whose name ends in update_goal was taken for its own.
    for name in ["mcp__plugin_other_steadfast__update_goal", "mcp__other__update_goal", "update_goal"] {
        let foreign = EVALUATOR_CALL.replace("mcp__plugin_steadfast_steadfast__record_verdict", name);
        assert!(matches!(read_text(&foreign), Some(HookEvent::ToolAsked { .. })), "{name}");
    }
    assert_eq!(read_text(&EVALUATOR_CALL.replace("tool_use_id", "other")), None);
    let evaluators = ["steadfast:goal-evaluator", "goal-evaluator", "other:goal-evaluator", "worker", ""];
    assert_eq!(evaluators.map(is_evaluator), [true, false, false, false, false]);
}

#[test]
fn a_reply_has_only_what_the_client_knows_for_its_event() {
    let everything = HookReply {
        wake_at_ms: Some(7),
        has_news: true,
        block: Some("go on".into()),
        context: Some("know this".into()),
        message: Some("look".into()),
        allow_tool: true,
        refuse_tool: None,
    };
    let context = |event: &str| json!({"hookEventName": event, "additionalContext": "know this"});
    let block_and_context = |event: &str| json!({"decision": "block", "reason": "go on", "hookSpecificOutput": context(event), "systemMessage": "look"});
    let only_message = json!({"systemMessage": "look"});
    let allow = json!({
        "hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow",
            "permissionDecisionReason": "steadfast's own tools only touch this session's goal"},
        "systemMessage": "look",
    });
    let cases = [
        ("Stop", json!({"decision": "block", "reason": "go on", "systemMessage": "look"})),
        ("UserPromptSubmit", block_and_context("UserPromptSubmit")),
        ("UserPromptExpansion", block_and_context("UserPromptExpansion")),
        ("PostToolBatch", block_and_context("PostToolBatch")),
        ("SessionStart", json!({"hookSpecificOutput": context("SessionStart"), "systemMessage": "look"})),
        ("PreToolUse", allow),
        ("PreCompact", only_message.clone()),
        ("SessionEnd", only_message.clone()),
        ("StopFailure", only_message.clone()),
        ("PostToolUse", only_message.clone()),
        ("SubagentStop", only_message),
    ];
    for (event, expected) in cases {
        let written = write_reply(event, &everything).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), expected, "{event}");
        assert_eq!(write_reply(event, &HookReply::default()), None, "{event}");
    }
    let refused = HookReply { refuse_tool: Some("end".into()), ..HookReply::default() };
    let deny = json!({"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "end"});
    let written = write_reply("PreToolUse", &refused).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), json!({"hookSpecificOutput": deny}));
    assert_eq!(write_reply("PostToolUse", &refused), None);
    let only_block = HookReply { block: Some("no".into()), ..HookReply::default() };
    assert_eq!(write_reply("PreCompact", &only_block), None, "compaction is never refused");
}

#[test]
fn the_end_of_a_call_of_our_own_tools_is_read() {
    let call = |event: &str, tool: &str, rest: Value| {
        let mut stdin = json!({"session_id": "s", "hook_event_name": event, "tool_name": tool, "tool_use_id": "t"});
        stdin.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        read(&stdin).map(|input| input.event)
    };
    let update = "mcp__plugin_steadfast_steadfast__update_goal";
    let done = |claims_complete, refusal: Option<&str>| {
        let refusal = refusal.map(str::to_owned);
        let (tool_name, is_batch) = ("update_goal".to_owned(), false);
        Some(HookEvent::OwnToolDone(OwnToolDone { tool_name, claims_complete, refusal, is_batch }))
    };
    let complete = json!({"tool_input": {"status": "complete"}, "tool_response": [{"type": "text", "text": "{}"}]});
    assert_eq!(call("PostToolUse", update, complete), done(true, None));
    let blocked = json!({"tool_input": {"status": "blocked"}});
    assert_eq!(call("PostToolUse", "mcp__steadfast__update_goal", blocked), done(false, None));
    let refused = json!({"tool_input": {"status": "complete"}, "error": "verification failed: x"});
    assert_eq!(call("PostToolUseFailure", update, refused), done(true, Some("verification failed: x")));
    for reads in ["get_goal", "recall", "record_verdict"] {
        assert_eq!(call("PostToolUse", &format!("mcp__steadfast__{reads}"), json!({})), None, "{reads}");
    }
    let line = HookReply { message: Some("◎ goal complete".into()), ..HookReply::default() };
    for event in ["PostToolUse", "PostToolUseFailure"] {
        assert_eq!(write_reply(event, &line).as_deref(), Some(r#"{"systemMessage":"◎ goal complete"}"#));
    }
}
