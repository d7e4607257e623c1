//! What people and agents wrote is stored without secrets: here for JSON, where rows are written for plain text. Rows of
//! other programs and earlier versions are redacted in place.

use std::borrow::Cow;

use rusqlite::params;
use serde_json::Value;
use steadfast_model::goal::OBJECTIVE_MAX;
use steadfast_model::goal::event::EventKind;
use steadfast_model::redact::redact;
use steadfast_model::text;

use crate::{Db, StoreError, limit};

/// Tables and columns in which other programs and earlier versions wrote texts as they were.
pub(crate) const TEXTS: [(&str, &str); 3] =
    [("goals", OBJECTIVE), ("goal_history", OBJECTIVE), ("goal_events", "payload_json")];
const OBJECTIVE: &str = "objective";
/// Events that one step searches for verdicts. The last goal of a step may have more.
const SEARCHED: i64 = 2_000;

/// Removes the secrets from every text in a value.
pub(crate) fn clean(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(clean) = redact(text) {
                *text = clean;
            }
        }
        Value::Array(values) => values.iter_mut().for_each(clean),
        Value::Object(fields) => fields.values_mut().for_each(clean),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A text or a JSON value without its secrets; `None` if it has none.
fn without_secrets(text: &str) -> Option<String> {
    if let Ok(value @ (Value::Object(_) | Value::Array(_))) = serde_json::from_slice(text.as_bytes()) {
        let mut clean = value.clone();
        self::clean(&mut clean);
        return (clean != value).then(|| clean.to_string());
    }
    match redact(text) {
        Cow::Owned(clean) => Some(clean),
        Cow::Borrowed(_) => None,
    }
}

/// Rows of one column of a database, the newest first.
pub(crate) struct OldRows<'a> {
    /// `main`, or the name of an attached database.
    pub(crate) schema: &'a str,
    pub(crate) table: &'a str,
    pub(crate) column: &'a str,
    /// The first row to look at.
    pub(crate) from: i64,
    /// The most rows and about the most bytes to look at.
    pub(crate) most: (usize, usize),
}

struct DirtyRow {
    row: i64,
    goal_id: String,
    text: String,
    clean: String,
}

impl Db<'_> {
    /// Redacts some rows of a column. Returns where the rest of them begins; `None` if there were no more.
    pub(crate) fn redact_rows(self, rows: &OldRows<'_>) -> Result<Option<i64>, StoreError> {
        let OldRows { schema, table, column, .. } = rows;
        let (dirty, last) = self.named(self.dirty_rows(rows))?;
        // A process that has read a goal would write the secret back: with another version it gets `Stale`. No process
        // changes the row between the read and this, because both are in one write transaction.
        let version = if (*schema, *table) == ("main", "goals") { ", version = version + 1" } else { "" };
        let mut searched = 0;
        let update = format!("UPDATE {schema}.{table} SET {column} = ?2{version} WHERE rowid = ?1");
        for DirtyRow { row, goal_id, text, clean } in dirty {
            self.execute(&update, params![row, clean])?;
            if *column == OBJECTIVE {
                searched += self.rebind_verdicts(schema, &goal_id, &text, &clean)?;
            }
            if searched >= SEARCHED {
                return Ok(row.checked_sub(1));
            }
        }
        Ok(last.and_then(|last| last.checked_sub(1)))
    }

    /// The rows with secrets, and the last row that was looked at.
    fn dirty_rows(self, rows: &OldRows<'_>) -> rusqlite::Result<(Vec<DirtyRow>, Option<i64>)> {
        let OldRows { schema, table, column, from, most: (most, most_bytes) } = rows;
        let sql = format!(
            "SELECT rowid, {column}, goal_id FROM {schema}.{table} WHERE rowid <= ?1 ORDER BY rowid DESC LIMIT ?2"
        );
        let mut statement = self.0.prepare_cached(&sql)?;
        let mut found = statement.query(params![from, limit(*most)])?;
        let (mut dirty, mut last, mut bytes) = (Vec::new(), None, 0);
        while bytes < *most_bytes
            && let Some(row) = found.next()?
        {
            let number = row.get(0)?;
            last = Some(number);
            // Other programs may have stored anything here: a text that is not UTF-8 stays as it is.
            let Ok(Some(text)) = row.get_ref(1)?.as_str_or_null() else { continue };
            bytes += text.len();
            let Some(clean) = without_secrets(text) else { continue };
            let clean = if *column == OBJECTIVE { text::cut(&clean, OBJECTIVE_MAX) } else { clean };
            let goal_id = row.get_ref(2)?.as_str().unwrap_or_default().to_owned();
            dirty.push(DirtyRow { row: number, goal_id, text: text.to_owned(), clean });
        }
        Ok((dirty, last))
    }

    /// Binds the verdicts on an objective to its redacted text: they are about the same work. Returns how many events it
    /// searched, up to the most that one step searches.
    fn rebind_verdicts(self, schema: &str, goal_id: &str, before: &str, after: &str) -> Result<i64, StoreError> {
        let count = format!("SELECT count(*) FROM (SELECT 1 FROM {schema}.goal_events WHERE goal_id = ?1 LIMIT ?2)");
        let searched = self.first(&count, params![goal_id, SEARCHED], |row| row.get(0))?.unwrap_or(0);
        let sql = format!(
            "UPDATE {schema}.goal_events SET payload_json = json_set(payload_json, '$.objective_hash', ?4)
             WHERE goal_id = ?1 AND event_type = ?2
               AND CASE WHEN json_valid(payload_json) THEN payload_json ->> '$.objective_hash' END = ?3"
        );
        let kind: &str = EventKind::EvaluatorVerdict.into();
        self.execute(&sql, params![goal_id, kind, text::fingerprint(before), text::fingerprint(after)])?;
        Ok(searched)
    }
}
