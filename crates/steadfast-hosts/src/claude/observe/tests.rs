//! What captured calls show, and calls in the shapes that the client's own tools have (version 2.1.197).

use std::path::Path;

use serde_json::{Value, json};

use super::super::hook::read_hook;
use super::*;
use steadfast_memory::extract::findings;
use steadfast_model::hook::HookEvent;
use steadfast_model::memory::TaskChange;

/// The stdin of each captured call of an event.
fn samples(event: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("samples/claude/hooks/{event}.json"));
    let calls: Vec<Value> = serde_json::from_str(&fs_err::read_to_string(path).unwrap()).unwrap();
    calls.into_iter().map(|call| call["stdin"].clone()).collect()
}

fn seen(stdin: &Value) -> Vec<Observation> {
    read_hook(stdin.to_string().as_bytes()).unwrap().map(|input| input.observations).unwrap_or_default()
}

fn captured(event: &str) -> Vec<Vec<Observation>> {
    samples(event).iter().map(seen).collect()
}

fn call(tool: &str, input: Value, response: Value) -> Vec<Observation> {
    let mut stdin = json!({"session_id": "s", "hook_event_name": "PostToolUse", "cwd": "/p/now", "tool_name": tool});
    stdin["tool_input"] = input;
    stdin["tool_response"] = response;
    let read = read_hook(stdin.to_string().as_bytes()).unwrap();
    assert!(read.as_ref().is_none_or(|input| input.event == HookEvent::Seen && !input.observations.is_empty()));
    read.map(|input| input.observations).unwrap_or_default()
}

fn failure(tool: &str, input: Value, error: &str) -> Vec<Observation> {
    let mut stdin = json!({
        "session_id": "s", "hook_event_name": "PostToolUseFailure", "cwd": "/p", "tool_name": tool,
        "error": error, "is_interrupt": false,
    });
    stdin["tool_input"] = input;
    seen(&stdin)
}

fn file(action: FileAction, path: &str) -> Vec<Observation> {
    vec![Observation::File { action, path: path.into(), to: None }]
}

fn task(id: &str, subject: Option<&str>, status: Option<TaskStatus>) -> Vec<Observation> {
    vec![Observation::TaskChanged { id: id.into(), subject: subject.map(Into::into), status }]
}

#[test]
fn captured_tool_calls_show_what_was_done() {
    let calls = captured("PostToolUse");
    let [Observation::Shell(shell)] = calls[0].as_slice() else { panic!("{:?}", calls[0]) };
    assert!(shell.command.starts_with("env | grep -E") && shell.output.starts_with("AI_AGENT=claude-code"));
    assert_eq!(
        (shell.outcome, &shell.directory),
        (ShellOutcome::Worked, &ShellDirectory::After("/home/user/project".into()))
    );
    let echo = "mcp: plugin_labplug_labmcp echo";
    assert_eq!(calls[1], [Observation::Worked { attempt: echo.into() }]);
    let tasked = |id: &str, task: &str| Observation::SubagentTasked {
        id: id.into(),
        kind: "labplug:labagent".into(),
        task: task.into(),
    };
    let worked = |name: &str| Observation::Worked { attempt: attempt("agent", name) };
    assert_eq!(calls[2], [tasked("ae13b9d0730311a9c", "do sub\nSUBPROMPT please run"), worked("do sub")]);
    assert_eq!(calls[3], [tasked("a07b76d30fba21a63", "d\nSUB go"), worked("d")]);

    let failed = Shell {
        command: "exit 3".into(),
        output: "Exit code 3".into(),
        outcome: ShellOutcome::Failed,
        directory: ShellDirectory::After("/home/user/project".into()),
    };
    assert_eq!(captured("PostToolUseFailure"), [[Observation::Shell(failed)]]);
}

#[test]
fn captured_events_about_tasks_agents_and_instructions() {
    let announced = |status| [[Observation::TaskAnnounced { id: "1".into(), subject: Some("Task A".into()), status }]];
    assert_eq!(captured("TaskCreated"), announced(TaskStatus::Pending));
    assert_eq!(captured("TaskCompleted"), announced(TaskStatus::Completed));
    let path = "/home/user/project/CLAUDE.md".into();
    assert_eq!(captured("InstructionsLoaded"), [[Observation::Instructions { path }]]);
    let (id, kind) = ("ae13b9d0730311a9c".to_owned(), "labplug:labagent".to_owned());
    assert_eq!(captured("SubagentStart"), [[Observation::SubagentStarted { id: id.clone(), kind: kind.clone() }]]);
    let stops = captured("SubagentStop");
    let finished =
        |id, message: &str| vec![Observation::SubagentFinished { id, kind: kind.clone(), message: message.into() }];
    assert_eq!(stops[0], finished(id, "sub finished: answer 42"));
    assert_eq!(stops[1], finished("a8f92ede61716b955".into(), "sub finished again"));
    assert_eq!(stops[2], [], "compaction is no subagent");
}

#[test]
fn only_what_a_user_typed_is_a_prompt() {
    let prompts = captured("UserPromptSubmit");
    let typed = |text: &str| vec![Observation::Prompt(text.into())];
    assert_eq!(prompts[..3], [typed("go"), typed("/cmdplug:c1"), typed("/goal the tests pass")]);
    assert_eq!(prompts[3..], [vec![], vec![]]);
    for machine in ["<system-reminder>\nx", " <tool-result>x", "<local-command-stdout></local-command-stdout>", "  "] {
        assert_eq!(seen(&json!({"session_id": "s", "hook_event_name": "UserPromptSubmit", "prompt": machine})), []);
    }
    let event = read_hook(samples("UserPromptSubmit")[0].to_string().as_bytes()).unwrap().unwrap().event;
    assert_eq!(event, HookEvent::Prompt { typed: true });
}

#[test]
fn files_and_searches() {
    let content = json!({"type": "text", "file": {"filePath": "/p/a.rs", "content": "x"}});
    assert_eq!(call("Read", json!({"file_path": "/p/a.rs"}), content), file(FileAction::Read, "/p/a.rs"));
    let written =
        json!({"type": "create", "filePath": "/p/b.rs", "content": "x", "structuredPatch": [], "originalFile": null});
    assert_eq!(
        call("Write", json!({"file_path": "/p/b.rs", "content": "x"}), written),
        file(FileAction::Write, "/p/b.rs")
    );
    let edit = json!({"file_path": "/p/c.rs", "old_string": "a", "new_string": "b"});
    assert_eq!(call("Edit", edit.clone(), json!({"filePath": "/p/c.rs"})), file(FileAction::Edit, "/p/c.rs"));
    assert_eq!(call("MultiEdit", edit.clone(), Value::Null), file(FileAction::Edit, "/p/c.rs"));
    let notebook = json!({"notebook_path": "/p/n.ipynb", "new_source": "x"});
    assert_eq!(call("NotebookEdit", notebook, json!({})), file(FileAction::Edit, "/p/n.ipynb"));
    let search = |pattern: &str, place: &str| vec![Observation::Search { pattern: pattern.into(), path: place.into() }];
    assert_eq!(call("Glob", json!({"pattern": "**/*.rs"}), json!({"filenames": []})), search("**/*.rs", ""));
    assert_eq!(call("Grep", json!({"pattern": "fn", "path": "src"}), json!({"numFiles": 0})), search("fn", "src"));

    let error = "<tool_use_error>String to replace not found in file.</tool_use_error>";
    let failed = |attempt: &str| vec![Observation::Failed { attempt: attempt.into(), output: error.into() }];
    assert_eq!(failure("Edit", edit, error), failed("edit: /p/c.rs"));
    assert_eq!(failure("Read", json!({"file_path": "/p/x"}), error), failed("read: /p/x"));
    assert_eq!(failure("Grep", json!({"pattern": "("}), error), failed("search: ("));
    assert_eq!(failure("WebFetch", json!({"url": "https://h", "prompt": "x"}), error), failed("fetch: https://h"));
    assert_eq!(failure("mcp__db__query", json!({}), error), failed("mcp: db query"));
    assert_eq!(failure("Agent", json!({"description": "look", "prompt": "x"}), error), failed("agent: look"));
    assert_eq!(failure("TaskUpdate", json!({"taskId": "1"}), error), []);
}

#[test]
fn tasks_have_the_ids_that_the_client_gave_them() {
    use TaskStatus::{Completed, Deleted, InProgress, Pending};
    let created = call(
        "TaskCreate",
        json!({"subject": "Write tests", "description": "all of them"}),
        json!({"task": {"id": "7", "subject": "Write tests"}}),
    );
    assert_eq!(created, task("7", Some("Write tests"), Some(Pending)));
    let update = |input: Value, answer: Value| call("TaskUpdate", input, answer);
    let ok =
        |change: Value| json!({"success": true, "taskId": "7", "updatedFields": ["status"], "statusChange": change});
    for (asked, status) in [("in_progress", InProgress), ("completed", Completed), ("deleted", Deleted)] {
        let seen = update(json!({"taskId": "7", "status": asked}), ok(json!({"from": "pending", "to": asked})));
        assert_eq!(seen, task("7", None, Some(status)), "{asked}");
    }
    let renamed = update(
        json!({"taskId": "7", "subject": "New"}),
        json!({"success": true, "taskId": "7", "updatedFields": ["subject"]}),
    );
    assert_eq!(renamed, task("7", Some("New"), None));
    // A hook refused it after it was announced as completed.
    let refused = update(
        json!({"taskId": "7", "status": "completed"}),
        json!({"success": false, "taskId": "7", "updatedFields": [], "error": "no"}),
    );
    assert_eq!(refused, [Observation::TaskAnnounced { id: "7".into(), subject: None, status: InProgress }]);
    let unknown = update(
        json!({"taskId": "9", "status": "completed"}),
        json!({"success": false, "taskId": "9", "updatedFields": [], "error": "Task not found"}),
    );
    assert_eq!(unknown, []);

    let todos = json!({"todos": [
        {"content": "one", "status": "completed", "activeForm": "x"},
        {"content": "two", "status": "in_progress", "activeForm": "x"},
        {"content": "three", "status": "pending", "activeForm": "x"},
    ]});
    let list = vec![("one".into(), Completed), ("two".into(), InProgress), ("three".into(), Pending)];
    assert_eq!(call("TodoWrite", todos, json!({"oldTodos": [], "newTodos": []})), [Observation::TaskList(list)]);
    assert_eq!(call("TodoWrite", json!({"todos": []}), Value::Null), [Observation::TaskList(vec![])]);
}

/// Two tasks are created and finished in another order; each keeps its own status.
#[test]
fn a_status_never_lands_on_another_task() {
    let create = |id: &str| call("TaskCreate", json!({"subject": id}), json!({"task": {"id": id, "subject": id}}));
    let done =
        call("TaskUpdate", json!({"taskId": "2", "status": "completed"}), json!({"success": true, "taskId": "2"}));
    let observations: Vec<Observation> = [create("1"), create("2"), done].concat();
    let put = |subject: Option<&str>, id: &str, status| TaskChange::Put {
        id: id.into(),
        subject: subject.map(Into::into),
        status: Some(status),
    };
    let expected = [
        put(Some("1"), "1", TaskStatus::Pending),
        put(Some("2"), "2", TaskStatus::Pending),
        put(None, "2", TaskStatus::Completed),
    ];
    assert_eq!(findings(&observations).tasks, expected);
}

#[test]
fn answers_and_plans_are_decisions() {
    let questions = json!([{"question": "Which database?", "header": "DB", "options": []}]);
    let answer =
        |question: &str, answer: &str| Observation::Answer { question: question.into(), answer: answer.into() };
    let given = json!({
        "questions": questions, "answers": {"Which database?": "Postgres", "Cache?": ""},
        "annotations": {"Which database?": {"notes": "version 17"}},
    });
    let asked = call("AskUserQuestion", json!({"questions": questions}), given);
    assert_eq!(asked, [answer("Which database?", "Postgres (version 17)")]);
    let typed = json!({"questions": questions, "answers": {}, "response": "neither"});
    assert_eq!(call("AskUserQuestion", json!({}), typed), [answer("Which database?", "neither")]);

    let plan = |approved, said: &str| Observation::Plan { approved, plan: "# Plan".into(), said: said.into() };
    let exit = |answer: Value| call("ExitPlanMode", json!({"plan": "# Plan"}), answer);
    assert_eq!(exit(json!({"plan": "# Plan", "isAgent": false, "filePath": "/x.md"})), [plan(true, "")]);
    assert_eq!(exit(json!({"plan": "# Plan", "isAgent": true, "awaitingLeaderApproval": true})), []);

    let refusal = "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file \
                   edit, the new_string was NOT written to the file). To tell you how to proceed, the user said:\nsmaller steps";
    let batch = |tool: &str, answer: &str| {
        let calls =
            json!([{"tool_name": tool, "tool_input": {"plan": "# Plan"}, "tool_use_id": "t", "tool_response": answer}]);
        seen(&json!({"session_id": "s", "hook_event_name": "PostToolBatch", "tool_calls": calls}))
    };
    assert_eq!(batch("ExitPlanMode", refusal), [plan(false, "smaller steps")]);
    assert_eq!(batch("ExitPlanMode", "User has approved your plan."), []);
    assert_eq!(batch("Bash", refusal), []);
}

#[test]
fn an_edit_that_did_not_fit_is_told_with_its_batch() {
    let batch = |tool: &str, input: Value, answer: &str| {
        let mut call = json!({"tool_name": tool, "tool_use_id": "t", "tool_response": answer});
        call["tool_input"] = input;
        seen(&json!({"session_id": "s", "hook_event_name": "PostToolBatch", "cwd": "/p", "tool_calls": [call]}))
    };
    let problem = "String to replace not found in file.\nString: absent";
    let answer = format!("<tool_use_error>{problem}</tool_use_error>");
    let expected = vec![Observation::Failed { attempt: "edit: /p/a.rs".into(), output: problem.into() }];
    for path in ["a.rs", "/p/a.rs"] {
        assert_eq!(batch("Edit", json!({"file_path": path, "old_string": "absent"}), &answer), expected, "{path}");
    }
    assert_eq!(batch("Edit", json!({"wrong": 1}), &answer), []);
    assert_eq!(batch("Nosuch", json!({}), &answer), []);
    // A file may well hold these words.
    assert_eq!(batch("Read", json!({"file_path": "a.rs"}), &format!("1\t{answer}")), []);
}

#[test]
fn commands_that_run_on_or_were_stopped_prove_nothing() {
    let outcome = |response: Value| match call("Bash", json!({"command": "make"}), response).as_slice() {
        [Observation::Shell(shell)] => (shell.outcome, shell.output.clone()),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        outcome(json!({"stdout": "a", "stderr": "b", "interrupted": false})),
        (ShellOutcome::Worked, "a\nb".into())
    );
    assert_eq!(outcome(json!({"stdout": "", "stderr": "", "interrupted": true})).0, ShellOutcome::Unfinished);
    assert_eq!(outcome(json!({"stdout": "", "stderr": "", "backgroundTaskId": "b1"})).0, ShellOutcome::Unfinished);
    assert_eq!(outcome(json!("plain")), (ShellOutcome::Worked, "plain".into()));
    assert_eq!(outcome(json!([{"type": "text", "text": "block"}])), (ShellOutcome::Worked, "block".into()));
    let stopped = json!({
        "session_id": "s", "hook_event_name": "PostToolUseFailure", "tool_name": "Bash",
        "tool_input": {"command": "make"}, "error": "[Request interrupted by user]", "is_interrupt": true,
    });
    assert_eq!(seen(&stopped), []);
}

#[test]
fn unknown_shapes_give_nothing_and_our_own_tools_are_not_remembered() {
    for tool in [
        "Read",
        "Write",
        "Edit",
        "NotebookEdit",
        "Glob",
        "TodoWrite",
        "TaskCreate",
        "TaskUpdate",
        "Skill",
        "AskUserQuestion",
    ] {
        for shape in [
            json!(null),
            json!(7),
            json!("text"),
            json!([1, {"text": 2}]),
            json!({"file_path": 1, "task": [], "answers": "x"}),
        ] {
            assert_eq!(call(tool, shape.clone(), shape), [], "{tool}");
        }
    }
    for own in ["mcp__plugin_steadfast_steadfast__get_goal", "mcp__steadfast__recall"] {
        assert_eq!(call(own, json!({}), json!("x")), []);
        assert_eq!(failure(own, json!({}), "x"), []);
    }
    let evaluator = json!({"subagent_type": "steadfast:goal-evaluator", "description": "judge", "prompt": "x"});
    assert_eq!(call("Agent", evaluator, json!({"agentId": "a"})), []);
}

#[test]
fn a_subagents_changes_count() {
    let stdin = json!({
        "session_id": "s", "hook_event_name": "PostToolUse", "agent_id": "a1", "agent_type": "worker",
        "tool_name": "Write", "tool_input": {"file_path": "/p/b.rs"}, "tool_response": {},
    });
    assert_eq!(seen(&stdin), file(FileAction::Write, "/p/b.rs"));
}

#[test]
fn a_subagents_list_is_not_the_sessions_and_its_updates_by_id_are() {
    let by = |agent: Option<&str>, tool: &str, input: Value, response: Value| {
        let mut stdin = json!({"session_id": "s", "hook_event_name": "PostToolUse", "tool_name": tool});
        stdin["tool_input"] = input;
        stdin["tool_response"] = response;
        if let Some(agent) = agent {
            stdin["agent_id"] = json!(agent);
            stdin["agent_type"] = json!("Explore");
        }
        seen(&stdin)
    };
    let todos = || json!({"todos": [{"content": "look around", "status": "pending", "activeForm": "x"}]});
    let list = vec![Observation::TaskList(vec![("look around".into(), TaskStatus::Pending)])];
    assert_eq!(by(Some("a1"), "TodoWrite", todos(), json!({})), []);
    for main in [None, Some("")] {
        assert_eq!(by(main, "TodoWrite", todos(), json!({})), list);
    }
    let prompt =
        json!({"session_id": "s", "hook_event_name": "UserPromptSubmit", "prompt": "goal: x", "agent_id": "a1"});
    assert_eq!(seen(&prompt), []);
    let update = json!({"taskId": "3", "status": "completed"});
    let done = by(Some("a1"), "TaskUpdate", update, json!({"success": true, "taskId": "3"}));
    assert_eq!(done, task("3", None, Some(TaskStatus::Completed)));
}

#[test]
fn half_a_character_in_an_answer_costs_nothing() {
    let stdin = br#"{"session_id":"s","hook_event_name":"PostToolUse","tool_name":"Bash","tool_input":{"command":"cat x\ud83d"},"tool_response":{"stdout":"cut \ud83d","stderr":""}}"#;
    let read = read_hook(stdin).unwrap().unwrap().observations;
    let [Observation::Shell(shell)] = read.as_slice() else { panic!("{read:?}") };
    assert_eq!((shell.command.as_str(), shell.output.as_str()), ("cat x\u{fffd}", "cut \u{fffd}"));
    let prompt = br#"{"session_id":"s","hook_event_name":"UserPromptSubmit","prompt":"go \udc00"}"#;
    assert_eq!(read_hook(prompt).unwrap().unwrap().observations, [Observation::Prompt("go \u{fffd}".into())]);
}
