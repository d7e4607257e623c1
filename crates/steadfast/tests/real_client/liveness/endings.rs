//! The end of a goal, a refused completion and a changed objective are each one line to the user.

use super::lab::{A_WHILE, Lab, step};
use crate::reply::Reply;
use crate::request::{Kind, Request};
use crate::terminal::dense;
use crate::tui::Tui;
use crate::with_steadfast::call;
use serde_json::{Value, json};
use std::time::Duration;

/// A model that calls one of our tools as soon as it is offered, and then only talks.
fn calls(tool: &'static str, input: Value) -> impl Fn(&Request) -> Reply + Send + Sync {
    move |request| {
        if request.has_tool_result("toolu_call") {
            Reply::text("So be it.")
        } else if request.tool_named(tool).is_some() {
            call(request, tool, "toolu_call", input.clone())
        } else {
            step(request)
        }
    }
}

/// Drives the model up to its last words.
fn driven(goal: &str, script: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> (Lab, Tui) {
    let lab = Lab::new(script);
    let tui = lab.start(goal);
    tui.wait_until_shown("So be it.");
    tui.wait_for_prompt();
    lab.model.check_script();
    (lab, tui)
}

/// A loop that the user interrupts with a wish, and the model then calls one of our tools. Without the wish it may not.
/// Text that is typed into a running turn reaches the model without a hook, so it gives no such right.
fn at_the_users_word(goal: &str, tool: &'static str, input: Value) -> (Lab, Tui) {
    const WISH: &str = "Do something else.";
    let lab = Lab::new(move |request| {
        if request.has_tool_result("toolu_change") {
            return Reply::text("So be it.");
        }
        match request.seq {
            _ if request.all_text().contains(WISH) => call(request, tool, "toolu_change", input.clone()),
            5 => Reply::text("Too late.").delay(Duration::from_mins(10)),
            _ => step(request),
        }
    });
    let tui = lab.start(goal);
    lab.wait_until_asked(5, "the slow answer");
    tui.wait_for_text("esc to interrupt");
    tui.escape();
    tui.wait_for_text("Interrupted");
    tui.wait_for_prompt();
    tui.submit(WISH);
    tui.wait_until_shown("So be it.");
    lab.model.check_script();
    (lab, tui)
}

/// How often the user was shown this text. Long lines are wrapped, so spaces do not count.
fn times_shown(tui: &Tui, text: &str) -> usize {
    dense(&tui.history()).matches(&dense(text)).count()
}

fn assert_shown_once(tui: &Tui, line: &str) {
    assert_eq!(times_shown(tui, line), 1, "{line:?} once in\n{}", tui.history());
}

#[test]
fn a_verified_end_is_one_line() {
    let script = calls("update_goal", json!({"status": "complete"}));
    let (lab, tui) = driven("\"Be done\" --verify \"true\"", script);
    assert_eq!(lab.goal()["status"], "complete");
    assert_shown_once(&tui, "◎ goal complete: verified");
}

#[test]
fn an_unverified_end_is_one_line_that_says_so() {
    let script = calls("update_goal", json!({"status": "complete"}));
    let (lab, tui) = driven("\"Be done\"", script);
    assert_eq!(lab.goal()["status"], "complete");
    assert_shown_once(&tui, "◎ goal complete (unverified)");
}

/// The agent proves both items and calls the goal done; then nothing moves until the user agrees.
#[test]
fn a_goal_with_sign_off_waits_for_the_user() {
    let proofs = json!([{"item": 1, "proof": "ls: one.txt"}, {"item": 2, "proof": "wc -l: 2"}]);
    let script = calls("update_goal", json!({"status": "complete", "items": proofs}));
    let (lab, tui) = driven("\"Be done\" --item \"One is there\" --item \"Two are there\" --sign-off", script);
    lab.wait_for_pause("sign_off");
    assert_shown_once(&tui, "◎ the agent says that the goal is done: /goal-complete signs off");
    lab.stays_quiet(A_WHILE, "the goal waits for the user");
    let status = lab.status();
    for line in ["  ✓ 1. One is there: ls: one.txt", "  ✓ 2. Two are there: wc -l: 2", "next: steadfast goal complete"]
    {
        assert!(status.contains(line), "{status}");
    }
    let told = lab.model.requests_of(Kind::Main)[0].all_text();
    assert!(told.contains("  1. One is there\n  2. Two are there") && told.contains("signs off"), "{told}");
    tui.submit("/steadfast:goal-complete");
    tui.wait_until_shown("goal completed by you");
    let done = lab.goal();
    assert_eq!((&done["status"], &done["completed_by"]), (&json!("complete"), &json!("user")), "{done:#}");
    assert_eq!((lab.events("sign_off_requested"), lab.events("goal_completed_by_user")), (1, 1));
    lab.model.check_script();
}

#[test]
fn a_blocked_goal_is_one_line_with_the_reason() {
    let input = json!({"status": "blocked", "blocked_reason": "no key for the door"});
    let (lab, tui) = at_the_users_word("\"Open the door\"", "update_goal", input);
    assert_eq!(lab.goal()["status"], "blocked");
    assert_shown_once(&tui, "◎ goal blocked: no key for the door");
}

#[test]
fn a_refused_completion_is_one_line_with_the_failing_command() {
    let script = calls("update_goal", json!({"status": "complete"}));
    let (lab, tui) = driven("\"Be done\" --verify \"test -f done.txt\" --max-turns 2", script);
    assert_ne!(lab.goal()["status"], "complete");
    assert_shown_once(&tui, "◎ completion refused: `test -f done.txt`");
}

#[test]
fn a_changed_objective_is_one_line_with_the_old_and_the_new_text() {
    let input = json!({"objective": "Paint the tower"});
    let (lab, tui) = at_the_users_word("\"Build the tower\"", "update_objective", input);
    assert_eq!(lab.goal()["objective"], "Paint the tower");
    assert_shown_once(&tui, "◎ objective changed: \"Build the tower\" → \"Paint the tower\"");
}

#[test]
fn a_reached_limit_is_one_line() {
    let lab = Lab::looping();
    let tui = lab.start("\"Stop at two\" --max-turns 2");
    lab.wait_for_pause("continuation_cap");
    tui.wait_for_prompt();
    assert_shown_once(&tui, "◎ the goal is paused (continuation_cap): 2 of 2 turns");
    lab.model.check_script();
}
