//! A rollout of the real client, cut where a session might have been left, and rollouts made for what is rare.

use serde_json::json;

use super::*;
use crate::holds_text;
use steadfast_model::host::Host;

fn sample() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/codex/context/goal-compacted-in-turn-resumed.jsonl");
    fs_err::read_to_string(path).unwrap()
}

fn held(text: &str, objective: &str, since: Since) -> bool {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rollout.jsonl");
    fs_err::write(&path, text).unwrap();
    holds_text(Host::Codex, &path, objective, since)
}

#[test]
fn a_real_session_keeps_its_goal_through_a_compaction_because_the_user_said_it() {
    let sample = sample();
    let lines: Vec<&str> = sample.split_inclusive('\n').collect();
    let before: u64 = lines[..16].concat().len() as u64;
    let this = Since::Compaction { noted_at: Some(before) };
    for (lines_left, resumed, compacted) in [
        (7, false, false),
        (8, true, false),
        // The hook of the compaction ran before its line was there: no file shows it.
        (19, true, false),
        (20, true, true),
        (25, true, true),
        (71, true, true),
    ] {
        let text = lines[..lines_left].concat();
        let found = (held(&text, "Fix the parser", Since::Resume), held(&text, "Fix the parser", this));
        assert_eq!(found, (resumed, compacted), "{lines_left} lines");
    }
    // A later compaction, whose line is not there yet.
    let later = Since::Compaction { noted_at: Some(sample.len() as u64) };
    assert!(!held(&sample, "Fix the parser", later));
    assert!(!held(&sample, "Fix the parser", Since::Compaction { noted_at: None }));
    assert!(!held(&sample, "Fix", Since::Resume));

    // Without the prompt in what replaced the conversation, only what came after it counts.
    let forgotten = lines[..25].concat().replace("goal: Fix the parser", "goal: forgotten");
    assert!(!held(&forgotten, "Fix the parser", Since::Resume) && !held(&forgotten, "Fix the parser", this));
    let restored = format!("{forgotten}{}", lines[25]);
    assert!(held(&restored, "Fix the parser", Since::Resume) && held(&restored, "Fix the parser", this));
    let continued = format!("{forgotten}{}", lines[30]);
    assert!(lines[30].contains("<hook_prompt") && held(&continued, "Fix the parser", Since::Resume));
}

fn line(kind: &str, payload: &Value) -> String {
    format!("{{\"timestamp\":\"2026-11-15T10:00:00.000Z\",\"ordinal\":1,\"type\":\"{kind}\",\"payload\":{payload}}}\n")
}

fn message(role: &str, text: &str) -> Value {
    json!({"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]})
}

#[test]
fn only_what_is_sent_to_the_model_counts() {
    let ours = "<objective>\nShip it\n</objective>";
    let completed =
        json!({"type": "item_completed", "item": {"type": "UserMessage", "content": [{"text": "goal: Ship it"}]}});
    let output = json!({"type": "function_call_output", "output": ours});
    for (kind, payload, counts) in [
        ("response_item", message("user", "goal: Ship it"), true),
        ("response_item", message("developer", ours), true),
        ("response_item", message("assistant", ours), false),
        ("response_item", message("user", "Ship it"), false),
        ("response_item", output, false),
        ("event_msg", completed, false),
        ("compacted", json!({"message": "goal: Ship it"}), false),
        ("compacted", json!({"message": "", "replacement_history": [message("user", "goal: Ship it")]}), true),
        ("compacted", json!({"message": "", "replacement_history": [message("assistant", ours)]}), false),
    ] {
        let text = line("turn_context", &json!({})) + &line(kind, &payload) + &line("event_msg", &json!({"type": "x"}));
        assert_eq!(held(&text, "Ship it", Since::Resume), counts, "{kind} {payload}");
    }
}

#[test]
fn what_was_taken_back_is_in_doubt() {
    let said = line("response_item", &message("user", "goal: Ship it"));
    let back = line("event_msg", &json!({"type": "thread_rolled_back", "num_turns": 1}));
    assert!(!held(&format!("{said}{back}"), "Ship it", Since::Resume));
    assert!(held(&format!("{back}{said}"), "Ship it", Since::Resume));
}

/// The fork's file begins where the parent's stood, in another folder.
#[test]
fn a_fork_inherits_what_its_parent_had_at_that_time() {
    let home = tempfile::tempdir().unwrap();
    let folder = |day: &str| {
        let folder = home.path().join("sessions/2026/11").join(day);
        fs_err::create_dir_all(&folder).unwrap();
        folder
    };
    let parent = "01a1e023-e7bf-7f13-941b-4ba46dd8223b";
    let said = line("response_item", &message("user", "goal: Ship it"));
    let later = line("response_item", &message("user", "goal: Something later"));
    let begin = line("session_meta", &json!({"id": parent}));
    let text = format!("{begin}{said}{later}");
    fs_err::write(folder("14").join(format!("rollout-2026-11-14T23-56-51-{parent}.jsonl")), &text).unwrap();
    let fork = folder("15").join("rollout-2026-11-15T00-10-00-01a1e023-ee05-71b1-97e1-e00f18d58bee.jsonl");
    let base =
        |thread: &str| json!({"history_base": {"thread_id": thread, "end_byte_offset": text.len() - later.len()}});
    fs_err::write(&fork, line("session_meta", &base(parent))).unwrap();

    let held = |objective: &str, since: Since| holds_text(Host::Codex, &fork, objective, since);
    assert!(held("Ship it", Since::Resume));
    assert!(!held("Something later", Since::Resume), "said in the parent after the fork");
    assert!(!held("Ship it", Since::Compaction { noted_at: Some(0) }));
    for unknown in ["01a1e023-e7bf-7f13-941b-000000000000", "../../../etc/passwd", ""] {
        fs_err::write(&fork, line("session_meta", &base(unknown))).unwrap();
        assert!(!held("Ship it", Since::Resume), "{unknown}");
    }
}

#[test]
fn broken_and_missing_files_are_no_trouble() {
    assert!(!held("\nnot JSON\n{\"type\":", "Ship it", Since::Resume) && !held("", "Ship it", Since::Resume));
    assert!(!holds_text(Host::Codex, Path::new("/nowhere/at/all.jsonl"), "Ship it", Since::Resume));
    let said = line("response_item", &message("user", "goal: Ship it"));
    assert!(held(&format!("{said}{{\"timestamp\":\"20"), "Ship it", Since::Resume));
}
