use serde_json::json;
use strum::IntoEnumIterator as _;

use super::*;
use crate::goal::change;
use crate::goal::proof::{Basis, Proof};
use crate::testing::{START, goal};

fn message(before: &Goal, change: &change::Change, actor: Actor) -> Option<Message> {
    about_goal(before, &change.goal, &change.events, actor)
}

fn paused(goal: &Goal, reason: PausedReason) -> change::Change {
    change::pause_for(goal, reason, Event::new(EventKind::GoalPaused, json!({})), START)
}

#[test]
fn ends_and_stops_are_reported_unless_a_person_caused_them() {
    let goal = goal();
    let kind_of = |change: &change::Change, actor| message(&goal, change, actor).map(|message| message.kind);
    let done = change::complete(&goal, &Proof::from_agent(&goal, &Basis::default()).unwrap(), START).unwrap();
    assert_eq!(kind_of(&done, Actor::Worker), Some(MessageKind::Complete));
    assert_eq!(kind_of(&done, Actor::User), None);
    let blocked = change::block(&goal, "no key", START).unwrap();
    assert_eq!(kind_of(&blocked, Actor::Worker), Some(MessageKind::Blocked));
    for (reason, kind) in [
        (PausedReason::Deadline, Some(MessageKind::Limit)),
        (PausedReason::UsageLimit, Some(MessageKind::Limit)),
        (PausedReason::NoProgress, Some(MessageKind::Stalled)),
        (PausedReason::Degraded, Some(MessageKind::Stalled)),
        (PausedReason::Waiting, None),
        (PausedReason::Interrupted, None),
    ] {
        assert_eq!(kind_of(&paused(&goal, reason), Actor::Steadfast), kind, "{reason}");
    }
}

#[test]
fn a_message_says_why_and_what_to_type() {
    let goal = Goal { objective: "All tests pass\nand more".into(), session_id: "s-1".into(), ..goal() };
    let said = |before: &Goal, change: &change::Change| {
        let message = message(before, change, Actor::Worker).unwrap();
        format!("{}\n{}", message.title, message.body)
    };
    let done = change::complete(&goal, &Proof::from_agent(&goal, &Basis::default()).unwrap(), START).unwrap();
    assert_eq!(said(&goal, &done), "Goal complete (unverified)\nAll tests pass …\nsteadfast goal status --session s-1");
    let blocked = change::block(&goal, "no key\nfor the registry", START).unwrap();
    assert_eq!(
        said(&goal, &blocked),
        "Goal blocked: it needs you\nAll tests pass …\nno key …\nsteadfast goal resume --session s-1"
    );
    let to_sign = Goal { sign_off: true, ..goal.clone() };
    let asked = change::complete(&to_sign, &Proof::from_agent(&to_sign, &Basis::default()).unwrap(), START).unwrap();
    assert_eq!(
        said(&to_sign, &asked),
        "Goal waits for your sign-off\nAll tests pass …\nthe agent says that it is done; `resume` sends it back to work\n\
         steadfast goal complete --session s-1"
    );
    for (reason, title, command) in [
        (PausedReason::ContinuationCap, "continuation cap", "extend --add-turns N"),
        (PausedReason::CostCap, "cost cap", "status"),
        (PausedReason::NoProgress, "no progress", "resume"),
        (PausedReason::AccountingUncertain, "accounting uncertain", "reconcile --accept-reset"),
    ] {
        let expected = format!("Goal paused: {title}\nAll tests pass …\nsteadfast goal {command} --session s-1");
        assert_eq!(said(&goal, &paused(&goal, reason)), expected);
    }
    let mut limited = paused(&goal, PausedReason::UsageLimit);
    limited.goal.wake_at_ms = Some(START);
    let at = clock::to_local(START);
    assert_eq!(
        said(&goal, &limited),
        format!("Goal paused: usage limit\nAll tests pass …\ncontinues at {at}\nsteadfast goal status --session s-1")
    );
    assert_eq!(message(&limited.goal, &paused(&goal, PausedReason::Waiting), Actor::Steadfast), None);
}

#[test]
fn a_refused_completion_names_the_command_that_failed() {
    let goal = Goal { session_id: "s-1".into(), ..goal() };
    let results = json!({"results": [
        {"command": "cargo fmt", "exit_code": 0, "timed_out": false},
        {"command": "cargo test", "exit_code": 101, "timed_out": false},
    ]});
    let events = [Event::new(EventKind::VerificationFailed, results)];
    let message = about_goal(&goal, &goal, &events, Actor::Worker).unwrap();
    assert_eq!((message.kind, &*message.title), (MessageKind::Refused, "Goal completion refused: a check failed"));
    let lines: Vec<&str> = message.body.lines().skip(1).collect();
    assert_eq!(lines, ["cargo test: exit code 101", "steadfast goal verify --session s-1"]);
}

#[test]
fn a_stalled_goal_is_reported_once() {
    let moving = Goal { session_id: "s-1".into(), ..goal() };
    let stalled = Goal { stall_told: true, ..moving.clone() };
    let message = about_goal(&moving, &stalled, &[], Actor::Steadfast).unwrap();
    assert_eq!((message.kind, &*message.title), (MessageKind::Stalled, "Goal stalled: nothing moves it"));
    assert_eq!(about_goal(&stalled, &stalled, &[], Actor::Steadfast), None);
    assert_eq!(about_goal(&stalled, &moving, &[], Actor::Steadfast), None);
}

#[test]
fn hostile_text_stays_short_and_printable_and_loses_its_secrets() {
    let objective = format!("\u{1b}[31m'$(id)'\u{0}\u{202e} key AKIAIOSFODNN7EXAMPLE {}", "x".repeat(4_000));
    let goal = Goal { objective, session_id: "a; rm -rf /".into(), ..goal() };
    let message = message(&goal, &change::block(&goal, "\r\n\"", START).unwrap(), Actor::Worker).unwrap();
    assert!(message.body.chars().all(|c| c == '\n' || !c.is_control()), "{message:?}");
    assert!(!message.body.contains("AKIAIOSFODNN7EXAMPLE") && message.body.contains("'$(id)'"), "{message:?}");
    assert!(message.body.chars().count() < 300 && message.body.ends_with("\nsteadfast goal resume"), "{message:?}");
}

#[test]
fn a_goal_of_a_run_is_reported_by_its_run() {
    let goal = Goal { session_id: name::of_goal("0190f3c2-5e1a"), ..goal() };
    let done = change::complete(&goal, &Proof::from_agent(&goal, &Basis::default()).unwrap(), START).unwrap();
    assert_eq!(message(&goal, &done, Actor::Steadfast), None);
}

#[test]
fn every_kind_is_read_back_from_its_word_and_from_that_of_older_stores() {
    for kind in MessageKind::iter() {
        assert_eq!(kind.to_string().parse(), Ok(kind));
        assert_eq!(<&str>::from(kind), kind.to_string());
    }
    assert_eq!("goal_limited".parse(), Ok(MessageKind::Limit));
}
