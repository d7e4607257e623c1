//! What people should hear: which changes of goals and runs are worth a message. The store writes the message in the
//! transaction that decides the change; a process that comes later delivers it once.

use std::path::Path;

use strum::{Display, EnumIter, EnumString, IntoStaticStr};

use crate::clock::Millis;
use crate::goal::event::{Event, EventKind};
use crate::goal::{Actor, Goal, GoalStatus, PausedReason};
use crate::limit::Axis;
use crate::run::{Plan, Run, RunStatus, name};
use crate::text;

/// The title fits a desktop notification, and the objective is recognisable in it.
const OBJECTIVE_SHOWN: usize = 80;
const REASON_SHOWN: usize = 120;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumIter, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum MessageKind {
    GoalComplete,
    GoalBlocked,
    /// A budget, a cap, a deadline or the plan of the account is used up.
    GoalLimited,
    /// Steadfast stopped the goal: no progress, or something broke.
    GoalStalled,
    /// The agent called the goal done, and its checks failed.
    CompletionRefused,
    RunEnded,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub kind: MessageKind,
    /// The goal or run it is about.
    pub subject_id: String,
    pub title: String,
    pub body: String,
    pub created_at_ms: Millis,
}

/// The message about a change of a goal. A person hears nothing about what they did themselves, and a goal that a run
/// pursues is reported by its run.
pub fn about_goal(before: &Goal, after: &Goal, events: &[Event], actor: Actor) -> Option<Message> {
    if actor == Actor::User || name::is_of_goal(&after.session_id) {
        return None;
    }
    let (kind, title) = match verification_failed(events) {
        true => (MessageKind::CompletionRefused, "completion refused: a check failed".to_owned()),
        false if let Some(reason) = stall_reason(events) => {
            (MessageKind::GoalStalled, format!("stands still: {reason}"))
        }
        false if (before.status, before.paused_reason) == (after.status, after.paused_reason) => return None,
        false => news(after)?,
    };
    Some(Message {
        kind,
        subject_id: after.goal_id.clone(),
        title: format!("Goal {title}"),
        body: text::headline(&after.objective, OBJECTIVE_SHOWN),
        created_at_ms: after.updated_at_ms,
    })
}

/// Why nothing moves the goal, if this change tells the user.
fn stall_reason(events: &[Event]) -> Option<&str> {
    let event = events.iter().find(|event| event.kind == EventKind::GoalStalled)?;
    event.payload["reason"].as_str()
}

fn verification_failed(events: &[Event]) -> bool {
    events.iter().any(|event| event.kind == EventKind::VerificationFailed)
}

fn news(goal: &Goal) -> Option<(MessageKind, String)> {
    let paused = |kind, reason: PausedReason| Some((kind, format!("paused: {}", reason.to_string().replace('_', " "))));
    match (goal.status, goal.paused_reason) {
        (GoalStatus::Complete, _) => Some((MessageKind::GoalComplete, "complete".to_owned())),
        (GoalStatus::Blocked, _) => Some((MessageKind::GoalBlocked, "blocked: it needs you".to_owned())),
        (GoalStatus::BudgetLimited, _) => Some((MessageKind::GoalLimited, "stopped: its budget is spent".to_owned())),
        (GoalStatus::Paused, Some(reason)) => match reason {
            PausedReason::User | PausedReason::Cleared | PausedReason::Waiting | PausedReason::Interrupted => None,
            PausedReason::UsageLimit => paused(MessageKind::GoalLimited, reason),
            _ if Axis::of_pause(reason).is_some() => paused(MessageKind::GoalLimited, reason),
            _ => paused(MessageKind::GoalStalled, reason),
        },
        _ => None,
    }
}

/// The message about the end of a run; none if a person asked for that end.
pub fn about_run(run_id: &str, plan: &Plan, run: &Run, project: &str, now: Millis) -> Option<Message> {
    if matches!(run.status, RunStatus::Running | RunStatus::Killed) {
        return None;
    }
    let reason = run.reason.as_deref().map(|reason| text::headline(reason, REASON_SHOWN)).unwrap_or_default();
    let place = Path::new(project).file_name().map_or(project.into(), std::ffi::OsStr::to_string_lossy);
    Some(Message {
        kind: MessageKind::RunEnded,
        subject_id: run_id.to_owned(),
        title: format!("{} {} {}", plan.kind, plan.name, run.status),
        body: format!("{reason} · {place}"),
        created_at_ms: now,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goal::change;
    use crate::goal::proof::Proof;
    use crate::testing::{START, goal};

    fn kind_of(before: &Goal, change: &change::Change, actor: Actor) -> Option<MessageKind> {
        about_goal(before, &change.goal, &change.events, actor).map(|message| message.kind)
    }

    #[test]
    fn ends_and_stops_are_reported_unless_a_person_caused_them() {
        let goal = goal();
        let done = change::complete(&goal, &Proof::from_worker(&goal).unwrap(), START).unwrap();
        assert_eq!(kind_of(&goal, &done, Actor::Worker), Some(MessageKind::GoalComplete));
        assert_eq!(kind_of(&goal, &done, Actor::User), None);
        let blocked = change::block(&goal, "no key", START).unwrap();
        assert_eq!(kind_of(&goal, &blocked, Actor::Worker), Some(MessageKind::GoalBlocked));
        let paused = |reason| {
            let event = Event::new(EventKind::GoalPaused, serde_json::json!({}));
            change::pause_for(&goal, reason, event, START)
        };
        for (reason, kind) in [
            (PausedReason::Deadline, Some(MessageKind::GoalLimited)),
            (PausedReason::UsageLimit, Some(MessageKind::GoalLimited)),
            (PausedReason::NoProgress, Some(MessageKind::GoalStalled)),
            (PausedReason::Waiting, None),
        ] {
            assert_eq!(kind_of(&goal, &paused(reason), Actor::Steadfast), kind, "{reason}");
        }
    }

    #[test]
    fn a_goal_that_nothing_moves_is_reported() {
        let goal = goal();
        let told = crate::goal::watch::told(&goal, crate::goal::liveness::Stall::SessionClosed, START);
        let message = about_goal(&goal, &told.goal, &told.events, Actor::Steadfast).unwrap();
        assert_eq!(
            (message.kind, &*message.title),
            (MessageKind::GoalStalled, "Goal stands still: its session is closed")
        );
    }

    #[test]
    fn a_goal_of_a_run_is_reported_by_its_run() {
        let goal = Goal { session_id: name::of_goal("0190f3c2-5e1a"), ..goal() };
        let done = change::complete(&goal, &Proof::from_worker(&goal).unwrap(), START).unwrap();
        assert_eq!(kind_of(&goal, &done, Actor::Steadfast), None);
    }
}
