//! The client's own tools: what their hooks carry is understood, so that a new format fails here.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use steadfast_hosts::adapter;
use steadfast_model::host::Host;
use steadfast_model::memory::TaskStatus;
use steadfast_model::memory::observation::{FileAction, Observation, Shell, ShellDirectory, ShellOutcome, attempt};

use crate::client::Client;
use crate::lab_plugin::LabPlugin;
use crate::model::ScriptedModel;
use crate::reply::Reply;

const EVENTS: [&str; 9] = [
    "UserPromptSubmit",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "TaskCreated",
    "TaskCompleted",
    "SubagentStart",
    "SubagentStop",
    "InstructionsLoaded",
];

/// A model that makes these tool calls one after the other and then ends.
fn one_after_the_other(steps: Vec<(&'static str, Value)>) -> ScriptedModel {
    ScriptedModel::start(move |request| {
        let id = |at: usize| format!("toolu_step{at}");
        match steps.iter().enumerate().find(|(at, _)| !request.has_tool_result(&id(*at))) {
            Some((at, (tool, input))) => Reply::default().and_tool_with_id(&id(at), *tool, input.clone()),
            None => Reply::text("Done."),
        }
    })
}

/// The observations of a run's hooks, in order, and its directory.
fn observe(client: Client, prompt: &str) -> (Vec<Observation>, PathBuf) {
    let hook = |event: &str| {
        let command = format!("sh \"${{CLAUDE_PLUGIN_ROOT}}/hook.sh\" {event}");
        (event.to_owned(), json!([{"hooks": [{"type": "command", "command": command}]}]))
    };
    let hooks: Value = Value::Object(EVENTS.into_iter().map(hook).collect());
    let lab = LabPlugin::write_with_hooks(&client, "", &hooks);
    let client = client.plugin_dir(&lab.dir);
    let allowed = ["--allowedTools", "Bash", "Write", "Edit", "Read", "TaskCreate", "TaskUpdate"];
    let output = client.print(&[&["--output-format", "json"], &allowed[..]].concat(), prompt);
    assert!(output.status.success(), "{output:?}");
    let read = |input: &Value| (adapter(Host::Claude).read_hook)(input.to_string().as_bytes()).expect("a hook's input");
    let inputs = lab.inputs();
    let project = inputs.first().and_then(|input| input["cwd"].as_str()).expect("a directory").into();
    (inputs.iter().filter_map(read).flat_map(|input| input.observations).collect(), project)
}

fn file(action: FileAction, path: &Path) -> Observation {
    Observation::File { action, path: path.display().to_string(), to: None }
}

fn failed(what: &str, path: &Path, output: &str) -> Observation {
    let attempt = attempt(what, &path.display().to_string());
    Observation::Failed { attempt, output: output.into() }
}

#[test]
fn files_and_commands_of_the_real_client_are_understood() {
    let model = one_after_the_other(vec![
        ("Write", json!({"file_path": "a.txt", "content": "one\n"})),
        ("Edit", json!({"file_path": "a.txt", "old_string": "one", "new_string": "two"})),
        ("Edit", json!({"file_path": "a.txt", "old_string": "absent", "new_string": "x"})),
        ("Read", json!({"file_path": "a.txt"})),
        ("Read", json!({"file_path": "absent.txt"})),
        ("Bash", json!({"command": "mkdir sub && cd sub", "description": "Go"})),
        ("Bash", json!({"command": "echo out; echo err >&2; exit 3", "description": "Fail"})),
    ]);
    let client = Client::new(&model);
    let (seen, project) = observe(client, "Do it all.");
    model.check_script();
    let (there, absent) = (project.join("a.txt"), project.join("absent.txt"));
    let shell = |command: &str, output: &str, outcome| {
        // The client followed `cd` before it called.
        let directory = ShellDirectory::After(project.join("sub").display().to_string());
        Observation::Shell(Shell { command: command.into(), output: output.into(), outcome, directory })
    };
    let not_there = format!("File does not exist. Note: your current working directory is {}.", project.display());
    let expected = [
        Observation::Prompt("Do it all.".into()),
        file(FileAction::Write, &there),
        file(FileAction::Edit, &there),
        failed("edit", &there, "String to replace not found in file.\nString: absent"),
        file(FileAction::Read, &there),
        failed("read", &absent, &not_there),
        shell("mkdir sub && cd sub", "", ShellOutcome::Worked),
        shell("echo out; echo err >&2; exit 3", "Exit code 3\nout\nerr", ShellOutcome::Failed),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn tasks_of_the_real_client_keep_their_ids() {
    use TaskStatus::{Completed, InProgress, Pending};
    let model = one_after_the_other(vec![
        ("TaskCreate", json!({"subject": "Write it", "description": "all of it"})),
        ("TaskCreate", json!({"subject": "Read it", "description": "too"})),
        ("TaskUpdate", json!({"taskId": "2", "status": "in_progress"})),
        ("TaskUpdate", json!({"taskId": "2", "status": "completed"})),
    ]);
    let client = Client::new(&model).env("CLAUDE_CODE_ENABLE_TASKS", "1");
    let (seen, _) = observe(client, "Plan it.");
    model.check_script();
    let announced = |id: &str, subject: &str, status| Observation::TaskAnnounced {
        id: id.into(),
        subject: Some(subject.into()),
        status,
    };
    let changed = |id: &str, subject: Option<&str>, status| Observation::TaskChanged {
        id: id.into(),
        subject: subject.map(Into::into),
        status: Some(status),
    };
    let expected = [
        Observation::Prompt("Plan it.".into()),
        announced("1", "Write it", Pending),
        changed("1", Some("Write it"), Pending),
        announced("2", "Read it", Pending),
        changed("2", Some("Read it"), Pending),
        changed("2", None, InProgress),
        announced("2", "Read it", Completed),
        changed("2", None, Completed),
    ];
    assert_eq!(seen, expected);
}
