//! The real client with Steadfast's plugin and binary, and the store afterwards.

use crate::client::Client;
use crate::model::ScriptedModel;
use crate::reply::Reply;
use crate::request::Request;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub(crate) fn repo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("repository")
}

pub(crate) fn binary() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_steadfast"))
}

/// A client that loads the repository's plugin by `--plugin-dir` and finds the binary under test on its PATH.
pub(crate) fn client(model: &ScriptedModel) -> Client {
    let client = Client::new(model);
    let home = client.root().join("steadfast");
    let store = home.join("goals.db");
    client
        .bin_dir(binary().parent().expect("directory of the binary"))
        .plugin_dir(&repo().join("plugin"))
        .env("STEADFAST_HOME", &home.to_string_lossy())
        .env("STEADFAST_DB", &store.to_string_lossy())
}

/// Runs `steadfast` as a person would in another terminal of the project.
pub(crate) fn steadfast(client: &Client, args: &[&str]) -> (i32, String) {
    let output = client.command(binary()).args(args).output().expect("run steadfast");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.code().unwrap_or(-1), text)
}

pub(crate) fn steadfast_json(client: &Client, args: &[&str]) -> Value {
    let (_, text) = steadfast(client, args);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{args:?}: {error}: {text}"))
}

/// The one goal in the store.
pub(crate) fn goal(client: &Client) -> Value {
    let history = steadfast_json(client, &["goal", "history", "--all", "--format=json"]);
    let goals = history["goals"].as_array().expect("goals");
    assert_eq!(goals.len(), 1, "{history:#}");
    goals[0].clone()
}

/// The kinds of all events, in order.
pub(crate) fn event_kinds(client: &Client) -> Vec<String> {
    let history = steadfast_json(client, &["goal", "history", "--all", "--format=json"]);
    history["events"]
        .as_array()
        .expect("events")
        .iter()
        .map(|event| event["kind"].as_str().unwrap_or_default().to_owned())
        .collect()
}

/// Polls the store until its one goal is as wanted.
pub(crate) fn wait_for_goal(client: &Client, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let end = Instant::now() + Duration::from_mins(1);
    loop {
        let history = steadfast_json(client, &["goal", "history", "--all", "--format=json"]);
        match history["goals"].as_array().map(Vec::as_slice) {
            Some([goal]) if wanted(goal) => return goal.clone(),
            _ => assert!(Instant::now() < end, "no goal with {what}; there is {history:#}"),
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A call of one of our tools; the server may still be starting, in which case the model just talks.
pub(crate) fn call(request: &Request, tool: &str, id: &str, input: Value) -> Reply {
    match request.tool_named(tool) {
        Some(name) => Reply::default().and_tool_with_id(id, name, input),
        None => Reply::text("The tools are not there yet."),
    }
}

/// A harmless tool call, so that a turn counts as work. With another id it is another call.
pub(crate) fn work(id: &str) -> Reply {
    let command = format!("echo {id}");
    Reply::default().and_tool_with_id(id, "Bash", json!({"command": command, "description": "Work"}))
}
