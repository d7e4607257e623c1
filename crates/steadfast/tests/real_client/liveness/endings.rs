//! The end of a goal, a refused completion and a changed objective are each one line to the user.

use super::lab::{Lab, step};
use crate::reply::Reply;
use crate::request::Request;
use crate::tui::Tui;
use crate::with_steadfast::{call, steadfast};
use serde_json::{Value, json};

/// A model that calls one of our tools as soon as it is offered, and then does the next thing.
fn calls(tool: &'static str, input: Value, then: fn(&Request) -> Reply) -> impl Fn(&Request) -> Reply + Send + Sync {
    move |request| {
        if request.has_tool_result("toolu_call") {
            then(request)
        } else if request.tool_named(tool).is_some() {
            call(request, tool, "toolu_call", input.clone())
        } else {
            step(request)
        }
    }
}

fn says_so(_: &Request) -> Reply {
    Reply::text("So be it.")
}

/// Drives the model up to the text `until`, and returns the lines about the goal that the user saw.
fn told(goal: &str, script: impl Fn(&Request) -> Reply + Send + Sync + 'static, until: &str) -> (Lab, Vec<String>) {
    let lab = Lab::new(script);
    let tui = lab.start(goal);
    tui.wait_until_shown(until);
    tui.wait_for_prompt();
    lab.model.check_script();
    (lab, lines_about_the_goal(&tui))
}

/// The messages of our hooks to the user.
fn lines_about_the_goal(tui: &Tui) -> Vec<String> {
    let history = tui.history();
    history.lines().filter(|line| line.contains("says: ")).map(str::to_owned).collect()
}

/// The one line with these words.
fn assert_one(lines: &[String], words: &[&str]) {
    let found = lines.iter().filter(|line| words.iter().all(|word| line.contains(word))).count();
    assert_eq!(found, 1, "{words:?} once in {lines:#?}");
}

#[test]
fn a_verified_end_is_one_line() {
    let script = calls("update_goal", json!({"status": "complete"}), says_so);
    let (lab, lines) = told("\"Be done\" --verify \"true\"", script, "So be it.");
    assert_eq!(lab.goal()["status"], "complete");
    assert_one(&lines, &["complete"]);
    assert!(lines.iter().all(|line| !line.contains("unverified")), "{lines:#?}");
}

#[test]
fn an_unverified_end_is_one_line_that_says_so() {
    let script = calls("update_goal", json!({"status": "complete"}), says_so);
    let (lab, lines) = told("\"Be done\"", script, "So be it.");
    assert_eq!(lab.goal()["status"], "complete");
    assert_one(&lines, &["complete (unverified)"]);
    let history = steadfast(&lab.client, &["goal", "history", "--all"]).1;
    assert!(history.contains("complete (unverified)"), "{history}");
}

#[test]
fn a_blocked_goal_is_one_line_with_the_reason() {
    let input = json!({"status": "blocked", "blocked_reason": "no key for the door"});
    let (lab, lines) = told("\"Open the door\"", calls("update_goal", input, says_so), "So be it.");
    assert_eq!(lab.goal()["status"], "blocked");
    assert_one(&lines, &["blocked", "no key for the door"]);
}

#[test]
fn a_refused_completion_is_one_line_with_the_failing_command() {
    let script = calls("update_goal", json!({"status": "complete"}), says_so);
    let (lab, lines) = told("\"Be done\" --verify \"test -f done.txt\" --max-turns 2", script, "So be it.");
    assert_ne!(lab.goal()["status"], "complete");
    assert_one(&lines, &["refused", "test -f done.txt"]);
}

/// The agent may change it only when the user asks for that.
#[test]
fn a_changed_objective_is_one_line_with_the_old_and_the_new_text() {
    const WISH: &str = "Paint it instead.";
    let lab = Lab::new(|request| {
        if request.has_tool_result("toolu_change") {
            return Reply::text("So be it.");
        }
        if request.all_text().contains(WISH) {
            call(request, "update_objective", "toolu_change", json!({"objective": "Paint the tower"}))
        } else {
            step(request)
        }
    });
    let tui = lab.start_loop("\"Build the tower\"");
    tui.submit(WISH);
    tui.wait_until_shown("So be it.");
    assert_eq!(lab.goal()["objective"], "Paint the tower");
    assert_one(&lines_about_the_goal(&tui), &["Build the tower", "Paint the tower"]);
    lab.model.check_script();
}

#[test]
fn a_reached_limit_is_one_line() {
    let lab = Lab::looping();
    let tui = lab.start("\"Stop at two\" --max-turns 2");
    lab.wait_for_pause("continuation_cap");
    tui.wait_for_prompt();
    assert_one(&lines_about_the_goal(&tui), &["paused", "2 of 2 turns"]);
    lab.model.check_script();
}
