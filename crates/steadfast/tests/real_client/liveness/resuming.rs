//! A goal that stopped and is told to continue at an idle prompt: it continues at once, without a prompt.

use super::lab::{A_WHILE, Lab, step};
use crate::reply::{Reply, Usage};
use crate::tui::Tui;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A model that only talks until it is told to work; the breaker pauses its goal.
fn paused_for_no_progress() -> (Lab, Tui) {
    let works = Arc::new(AtomicBool::new(false));
    let told = works.clone();
    let lab = Lab::new(
        move |request| {
            if told.load(Ordering::SeqCst) { step(request) } else { Reply::text("Nothing to do.") }
        },
    );
    let tui = lab.start("\"Do something\"");
    lab.wait_for_pause("no_progress");
    tui.wait_for_prompt();
    lab.stays_quiet(A_WHILE, "the goal is paused");
    works.store(true, Ordering::SeqCst);
    (lab, tui)
}

#[test]
fn a_resume_at_an_idle_prompt_continues_at_once() {
    let (lab, tui) = paused_for_no_progress();
    tui.submit("/steadfast:goal-resume");
    lab.continues("the resume");
    lab.model.check_script();
}

#[test]
fn a_resume_from_a_second_terminal_wakes_the_idle_client() {
    let (lab, _tui) = paused_for_no_progress();
    lab.terminal(&["resume"]);
    lab.continues("the resume in a second terminal");
    lab.model.check_script();
}

#[test]
fn an_extension_of_a_spent_budget_at_an_idle_prompt_continues_at_once() {
    let lab = Lab::new(|request| step(request).usage(Usage::new(300, 0, 0, 0)));
    let tui = lab.start("\"Spend\" --budget 1000");
    lab.wait_for_status(&["budget_limited", "next: ", "--add-tokens"]);
    tui.wait_for_prompt();
    lab.stays_quiet(A_WHILE, "the budget is spent");
    tui.submit("/steadfast:goal-extend --add-tokens 1M");
    lab.continues("the extension");
    lab.model.check_script();
}

#[test]
fn an_extension_of_the_turns_from_a_second_terminal_wakes_the_idle_client() {
    let lab = Lab::looping();
    let tui = lab.start("\"Turn\" --max-turns 2");
    lab.wait_for_pause("continuation_cap");
    tui.wait_for_prompt();
    lab.terminal(&["extend", "--add-turns", "100"]);
    lab.continues("the extension");
    lab.model.check_script();
}

#[test]
fn a_pause_means_stopped_until_the_user_resumes() {
    let lab = Lab::looping();
    let tui = lab.start_loop("\"Stop and go\"");
    tui.submit("/steadfast:goal-pause");
    lab.wait_for_pause("user");
    tui.wait_for_prompt();
    lab.stays_quiet(A_WHILE, "the user paused the goal");
    // Nor does a command or a prompt of the user start it again.
    tui.submit("/steadfast:goal-status");
    tui.wait_until_shown("paused_reason: user");
    lab.stays_quiet(A_WHILE, "the user paused the goal and asked for its status");
    tui.submit("/steadfast:goal-resume");
    lab.continues("the resume");
    lab.model.check_script();
}
