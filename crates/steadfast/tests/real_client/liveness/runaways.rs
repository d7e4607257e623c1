//! Models that run away, as users reported them: the goal pauses within bounds and shows why.

use super::lab::{A_WHILE, Lab, bash, follows_tool};
use crate::reply::Reply;
use crate::request::Request;

/// Drives a model until its goal is paused for lack of progress, after at most so many requests.
fn pauses_within(most: usize, script: impl Fn(&Request) -> Reply + Send + Sync + 'static) {
    let lab = Lab::new(script);
    let tui = lab.start("\"Run away\"");
    lab.wait_for_pause("no_progress");
    tui.wait_for_prompt();
    lab.stays_quiet(A_WHILE, "the goal is paused");
    assert!(lab.asked() <= most, "{} requests", lab.asked());
    assert!(tui.history().contains("so the goal is paused (no_progress)"), "the user is told: {}", tui.history());
    let status = lab.status();
    assert!(status.contains("no_progress") && status.contains("goal resume"), "{status}");
    lab.model.check_script();
}

#[test]
fn a_model_that_answers_with_nothing_for_ever_is_stopped() {
    pauses_within(12, |_| Reply::text(""));
}

#[test]
fn a_model_that_repeats_its_answer_for_ever_is_stopped() {
    pauses_within(12, |_| Reply::text("I am still working on it."));
}

#[test]
fn a_model_that_repeats_one_tool_call_in_every_turn_is_stopped() {
    pauses_within(24, |request| {
        let id = format!("toolu_{}", request.seq);
        if follows_tool(request) {
            Reply::text(format!("Still looking, for the {}th time.", request.seq))
        } else {
            bash(&id, "git status --short")
        }
    });
}

#[test]
fn a_model_that_repeats_one_tool_call_within_a_turn_is_stopped() {
    pauses_within(40, |request| bash(&format!("toolu_{}", request.seq), "git status --short"));
}
