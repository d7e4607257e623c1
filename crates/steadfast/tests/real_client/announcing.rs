//! What the user reads on the screen of the real client when the agent has changed the goal.

use crate::model::ScriptedModel;
use crate::reply::Reply;
use crate::terminal::dense;
use crate::tui::Tui;
use crate::with_steadfast::{call, client, wait_for_goal};
use serde_json::json;
use std::time::Duration;

const LIMIT: Duration = Duration::from_mins(1);

#[test]
fn a_refused_completion_and_the_end_are_a_line_each() {
    let model = ScriptedModel::start(|request| {
        if request.has_tool_result("toolu_done2") {
            Reply::text("Closed.")
        } else if request.has_tool_result("toolu_make") {
            call(request, "update_goal", "toolu_done2", json!({"status": "complete"}))
        } else if request.has_tool_result("toolu_done1") {
            Reply::default().and_tool_with_id(
                "toolu_make",
                "Bash",
                json!({"command": "touch a", "description": "Make"}),
            )
        } else {
            call(request, "update_goal", "toolu_done1", json!({"status": "complete"}))
        }
    });
    let client = client(&model);
    let tui = Tui::start(&client, &["--allowedTools", "Bash"]);
    tui.submit("/steadfast:goal-start \"The file a exists\" --verify \"test -f a\"");
    wait_for_goal(&client, "its end", |goal| goal["status"] == "complete");
    tui.wait_for("the answer", LIMIT, |screen| screen.contains("Closed."));
    let shown = dense(&tui.history());
    for line in ["◎ completion refused: `test -f a` failed (exit 1)", "◎ goal complete: verified (test -f a)"] {
        assert!(shown.contains(&dense(line)), "{line}\n{}", tui.history());
    }
    tui.exit();
    model.check_script();
}
