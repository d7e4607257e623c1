//! What people should hear: which changes of goals and runs are worth a message, and what it says. The store writes the
//! message in the transaction that decides the change; a process that comes later delivers it to each channel.

pub mod delivery;
pub mod quiet;

use std::path::Path;

use serde_json::Value;
use strum::{Display, EnumIter, EnumMessage, EnumString, IntoStaticStr};

use crate::clock::{self, Millis};
use crate::goal::event::{Event, EventKind};
use crate::goal::proof::CompletedBy;
use crate::goal::{Actor, Goal, GoalStatus, PausedReason};
use crate::limit::Axis;
use crate::redact::redact;
use crate::run::{Plan, Run, RunKind, RunStatus, name};
use crate::text;

/// The objective is recognisable in it, and a desktop notification shows it.
const OBJECTIVE_SHOWN: usize = 80;
const REASON_SHOWN: usize = 120;

/// The words of `[notify] events`, and of the rows and payloads. The second words are those of older stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumIter, EnumMessage, EnumString, IntoStaticStr)]
pub enum MessageKind {
    /// The goal is complete; the message says how that is known.
    #[strum(to_string = "complete", serialize = "goal_complete")]
    Complete,
    /// The goal needs something that only a person can do.
    #[strum(to_string = "blocked", serialize = "goal_blocked")]
    Blocked,
    /// A budget, a cap, a deadline or the plan of the account is used up.
    #[strum(to_string = "limit", serialize = "goal_limited")]
    Limit,
    /// Steadfast stopped the goal (no progress, or something broke), or nothing moves it.
    #[strum(to_string = "stalled", serialize = "goal_stalled")]
    Stalled,
    /// The agent called the goal done, and its checks failed.
    #[strum(to_string = "refused", serialize = "completion_refused")]
    Refused,
    /// A loop or a pipeline ended.
    #[strum(to_string = "run_ended")]
    RunEnded,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub kind: MessageKind,
    /// The goal or run it is about.
    pub subject_id: String,
    pub title: String,
    /// Lines: what it is about, why, and what to type in a terminal.
    pub body: String,
    pub created_at_ms: Millis,
}

/// What changed, why, and the `steadfast goal` verb that helps.
struct News {
    kind: MessageKind,
    title: String,
    reason: Option<String>,
    verb: String,
}

impl News {
    fn new(kind: MessageKind, title: impl Into<String>, verb: impl Into<String>) -> Self {
        Self { kind, title: title.into(), reason: None, verb: verb.into() }
    }

    fn because(self, reason: Option<String>) -> Self {
        Self { reason, ..self }
    }
}

/// The message about a change of a goal. A person hears nothing about what they did themselves, and a goal that a run
/// pursues is reported by its run.
pub fn about_goal(before: &Goal, after: &Goal, events: &[Event], actor: Actor) -> Option<Message> {
    if actor == Actor::User || name::is_of_goal(&after.session_id) {
        return None;
    }
    let payload = |kind| events.iter().find(|event| event.kind == kind).map(|event| &event.payload);
    let news = if let Some(failed) = payload(EventKind::VerificationFailed) {
        let title = "completion refused: a check failed";
        News::new(MessageKind::Refused, title, "verify").because(failed_command(failed))
    } else if (before.status, before.paused_reason) != (after.status, after.paused_reason) {
        change_of_status(after, events)?
    } else if after.stall_told && !before.stall_told {
        let reason = payload(EventKind::GoalStalled).and_then(|stall| stall["reason"].as_str());
        let title = format!("stalled: {}", reason.unwrap_or("nothing moves it"));
        News::new(MessageKind::Stalled, title, "status")
    } else {
        return None;
    };
    let mut lines = vec![shown(&after.objective, OBJECTIVE_SHOWN)];
    lines.extend(news.reason);
    lines.push(format!("steadfast goal {}{}", news.verb, session_flag(&after.session_id)));
    Some(Message {
        kind: news.kind,
        subject_id: after.goal_id.clone(),
        title: format!("Goal {}", news.title),
        body: lines.join("\n"),
        created_at_ms: after.updated_at_ms,
    })
}

fn change_of_status(goal: &Goal, events: &[Event]) -> Option<News> {
    let said = |key| events.iter().find_map(|event| event.payload[key].as_str());
    let extend = |axis: Option<Axis>| match axis.and_then(Axis::extend_flag) {
        Some(flag) => format!("extend {flag}"),
        None => "status".to_owned(),
    };
    match (goal.status, goal.paused_reason) {
        (GoalStatus::Complete, _) => {
            let how = match goal.completed_by {
                Some(CompletedBy::User) | None => "",
                Some(_) if !goal.verify.is_empty() => " (verified)",
                Some(CompletedBy::Evaluator) => " (confirmed by the evaluator)",
                Some(_) => " (unverified)",
            };
            Some(News::new(MessageKind::Complete, format!("complete{how}"), "status"))
        }
        (GoalStatus::Blocked, _) => {
            let reason = said("reason").map(|reason| shown(reason, REASON_SHOWN));
            Some(News::new(MessageKind::Blocked, "blocked: it needs you", "resume").because(reason))
        }
        (GoalStatus::BudgetLimited, _) => {
            let verb = extend(goal.reached_limit(goal.updated_at_ms));
            Some(News::new(MessageKind::Limit, "stopped: its budget is spent", verb))
        }
        (GoalStatus::Paused, Some(reason)) => {
            if reason == PausedReason::SignOff {
                let why = "the agent says that it is done; `resume` sends it back to work".to_owned();
                let news = News::new(MessageKind::Blocked, "waits for your sign-off", "complete");
                return Some(news.because(Some(why)));
            }
            let axis = Axis::of_pause(reason);
            let (kind, verb) = match reason {
                PausedReason::User | PausedReason::Cleared | PausedReason::Waiting | PausedReason::Interrupted => {
                    return None;
                }
                PausedReason::UsageLimit => (MessageKind::Limit, "status".to_owned()),
                PausedReason::AccountingError | PausedReason::AccountingUncertain => {
                    (MessageKind::Stalled, "reconcile --accept-reset".to_owned())
                }
                _ if axis.is_some() => (MessageKind::Limit, extend(axis)),
                _ => (MessageKind::Stalled, "resume".to_owned()),
            };
            let continues = goal.wake_at_ms.map(|at| format!("continues at {}", clock::to_local(at)));
            let cause = || said("cause").map(|cause| shown(cause, REASON_SHOWN));
            let title = format!("paused: {}", reason.to_string().replace('_', " "));
            Some(News::new(kind, title, verb).because(continues.or_else(cause)))
        }
        _ => None,
    }
}

/// The command of a failed verification, and how it ended.
fn failed_command(payload: &Value) -> Option<String> {
    let results = payload["results"].as_array()?;
    let failed = results.iter().find(|run| run["exit_code"] != 0)?;
    let how = match failed["exit_code"].as_i64() {
        _ if failed["timed_out"] == true => "timed out".to_owned(),
        Some(code) => format!("exit code {code}"),
        None => "ended by a signal".to_owned(),
    };
    Some(format!("{}: {how}", shown(failed["command"].as_str()?, REASON_SHOWN)))
}

/// One short line without secrets: messages leave the machine.
fn shown(text: &str, most: usize) -> String {
    text::headline(&redact(text), most)
}

/// Names the session, so that the command works in any directory. An id that a shell would not take as one word is left
/// out.
fn session_flag(id: &str) -> String {
    let is_word = id.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c)) && !id.starts_with('-');
    if is_word { format!(" --session {id}") } else { String::new() }
}

/// The message about a stage that waits for a person.
pub fn about_approval(run_id: &str, plan: &Plan, stage: u32, project: &str, now: Millis) -> Message {
    let stage_plan = plan.stage(stage);
    let name = stage_plan.map_or("", |stage| stage.name.as_str());
    let question = stage_plan.and_then(|stage| stage.approve.as_deref()).unwrap_or_default();
    let (kind, run) = (plan.kind, &plan.name);
    Message {
        kind: MessageKind::Blocked,
        subject_id: run_id.to_owned(),
        title: format!("{kind} {run}: stage {name} waits for your yes"),
        body: format!(
            "{} · {}\nsteadfast {kind} approve {run} {name} (or reject)",
            shown(question, REASON_SHOWN),
            place(project)
        ),
        created_at_ms: now,
    }
}

/// The message about an appointment whose run did not start.
pub fn about_missed_run(id: &str, kind: RunKind, name: &str, project: &str, error: &str, now: Millis) -> Message {
    Message {
        kind: MessageKind::RunEnded,
        subject_id: id.to_owned(),
        title: format!("{kind} {name} did not start at its time"),
        body: format!("{} · {}\nsteadfast {kind} list", shown(error, REASON_SHOWN), place(project)),
        created_at_ms: now,
    }
}

/// The last part of a project's path.
fn place(project: &str) -> String {
    let name = Path::new(project).file_name().map_or(project.into(), std::ffi::OsStr::to_string_lossy);
    text::headline(&name, OBJECTIVE_SHOWN)
}

/// The message about the end of a run; none if a person asked for that end.
pub fn about_run(run_id: &str, plan: &Plan, run: &Run, project: &str, now: Millis) -> Option<Message> {
    if matches!(run.status, RunStatus::Running | RunStatus::Killed) {
        return None;
    }
    let reason = run.reason.as_deref().map(|reason| shown(reason, REASON_SHOWN)).unwrap_or_default();
    Some(Message {
        kind: MessageKind::RunEnded,
        subject_id: run_id.to_owned(),
        title: format!("{} {} {}", plan.kind, plan.name, run.status),
        body: format!("{reason} · {}\nsteadfast {} status {}", place(project), plan.kind, plan.name),
        created_at_ms: now,
    })
}

#[cfg(test)]
mod tests;
