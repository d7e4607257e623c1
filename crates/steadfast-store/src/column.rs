//! Columns that hold a word, JSON or a process. A value that cannot be parsed is an error that names its column.

use std::fmt::Display;
use std::str::FromStr;

use rusqlite::{Row, RowIndex};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::StoreError;
use steadfast_system::process::ProcessId;

pub(crate) fn word<T: FromStr>(row: &Row<'_>, column: impl RowIndex + Display) -> rusqlite::Result<T> {
    let text = row.get_ref(column)?.as_str()?;
    text.parse().map_err(|_| not_understood(column, text))
}

pub(crate) fn maybe_word<T: FromStr>(row: &Row<'_>, column: impl RowIndex + Display) -> rusqlite::Result<Option<T>> {
    let text = row.get_ref(column)?.as_str_or_null()?;
    text.map(|text| text.parse().map_err(|_| not_understood(column, text))).transpose()
}

pub(crate) fn to_json<T: Serialize>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Value(error.to_string()))
}

/// Reads JSON; a null in the column is a null in JSON.
pub(crate) fn from_json<T: DeserializeOwned>(row: &Row<'_>, column: impl RowIndex + Display) -> rusqlite::Result<T> {
    let text = row.get_ref(column)?.as_str_or_null()?.unwrap_or("null");
    serde_json::from_slice(text.as_bytes()).map_err(|error| not_understood(column, &error.to_string()))
}

/// Reads a process from the columns of its number and its start time.
pub(crate) fn process(row: &Row<'_>, pid: &str, started: &str) -> rusqlite::Result<Option<ProcessId>> {
    let (pid, started): (Option<i64>, Option<i64>) = (row.get(pid)?, row.get(started)?);
    Ok(pid.zip(started).map(|(pid, started)| ProcessId { pid, started }))
}

fn not_understood(column: impl Display, text: &str) -> rusqlite::Error {
    let message = format!("column {column} holds `{text}`");
    rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, message.into())
}
