//! What Codex sends to the model after a compaction, a resume, both, and in a fork: prompts and hook context.
//! `holds_text` must never claim more than the next request contains.

use super::client::Codex;
use super::lab_hooks::LabHooks;
use super::model::ScriptedResponses;
use super::reply::{Reply, Usage};
use super::request::{Kind, Request};
use super::tui::Tui;
use serde_json::json;
use std::fs;
use std::path::Path;
use steadfast_hosts::{Since, holds_text};
use steadfast_model::host::Host;

const GOAL: &str = "Keep <this> & \"that\", word for word";
/// Context that makes the client compact before the next request.
pub(crate) const FULL: Usage = Usage { input: 60_000, cached: 0, output: 10, reasoning: 0 };
pub(crate) const SMALL: Usage = Usage { input: 100, cached: 0, output: 10, reasoning: 0 };

/// Compacts when a response was [`FULL`].
pub(crate) fn compacting(model: &ScriptedResponses) -> Codex {
    Codex::new(model).setting("model_auto_compact_token_limit", "50000")
}

/// The next hook of this event injects its own goal text.
fn state(hooks: &LabHooks, event: &str, goal: &str) {
    let context = format!("<objective>\n{goal}\n</objective>");
    let output = json!({"hookSpecificOutput": {"hookEventName": event, "additionalContext": context}});
    hooks.answer(event, &output);
}

/// How many times the model reads a text in a request, raw or escaped once.
pub(crate) fn occurrences(request: &Request, text: &str) -> usize {
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let all = request.all_text();
    let plain = all.matches(text).count();
    if escaped == text { plain } else { plain + all.matches(&escaped).count() }
}

/// The same for the last request of the conversation.
pub(crate) fn in_last_request(model: &ScriptedResponses, text: &str) -> usize {
    let requests = model.requests_of(Kind::Main);
    occurrences(requests.last().expect("a request"), text)
}

fn held(rollout: &Path, objective: &str, since: Since) -> bool {
    holds_text(Host::Codex, rollout, objective, since)
}

/// What the hook after a compaction can see: the file at the start of the compaction and at the start of the hook.
fn held_after_compaction(hooks: &LabHooks, objective: &str) -> bool {
    let noted_at = fs::metadata(hooks.rollout_at("PreCompact")).expect("the rollout").len();
    held(&hooks.rollout_at("SessionStart"), objective, Since::Compaction { noted_at: Some(noted_at) })
}

#[test]
fn prompts_survive_a_compaction_in_mid_turn_but_hook_context_does_not() {
    let model = ScriptedResponses::start(|r| match r.seq {
        3 => Reply::shell("call_big", "echo big").usage(FULL),
        n => Reply::text(format!("Step {n}.")).usage(SMALL),
    });
    let (codex, hooks) = LabHooks::install(compacting(&model));
    state(&hooks, "SessionStart", "START 1");
    state(&hooks, "UserPromptSubmit", "PROMPT 1");
    let thread = codex.exec(&[], &format!("goal: {GOAL}")).thread_id();
    let statements = [GOAL, "START 1", "PROMPT 1"];
    let kept = |since| statements.map(|text| held(&codex.rollout(&thread), text, since));
    let read = || statements.map(|text| in_last_request(&model, text));

    assert_eq!(kept(Since::Resume), [true; 3]);
    codex.exec(&["resume", &thread], "Second.");
    assert_eq!(read(), [1, 1, 1]);

    codex.exec(&["resume", &thread], "Third.");
    assert_eq!(hooks.names().iter().filter(|name| *name == "SessionStart:compact").count(), 1);
    assert_eq!(statements.map(|text| held_after_compaction(&hooks, text)), [true, false, false]);
    assert_eq!(read(), [1, 0, 0]);

    assert_eq!(kept(Since::Resume), [true, false, false]);
    codex.exec(&["resume", &thread], "Fourth.");
    assert_eq!(read(), [1, 0, 0]);

    let fork = codex.exec(&["fork", &thread], "Fork.").thread_id();
    assert_ne!(fork, thread);
    assert_eq!(hooks.names().iter().filter(|name| *name == "SessionStart:fork").count(), 1);
    assert_eq!(statements.map(|text| held(&codex.rollout(&fork), text, Since::Resume)), [true, false, false]);
    assert_eq!(read(), [1, 0, 0]);
    model.check_script();
}

#[test]
fn a_session_compacted_on_resume_starts_twice_and_keeps_its_prompts() {
    let model = ScriptedResponses::start(|r| {
        let usage = if r.seq == 1 { FULL } else { SMALL };
        Reply::text(format!("Step {}.", r.seq)).usage(usage)
    });
    let (codex, hooks) = LabHooks::install(compacting(&model));
    let thread = codex.exec(&[], &format!("goal: {GOAL}")).thread_id();
    state(&hooks, "SessionStart", "START 2");
    codex.exec(&["resume", &thread], "Second.");
    let names = hooks.names();
    let starts: Vec<&String> = names.iter().filter(|name| name.starts_with("SessionStart")).collect();
    assert_eq!(starts, ["SessionStart:startup", "SessionStart:resume", "SessionStart:compact"], "{names:?}");
    assert_eq!([GOAL, "START 2"].map(|text| in_last_request(&model, text)), [1, 1]);
    assert!(held_after_compaction(&hooks, GOAL));
}

#[test]
fn a_manual_compaction_behaves_the_same() {
    let model = ScriptedResponses::start(|r| Reply::text(format!("ANSWER {}", r.seq)));
    let (codex, hooks) = LabHooks::install(Codex::new(&model));
    state(&hooks, "SessionStart", "START 1");
    let tui = Tui::start(&codex, &[]);
    tui.submit("goal: Keep this");
    tui.wait_for_turn("ANSWER 1");
    tui.submit("/compact");
    tui.wait_for_text("Context compacted");
    tui.submit("Second.");
    tui.wait_for_turn("ANSWER 2");
    tui.exit();
    let statements = ["Keep this", "START 1"];
    assert_eq!(statements.map(|text| in_last_request(&model, text)), [1, 0]);
    assert_eq!(statements.map(|text| held_after_compaction(&hooks, text)), [true, false]);
}
