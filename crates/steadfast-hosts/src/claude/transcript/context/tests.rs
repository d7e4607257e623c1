//! A file of the real client, cut where a session might have been left, and files made for what is rare.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::*;
use crate::{Since, holds_text};
use steadfast_model::host::Host;

const GOAL: &str = "Fix the <parser> & 'ship' it";

fn sample() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/claude/context/goal-compact-resume-native.jsonl");
    fs_err::read_to_string(path).unwrap()
}

fn held(text: &str, objective: &str) -> bool {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("session.jsonl");
    fs_err::write(&path, text).unwrap();
    assert!(!holds_text(Host::Claude, &path, objective, Since::Compaction { noted_at: Some(0) }));
    holds_text(Host::Claude, &path, objective, Since::Resume)
}

#[test]
fn a_real_session_holds_its_goal_until_it_is_compacted_and_again_when_it_was_told_again() {
    let sample = sample();
    let lines: Vec<&str> = sample.split_inclusive('\n').collect();
    for (lines_left, goal, native) in [
        // A queued prompt, the command's own record, and what the hook printed to the user are no statement.
        (1, false, false),
        (8, false, false),
        // What the hook injected is.
        (9, true, false),
        (32, true, false),
        // The boundary, the summary, and the words of the hook for the user.
        (33, false, false),
        (40, false, false),
        // What the hook injected after the compaction.
        (41, true, false),
        (52, true, false),
        // The client's own goal: queued, noted, and then said.
        (55, true, false),
        (56, true, true),
        (67, true, true),
    ] {
        let text = lines[..lines_left].concat();
        assert_eq!((held(&text, GOAL), held(&text, "all tests pass")), (goal, native), "{lines_left} lines");
    }
    // Only the whole text counts.
    assert!(!held(&sample, "Fix the <parser>") && !held(&sample, "SCRIPTED SUMMARY"));
}

/// Lines that follow one another, each with what it says.
fn conversation(said: &[Value]) -> String {
    let mut text = String::new();
    for (at, said) in said.iter().enumerate() {
        let mut line = json!({"parentUuid": at.checked_sub(1).map(|at| format!("u{at}")), "isSidechain": false});
        line["uuid"] = json!(format!("u{at}"));
        for (key, value) in said.as_object().unwrap() {
            line[key] = value.clone();
        }
        writeln!(text, "{line}").unwrap();
    }
    text
}

fn prompt(text: &str) -> Value {
    json!({"type": "user", "message": {"role": "user", "content": text}})
}

fn answer() -> Value {
    json!({"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": "Yes."}]}})
}

#[test]
fn only_what_is_sent_to_the_model_counts() {
    let ours = "<session_goal>\n<objective>\nShip it\n</objective>\n</session_goal>";
    let hook =
        |kind: &str| json!({"type": "attachment", "attachment": {"type": kind, "content": [ours], "stdout": ours}});
    let blocks = |block: Value| json!({"type": "user", "message": {"role": "user", "content": [block]}});
    for (line, counts) in [
        (prompt("goal: Ship it"), true),
        (blocks(json!({"type": "text", "text": "goal: Ship it"})), true),
        (prompt(&format!("Stop hook feedback:\n{ours}")), true),
        (hook("hook_additional_context"), true),
        (hook("hook_success"), false),
        (hook("hook_blocking_error"), false),
        (blocks(json!({"type": "tool_result", "content": ours})), false),
        (blocks(json!({"type": "tool_result", "content": [{"type": "text", "text": ours}]})), false),
        (
            json!({"type": "user", "message": {"role": "user", "content": [
                {"type": "tool_result", "content": "Ship it"}, {"type": "text", "text": "goal: Ship it"}]}}),
            true,
        ),
        (json!({"type": "system", "subtype": "informational", "content": "goal: Ship it"}), false),
        (json!({"type": "assistant", "message": {"content": [{"type": "text", "text": ours}]}}), false),
        (json!({"type": "user", "isCompactSummary": true, "message": {"content": ours}}), false),
        (json!({"type": "user", "isSidechain": true, "message": {"content": "goal: Ship it"}}), false),
        (prompt("Ship it"), false),
    ] {
        assert_eq!(held(&conversation(&[answer(), line.clone(), answer()]), "Ship it"), counts, "{line}");
    }
}

#[test]
fn what_was_rewound_is_gone_and_what_stands_out_of_order_is_not() {
    let mut rewound = prompt("Something else");
    rewound["parentUuid"] = json!("u0");
    let text = conversation(&[answer(), prompt("goal: Ship it"), answer(), rewound, answer()]);
    assert!(!held(&text, "Ship it") && text.contains("goal: Ship it"));

    let text = conversation(&[answer(), prompt("goal: Ship it"), answer(), prompt("Go on"), answer()]);
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    lines.swap(1, 3);
    assert!(held(&lines.concat(), "Ship it"));
}

#[test]
fn half_lines_foreign_lines_and_missing_files_are_no_trouble() {
    let text = conversation(&[prompt("goal: Ship it"), answer()]);
    assert!(held(
        &format!("{text}{{\"type\":\"last-prompt\",\"lastPrompt\":\"x\"}}\n{{\"parentUuid\":\"u1\",\"uu"),
        "Ship it"
    ));
    assert!(!held("\n\nnot JSON\n[1]\n{}\n", "Ship it") && !held("", "Ship it"));
    assert!(!holds_text(Host::Claude, Path::new("/nowhere/at/all.jsonl"), "Ship it", Since::Resume));
    assert!(!held(&text, ""));
}

#[test]
fn a_goal_far_back_in_a_huge_file_is_told_again() {
    let large = "x".repeat(3_000_000);
    let near = [prompt("goal: Ship it"), prompt(&large), answer()];
    assert!(held(&conversation(&near), "Ship it"));
    let far = [prompt("goal: Ship it"), prompt(&large), prompt(&large), prompt(&large), answer()];
    assert!(!held(&conversation(&far), "Ship it"));
}
