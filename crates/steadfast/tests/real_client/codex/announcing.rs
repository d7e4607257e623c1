//! What the user reads on the screen of the real Codex when the agent has changed the goal.

use super::client::Codex;
use super::goals::{call_ours, goal, trusted};
use super::model::ScriptedResponses;
use super::reply::Reply;
use super::tui::Tui;
use crate::terminal::dense;
use serde_json::json;
use std::time::Duration;

const LIMIT: Duration = Duration::from_mins(1);

#[test]
fn a_refused_completion_and_the_end_are_a_line_each() {
    let model = ScriptedResponses::start(|r| {
        if r.has_tool_result("call_done2") {
            Reply::text("Closed.")
        } else if r.has_tool_result("call_make") {
            call_ours(r, "update_goal", "call_done2", json!({"status": "complete"}))
        } else if r.has_tool_result("call_done1") {
            Reply::shell("call_make", "touch a")
        } else {
            call_ours(r, "update_goal", "call_done1", json!({"status": "complete"}))
        }
    });
    let codex = trusted(Codex::new(&model));
    let tui = Tui::start(&codex, &[]);
    tui.submit("$goal-start \"The file a exists\" --verify \"test -f a\"");
    tui.wait_for("the answer", LIMIT, |screen| screen.contains("Closed."));
    assert_eq!(goal(&codex)["status"], "complete");
    let shown = dense(&tui.history());
    // Codex shows a refusal itself, and runs no hook after it.
    for line in ["verification failed: `test -f a` exited with 1", "Hook · ◎ goal complete: verified (test -f a)"] {
        assert!(shown.contains(&dense(line)), "{line}\n{}", tui.history());
    }
    tui.exit();
    model.check_script();
}
