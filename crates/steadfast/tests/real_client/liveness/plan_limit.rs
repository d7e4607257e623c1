//! A used-up plan in the terminal interface: the goal waits for the reset and is woken once. The client opens a dialog
//! about the limit, which holds the goal up until the user closes it.

use super::lab::{A_WHILE, Lab, SOON, step};
use crate::reply::Reply;
use crate::request::Request;
use crate::tui::Tui;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;
use steadfast_model::clock;

const LIMIT: Duration = Duration::from_mins(1);
const DIALOG: &str = "What do you want to do?";

/// The client words a reset in full minutes, so it is at the next full minute that is far enough away to act before it.
fn next_reset(now: i64) -> i64 {
    const ROOM: i64 = 25;
    (now + ROOM).div_euclid(60) * 60 + 60
}

/// The plan of the user: when it is reset (0 until it is used up), and whether the user bought more.
#[derive(Default)]
struct Plan {
    reset: AtomicI64,
    is_lifted: AtomicBool,
}

/// A client that is logged in to a plan. The third request and all after it hit the limit until its reset.
fn limited() -> (Lab, Arc<Plan>) {
    limited_when(|request| request.seq >= 3)
}

/// As [`limited`], from the request on that uses the plan up.
fn limited_when(is_used_up: impl Fn(&Request) -> bool + Send + Sync + 'static) -> (Lab, Arc<Plan>) {
    let plan = Arc::<Plan>::default();
    let used = plan.clone();
    let lab = Lab::new(move |request| {
        let now = clock::now() / 1_000;
        if !is_used_up(request) || used.is_lifted.load(Ordering::SeqCst) {
            return step(request);
        }
        let _ = used.reset.compare_exchange(0, next_reset(now), Ordering::SeqCst, Ordering::SeqCst);
        let reset = used.reset.load(Ordering::SeqCst);
        if now < reset { Reply::usage_limit(u64::try_from(reset).expect("now")) } else { step(request) }
    })
    .env("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-not-a-token-000000000000000000000000000000")
    .env("ANTHROPIC_API_KEY", "");
    (lab, plan)
}

/// Starts a goal and waits until it is paused by the limit and the client asks the user about it.
fn at_the_dialog(lab: &Lab) -> Tui {
    let tui = lab.start("\"Outlast the limit\"");
    lab.wait_for_pause("usage_limit");
    tui.wait_for("the dialog about the limit", LIMIT, |screen| screen.contains(DIALOG));
    tui
}

fn wait_for_reset(lab: &Lab, plan: &Plan) {
    let left = plan.reset.load(Ordering::SeqCst) * 1_000 - clock::now();
    // The last second is left out: a wake-up right at the moment is not too early.
    let left = Duration::from_millis(u64::try_from(left - 1_000).unwrap_or(0));
    lab.stays_quiet(left, "the plan is used up");
}

#[test]
fn a_goal_is_woken_once_after_the_reset_of_its_plan() {
    let (lab, plan) = limited();
    let tui = at_the_dialog(&lab);
    tui.escape_from(DIALOG);
    lab.wait_for_status(&["usage", "wakes"]);
    wait_for_reset(&lab, &plan);
    lab.continues("the reset");
    assert_eq!(lab.events("goal_resumed"), 1);
    lab.model.check_script();
}

#[test]
fn a_dialog_that_holds_up_the_wake_up_is_shown_in_the_status_and_closing_it_is_enough() {
    let (lab, plan) = limited();
    let tui = at_the_dialog(&lab);
    wait_for_reset(&lab, &plan);
    let status = lab.wait_for_status(&["dialog", "enter"]);
    assert!(!status.contains("turn ends"), "{status}");
    lab.stays_quiet(A_WHILE, "the dialog is open");
    tui.enter();
    lab.continues("the dialog");
    assert_eq!(lab.events("goal_resumed"), 1);
    lab.model.check_script();
}

/// What `steadfast setup claude --skip-limit-dialog` writes: nobody has to be there.
#[test]
fn without_the_dialog_a_goal_is_woken_with_nobody_there() {
    let (lab, plan) = limited();
    let commands = lab.client.config_dir().join("commands");
    fs::create_dir_all(&commands).expect("directory");
    let text = "---\ndescription: The plan is used up\n---\n\nSay that the plan is used up.\n";
    fs::write(commands.join("rate-limit-options.md"), text).expect("command");
    let tui = lab.start("\"Outlast the limit\"");
    lab.wait_for_pause("usage_limit");
    tui.wait_for("the answer of the hook", LIMIT, |screen| screen.contains("continues by itself at"));
    assert!(!tui.screen().contains(DIALOG), "{}", tui.screen());
    wait_for_reset(&lab, &plan);
    lab.continues("the reset");
    assert_eq!(lab.events("goal_resumed"), 1);
    lab.model.check_script();
}

#[test]
fn a_resume_before_the_reset_continues_at_once_and_the_wake_up_does_not_come_again() {
    let (lab, plan) = limited();
    let tui = at_the_dialog(&lab);
    tui.escape_from(DIALOG);
    plan.is_lifted.store(true, Ordering::SeqCst);
    tui.submit("/steadfast:goal-resume");
    lab.continues("the resume");
    // The pause keeps the goal idle, so that a second wake-up would be seen.
    tui.submit("/steadfast:goal-pause");
    lab.wait_for_pause("user");
    tui.wait_for_prompt();
    wait_for_reset(&lab, &plan);
    lab.stays_quiet(A_WHILE, "the user paused the goal");
    assert_eq!(lab.events("goal_resumed"), 1);
    lab.model.check_script();
}

#[test]
fn two_sessions_behind_one_limit_are_each_woken_once() {
    const NAMES: [&str; 2] = ["Paint the barn", "Plant the pear tree"];
    // The plan is used up when both goals are at work: a client that starts slowly must not miss the limit.
    let seen = NAMES.map(|_| AtomicBool::new(false));
    let (lab, plan) = limited_when(move |request| {
        let text = request.all_text();
        for (name, seen) in NAMES.iter().zip(&seen) {
            seen.fetch_or(text.contains(name), Ordering::SeqCst);
        }
        seen.iter().all(|seen| seen.load(Ordering::SeqCst))
    });
    let sessions = NAMES.map(|name| lab.start(&format!("\"{name}\"")));
    for tui in &sessions {
        tui.wait_for("the dialog about the limit", LIMIT, |screen| screen.contains(DIALOG));
        tui.escape_from(DIALOG);
    }
    wait_for_reset(&lab, &plan);
    let before = lab.asked();
    for name in NAMES {
        lab.model.wait_for_request(name, SOON, |request| request.seq > before && request.all_text().contains(name));
    }
    assert_eq!(lab.events("goal_resumed"), 2);
    lab.model.check_script();
}
