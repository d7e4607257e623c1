//! What the user types while a turn runs goes first; then the goal continues.

use super::lab::{Lab, SOON, step};
use crate::reply::Reply;
use crate::request::Request;
use crate::tui::Tui;
use std::time::Duration;

const QUESTION: &str = "Which colour is the sky?";

/// A loop whose third turn has one slow answer, which is under way.
fn in_a_slow_turn() -> (Lab, Tui) {
    let lab = Lab::new(|request: &Request| match request.seq {
        _ if request.last_user_text().contains(QUESTION) => Reply::text("Blue."),
        5 => Reply::text("Slow.").delay(Duration::from_secs(8)),
        _ => step(request),
    });
    let tui = lab.start("\"Run and run\"");
    lab.wait_until_asked(5, "the slow turn");
    (lab, tui)
}

#[test]
fn a_prompt_typed_ahead_goes_before_the_next_continuation() {
    let (lab, tui) = in_a_slow_turn();
    tui.submit(QUESTION);
    let next = lab.model.wait_for_request("the request after the slow one", SOON, |request| request.seq == 6);
    assert!(next.last_user_text().contains(QUESTION), "{}", next.summary());
    tui.wait_until_shown("Blue.");
    lab.continues("the answer");
    lab.model.check_script();
}

#[test]
fn a_prompt_and_a_command_typed_ahead_are_both_served_and_the_loop_continues() {
    let (lab, tui) = in_a_slow_turn();
    tui.submit(QUESTION);
    tui.submit("/steadfast:goal-status");
    tui.wait_until_shown("Blue.");
    tui.wait_until_shown("◎ Goal:");
    lab.continues("the answers");
    lab.model.check_script();
}

#[test]
fn a_command_and_a_prompt_typed_ahead_are_both_served_and_the_loop_continues() {
    let (lab, tui) = in_a_slow_turn();
    tui.submit("/steadfast:goal-status");
    tui.submit(QUESTION);
    tui.wait_until_shown("◎ Goal:");
    tui.wait_until_shown("Blue.");
    lab.continues("the answers");
    lab.model.check_script();
}

/// A half-typed line stays in the input box while the loop runs below it.
#[test]
fn half_typed_text_is_kept_and_does_not_hold_the_loop_up() {
    let lab = Lab::looping();
    let tui = lab.start_loop("\"Run and run\"");
    tui.send("I was about to say");
    lab.continues("the half-typed line");
    assert!(tui.screen().contains("I was about to say"), "{}", tui.screen());
    lab.model.check_script();
}
