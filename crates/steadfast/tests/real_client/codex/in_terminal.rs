//! The terminal interface of Codex with the scripted model.

use super::client::Codex;
use super::lab_hooks::LabHooks;
use super::model::ScriptedResponses;
use super::reply::Reply;
use super::request::Kind;
use super::tui::Tui;
use serde_json::json;
use std::time::Duration;

#[test]
fn a_prompt_and_then_a_compaction_by_hand() {
    let model = ScriptedResponses::start(|r| {
        if r.seq == 2 {
            assert!(r.all_text().contains("SCRIPTED SUMMARY"), "{}", r.all_text());
        }
        Reply::text(format!("ANSWER {}", r.seq))
    });
    let (codex, hooks) = LabHooks::install(Codex::new(&model));
    let tui = Tui::start(&codex, &[]);
    tui.submit("first prompt");
    tui.wait_for_turn("ANSWER 1");
    tui.submit("/compact");
    tui.wait_for_text("Context compacted");
    tui.submit("second prompt");
    tui.wait_for_turn("ANSWER 2");
    tui.exit();
    model.check_script();
    assert_eq!(model.other_calls(), Vec::<String>::new());
    let names = hooks.names();
    let expected = [
        "SessionStart:startup",
        "UserPromptSubmit",
        "Stop",
        "PreCompact:manual",
        "PostCompact:manual",
        "SessionStart:compact",
        "UserPromptSubmit",
        "Stop",
        "SessionEnd",
    ];
    assert_eq!(names, expected);
    assert_eq!(model.requests().iter().filter(|r| r.is_compaction()).count(), 1);
    assert_eq!(codex.usage(), model.ledger());
}

#[test]
fn a_blocked_prompt_is_answered_on_the_screen() {
    let model = ScriptedResponses::start(|_| Reply::text("no"));
    let codex = Codex::new(&model).with_skill("goal-status", "Shows the goal.", "SKILL BODY");
    let (codex, hooks) = LabHooks::install(codex);
    hooks.answer("UserPromptSubmit", &json!({"decision": "block", "reason": "LOCAL ANSWER\nsecond line"}));
    let tui = Tui::start(&codex, &[]);
    tui.submit("$goal-status now");
    let screen = tui.wait_for_text("second line");
    assert!(screen.contains("Blocked by hook"), "{screen}");
    tui.exit();
    assert_eq!(model.requests_of(Kind::Main).len(), 0);
    assert_eq!(hooks.log_of("UserPromptSubmit")[0]["prompt"], "$goal-status now");
}

#[test]
fn escape_interrupts_a_turn_without_a_stop() {
    let model = ScriptedResponses::start(|_| Reply::text("late").delay(Duration::from_mins(1)));
    let (codex, hooks) = LabHooks::install(Codex::new(&model));
    let tui = Tui::start(&codex, &[]);
    tui.submit("take your time");
    model.wait_for_request("the turn", Duration::from_mins(1), |r| r.last_user_text() == "take your time");
    tui.wait_for_text("esc to interrupt");
    tui.escape();
    tui.wait_for("the interruption", Duration::from_mins(1), |screen| screen.contains("interrupted"));
    tui.exit();
    assert_eq!(hooks.log_of("Stop").len(), 0);
    assert_eq!(codex.usage().len(), 0);
}

#[test]
fn a_thread_is_resumed_in_the_terminal() {
    let model = ScriptedResponses::start(|r| Reply::text(format!("ANSWER {}", r.seq)));
    let (codex, hooks) = LabHooks::install(Codex::new(&model));
    let thread = codex.exec(&[], "first").thread_id();
    let tui = Tui::start(&codex, &["resume", &thread]);
    tui.submit("second");
    tui.wait_for_turn("ANSWER 2");
    let long: Vec<String> = (1..90).map(|n| format!("word{n}")).collect();
    tui.submit(&long.join(" "));
    tui.wait_for_turn("ANSWER 3");
    assert!(tui.history().contains("ANSWER 2"));
    tui.exit();
    model.check_script();
    assert_eq!(model.requests_of(Kind::Main)[2].last_user_text(), long.join(" "));
    assert_eq!(hooks.names()[4], "SessionStart:resume");
    assert_eq!(codex.rollouts().len(), 1);
    assert_eq!(codex.usage(), model.ledger());
}
