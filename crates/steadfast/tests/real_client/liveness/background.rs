//! Tasks that the agent leaves running in the background. The client wakes the model when one ends; one that never ends
//! delays the goal for a bounded time.

use super::lab::{A_WHILE, FOR_EVER, Lab, SOON, TOOLS, step};
use crate::reply::Reply;
use crate::request::Kind;
use crate::tui::Tui;
use crate::with_steadfast::call;
use serde_json::json;

fn in_background(id: &str, command: &str) -> Reply {
    let input = json!({"command": command, "description": "Serve the pages", "run_in_background": true});
    Reply::default().and_tool_with_id(id, "Bash", input)
}

#[test]
fn a_background_task_that_never_ends_delays_the_goal_and_the_agent_is_told_of_it() {
    let lab = Lab::new(|request| match request.seq {
        1 => in_background("toolu_server", FOR_EVER),
        2 => Reply::text("The server runs."),
        _ => step(request),
    })
    .configured("[goal]\nbackground_wait_seconds = 5\n");
    let _tui = lab.start("\"Build the page\"");
    lab.wait_until_asked(2, "the end of the first turn");
    lab.wait_for_status(&["background"]);
    let woken = lab.model.wait_for_request("the goal beside its server", SOON, |request| request.seq == 3);
    let told = woken.last_user_text() + &woken.all_text();
    assert!(told.contains("Serve the pages") && told.contains("background"), "{}", woken.summary());
    lab.continues("the first wait for the server");
    lab.model.check_script();
}

#[test]
fn a_background_task_that_ends_wakes_the_goal_once() {
    let lab = Lab::new(|request| match request.seq {
        1 => in_background("toolu_build", "sleep 4; echo built"),
        2 => Reply::text("The build runs."),
        3 => call(request, "update_goal", "toolu_done", json!({"status": "complete"})),
        _ => Reply::text("All is built."),
    });
    let _tui = lab.start("\"Build the page\"");
    let woken = lab.model.wait_for_request("the end of the build", SOON, |request| request.seq == 3);
    assert!(woken.last_user_text().contains("<task-notification>"), "{}", woken.summary());
    lab.wait_for_goal("its end", |goal| goal["status"] == "complete");
    lab.wait_until_asked(4, "the last sentence");
    lab.stays_quiet(A_WHILE, "the goal is complete");
    assert_eq!(lab.events("goal_woken"), 0, "the client woke the model by itself");
    lab.model.check_script();
}

/// A background task of an earlier turn still runs: the turns of the loop are not each held up by it for a full wait
/// without a word to the user.
#[test]
fn a_server_left_running_shows_in_the_status_while_the_goal_waits_for_it() {
    let lab = Lab::new(|request| match request.seq {
        1 => in_background("toolu_server", FOR_EVER),
        _ => Reply::text("The server runs."),
    });
    let tui = Tui::start(&lab.client, TOOLS);
    tui.submit("/steadfast:goal-start \"Build the page\"");
    lab.wait_until_asked(2, "the end of the first turn");
    tui.wait_for_prompt();
    lab.wait_for_status(&["active", "background"]);
    let before = lab.active_seconds();
    lab.stays_quiet(A_WHILE, "its server may still end");
    assert!(lab.active_seconds() <= before + 1, "an idle goal burns no time");
    assert_eq!(lab.model.requests_of(Kind::Main).len(), 2);
    // What the user types meanwhile is not held up.
    tui.submit("Is it up?");
    lab.wait_until_asked(3, "the user's question");
    lab.model.check_script();
}
