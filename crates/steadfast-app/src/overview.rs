//! The read model of goals, for status, statusline, history and the hosts' tools. Scripts rely on the field names;
//! `docs/schema/` describes them.

mod ceilings;
mod completion;
pub mod find;
pub mod goal_page;
pub(crate) mod next;
pub mod now;
pub mod queue;
pub mod report;
pub mod runs;
pub mod session;
pub mod snapshot;
pub mod statusline;
mod unseen;

pub use unseen::{unseen, unseen_note};

use serde::Serialize;
use serde_json::{Value, json};

pub use completion::{CompletionView, ItemView, RunGoal};

use crate::accounting::UNKNOWN_PRICE;
use crate::{liveness, native};
use steadfast_model::clock::{self, Millis};
use steadfast_model::goal::event::EventKind;
use steadfast_model::goal::wait::WaitFor;
use steadfast_model::goal::{Goal, GoalStatus, PausedReason};
use steadfast_model::limit::Axis;
use steadfast_model::price::{self, dollars};
use steadfast_model::redact::redact;
use steadfast_model::run::name;
use steadfast_model::text;
use steadfast_store::{Db, EventRow, StoreError};
use steadfast_system::paths::Paths;

/// A goal as the world sees it.
#[derive(Debug, Clone, Serialize)]
pub struct GoalView {
    pub goal_id: String,
    pub session_id: String,
    pub host: &'static str,
    pub project_dir: Option<String>,
    pub objective: String,
    pub status: GoalStatus,
    pub paused_reason: Option<PausedReason>,
    pub budget_profile: Option<&'static str>,
    pub budget_source: &'static str,
    pub token_budget: Option<i64>,
    pub tokens_used: i64,
    pub subagent_tokens: i64,
    /// The evaluator's part of `subagent_tokens`.
    pub evaluator_tokens: i64,
    pub total_tokens: i64,
    pub remaining_tokens: Option<i64>,
    pub cache_read_tokens: i64,
    /// Null when tokens of a model without a known price are among them.
    pub cost_usd: Option<f64>,
    pub usd_budget: Option<f64>,
    /// What was counted on this machine today: goals, runs, and with caps also sessions without a goal.
    pub today: Value,
    /// The caps of `[limits]` that are near or reached.
    pub caps: Vec<Value>,
    /// The windows of the user's plan, as the client last reported them.
    pub plan: Vec<Value>,
    /// The most that may be used of the plan, in percent.
    pub plan_percent: Option<i64>,
    /// Caps and plan for people.
    #[serde(skip)]
    pub ceilings: Vec<String>,
    pub continuations_used: i64,
    pub continuations_remaining: i64,
    #[serde(skip)]
    pub has_turn_cap: bool,
    pub active_seconds: i64,
    pub wall_seconds: i64,
    pub deadline: Option<String>,
    pub accounting_uncertain: bool,
    pub verify: Vec<String>,
    #[serde(flatten)]
    pub done: CompletionView,
    pub last_verification: Option<Value>,
    pub last_verdict: Option<Value>,
    pub blocked_reason: Option<String>,
    /// What a waiting goal waits for, and when that ends in any case.
    pub waits_for: Option<String>,
    /// The last turn ended in an error and none has succeeded since.
    pub last_failure: Option<Value>,
    /// The objective of the client's own goal feature, while that drives the session.
    pub native_goal: Option<String>,
    /// How many goals wait behind this one.
    pub queue: i64,
    pub next: String,
    pub version: i64,
    pub created_at_ms: Millis,
    pub updated_at_ms: Millis,
}

/// Commands as they are shown: they run as they were typed, and no view has their secrets.
fn without_secrets(commands: &[String]) -> Vec<String> {
    commands.iter().map(|command| redact(command).into_owned()).collect()
}

/// What was counted on this machine today.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Today {
    tokens: i64,
    /// `None` if a part of it is not known.
    cost_micros: Option<i64>,
}

impl Today {
    fn of(db: Db<'_>, now: Millis) -> Result<Self, StoreError> {
        let from = clock::day_start(now);
        let spent = db.spent_since(from)?;
        let is_priced = !db.has_unknown_cost_since(from)?;
        Ok(Self { tokens: spent.tokens, cost_micros: is_priced.then_some(spent.cost_micros) })
    }
}

/// Builds the view of a goal as of now.
pub fn goal_view(db: Db<'_>, goal: &Goal, paths: &Paths, now: Millis) -> Result<GoalView, StoreError> {
    goal_view_with(db, goal, paths, &Today::of(db, now)?, now)
}

/// The same, with the sums of the day that several goals share.
fn goal_view_with(db: Db<'_>, goal: &Goal, paths: &Paths, today: &Today, now: Millis) -> Result<GoalView, StoreError> {
    let goal = &liveness::by_now(db, goal, now)?;
    let verdict = db.last_event(&goal.goal_id, EventKind::EvaluatorVerdict)?.map(|event| {
        let current = event.payload["objective_hash"] == json!(text::fingerprint(&goal.objective));
        json!({
            "verdict": event.payload["verdict"], "reason": event.payload["reason"], "evidence": event.payload["evidence"],
            "for_current_objective": current, "created_at_ms": event.created_at_ms,
        })
    });
    let verification = db.verifications(&goal.goal_id, 1)?.into_iter().next().map(|run| {
        json!({
            "command": run.command, "exit_code": run.exit_code, "timed_out": run.timed_out, "duration_ms": run.duration_ms,
            "output_sha256": run.output_sha256, "git_commit": run.git_commit, "git_dirty": run.git_dirty,
            "created_at_ms": run.created_at_ms,
        })
    });
    let blocked = match goal.status {
        GoalStatus::Blocked => db.last_event(&goal.goal_id, EventKind::GoalBlocked)?,
        _ => None,
    };
    let native_goal = if goal.status.is_live() { native::of_session(db, &goal.session_id)? } else { None };
    let until = if goal.status.is_live() { now } else { goal.updated_at_ms };
    let caps = ceilings::caps(db, goal, paths, now)?;
    let plan = ceilings::plan(db, goal, now)?;
    let plan_percent = goal.limits.get(Axis::Plan).into_iter().chain(paths.config.limits.plan_percent).min();
    Ok(GoalView {
        goal_id: goal.goal_id.clone(),
        session_id: goal.session_id.clone(),
        host: goal.host.into(),
        project_dir: goal.project_dir.clone(),
        objective: goal.objective.clone(),
        status: goal.status,
        paused_reason: goal.paused_reason,
        budget_profile: goal.budget_profile.map(Into::into),
        budget_source: goal.budget_source.into(),
        token_budget: goal.limits.get(Axis::Tokens),
        tokens_used: goal.tokens_used,
        subagent_tokens: goal.subagent_tokens,
        evaluator_tokens: goal.evaluator_tokens,
        total_tokens: goal.total_tokens(),
        remaining_tokens: goal.remaining_tokens(),
        cache_read_tokens: goal.cache_read_tokens,
        cost_usd: (goal.unpriced_tokens == 0).then(|| dollars(goal.cost_micros)),
        usd_budget: goal.limits.get(Axis::Usd).map(dollars),
        today: json!({"tokens": today.tokens, "cost_usd": today.cost_micros.map(dollars)}),
        caps: caps.iter().map(ceilings::cap_json).collect(),
        plan: plan.iter().map(ceilings::plan_json).collect(),
        plan_percent,
        ceilings: ceilings::lines(&caps, &plan, plan_percent),
        continuations_used: goal.continuations_used,
        continuations_remaining: goal.continuations_remaining(),
        has_turn_cap: goal.limits.get(Axis::Turns).is_some(),
        active_seconds: goal.active_seconds(until),
        wall_seconds: (until - goal.created_at_ms).max(0) / 1000,
        deadline: goal.limits.get(Axis::Deadline).map(clock::to_rfc3339),
        accounting_uncertain: goal.accounting_uncertain,
        verify: without_secrets(&goal.verify),
        done: CompletionView::of(goal),
        last_verification: verification,
        last_verdict: verdict,
        blocked_reason: blocked.and_then(|event| event.payload["reason"].as_str().map(str::to_owned)),
        waits_for: waits_for(goal),
        last_failure: last_failure(db, goal)?,
        native_goal,
        queue: db.queued_behind(&goal.goal_id)?,
        next: next_text(db, goal, paths, now)?,
        version: goal.version,
        created_at_ms: goal.created_at_ms,
        updated_at_ms: goal.updated_at_ms,
    })
}

/// What a waiting goal waits for: `the file build.done, at the latest until 2026-11-15 17:30`.
pub fn waits_for(goal: &Goal) -> Option<String> {
    let (wait, until) = (goal.wait.as_ref()?, clock::to_local(goal.wake_at_ms?));
    let what = wait.wait_for.describe(goal.project_dir.as_deref());
    Some(match wait.wait_for {
        WaitFor::Time => format!("{what} {until}"),
        _ if wait.is_met() => format!("{what}, which is met"),
        _ => format!("{what}, at the latest until {until}"),
    })
}

fn next_text(db: Db<'_>, goal: &Goal, paths: &Paths, now: Millis) -> Result<String, StoreError> {
    if name::is_of_goal(&goal.session_id) {
        return Ok(next::of_run(goal));
    }
    let queued = db.queued_behind(&goal.goal_id)?;
    Ok(goal.host.spell(&next::in_session(goal, liveness::next(db, goal, paths, now)?, queued, now)))
}

/// The error of the last turn, if no turn succeeded since.
fn last_failure(db: Db<'_>, goal: &Goal) -> Result<Option<Value>, StoreError> {
    let kind = match (goal.status, goal.paused_reason) {
        (GoalStatus::Active, _) if goal.failures_in_row > 0 => EventKind::TurnFailed,
        (GoalStatus::Paused, Some(PausedReason::UsageLimit)) => EventKind::GoalPaused,
        (GoalStatus::Paused, Some(PausedReason::Degraded)) => EventKind::PausedDegraded,
        _ => return Ok(None),
    };
    let event = db.last_event(&goal.goal_id, kind)?;
    Ok(event.map(|event| {
        let message = [&event.payload["message"], &event.payload["cause"]].into_iter().find_map(Value::as_str);
        json!({
            "error": event.payload["error"], "message": message, "failures": goal.failures_in_row,
            "created_at_ms": event.created_at_ms,
        })
    }))
}

/// An event as scripts see it.
pub fn event_view(event: &EventRow) -> Value {
    json!({
        "id": event.id, "ts": clock::to_rfc3339(event.created_at_ms), "kind": event.kind,
        "session_id": event.session_id, "goal_id": event.goal_id, "hook_name": event.hook_name, "actor": event.actor,
        "status_before": event.status_before, "status_after": event.status_after,
        "version_before": event.version_before, "version_after": event.version_after,
        "tokens_delta": event.tokens_delta, "payload": event.payload, "created_at_ms": event.created_at_ms,
    })
}

/// The block that `goal status` and `/goal-status` print.
pub fn status_text(view: &GoalView) -> String {
    let mut lines = vec![format!("◎ Goal: {}", text::indented(&view.objective)), format!("status: {}", view.state())];
    if let Some(reason) = view.paused_reason {
        lines.push(format!("paused_reason: {reason}"));
    }
    if let Some(reason) = &view.blocked_reason {
        lines.push(format!("blocked_reason: {}", text::indented(reason)));
    }
    if let Some(wait) = &view.waits_for {
        lines.push(format!("waits for: {wait}"));
    }
    if let Some(failure) = &view.last_failure {
        let said = failure["message"].as_str().filter(|said| !said.is_empty()).or(failure["error"].as_str());
        lines.push(format!("last failure: {}", text::headline(said.unwrap_or("unknown"), 160)));
    }
    if let Some(objective) = &view.native_goal {
        lines.push(format!("native goal: {} (drives this session now)", text::headline(objective, 80)));
    }
    lines.push(format!("session: {}", view.session_id));
    let doubt = if view.accounting_uncertain { " (last known — may undercount)" } else { "" };
    lines.push(format!(
        "tokens: {} worker · {} subagent{doubt}",
        text::thousands(view.tokens_used),
        text::thousands(view.subagent_tokens)
    ));
    if view.evaluator_tokens > 0 {
        lines.push(format!("evaluator: {} of the subagent tokens", text::thousands(view.evaluator_tokens)));
    }
    if let (Some(budget), Some(remaining)) = (view.token_budget, view.remaining_tokens) {
        let profile = view.budget_profile.map(|name| format!(" ({name})")).unwrap_or_default();
        lines.push(format!("budget: {} of {} left{profile}", text::thousands(remaining), text::thousands(budget)));
    }
    let cost = match view.cost_usd {
        Some(dollars) => money(dollars),
        None => "unknown (a model without a known price)".to_owned(),
    };
    let of = view.usd_budget.map(|budget| format!(" of {}", money(budget))).unwrap_or_default();
    lines.push(format!("cost: {cost}{of}"));
    let today = &view.today;
    let (tokens, cost) = (today["tokens"].as_i64().unwrap_or(0), today["cost_usd"].as_f64().map(price::micros));
    lines.push(format!("today: {} tokens · {} counted on this machine", text::thousands(tokens), text::cost(cost)));
    lines.extend(view.ceilings.iter().cloned());
    let turns_left =
        if view.has_turn_cap { format!(" · {} left", view.continuations_remaining) } else { String::new() };
    lines.push(format!("turns: {}{turns_left}", view.continuations_used));
    lines.push(format!(
        "time: {} active · {} since start",
        text::duration(view.active_seconds),
        text::duration(view.wall_seconds)
    ));
    if let Some(deadline) = &view.deadline {
        lines.push(format!("deadline: {deadline}"));
    }
    lines.extend(view.done.lines());
    for command in &view.verify {
        lines.push(format!("verify: {}", text::headline(command, 100)));
    }
    if let Some(run) = &view.last_verification {
        let outcome = if run["exit_code"] == json!(0) { "passed" } else { "failed" };
        lines.push(format!("last verification: {outcome}"));
    }
    if let Some(verdict) = &view.last_verdict {
        let stale = if verdict["for_current_objective"] == json!(true) { "" } else { " (for an earlier objective)" };
        let reason =
            verdict["reason"].as_str().map(|reason| format!(": {}", text::headline(reason, 120))).unwrap_or_default();
        lines.push(format!("last verdict: {}{reason}{stale}", verdict["verdict"].as_str().unwrap_or("?")));
    }
    if view.cost_usd.is_none() && view.paused_reason == Some(PausedReason::AccountingUncertain) {
        lines.push(format!("⚠ {UNKNOWN_PRICE}. Run /goal-reconcile --accept-reset to continue without its cost."));
    } else if view.accounting_uncertain || view.paused_reason == Some(PausedReason::AccountingUncertain) {
        lines.push("⚠ /compact event detected. Run /goal-reconcile --accept-reset to resume.".into());
    }
    if view.queue > 0 {
        lines.push(format!("queue: {} more", view.queue));
    }
    lines.push(format!("next: {}", view.next));
    lines.join("\n")
}

fn money(usd: f64) -> String {
    text::usd(price::micros(usd))
}

#[cfg(test)]
mod tests;
