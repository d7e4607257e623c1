//! A goal as a row: the columns that both goal tables have, and the way there and back.

use std::collections::BTreeMap;

use rusqlite::Row;
use rusqlite::types::Value as SqlValue;

use crate::StoreError;
use steadfast_model::goal::{Goal, UNLIMITED_CONTINUATIONS, UNLIMITED_SECONDS};
use steadfast_model::limit::{Axis, Limits};

/// The columns of a goal in the order of [`values`]; both goal tables have them.
pub(super) const COLUMNS: [&str; 41] = [
    "session_id",
    "goal_id",
    "host",
    "project_dir",
    "objective",
    "status",
    "paused_reason",
    "token_budget",
    "budget_profile",
    "budget_source",
    "usd_budget_micros",
    "tokens_used",
    "subagent_tokens",
    "cache_read_tokens",
    "cost_micros",
    "unpriced_tokens",
    "time_used_seconds",
    "resume_at_ms",
    "last_accounted_byte_offset",
    "last_accounted_uuid",
    "accounting_uncertain",
    "last_continuation_at_ms",
    "continuations_used",
    "continuations_remaining",
    "max_wall_clock_seconds",
    "deadline_ms",
    "limits_json",
    "budget_limit_reported",
    "wind_down",
    "wind_down_batches",
    "warned_json",
    "worked_since_continuation",
    "idle_continuations",
    "blocks_in_row",
    "last_message_hash",
    "failures_in_row",
    "wake_at_ms",
    "verify_json",
    "version",
    "created_at_ms",
    "updated_at_ms",
];

pub(super) fn values(goal: &Goal) -> Result<[SqlValue; COLUMNS.len()], StoreError> {
    let text = |text: &str| SqlValue::Text(text.to_owned());
    let maybe_text = |text: Option<&str>| text.map_or(SqlValue::Null, |text| SqlValue::Text(text.to_owned()));
    let maybe = |number: Option<i64>| number.map_or(SqlValue::Null, SqlValue::Integer);
    let flag = |flag: bool| SqlValue::Integer(i64::from(flag));
    let json = |value: Result<String, serde_json::Error>| {
        value.map(SqlValue::Text).map_err(|error| StoreError::Value(error.to_string()))
    };
    Ok([
        text(&goal.session_id),
        text(&goal.goal_id),
        text(goal.host.into()),
        maybe_text(goal.project_dir.as_deref()),
        text(&goal.objective),
        text(goal.status.into()),
        maybe_text(goal.paused_reason.map(Into::into)),
        maybe(goal.limits.get(Axis::Tokens)),
        maybe_text(goal.budget_profile.map(Into::into)),
        text(goal.budget_source.into()),
        maybe(goal.limits.get(Axis::Usd)),
        SqlValue::Integer(goal.tokens_used),
        SqlValue::Integer(goal.subagent_tokens),
        SqlValue::Integer(goal.cache_read_tokens),
        SqlValue::Integer(goal.cost_micros),
        SqlValue::Integer(goal.unpriced_tokens),
        SqlValue::Integer(goal.time_used_seconds),
        maybe(goal.resume_at_ms),
        SqlValue::Integer(goal.last_accounted_byte_offset),
        maybe_text(goal.last_accounted_uuid.as_deref()),
        flag(goal.accounting_uncertain),
        maybe(goal.last_continuation_at_ms),
        SqlValue::Integer(goal.continuations_used),
        SqlValue::Integer(goal.continuations_remaining()),
        SqlValue::Integer(goal.limits.get(Axis::Hours).map_or(UNLIMITED_SECONDS, |ms| (ms / 1_000).max(1))),
        maybe(goal.limits.get(Axis::Deadline)),
        json(serde_json::to_string(&other_limits(goal)))?,
        flag(goal.budget_limit_reported),
        maybe_text(goal.wind_down.map(Into::into)),
        SqlValue::Integer(goal.wind_down_batches),
        json(serde_json::to_string(&goal.warned))?,
        flag(goal.worked_since_continuation),
        SqlValue::Integer(goal.idle_continuations),
        SqlValue::Integer(goal.blocks_in_row),
        maybe_text(goal.last_message_hash.as_deref()),
        SqlValue::Integer(goal.failures_in_row),
        maybe(goal.wake_at_ms),
        json(serde_json::to_string(&goal.verify))?,
        SqlValue::Integer(goal.version),
        SqlValue::Integer(goal.created_at_ms),
        SqlValue::Integer(goal.updated_at_ms),
    ])
}

pub(crate) fn word<T: std::str::FromStr>(row: &Row<'_>, column: &str) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    text.parse().map_err(|_| not_understood(column, &text))
}

fn maybe_word<T: std::str::FromStr>(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<T>> {
    let text: Option<String> = row.get(column)?;
    text.map(|text| text.parse().map_err(|_| not_understood(column, &text))).transpose()
}

pub(crate) fn not_understood(column: &str, text: &str) -> rusqlite::Error {
    let message = format!("column {column} holds `{text}`");
    rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, message.into())
}

fn list<T: serde::de::DeserializeOwned>(row: &Row<'_>, column: &str) -> rusqlite::Result<Vec<T>> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text).map_err(|_| not_understood(column, &text))
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

fn counted(row: &Row<'_>) -> rusqlite::Result<Limits> {
    let text: String = row.get("limits_json")?;
    let others: BTreeMap<String, i64> =
        serde_json::from_str(&text).map_err(|_| not_understood("limits_json", &text))?;
    let mut counted = Limits::default();
    for (name, used) in others {
        if let Some(axis) = name.strip_prefix(USED).and_then(|axis| axis.parse().ok()) {
            counted.set(axis, Some(used));
        }
    }
    Ok(counted)
}

/// The documented columns hold large numbers where a goal has no cap on turns or time.
fn limits(row: &Row<'_>) -> rusqlite::Result<Limits> {
    let text: String = row.get("limits_json")?;
    let others: BTreeMap<String, i64> =
        serde_json::from_str(&text).map_err(|_| not_understood("limits_json", &text))?;
    let mut limits = Limits::default();
    // An axis that only a newer binary knows is left alone.
    for (axis, amount) in others {
        if let Ok(axis) = axis.parse() {
            limits.set(axis, Some(amount));
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
    Ok(limits)
}

pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Goal> {
    Ok(Goal {
        session_id: row.get("session_id")?,
        goal_id: row.get("goal_id")?,
        host: word(row, "host")?,
        project_dir: row.get("project_dir")?,
        objective: row.get("objective")?,
        status: word(row, "status")?,
        paused_reason: maybe_word(row, "paused_reason")?,
        limits: limits(row)?,
        counted: counted(row)?,
        budget_profile: maybe_word(row, "budget_profile")?,
        budget_source: word(row, "budget_source")?,
        tokens_used: row.get("tokens_used")?,
        subagent_tokens: row.get("subagent_tokens")?,
        cache_read_tokens: row.get("cache_read_tokens")?,
        cost_micros: row.get("cost_micros")?,
        unpriced_tokens: row.get("unpriced_tokens")?,
        time_used_seconds: row.get("time_used_seconds")?,
        resume_at_ms: row.get("resume_at_ms")?,
        last_accounted_byte_offset: row.get("last_accounted_byte_offset")?,
        last_accounted_uuid: row.get("last_accounted_uuid")?,
        accounting_uncertain: row.get("accounting_uncertain")?,
        last_continuation_at_ms: row.get("last_continuation_at_ms")?,
        continuations_used: row.get("continuations_used")?,
        budget_limit_reported: row.get("budget_limit_reported")?,
        wind_down: maybe_word(row, "wind_down")?,
        wind_down_batches: row.get("wind_down_batches")?,
        warned: list(row, "warned_json")?,
        worked_since_continuation: row.get("worked_since_continuation")?,
        idle_continuations: row.get("idle_continuations")?,
        blocks_in_row: row.get("blocks_in_row")?,
        last_message_hash: row.get("last_message_hash")?,
        failures_in_row: row.get("failures_in_row")?,
        wake_at_ms: row.get("wake_at_ms")?,
        verify: list(row, "verify_json")?,
        version: row.get("version")?,
        created_at_ms: row.get("created_at_ms")?,
        updated_at_ms: row.get("updated_at_ms")?,
    })
}
