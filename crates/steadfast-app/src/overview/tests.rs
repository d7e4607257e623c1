//! Output of status and JSON: current numbers in the documented form.

use super::*;
use steadfast_model::limit::{Axis, Limits};

use crate::testing::{MINUTE, START, World, goal};

/// Bug 16 of the plugin: a running goal showed no time.
#[test]
fn the_time_of_a_goal_is_as_of_now_and_stops_at_its_end() {
    let world = World::new();
    let running = Goal { time_used_seconds: 60, resume_at_ms: Some(START + MINUTE), ..goal() };
    let view = goal_view(world.store.read(), &running, &world.paths(), START + 3 * MINUTE).unwrap();
    assert_eq!((view.active_seconds, view.wall_seconds), (180, 180));
    let done = steadfast_model::goal::change::complete(
        &running,
        &steadfast_model::goal::proof::Proof::from_user(&running, steadfast_model::goal::Actor::User).unwrap(),
        START + 3 * MINUTE,
    );
    let view = goal_view(world.store.read(), &done.unwrap().goal, &world.paths(), START + 90 * MINUTE).unwrap();
    assert_eq!((view.active_seconds, view.wall_seconds), (180, 180));
}

#[test]
fn the_status_block_matches_the_documentation() {
    let world = World::new();
    let uncertain = Goal {
        status: GoalStatus::Paused,
        paused_reason: Some(PausedReason::AccountingUncertain),
        accounting_uncertain: true,
        tokens_used: 24_500,
        subagent_tokens: 1_800,
        resume_at_ms: None,
        ..goal()
    };
    let text = status_text(&goal_view(world.store.read(), &uncertain, &world.paths(), START).unwrap());
    for line in [
        "◎ Goal: Make every test pass",
        "status: paused",
        "paused_reason: accounting_uncertain",
        &format!("session: {}", uncertain.session_id),
        "tokens: 24,500 worker · 1,800 subagent (last known — may undercount)",
        "⚠ /compact event detected. Run /goal-reconcile --accept-reset to resume.",
        "next: /goal-reconcile --accept-reset resumes",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\nin\n{text}");
    }
}

#[test]
fn scripts_find_every_documented_field() {
    let world = World::new();
    let view = serde_json::to_value(goal_view(world.store.read(), &goal(), &world.paths(), START).unwrap()).unwrap();
    for field in [
        "goal_id",
        "session_id",
        "host",
        "objective",
        "status",
        "paused_reason",
        "token_budget",
        "tokens_used",
        "subagent_tokens",
        "evaluator_tokens",
        "total_tokens",
        "remaining_tokens",
        "cost_usd",
        "continuations_used",
        "continuations_remaining",
        "active_seconds",
        "wall_seconds",
        "accounting_uncertain",
        "verify",
        "last_verdict",
        "next",
        "version",
        "created_at_ms",
        "updated_at_ms",
    ] {
        assert!(view.get(field).is_some(), "{field}");
    }
    assert_eq!((&view["status"], &view["accounting_uncertain"]), (&json!("active"), &json!(false)));
}

#[test]
fn a_live_goal_is_kept_in_memory_as_one_line() {
    let running = Goal {
        tokens_used: 1_000_000,
        subagent_tokens: 200_000,
        limits: Limits::default().with(Axis::Tokens, 10_000_000),
        continuations_used: 14,
        ..goal()
    };
    let kept = |objective: &str, standing: &str, active| {
        let (objective, standing) = (objective.to_owned(), standing.to_owned());
        Some(steadfast_model::memory::GoalSummary { objective, standing, active, set_at_ms: goal().created_at_ms })
    };
    let line = "active · 1.2M of 10M tokens · 14 turns";
    assert_eq!(session::kept_goal(&running), kept("Make every test pass", line, true));
    let paused = Goal {
        status: GoalStatus::Paused,
        paused_reason: Some(PausedReason::User),
        limits: Limits::default(),
        resume_at_ms: None,
        ..running.clone()
    };
    let line = "paused (user) · 1.2M tokens · 14 turns";
    assert_eq!(session::kept_goal(&paused), kept("Make every test pass", line, false));
    assert_eq!(session::kept_goal(&Goal { status: GoalStatus::Complete, ..running }), None);
}
