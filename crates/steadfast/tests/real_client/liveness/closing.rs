//! Clients that are closed, killed and continued, and wakers that are killed: the goal shows that its session is closed,
//! and continues once when the session is opened again.

use super::lab::{A_WHILE, Lab, SOON, TOOLS, step};
use crate::process::kill_process;
use crate::reply::Reply;
use crate::tui::Tui;
use crate::with_steadfast::{binary, call};
use serde_json::json;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A loop that completes its goal in the next turn once it is told to.
fn loop_that_can_end() -> (Lab, Arc<AtomicBool>) {
    let ends = Arc::new(AtomicBool::new(false));
    let told = ends.clone();
    let lab = Lab::new(move |request| {
        if request.has_tool_result("toolu_done") {
            Reply::text("All done.")
        } else if told.load(Ordering::SeqCst) {
            call(request, "update_goal", "toolu_done", json!({"status": "complete"}))
        } else {
            step(request)
        }
    });
    (lab, ends)
}

/// The status names the way back, and `claude --continue` continues the goal once.
fn comes_back_once(lab: &Lab, ends: &AtomicBool) {
    let status = lab.wait_for_status(&["closed", "claude --"]);
    let named = ["claude --continue".to_owned(), format!("claude --resume {}", lab.session())];
    assert!(named.iter().any(|command| status.contains(command)), "{status}");
    let active = lab.active_seconds();
    lab.stays_quiet(A_WHILE, "the client is closed");
    assert_eq!(lab.active_seconds(), active, "the clock stands while the client is closed");

    let before = lab.asked();
    ends.store(true, Ordering::SeqCst);
    let tui = Tui::start(&lab.client, &[&["--continue"], TOOLS].concat());
    tui.wait_until_shown("All done.");
    lab.stays_quiet(A_WHILE, "the goal is complete");
    // The tool server may start late, which costs a turn that only talks.
    let tools_were_late = lab.model.requests().iter().skip(before).any(|r| r.tool_named("update_goal").is_none());
    assert!(tools_were_late || lab.asked() == before + 2, "continued once: {} requests", lab.asked() - before);
    assert_eq!(lab.goal()["status"], "complete");
    lab.model.check_script();
}

#[test]
fn a_goal_whose_client_was_left_by_exit_continues_when_the_session_is_opened_again() {
    let (lab, ends) = loop_that_can_end();
    let tui = lab.start_loop("\"Outlive the client\"");
    tui.submit("/exit");
    tui.wait_for_end();
    comes_back_once(&lab, &ends);
}

#[test]
fn a_goal_whose_client_was_killed_continues_when_the_session_is_opened_again() {
    let (lab, ends) = loop_that_can_end();
    let tui = lab.start_loop("\"Outlive the client\"");
    kill_process(tui.pid());
    tui.wait_for_end();
    comes_back_once(&lab, &ends);
}

/// The background hooks of the client that runs in the lab.
fn wakers(lab: &Lab) -> Vec<u32> {
    let home = lab.client.home().to_string_lossy().into_owned();
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(|id| {
        let read = |name: &str| fs::read(format!("/proc/{id}/{name}")).unwrap_or_default();
        let text = |name: &str| String::from_utf8_lossy(&read(name)).replace('\0', "\n");
        let is_ours = fs::read_link(format!("/proc/{id}/exe")).is_ok_and(|exe| exe == Path::new(&binary()));
        is_ours && text("cmdline").contains("--rewake") && text("environ").contains(&home)
    })
    .collect()
}

fn wait_for_wakers(lab: &Lab, what: &str, wanted: impl Fn(usize) -> bool) -> Vec<u32> {
    let end = Instant::now() + SOON;
    loop {
        let found = wakers(lab);
        if wanted(found.len()) {
            return found;
        }
        assert!(Instant::now() < end, "wakers: {found:?}, not {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The agent waits; then the one process that would wake it is killed. The client's own word that it is idle brings
/// another.
#[test]
fn a_goal_is_woken_although_its_waker_was_killed() {
    let lab = Lab::new(|request| match request.seq {
        1 => call(request, "wait_goal", "toolu_wait", json!({"seconds": 20})),
        2 => Reply::text("I wait."),
        _ => step(request),
    })
    .idle_after(Duration::from_secs(10));
    let tui = lab.open();
    // The tool server needs a moment.
    lab.stays_quiet(Duration::from_secs(3), "nothing was asked");
    tui.submit("/steadfast:goal-start \"Wait for it\"");
    lab.wait_for_pause("waiting");
    tui.wait_for_prompt();
    for waker in wait_for_wakers(&lab, "one", |count| count > 0) {
        kill_process(waker);
    }
    lab.wait_until_asked(3, "the wake-up");
    lab.continues("the wake-up");
    assert_eq!(lab.events("goal_resumed"), 1, "woken once");
    lab.model.check_script();
}

/// One waker for each session, and none without its client.
#[test]
fn the_wakers_of_a_session_do_not_pile_up_and_end_with_the_client() {
    let lab = Lab::looping();
    let tui = lab.start_loop("\"Run and run\"");
    for _ in 0..3 {
        tui.submit("/steadfast:goal-status");
        lab.continues("a status");
    }
    tui.submit("/steadfast:goal-pause");
    lab.wait_for_pause("user");
    tui.wait_for_prompt();
    wait_for_wakers(&lab, "at most one", |count| count <= 1);
    tui.submit("/exit");
    tui.wait_for_end();
    wait_for_wakers(&lab, "none", |count| count == 0);
}
