//! Writes a goal to a row of either goal table and reads it back.

use std::collections::BTreeMap;

use rusqlite::Row;
use rusqlite::types::Value as SqlValue;

use crate::StoreError;
use crate::column::{from_json, maybe_word, to_json, word};
use steadfast_model::goal::{Goal, UNLIMITED_CONTINUATIONS, UNLIMITED_SECONDS};
use steadfast_model::limit::{Axis, Limits};

/// The columns of a goal with their values; both goal tables have them.
pub(super) fn columns(goal: &Goal) -> Result<Vec<(&'static str, SqlValue)>, StoreError> {
    let text = |text: &str| SqlValue::Text(text.to_owned());
    let seconds = goal.limits.get(Axis::Hours).map_or(UNLIMITED_SECONDS, |ms| (ms / 1_000).max(1));
    Ok(vec![
        ("session_id", text(&goal.session_id)),
        ("goal_id", text(&goal.goal_id)),
        ("host", text(goal.host.into())),
        ("project_dir", goal.project_dir.clone().into()),
        ("objective", text(&goal.objective)),
        ("status", text(goal.status.into())),
        ("paused_reason", goal.paused_reason.map(|reason| text(reason.into())).into()),
        ("token_budget", goal.limits.get(Axis::Tokens).into()),
        ("budget_profile", goal.budget_profile.map(|profile| text(profile.into())).into()),
        ("budget_source", text(goal.budget_source.into())),
        ("usd_budget_micros", goal.limits.get(Axis::Usd).into()),
        ("tokens_used", goal.tokens_used.into()),
        ("subagent_tokens", goal.subagent_tokens.into()),
        ("cache_read_tokens", goal.cache_read_tokens.into()),
        ("cost_micros", goal.cost_micros.into()),
        ("unpriced_tokens", goal.unpriced_tokens.into()),
        ("time_used_seconds", goal.time_used_seconds.into()),
        ("time_used_rest_ms", goal.time_used_rest_ms.into()),
        ("resume_at_ms", goal.resume_at_ms.into()),
        ("last_accounted_byte_offset", goal.last_accounted_byte_offset.into()),
        ("last_accounted_uuid", goal.last_accounted_uuid.clone().into()),
        ("accounting_uncertain", goal.accounting_uncertain.into()),
        ("last_continuation_at_ms", goal.last_continuation_at_ms.into()),
        ("continuations_used", goal.continuations_used.into()),
        ("continuations_remaining", goal.continuations_remaining().into()),
        ("max_wall_clock_seconds", seconds.into()),
        ("deadline_ms", goal.limits.get(Axis::Deadline).into()),
        ("limits_json", to_json(&other_limits(goal))?.into()),
        ("budget_limit_reported", goal.budget_limit_reported.into()),
        ("wind_down", goal.wind_down.map(|axis| text(axis.into())).into()),
        ("wind_down_batches", goal.wind_down_batches.into()),
        ("warned_json", to_json(&goal.warned)?.into()),
        ("worked_since_continuation", goal.worked_since_continuation.into()),
        ("idle_continuations", goal.idle_continuations.into()),
        ("blocks_in_row", goal.blocks_in_row.into()),
        ("last_message_hash", goal.last_message_hash.clone().into()),
        ("failures_in_row", goal.failures_in_row.into()),
        ("wake_at_ms", goal.wake_at_ms.into()),
        ("wait_json", goal.wait.as_ref().map(to_json).transpose()?.into()),
        ("woken_at_ms", goal.woken_at_ms.into()),
        ("briefed_hash", goal.briefed_hash.clone().into()),
        ("stall_told", goal.stall_told.into()),
        ("open_calls", goal.open_calls.clone().into()),
        ("same_calls", goal.same_calls.into()),
        ("recent_calls_json", to_json(&goal.recent_calls)?.into()),
        ("repeats_told", goal.repeats_told.into()),
        ("overtime", goal.overtime.into()),
        ("verify_json", to_json(&goal.verify)?.into()),
        ("items_json", to_json(&goal.items)?.into()),
        ("judge", goal.judge.into()),
        ("sign_off", goal.sign_off.into()),
        ("completed_by", goal.completed_by.map(|by| text(by.into())).into()),
        ("evaluator_tokens", goal.evaluator_tokens.into()),
        ("version", goal.version.into()),
        ("created_at_ms", goal.created_at_ms.into()),
        ("updated_at_ms", goal.updated_at_ms.into()),
    ])
}

/// Before the name of an axis, for what was used of it.
const USED: &str = "used_";

/// Limits on axes that have no column of their own, and what was used of them.
fn other_limits(goal: &Goal) -> BTreeMap<String, i64> {
    let has_column = |axis: Axis| matches!(axis, Axis::Tokens | Axis::Usd | Axis::Turns | Axis::Hours | Axis::Deadline);
    let others = goal.limits.iter().filter(|(axis, _)| !has_column(*axis));
    let counted = goal.counted.iter().map(|(axis, used)| (format!("{USED}{axis}"), used));
    others.map(|(axis, amount)| (axis.to_string(), amount)).chain(counted).collect()
}

/// The limits of a goal, and what was used on axes without a column. The documented columns hold large numbers where a
/// goal has no cap on turns or time.
fn limits(row: &Row<'_>) -> rusqlite::Result<(Limits, Limits)> {
    let (mut limits, mut counted) = (Limits::default(), Limits::default());
    // An axis that only a newer binary knows is left alone.
    for (name, amount) in from_json::<BTreeMap<String, i64>>(row, "limits_json")? {
        match name.strip_prefix(USED) {
            Some(axis) => axis.parse().map(|axis| counted.set(axis, Some(amount))).unwrap_or_default(),
            None => name.parse().map(|axis| limits.set(axis, Some(amount))).unwrap_or_default(),
        }
    }
    let used: i64 = row.get("continuations_used")?;
    let turns = used.saturating_add(row.get("continuations_remaining")?);
    let seconds: i64 = row.get("max_wall_clock_seconds")?;
    limits.set(Axis::Tokens, row.get("token_budget")?);
    limits.set(Axis::Usd, row.get("usd_budget_micros")?);
    limits.set(Axis::Turns, (turns < UNLIMITED_CONTINUATIONS).then_some(turns));
    limits.set(Axis::Hours, (seconds < UNLIMITED_SECONDS).then(|| seconds.saturating_mul(1_000)));
    limits.set(Axis::Deadline, row.get("deadline_ms")?);
    Ok((limits, counted))
}

pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Goal> {
    let (limits, counted) = limits(row)?;
    Ok(Goal {
        session_id: row.get("session_id")?,
        goal_id: row.get("goal_id")?,
        host: word(row, "host")?,
        project_dir: row.get("project_dir")?,
        objective: row.get("objective")?,
        status: word(row, "status")?,
        paused_reason: maybe_word(row, "paused_reason")?,
        limits,
        counted,
        budget_profile: maybe_word(row, "budget_profile")?,
        budget_source: word(row, "budget_source")?,
        tokens_used: row.get("tokens_used")?,
        subagent_tokens: row.get("subagent_tokens")?,
        cache_read_tokens: row.get("cache_read_tokens")?,
        cost_micros: row.get("cost_micros")?,
        unpriced_tokens: row.get("unpriced_tokens")?,
        time_used_seconds: row.get("time_used_seconds")?,
        time_used_rest_ms: row.get("time_used_rest_ms")?,
        resume_at_ms: row.get("resume_at_ms")?,
        last_accounted_byte_offset: row.get("last_accounted_byte_offset")?,
        last_accounted_uuid: row.get("last_accounted_uuid")?,
        accounting_uncertain: row.get("accounting_uncertain")?,
        last_continuation_at_ms: row.get("last_continuation_at_ms")?,
        continuations_used: row.get("continuations_used")?,
        budget_limit_reported: row.get("budget_limit_reported")?,
        wind_down: maybe_word(row, "wind_down")?,
        wind_down_batches: row.get("wind_down_batches")?,
        warned: from_json(row, "warned_json")?,
        worked_since_continuation: row.get("worked_since_continuation")?,
        idle_continuations: row.get("idle_continuations")?,
        blocks_in_row: row.get("blocks_in_row")?,
        last_message_hash: row.get("last_message_hash")?,
        failures_in_row: row.get("failures_in_row")?,
        wake_at_ms: row.get("wake_at_ms")?,
        wait: from_json(row, "wait_json")?,
        woken_at_ms: row.get("woken_at_ms")?,
        briefed_hash: row.get("briefed_hash")?,
        stall_told: row.get("stall_told")?,
        open_calls: row.get("open_calls")?,
        same_calls: row.get("same_calls")?,
        recent_calls: from_json(row, "recent_calls_json")?,
        repeats_told: row.get("repeats_told")?,
        overtime: row.get("overtime")?,
        verify: from_json(row, "verify_json")?,
        items: from_json(row, "items_json")?,
        judge: row.get("judge")?,
        sign_off: row.get("sign_off")?,
        completed_by: maybe_word(row, "completed_by")?,
        evaluator_tokens: row.get("evaluator_tokens")?,
        version: row.get("version")?,
        created_at_ms: row.get("created_at_ms")?,
        updated_at_ms: row.get("updated_at_ms")?,
    })
}
