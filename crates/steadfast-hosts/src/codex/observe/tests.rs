//! What captured calls show, and answers in every shape that Codex gives.

use std::path::Path;

use serde_json::{Value, json};

use super::super::hook::read_hook;
use super::*;
use steadfast_model::hook::HookEvent;
use steadfast_model::memory::TaskStatus;

fn captured(name: &str) -> Vec<Observation> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/codex/hooks").join(format!("{name}.json"));
    read_hook(&fs_err::read(path).unwrap()).unwrap().map(|input| input.observations).unwrap_or_default()
}

fn call(tool: &str, input: Value, response: Value) -> Vec<Observation> {
    let mut stdin = json!({"session_id": "s", "hook_event_name": "PostToolUse", "cwd": "/p", "tool_name": tool});
    stdin["tool_input"] = input;
    stdin["tool_response"] = response;
    let input = read_hook(stdin.to_string().as_bytes()).unwrap().unwrap();
    assert_eq!(input.event, HookEvent::ToolBatch { agent: None });
    input.observations
}

fn bash(response: Value) -> (ShellOutcome, String) {
    match call("Bash", json!({"command": "make"}), response).as_slice() {
        [Observation::Shell(shell)] => (shell.outcome, shell.output.clone()),
        other => panic!("{other:?}"),
    }
}

fn file(action: FileAction, path: &str, to: Option<&str>) -> Observation {
    Observation::File { action, path: path.into(), to: to.map(Into::into) }
}

#[test]
fn captured_calls_show_what_was_done() {
    let command = "echo hello-from-tool; exit 3".to_owned();
    let shell = Shell {
        command,
        output: "hello-from-tool\n".into(),
        // Codex keeps the exit code to itself.
        outcome: ShellOutcome::Unknown,
        directory: ShellDirectory::Before("/home/user/project".into()),
    };
    assert_eq!(captured("PostToolUse.Bash"), [Observation::Shell(shell)]);
    assert_eq!(captured("PostToolUse.apply_patch.code-mode"), [file(FileAction::Write, "hello.txt", None)]);
    let worked = Observation::Worked { attempt: "mcp: labmcp lab_status".into() };
    assert_eq!(captured("PostToolUse.mcp.code-mode"), [worked]);
    assert_eq!(captured("UserPromptSubmit"), [Observation::Prompt("say hi".into())]);
    assert_eq!(captured("UserPromptSubmit.in-subagent"), []);
    let id = "01a1de5a-7344-7911-a33c-85462129068d".to_owned();
    let kind = String::new();
    let started = Observation::SubagentStarted { id: id.clone(), kind: kind.clone() };
    assert_eq!(captured("SubagentStart"), [started]);
    let message = "child finished 4".into();
    assert_eq!(captured("SubagentStop.first"), [Observation::SubagentFinished { id, kind, message }]);
    for nothing in ["PostToolUse.create_goal", "PostToolUse.update_goal", "PostToolUse.wait_agent.v1", "Stop.first"] {
        assert_eq!(captured(nothing), [], "{nothing}");
    }
}

#[test]
fn the_exit_code_is_read_wherever_codex_puts_it() {
    let cases = [
        (json!("Exit code: 0\nWall time: 0 seconds\nOutput:\nfine\n"), ShellOutcome::Worked, "fine\n"),
        (json!("Exit code: 2\nWall time: 0 seconds\nTotal output lines: 9\nOutput:\nbad"), ShellOutcome::Failed, "bad"),
        (
            json!(
                "Chunk ID: a1\nWall time: 0.1 seconds\nProcess exited with code 1\nOriginal token count: 3\nOutput:\nbad"
            ),
            ShellOutcome::Failed,
            "bad",
        ),
        (
            json!("Chunk ID: a1\nWall time: 1 seconds\nProcess running with session ID 5\nOutput:\n..."),
            ShellOutcome::Unfinished,
            "...",
        ),
        (
            json!("{\"output\":\"bad\",\"metadata\":{\"exit_code\":1,\"duration_seconds\":0.1}}"),
            ShellOutcome::Failed,
            "bad",
        ),
        (json!({"output": "fine", "exit_code": 0}), ShellOutcome::Worked, "fine"),
        (json!("Exit code: 3"), ShellOutcome::Failed, ""),
        // What a program prints is not what Codex says.
        (json!("starting\nExit code: 1\nOutput:\n"), ShellOutcome::Unknown, "starting\nExit code: 1\nOutput:\n"),
        (json!("Exit code: 1\nmore of the program"), ShellOutcome::Unknown, "Exit code: 1\nmore of the program"),
        (json!("Output:\nx"), ShellOutcome::Unknown, "Output:\nx"),
        (json!("{not json"), ShellOutcome::Unknown, "{not json"),
        (json!([{"type": "text", "text": "block"}]), ShellOutcome::Unknown, "block"),
        (json!(null), ShellOutcome::Unknown, ""),
        (json!(7), ShellOutcome::Unknown, ""),
    ];
    for (response, outcome, output) in cases {
        assert_eq!(bash(response.clone()), (outcome, output.to_owned()), "{response}");
    }
    let words = call("Bash", json!({"command": ["bash", "-lc", "cd x && ls"]}), json!(""));
    assert!(matches!(words.as_slice(), [Observation::Shell(shell)] if shell.command == "cd x && ls"));
    for nothing in [json!({}), json!({"command": 7}), json!({"command": []}), json!("x"), json!(null)] {
        assert_eq!(call("Bash", nothing, json!("")), []);
    }
}

#[test]
fn a_patch_is_read_by_its_headers() {
    let patch = "*** Begin Patch\n*** Add File: new.rs\n+*** Delete File: in content\n*** Update File: src/a.rs\n*** Move to: src/b.rs\n\
                 @@\n-x\n+y\n *** Add File: context\n*** Update File: c.rs\n@@\n-1\n+2\n*** Delete File: old.rs\n*** End Patch";
    let files = vec![
        file(FileAction::Write, "new.rs", None),
        file(FileAction::Move, "src/a.rs", Some("src/b.rs")),
        file(FileAction::Edit, "c.rs", None),
        file(FileAction::Delete, "old.rs", None),
    ];
    let apply = |response: Value| call("apply_patch", json!({"command": patch}), response);
    assert_eq!(
        apply(json!("Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess. Updated the following files:\n")),
        files
    );
    assert_eq!(apply(json!("Success. Updated the following files:\nA new.rs\n")), files);
    assert_eq!(apply(json!({})), files);
    let refused = "apply_patch verification failed: Failed to find expected lines in c.rs";
    let in_vain = |attempt: &str| Observation::Failed { attempt: attempt.into(), output: refused.into() };
    let expected = ["write: new.rs", "move: src/a.rs", "edit: c.rs", "delete: old.rs"].map(in_vain);
    assert_eq!(apply(json!(refused)), expected);
    assert_eq!(apply(json!(format!("Exit code: 1\nWall time: 0 seconds\nOutput:\n{refused}"))), expected);
    assert_eq!(call("apply_patch", json!({"command": "*** Move to: x\nno patch"}), json!("")), []);
}

#[test]
fn plans_subagents_and_other_servers() {
    let plan = json!({"explanation": "x", "plan": [
        {"step": "one", "status": "completed"}, {"step": "two", "status": "in_progress"}, {"step": "three"}, {"status": "pending"},
    ]});
    let list = vec![
        ("one".into(), TaskStatus::Completed),
        ("two".into(), TaskStatus::InProgress),
        ("three".into(), TaskStatus::Pending),
    ];
    assert_eq!(call("update_plan", plan, json!("Plan updated")), [Observation::TaskList(list)]);
    assert_eq!(call("update_plan", json!({"plan": "x"}), json!("")), []);
    let tasked = |id: &str, kind: &str, task: &str| {
        vec![Observation::SubagentTasked { id: id.into(), kind: kind.into(), task: task.into() }]
    };
    let first = call("spawn_agent", json!({"message": "do a thing"}), json!("{\"agent_id\":\"a1\"}"));
    assert_eq!(first, tasked("a1", "", "do a thing"));
    let second = call(
        "collaborationspawn_agent",
        json!({"task_name": "w1", "message": "go", "agent_type": "explorer"}),
        json!({}),
    );
    assert_eq!(second, tasked("", "explorer", "w1: go"));
    let error = json!({"content": [{"type": "text", "text": "no such table"}], "isError": true});
    let failed = Observation::Failed { attempt: "mcp: db query".into(), output: "no such table".into() };
    assert_eq!(call("mcp__db__query", json!({}), error), [failed]);
    assert_eq!(call("mcp__steadfast__get_goal", json!({}), json!({})), []);
    assert_eq!(call("view_image", json!({"path": "x"}), json!({})), []);
}

#[test]
fn a_subagents_changes_count() {
    let stdin = json!({
        "session_id": "s", "hook_event_name": "PostToolUse", "agent_id": "child", "agent_type": "default",
        "tool_name": "apply_patch", "tool_input": {"command": "*** Add File: x"}, "tool_response": "",
    });
    let input = read_hook(stdin.to_string().as_bytes()).unwrap().unwrap();
    assert_eq!(input.observations, [file(FileAction::Write, "x", None)]);
    assert!(matches!(input.event, HookEvent::ToolBatch { agent: Some(_) }));
}

#[test]
fn a_subagents_plan_is_not_the_sessions() {
    let plan = |agent: Option<&str>| {
        let mut stdin = json!({
            "session_id": "s", "hook_event_name": "PostToolUse", "tool_name": "update_plan",
            "tool_input": {"plan": [{"step": "one", "status": "in_progress"}]}, "tool_response": "Plan updated",
        });
        if let Some(agent) = agent {
            stdin["agent_id"] = json!(agent);
        }
        read_hook(stdin.to_string().as_bytes()).unwrap().unwrap().observations
    };
    let list = vec![Observation::TaskList(vec![("one".into(), TaskStatus::InProgress)])];
    assert_eq!((plan(None), plan(Some("child"))), (list, vec![]));
}
