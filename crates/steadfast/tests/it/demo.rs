//! `steadfast demo` from outside: its summary is true, concurrent demos do not interfere, and no user file is touched.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

/// A demo started inside another agent by a user who has a store and a home.
fn demo(home: &Path, temp: &Path) -> Command {
    let mut demo = Command::new(env!("CARGO_BIN_EXE_steadfast"));
    demo.args(["demo", "--fast", "--json"])
        .current_dir(home)
        .env("HOME", home)
        .env("TMPDIR", temp)
        .env("STEADFAST_HOME", home.join("steadfast"))
        .env("STEADFAST_DB", home.join("users-own.db"))
        .env("CLAUDECODE", "1")
        .env("CLAUDE_CODE_SESSION_ID", "the-users-session")
        .env("CLAUDE_CONFIG_DIR", home.join("claude"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    demo
}

fn start(home: &Path, temp: &Path) -> Child {
    demo(home, temp).spawn().unwrap()
}

/// Waits for a demo; returns its summary and its stderr.
fn finish(demo: Child) -> (Value, String) {
    let output = demo.wait_with_output().unwrap();
    let story = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{story}");
    (serde_json::from_slice(&output.stdout).unwrap(), story)
}

fn is_empty(folder: &Path) -> bool {
    folder.read_dir().unwrap().next().is_none()
}

#[test]
fn every_promise_holds_and_no_user_file_is_touched() {
    let (home, temp) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (summary, story) = finish(start(home.path(), temp.path()));
    crate::schemas::check("demo.schema.json", &summary);
    assert_eq!(summary["ok"], json!(true), "{summary:#}");
    assert_eq!(summary["tokens_counted"], summary["tokens_expected"]);
    assert!(summary["tokens_expected"].as_i64().unwrap() > 0);
    for (field, once) in [("kills", 1), ("compactions", 1), ("refused_completions", 1), ("budget_warnings", 1)] {
        assert_eq!(summary[field], json!(once), "{field}");
    }
    let goal = &summary["goal"];
    assert_eq!(goal["status"], json!("complete"));
    assert_eq!(goal["last_verification"]["exit_code"], json!(0));
    assert!(summary["events"].as_u64().unwrap() > 10);
    assert!(summary["seconds"].is_f64());

    assert!(!story.contains('\u{1b}'), "no colour in a pipe: {story}");
    // Only the path of the temporary folder may exceed the line width.
    let mut lines = story.lines().filter(|line| !line.contains("steadfast-demo-"));
    assert!(lines.all(|line| line.chars().count() <= 80), "{story}");
    assert!(is_empty(home.path()), "something was written to the user's home");
    assert!(is_empty(temp.path()), "the demo's folder was left behind");
}

#[test]
fn concurrent_demos_do_not_interfere() {
    let (home, temp) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let demos = [start(home.path(), temp.path()), start(home.path(), temp.path())];
    let [first, second] = demos.map(|demo| finish(demo).0);
    assert_eq!((&first["ok"], &second["ok"]), (&json!(true), &json!(true)));
    assert_ne!(first["goal"]["goal_id"], second["goal"]["goal_id"]);
    assert_eq!(first["tokens_counted"], second["tokens_counted"]);
}

#[test]
fn a_broken_promise_is_reported() {
    let (home, temp) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // With a shell whose checks always pass, the early "done" is not refused and no agent is killed.
    let bin = tempfile::tempdir().unwrap();
    let shell = bin.path().join("sh");
    fs_err::write(&shell, "#!/bin/sh\nexit 0\n").unwrap();
    fs_err::set_permissions(&shell, std::fs::Permissions::from_mode(0o755)).unwrap();
    let output = demo(home.path(), temp.path()).env("PATH", bin.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&summary["ok"], &summary["kills"]), (&json!(false), &json!(0)));
    let broken: Vec<&str> = summary["promises"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|promise| promise["held"] == json!(false))
        .map(|promise| promise["name"].as_str().unwrap())
        .collect();
    assert_eq!(broken, ["driven", "memory", "kill -9", "proven"]);
}
