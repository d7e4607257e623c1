//! Time: only turns are active time, and a wait costs nothing until its moment.

use super::lab::{A_WHILE, FOR_EVER, Lab, follows_tool};
use crate::reply::Reply;
use crate::transcript::records;
use crate::with_steadfast::call;
use serde_json::json;
use std::time::Duration;

/// What the client itself measured: the time of all turns of the conversation.
fn seconds_of_turns(lab: &Lab) -> f64 {
    let transcript = lab.client.transcript(&lab.session());
    let turns = records(&transcript).into_iter().filter(|record| record["subtype"] == "turn_duration");
    turns.filter_map(|record| record["durationMs"].as_f64()).sum::<f64>() / 1_000.0
}

/// A server runs in the background, so that the goal idles between its turns.
#[test]
fn active_time_is_the_time_of_turns() {
    let lab = Lab::new(|request| match request.seq {
        1 => {
            let server = json!({"command": FOR_EVER, "description": "Serve", "run_in_background": true});
            Reply::default().and_tool_with_id("toolu_server", "Bash", server)
        }
        n => Reply::text(format!("Turn {n}.")).delay(Duration::from_secs(2)),
    })
    .configured("[goal]\nbackground_wait_seconds = 10\nno_progress_limit = 0\n");
    let tui = lab.start("\"Take your time\" --max-turns 2");
    lab.wait_for_pause("continuation_cap");
    tui.wait_for_prompt();
    let goal = lab.goal();
    let (active, wall) = (lab.active_seconds(), goal["wall_seconds"].as_i64().expect("wall time"));
    let turns = seconds_of_turns(&lab);
    assert!(turns > 5.0, "the client measured {turns} s");
    #[expect(clippy::cast_precision_loss, reason = "some seconds")]
    let gap = (active as f64 - turns).abs();
    assert!(gap <= 2.0, "active {active} s, turns {turns} s, wall {wall} s");
    assert!(wall >= active + 15, "the goal idled: active {active} s, wall {wall} s");
}

#[test]
fn a_wait_makes_no_request_and_wakes_once() {
    let lab = Lab::new(|request| {
        let has_waited = request.all_text().contains("toolu_late") || request.seq > 40;
        match request.seq {
            _ if request.has_tool_result("toolu_done") => Reply::text("All done."),
            _ if has_waited => Reply::text("Too much."),
            1 => Reply::text("I begin.").delay(Duration::from_secs(3)),
            _ if follows_tool(request) => Reply::text("Hm."),
            _ => call(request, "update_goal", "toolu_done", json!({"status": "complete"})),
        }
    });
    let tui = lab.start("\"Wait for it\"");
    lab.wait_until_asked(1, "the first turn");
    lab.terminal(&["wait", "--for", "15s"]);
    tui.wait_for_prompt();
    assert_eq!(lab.asked(), 1);
    lab.wait_for_status(&["waiting", "wakes"]);
    lab.stays_quiet(Duration::from_secs(8), "the goal waits");
    tui.wait_until_shown("All done.");
    lab.stays_quiet(A_WHILE, "the goal is complete");
    assert_eq!(lab.asked(), 3, "one wake-up");
    assert_eq!(lab.events("goal_resumed"), 1, "one wake-up");
    lab.model.check_script();
}

#[test]
fn a_wait_typed_at_the_prompt_of_a_running_loop_stops_it_until_its_moment() {
    let lab = Lab::looping();
    let tui = lab.start_loop("\"Run and run\"");
    tui.submit("/steadfast:goal-wait --for 15s");
    lab.wait_for_pause("waiting");
    tui.wait_for_prompt();
    lab.stays_quiet(Duration::from_secs(8), "the goal waits");
    lab.continues("the wait");
    assert_eq!(lab.events("goal_resumed"), 1, "one wake-up");
    lab.model.check_script();
}
