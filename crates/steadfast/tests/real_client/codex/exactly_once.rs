//! A goal that the user stated in a prompt, with the real Codex: each request has its text exactly once, after any
//! compaction, resume or fork, although the marker starts a durable goal whose Stop hook drives the session. The same
//! for the client's own goal, which a compaction in mid-turn loses.

use super::client::Codex;
use super::goals::{goal, history, trusted};
use super::memory::{FULL, SMALL, compacting, occurrences};
use super::model::ScriptedResponses;
use super::reply::{Reply, Tool};
use super::request::{Kind, Request};
use super::tui::Tui;
use serde_json::json;
use std::time::Duration;

const GOAL: &str = "Keep <the lighthouse> & \"its lamp\" burning";
/// A word that occurs only in the goal, however it is escaped, cut or quoted.
const WORD: &str = "lighthouse";
const LIMIT: Duration = Duration::from_mins(1);

/// How often a request has the goal, whole and in any form.
fn reading(request: &Request) -> (usize, usize) {
    (occurrences(request, GOAL), occurrences(request, WORD))
}

fn readings(model: &ScriptedResponses) -> Vec<(usize, usize)> {
    model.requests_of(Kind::Main).iter().map(reading).collect()
}

/// Asserts that all requests since then contain the goal once; returns their number.
fn assert_read_once(model: &ScriptedResponses, since: usize, when: &str) -> usize {
    let readings = readings(model);
    let new = &readings[since..];
    assert!(!new.is_empty() && new.iter().all(|reading| *reading == (1, 1)), "{when}: {new:?}");
    readings.len()
}

fn talking() -> ScriptedResponses {
    ScriptedResponses::start(|r| Reply::text(format!("ANSWER {}", r.seq)).usage(SMALL))
}

fn summaries(model: &ScriptedResponses) -> usize {
    model.requests_of(Kind::Compaction).len()
}

#[test]
fn a_stated_goal_is_read_once_while_it_is_driven_compacted_and_resumed() {
    let model = ScriptedResponses::start(|r| {
        let full = r.seq == 1 || r.last_user_text() == "Third.";
        let reply = match r.seq {
            1 => Reply::shell("call_1", "echo big"),
            _ if full && !r.has_tool_result("call_2") => Reply::shell("call_2", "echo big"),
            n => Reply::text(format!("Step {n}.")),
        };
        reply.usage(if full { FULL } else { SMALL })
    });
    let codex = trusted(compacting(&model));
    let thread = codex.exec(&[], &format!("goal: {GOAL}")).thread_id();
    assert_eq!(summaries(&model), 1);
    let asked = assert_read_once(&model, 0, "compacted in its first turn, then driven");
    assert_eq!(goal(&codex)["paused_reason"], "no_progress", "it was driven");
    assert!(asked > 3, "there were continuations");
    codex.exec(&["resume", &thread], "Second.");
    let asked = assert_read_once(&model, asked, "compacted, then resumed");
    codex.exec(&["resume", &thread], "Third.");
    assert_eq!(summaries(&model), 2);
    let asked = assert_read_once(&model, asked, "resumed twice, and compacted in mid-turn");
    codex.exec(&["resume", &thread], "Fourth.");
    assert_read_once(&model, asked, "and resumed");
    model.check_script();
}

#[test]
fn a_stated_goal_is_read_once_when_resume_and_compaction_come_together() {
    let model = ScriptedResponses::start(|r| {
        let full = ["goal:", "Second."].iter().any(|start| r.last_user_text().starts_with(start));
        Reply::text(format!("Step {}.", r.seq)).usage(if full { FULL } else { SMALL })
    });
    let codex = trusted(compacting(&model));
    let thread = codex.exec(&[], &format!("goal: {GOAL}")).thread_id();
    let asked = assert_read_once(&model, 0, "at first");
    let before = summaries(&model);
    codex.exec(&["resume", &thread], "Second.");
    let asked = assert_read_once(&model, asked, "resumed");
    codex.exec(&["resume", &thread], "Third.");
    assert!(summaries(&model) > before, "it was compacted as it was resumed");
    let asked = assert_read_once(&model, asked, "compacted as it was resumed");
    codex.exec(&["resume", &thread], "Fourth.");
    assert_read_once(&model, asked, "and resumed");
}

#[test]
fn a_stated_goal_is_read_once_in_the_terminal_and_after_it() {
    let model = talking();
    let codex = trusted(Codex::new(&model));
    let tui = Tui::start(&codex, &[]);
    tui.submit(&format!("goal: {GOAL}"));
    tui.wait_for("the end of the driving", LIMIT, |_| history(&codex)["goals"][0]["paused_reason"] == "no_progress");
    tui.wait_for_turn("no_progress");
    let asked = assert_read_once(&model, 0, "driven");
    tui.submit("/compact");
    tui.wait_for_text("Context compacted");
    tui.submit("Second.");
    tui.wait_for_turn(&format!("ANSWER {}", asked + 1));
    tui.exit();
    let asked = assert_read_once(&model, asked, "compacted by hand");
    let thread = goal(&codex)["session_id"].as_str().expect("session").to_owned();
    for prompt in ["Third.", "Fourth."] {
        codex.exec(&["resume", &thread], prompt);
    }
    assert_eq!(assert_read_once(&model, asked, "compacted, then resumed twice"), asked + 2);
}

#[test]
fn after_clear_the_goal_is_offered_once_and_nothing_drives() {
    let model = talking();
    let codex = trusted(Codex::new(&model));
    let tui = Tui::start(&codex, &[]);
    tui.submit(&format!("goal: {GOAL}"));
    tui.wait_for("the end of the driving", LIMIT, |_| history(&codex)["goals"][0]["paused_reason"] == "no_progress");
    tui.wait_for_turn("no_progress");
    let asked = readings(&model).len();
    tui.submit("/clear");
    tui.submit("What now?");
    tui.wait_for_turn(&format!("ANSWER {}", asked + 1));
    std::thread::sleep(Duration::from_secs(1));
    tui.exit();
    assert_eq!(assert_read_once(&model, asked, "offered"), asked + 1, "nothing drives");
    let offer = model.requests_of(Kind::Main).pop().expect("a request").all_text();
    assert!(offer.contains("an offer, not an order") && !offer.contains("Work toward it"), "{offer}");
    assert_eq!(history(&codex)["goals"].as_array().map(Vec::len), Some(1), "no goal of its own");
}

#[test]
fn a_fork_reads_it_once_and_an_unrelated_session_gets_nothing() {
    let model = talking();
    let codex = trusted(Codex::new(&model));
    let thread = codex.exec(&[], &format!("goal: {GOAL}")).thread_id();
    let asked = assert_read_once(&model, 0, "at first");
    let fork = codex.exec(&["fork", &thread], "Fork.").thread_id();
    assert_ne!(fork, thread);
    let asked = assert_read_once(&model, asked, "forked");
    codex.exec(&["resume", &fork], "Second.");
    let asked = assert_read_once(&model, asked, "forked and resumed");
    codex.exec(&[], "Hello.");
    assert_eq!(readings(&model)[asked..], [(0, 0)]);
    let told = model.requests_of(Kind::Main).pop().expect("a request").all_text();
    assert!(!told.contains("session_resume"), "{told}");
}

#[test]
fn the_clients_own_goal_that_a_compaction_in_mid_turn_loses_is_restored_once() {
    let native = |name: &str| Tool { namespace: None, name: name.to_owned() };
    let model = ScriptedResponses::start(move |r| match r.seq {
        1 => Reply::tool("call_new", native("create_goal"), json!({"objective": GOAL})).usage(SMALL),
        2 => Reply::shell("call_big", "echo big").usage(FULL),
        3 => Reply::shell("call_small", "echo small").usage(SMALL),
        4 => Reply::tool("call_done", native("update_goal"), json!({"status": "complete"})).usage(SMALL),
        n => Reply::text(format!("Step {n}.")).usage(SMALL),
    });
    let codex = trusted(compacting(&model));
    let thread = codex.exec(&[], "Set the goal of the harbour.").thread_id();
    model.check_script();
    assert_eq!(summaries(&model), 1);
    assert_eq!(readings(&model)[2..4], [(1, 1); 2], "the two requests after the compaction");
    let restored = model.requests_of(Kind::Main)[2].all_text();
    assert!(restored.contains("pursued by Codex's own goal feature"), "{restored}");
    assert_eq!(history(&codex)["goals"], json!([]), "Steadfast has none of its own");
    let asked = readings(&model).len();
    codex.exec(&["resume", &thread], "Second.");
    let resumed = model.requests_of(Kind::Main)[asked].all_text();
    let told = resumed.split("after=\"resume\"").nth(1).expect("a snapshot");
    assert!(!told.contains("<session_goal>"), "a finished goal is over: {told}");
}
