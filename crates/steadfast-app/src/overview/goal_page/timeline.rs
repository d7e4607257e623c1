//! What happened to a goal, in words: accounting passes in a row are one line, everything else has its own.

use serde_json::Value;

use super::{MarkKind, PageMark, Pause, TimelineRow};
use crate::overview::report::StatusChange;
use steadfast_model::clock::Millis;
use steadfast_model::goal::event::EventKind;
use steadfast_model::text;
use steadfast_store::EventRow;

/// Characters of a detail.
const DETAIL_SHOWN: usize = 600;

/// The rows of a timeline, newest first.
pub(super) fn rows(oldest_first: &[EventRow]) -> Vec<TimelineRow> {
    let mut rows: Vec<TimelineRow> = Vec::new();
    for event in oldest_first.iter().rev() {
        let kind = event.kind.parse::<EventKind>().ok();
        let tokens = event.tokens_delta.unwrap_or(0);
        if let Some(last) = rows.last_mut().filter(|last| is_accounting(kind) && last.kind == event.kind) {
            last.count += 1;
            last.tokens += tokens;
            continue;
        }
        rows.push(TimelineRow {
            at_ms: event.created_at_ms,
            kind: event.kind.clone(),
            title: title(kind, &event.kind),
            detail: detail(&event.payload),
            by: event.actor.clone(),
            tokens,
            count: 1,
            status_after: event.status_after.clone().filter(|_| event.status_after != event.status_before),
        });
    }
    rows
}

fn is_accounting(kind: Option<EventKind>) -> bool {
    matches!(kind, Some(EventKind::TokensAccounted | EventKind::ContinuationInjected))
}

/// `goal_completed_by_user` as people say it.
fn title(kind: Option<EventKind>, name: &str) -> String {
    let title = match kind {
        Some(EventKind::TokensAccounted) => "Tokens counted",
        Some(EventKind::ContinuationInjected) => "Continued",
        Some(EventKind::GoalCreated) => "Started",
        Some(EventKind::GoalPaused) => "Paused",
        Some(EventKind::PausedDegraded) => "Paused after an error",
        Some(EventKind::GoalResumed) => "Resumed",
        Some(EventKind::GoalExtended) => "Limits raised",
        Some(EventKind::GoalBlocked) => "Blocked",
        Some(EventKind::GoalAbandoned) => "Abandoned",
        Some(EventKind::GoalObjectiveUpdated) => "Objective changed",
        Some(EventKind::GoalCompletedByUser) => "Completed by a person",
        Some(EventKind::GoalCompletedByEvaluator) => "Completed: the evaluator agreed",
        Some(EventKind::GoalCompletedBySelfUpdate) => "Completed by the agent",
        Some(EventKind::GoalStalled) => "Stalled",
        Some(EventKind::GoalWaiting) => "Waits",
        Some(EventKind::GoalWoken) => "Woken",
        Some(EventKind::EvaluatorVerdict) => "Verdict",
        Some(EventKind::VerificationPassed) => "Checks passed",
        Some(EventKind::VerificationFailed) => "Checks failed",
        Some(EventKind::ItemProven) => "Item proven",
        Some(EventKind::SignOffRequested) => "Waits for a sign-off",
        Some(EventKind::LimitWarning) => "Warned: a limit is near",
        Some(EventKind::BudgetLimited | EventKind::BudgetLimitReported) => "Budget spent",
        Some(EventKind::WindDownStarted) => "Winds down",
        Some(EventKind::WindDownEnded) => "Wound down",
        Some(EventKind::TurnFailed) => "A turn failed",
        Some(EventKind::PrivilegedVerbRefused) => "Refused to the agent",
        _ => return sentence(name),
    };
    title.to_owned()
}

/// `session_ended` becomes `Session ended`.
fn sentence(name: &str) -> String {
    let words = name.replace('_', " ");
    let mut letters = words.chars();
    letters.next().map(|first| first.to_uppercase().collect::<String>() + letters.as_str()).unwrap_or_default()
}

/// The text of a payload that a person wants to read.
fn detail(payload: &Value) -> Option<String> {
    let keys = ["reason", "message", "cause", "verb", "limit", "verdict", "item", "objective", "text", "command"];
    let said: Vec<&str> =
        keys.iter().filter_map(|key| payload[*key].as_str()).filter(|said| !said.is_empty()).collect();
    let limits = payload["limits"].as_array().map(|limits| limits.iter().filter_map(Value::as_str).collect::<Vec<_>>());
    let checks = payload["results"].as_array().map(|results| results.iter().map(check).collect::<Vec<_>>().join("\n"));
    let text = match (said.is_empty(), limits, checks) {
        (false, ..) => said.join(": "),
        (_, Some(limits), _) if !limits.is_empty() => limits.join(", "),
        (_, _, Some(checks)) if !checks.is_empty() => checks,
        _ => return None,
    };
    Some(text::cut(&text, DETAIL_SHOWN))
}

fn check(result: &Value) -> String {
    let command = result["command"].as_str().unwrap_or_default();
    match (result["timed_out"] == Value::Bool(true), result["exit_code"].as_i64()) {
        (true, _) => format!("{command}: out of time"),
        (_, Some(code)) => format!("{command}: exit code {code}"),
        _ => format!("{command}: ended by a signal"),
    }
}

/// When the goal did not run, from its changes of status.
pub(super) fn pauses(changes: &[StatusChange]) -> Vec<Pause> {
    let mut pauses: Vec<Pause> = Vec::new();
    for change in changes {
        let stopped = matches!(change.to.as_deref(), Some("paused" | "blocked" | "budget_limited"));
        let open = pauses.last_mut().filter(|pause| pause.to_ms.is_none());
        match (stopped, open) {
            (true, None) => pauses.push(Pause {
                from_ms: change.created_at_ms,
                to_ms: None,
                reason: change.reason.clone().or_else(|| change.to.clone()),
            }),
            (false, Some(pause)) => pause.to_ms = Some(change.created_at_ms),
            _ => {}
        }
    }
    pauses
}

/// What a chart marks, oldest first. The store keeps the time of the last compaction only.
pub(super) fn marks(oldest_first: &[EventRow], compacted_at: Option<Millis>) -> Vec<PageMark> {
    let mark = |event: &EventRow| {
        let kind = match event.kind.parse::<EventKind>().ok()? {
            EventKind::LimitWarning => MarkKind::Warning,
            EventKind::WindDownStarted => MarkKind::WindDown,
            EventKind::VerificationPassed => MarkKind::Passed,
            EventKind::VerificationFailed => MarkKind::Failed,
            EventKind::GoalExtended => MarkKind::Extended,
            _ => return None,
        };
        Some(PageMark { at_ms: event.created_at_ms, kind, label: title(event.kind.parse().ok(), &event.kind) })
    };
    let began = oldest_first.first().map(|event| event.created_at_ms);
    let compaction = compacted_at.filter(|at| began.is_some_and(|began| *at >= began));
    let mut marks: Vec<PageMark> = oldest_first.iter().filter_map(mark).collect();
    marks.extend(compaction.map(|at_ms| PageMark { at_ms, kind: MarkKind::Compaction, label: "Compacted".to_owned() }));
    marks.sort_by_key(|mark| mark.at_ms);
    marks
}
