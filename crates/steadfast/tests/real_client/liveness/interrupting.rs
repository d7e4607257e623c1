//! Esc and permission dialogs: nothing is driven against the user's will, the status shows it at once, and the next
//! prompt of the user is obeyed, after which the goal continues.

use super::lab::{A_WHILE, FOR_EVER, Lab, SOON, bash, step};
use crate::reply::Reply;
use crate::request::{Kind, Request};
use crate::tui::Tui;
use std::time::Duration;

const LIMIT: Duration = Duration::from_mins(1);
const QUESTION: &str = "What is two and two?";

/// Interrupts the turn that runs, and checks everything up to the goal's next turns.
fn interrupt_and_continue(lab: &Lab, tui: &Tui) {
    tui.escape();
    tui.wait_for_text("Interrupted");
    let status = lab.wait_for_status(&["interrupted"]);
    assert!(!status.contains("turn ends"), "{status}");
    let active = lab.active_seconds();
    lab.stays_quiet(A_WHILE, "the user interrupted the turn");
    assert_eq!(lab.active_seconds(), active, "the clock stands while the goal is interrupted");

    tui.submit(QUESTION);
    lab.model
        .wait_for_request("the user's prompt", SOON, |r| r.kind == Kind::Main && r.last_user_text().contains(QUESTION));
    tui.wait_until_shown("Four.");
    lab.continues("the answer to the user");
    assert_eq!(lab.goal()["status"], "active");
    lab.model.check_script();
}

fn answer_or(request: &Request, otherwise: impl FnOnce(&Request) -> Reply) -> Reply {
    if request.last_user_text().contains(QUESTION) { Reply::text("Four.") } else { otherwise(request) }
}

#[test]
fn esc_in_a_tool_stops_the_goal_until_the_users_next_prompt_is_answered() {
    let lab = Lab::new(|request| {
        answer_or(request, |request| match request.seq {
            1 => bash("toolu_1", &format!("touch running; {FOR_EVER}")),
            _ => step(request),
        })
    });
    let tui = lab.start("\"Slow work\"");
    let running = lab.client.project().join("running");
    tui.wait_for("the tool", LIMIT, |screen| running.exists() && screen.contains("esc to interrupt"));
    interrupt_and_continue(&lab, &tui);
}

#[test]
fn esc_while_the_model_is_slow_stops_the_goal_until_the_users_next_prompt_is_answered() {
    let lab = Lab::new(|request| {
        answer_or(request, |request| match request.seq {
            2 => Reply::text("Too late.").delay(Duration::from_mins(10)),
            _ => step(request),
        })
    });
    let tui = lab.start("\"Slow work\"");
    lab.wait_until_asked(2, "the slow answer");
    tui.wait_for_text("esc to interrupt");
    interrupt_and_continue(&lab, &tui);
}

#[test]
fn esc_while_text_streams_in_a_woken_turn_stops_the_goal_until_the_users_next_prompt_is_answered() {
    let lab = Lab::new(|request| {
        answer_or(request, |request| match request.seq {
            5 => Reply::text("A word, and then\n\nanother").stalled(),
            _ => step(request),
        })
    });
    let tui = lab.start("\"Slow work\"");
    lab.wait_until_asked(5, "the slow answer");
    tui.wait_for_text("A word, and then");
    interrupt_and_continue(&lab, &tui);
}

/// A client without permission for the tool that the model calls.
fn at_a_permission_dialog() -> (Lab, Tui) {
    let lab = Lab::new(|request| {
        answer_or(request, |request| match request.seq {
            1 => bash("toolu_1", "touch made.txt"),
            n => Reply::text(format!("Step {n}.")),
        })
    })
    .configured("[goal]\nno_progress_limit = 0\n");
    let tui = Tui::start(&lab.client, &[]);
    tui.submit("/steadfast:goal-start \"Ask first\"");
    tui.wait_for("the permission dialog", LIMIT, |screen| screen.contains("Do you want to proceed?"));
    (lab, tui)
}

#[test]
fn an_open_permission_dialog_is_shown_in_the_status_and_nothing_is_woken_behind_it() {
    let (lab, tui) = at_a_permission_dialog();
    lab.wait_for_status(&["permission"]);
    lab.terminal(&["pause"]);
    lab.terminal(&["resume"]);
    lab.stays_quiet(A_WHILE, "a permission dialog is open");
    tui.enter();
    lab.continues("the permission");
    assert!(lab.client.project().join("made.txt").exists());
    lab.model.check_script();
}

#[test]
fn esc_at_a_permission_dialog_stops_the_goal_even_if_it_was_resumed_meanwhile() {
    let (lab, tui) = at_a_permission_dialog();
    lab.wait_for_status(&["permission"]);
    lab.terminal(&["pause"]);
    lab.terminal(&["resume"]);
    interrupt_and_continue(&lab, &tui);
    assert!(!lab.client.project().join("made.txt").exists());
}
