//! `claude -p`: the goal is continued by blocks at Stop, and a paused one by `/goal-resume`.

use super::lab::{Lab, TOOLS, step};
use crate::client::Client;
use crate::reply::Reply;
use crate::with_steadfast::call;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs `claude -p` and returns its session.
fn print(client: &Client, args: &[&str], prompt: &str) -> String {
    client.print(&[args, &["--output-format", "json"], TOOLS].concat(), prompt).session_id()
}

#[test]
fn without_a_terminal_a_goal_is_continued_by_blocks() {
    let lab = Lab::looping();
    print(&lab.client, &[], "/steadfast:goal-start \"Run in print mode\" --max-turns 4");
    let goal = lab.goal();
    assert_eq!((&goal["paused_reason"], &goal["continuations_used"]), (&json!("continuation_cap"), &json!(4)));
    let requests = lab.model.requests();
    assert!(requests.iter().any(|r| r.last_user_text().starts_with("Stop hook feedback:")), "continued by blocks");
    assert!(requests.iter().all(|r| !r.all_text().contains("<task-notification>")), "no wake-up");
    lab.model.check_script();
}

#[test]
fn a_resume_without_a_terminal_works_on_the_paused_goal() {
    let works = Arc::new(AtomicBool::new(false));
    let told = works.clone();
    let lab = Lab::new(move |request| {
        if request.has_tool_result("toolu_done") {
            Reply::text("All done.")
        } else if told.load(Ordering::SeqCst) {
            call(request, "update_goal", "toolu_done", json!({"status": "complete"}))
        } else {
            Reply::text("Nothing to do.")
        }
    });
    let session = print(&lab.client, &[], "/steadfast:goal-start \"Resume me\"");
    assert_eq!(lab.goal()["paused_reason"], "no_progress");
    let before = lab.asked();
    works.store(true, Ordering::SeqCst);
    print(&lab.client, &["--resume", &session], "/steadfast:goal-resume");
    assert!(lab.asked() > before, "the model was not asked");
    assert_eq!(lab.goal()["status"], "complete");
    lab.model.check_script();
}

/// The process that would wake the goal ended with the client, and the status says so.
#[test]
fn a_goal_that_waits_in_a_closed_session_promises_no_wake_up() {
    let lab = Lab::new(|request| {
        if request.has_tool_result("toolu_wait") {
            Reply::text("I wait.")
        } else if request.tool_named("wait_goal").is_some() {
            call(request, "wait_goal", "toolu_wait", json!({"seconds": 3600}))
        } else {
            step(request)
        }
    })
    .configured("[watch]\nstart = false\n");
    print(&lab.client, &[], "/steadfast:goal-start \"Wait for the night\"");
    assert_eq!(lab.goal()["paused_reason"], "waiting");
    let status = lab.wait_for_status(&["closed", "claude --"]);
    assert!(!status.contains("next: wakes at"), "{status}");
    lab.model.check_script();
}
