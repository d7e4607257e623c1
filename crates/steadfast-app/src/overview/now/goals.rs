//! Puts each live goal where it belongs: it works, it waits, or it needs the user.

use super::pace::{bars, burn, pace};
use super::{Action, Doing, GoalCard, NeedKind, Subject, UserNeed, WaitCard};
use crate::liveness;
use crate::overview::{CompletionView, Today, goal_view_with, next_text, waits_for};
use steadfast_model::clock::Millis;
use steadfast_model::goal::event::EventKind;
use steadfast_model::goal::liveness::{Next, Stall, WokenBy};
use steadfast_model::goal::{Goal, GoalStatus, PausedReason};
use steadfast_model::host::Screen;
use steadfast_model::limit::Axis;
use steadfast_model::memory::{Category, MemoryEvent};
use steadfast_model::run::name;
use steadfast_model::text;
use steadfast_store::{Db, MemoryFilter, StoreError};
use steadfast_system::paths::Paths;

/// Accounting passes that a card's curve looks at, and the points that it has.
const CHARGES_SEEN: usize = 600;
const POINTS: usize = 60;
/// The newest events among which the last thing that the agent did is found.
const EVENTS_SEEN: usize = 8;
/// Characters of what an agent does now.
const DOING_SHOWN: usize = 120;
/// Refusals in a row after which a person should look.
const REFUSALS: usize = 2;

/// Where a live goal belongs.
pub(super) enum GoalPlace {
    Working,
    Waiting(Box<WaitCard>),
    Needs(Box<UserNeed>),
}

pub(super) fn subject(goal: &Goal) -> Subject {
    Subject::Goal { goal_id: goal.goal_id.clone(), session_id: goal.session_id.clone(), host: goal.host }
}

/// Where the goal belongs. `runs_live` says whether the run of a run's goal is live.
pub(super) fn place(
    db: Db<'_>,
    goal: &Goal,
    paths: &Paths,
    runs_live: bool,
    now: Millis,
) -> Result<Option<GoalPlace>, StoreError> {
    let next = if name::is_of_goal(&goal.session_id) {
        // A run that lost its engine is listed as a run.
        match goal.status {
            GoalStatus::Active if !runs_live => return Ok(None),
            GoalStatus::Active => Next::TurnEnds,
            _ => Next::NeedsUser,
        }
    } else {
        liveness::next(db, goal, paths, now)?
    };
    let hint = Screen::Terminal.spell(&next_text(db, goal, paths, now)?);
    let need = |kind, why: String| GoalPlace::Needs(Box::new(need_of(goal, kind, why, hint.clone())));
    let wait = |until, by: &str| GoalPlace::Waiting(Box::new(wait(goal, until, by)));
    Ok(Some(match (goal.status, goal.paused_reason, next) {
        (GoalStatus::Blocked, ..) => need(NeedKind::Blocked, blocked_reason(db, goal)?),
        (_, Some(PausedReason::SignOff), _) => need(NeedKind::SignOff, "the agent says that it is done".to_owned()),
        (_, _, Next::Stalled(stall)) => {
            let mut need = need_of(goal, NeedKind::Stalled, stall.reason().to_owned(), hint.clone());
            // Another session can take over what its own session will not continue.
            need.actions.extend((stall == Stall::SessionClosed).then_some(Action::Adopt));
            GoalPlace::Needs(Box::new(need))
        }
        (_, Some(PausedReason::Interrupted), _) => need(NeedKind::Stalled, "you interrupted it".to_owned()),
        (_, _, Next::Wakes { at, by }) if goal.status != GoalStatus::Active || at > now => {
            wait(Some(at), waker(goal, by))
        }
        (_, _, Next::BackgroundEnds { at }) => wait(Some(at), waker(goal, WokenBy::Client)),
        (GoalStatus::BudgetLimited, _, Next::NeedsUser) => need(NeedKind::Limit, reached(goal, now)),
        (GoalStatus::Paused, Some(PausedReason::User | PausedReason::Worker | PausedReason::Cleared) | None, _) => {
            wait(None, "you")
        }
        (GoalStatus::Paused, Some(reason), _) => match Axis::of_pause(reason) {
            Some(axis) => need(NeedKind::Limit, format!("{}: {}", axis.noun(), reached(goal, now))),
            None => need(NeedKind::Paused, why_paused(db, goal, reason)?),
        },
        _ => GoalPlace::Working,
    }))
}

fn need_of(goal: &Goal, kind: NeedKind, why: String, hint: String) -> UserNeed {
    let actions = match kind {
        NeedKind::Blocked | NeedKind::Paused => vec![Action::Resume, Action::Abandon],
        NeedKind::SignOff => vec![Action::Complete, Action::Resume, Action::Abandon],
        NeedKind::Limit => vec![Action::Extend, Action::Complete, Action::Abandon],
        NeedKind::Refused => vec![Action::Verify, Action::Pause, Action::Complete],
        NeedKind::Stalled => vec![Action::Pause, Action::Abandon],
        NeedKind::Approval | NeedKind::EngineGone => Vec::new(),
    };
    let is_uncertain =
        matches!(goal.paused_reason, Some(PausedReason::AccountingError | PausedReason::AccountingUncertain));
    UserNeed {
        kind,
        subject: subject(goal),
        title: goal.objective.clone(),
        project: goal.project_dir.clone(),
        since_ms: goal.updated_at_ms,
        why,
        hint,
        items: if kind == NeedKind::SignOff { CompletionView::of(goal).items } else { Vec::new() },
        stage: None,
        actions: if is_uncertain { vec![Action::Reconcile, Action::Abandon] } else { actions },
    }
}

fn wait(goal: &Goal, until_ms: Option<Millis>, woken_by: &str) -> WaitCard {
    let what = match goal.paused_reason {
        Some(PausedReason::UsageLimit) => "the reset of a usage limit".to_owned(),
        Some(PausedReason::Waiting) => waits_for(goal).unwrap_or_else(|| "its wait to end".to_owned()),
        Some(PausedReason::Worker) => "you: its agent paused it at your request".to_owned(),
        Some(PausedReason::Cleared) => "you: its session was cleared".to_owned(),
        Some(_) => "you: you paused it".to_owned(),
        None if goal.failures_in_row > 0 => "the next try after an error".to_owned(),
        None => "background tasks of its last turn".to_owned(),
    };
    let ways = if goal.status == GoalStatus::Active { Action::Pause } else { Action::Resume };
    WaitCard {
        subject: subject(goal),
        title: goal.objective.clone(),
        project: goal.project_dir.clone(),
        what,
        until_ms,
        woken_by: woken_by.to_owned(),
        actions: vec![ways, Action::Abandon],
    }
}

fn waker(goal: &Goal, by: WokenBy) -> &'static str {
    match by {
        WokenBy::Client => goal.host.capabilities().product,
        WokenBy::Supervisor => "steadfast watch",
    }
}

fn reached(goal: &Goal, now: Millis) -> String {
    let until = if goal.status == GoalStatus::Active { now } else { goal.updated_at_ms };
    let reached = goal.limits.standings(&goal.used(until)).find(steadfast_model::limit::Standing::is_reached);
    reached.map_or_else(|| "its limit is reached".to_owned(), |standing| standing.describe_reached())
}

fn blocked_reason(db: Db<'_>, goal: &Goal) -> Result<String, StoreError> {
    let event = db.last_event(&goal.goal_id, EventKind::GoalBlocked)?;
    let reason = event.and_then(|event| event.payload["reason"].as_str().map(str::to_owned));
    Ok(reason.unwrap_or_else(|| "it waits for you".to_owned()))
}

fn why_paused(db: Db<'_>, goal: &Goal, reason: PausedReason) -> Result<String, StoreError> {
    let said = match reason {
        PausedReason::Degraded => {
            let event = db.last_event(&goal.goal_id, EventKind::PausedDegraded)?;
            event.and_then(|event| {
                ["message", "cause"].iter().find_map(|key| event.payload[*key].as_str().map(str::to_owned))
            })
        }
        _ => None,
    };
    let words = match reason {
        PausedReason::NoProgress => "several turns brought nothing new",
        PausedReason::AccountingUncertain => "tokens may be missing after a compaction",
        PausedReason::AccountingError => "a response has a malformed number of tokens",
        PausedReason::Degraded => "a hook failed",
        _ => "it is paused",
    };
    Ok(said.map_or_else(|| words.to_owned(), |said| format!("{words}: {}", text::headline(&said, 200))))
}

/// A need for a goal whose completion is refused again and again, although it works on.
pub(super) fn refused(db: Db<'_>, goal: &Goal, paths: &Paths, now: Millis) -> Result<Option<UserNeed>, StoreError> {
    if goal.verify.is_empty() || goal.status != GoalStatus::Active {
        return Ok(None);
    }
    let kinds = [EventKind::VerificationFailed, EventKind::VerificationPassed];
    let results = db.events_of_kinds(&goal.goal_id, &kinds)?;
    let passed: &str = EventKind::VerificationPassed.into();
    let failed: Vec<_> = results.iter().rev().take_while(|event| event.kind != passed).collect();
    let (Some(first), true) = (failed.last(), failed.len() >= REFUSALS) else { return Ok(None) };
    let why = format!("its checks failed {} times in a row", failed.len());
    let hint = Screen::Terminal.spell(&next_text(db, goal, paths, now)?);
    Ok(Some(UserNeed { since_ms: first.created_at_ms, ..need_of(goal, NeedKind::Refused, why, hint) }))
}

/// The card of a goal that works.
pub(super) fn card(db: Db<'_>, goal: &Goal, paths: &Paths, today: &Today, now: Millis) -> Result<GoalCard, StoreError> {
    let mut actions = vec![Action::Pause, Action::Extend];
    actions.extend((!goal.verify.is_empty()).then_some(Action::Verify));
    actions.extend([Action::Complete, Action::Abandon]);
    let seen = db.events_of(&goal.session_id, MemoryFilter::default(), EVENTS_SEEN)?;
    // The mode of a prompt is remembered after the prompt, and says nothing about what the agent does.
    let last = seen.into_iter().rfind(|event| event.category != Category::Intent);
    Ok(GoalCard {
        goal: goal_view_with(db, goal, paths, today, now)?,
        limits: bars(goal, now),
        pace: pace(goal, now),
        burn: burn(db, goal, CHARGES_SEEN, POINTS)?,
        doing: last.map(|event| Doing { what: what(&event), at_ms: event.created_at_ms }),
        actions,
    })
}

/// `edit src/main.rs`, `prompt: do it`.
fn what(event: &MemoryEvent) -> String {
    let about = if event.subject.is_empty() { &event.text } else { &event.subject };
    let kind = if event.kind.is_empty() { event.category.to_string() } else { event.kind.clone() };
    text::headline(&format!("{kind} {about}"), DOING_SHOWN)
}
