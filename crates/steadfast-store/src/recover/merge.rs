//! Puts the rows of a damaged store into one that was made from a backup. A table that is whole in the damaged store
//! replaces the backup's, because it is later. Of the others, the newer row wins.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, params, params_from_iter};
use steadfast_model::clock::Millis;

use super::super::StoreError;
use super::super::migrate::large::LargeTable;
use super::RecoveredTable;
use super::salvage::TableReader;

/// Tables that SQLite or the schema fills.
const NOT_COPIED: [&str; 2] = ["schema_version", "sqlite_sequence"];
/// Messages of an old backup were delivered long ago. Without the rest of the table they stay away.
const NOT_FROM_BACKUP: [&str; 2] = ["outbox", "deliveries"];
/// Parts of runs that upkeep deletes with their run, after it added what they used to `usage_days`.
const PARTS_OF_RUNS: [&str; 4] = ["run_attempts", "run_models", "run_iterations", "run_stages"];

/// Copies all tables in the caller's transaction.
pub(super) fn merge(new: &Connection, damaged: &Connection) -> Result<Vec<RecoveredTable>, StoreError> {
    let mut tables = Vec::new();
    for table in names(new)? {
        // Goals come before.
        if table == "responses" {
            drop_summed_responses(new, damaged)?;
        }
        tables.push(merge_table(new, damaged, &table)?);
    }
    if tables.iter().any(|table| table.name == "runs" && !table.is_incomplete()) {
        for table in tables.iter_mut().filter(|table| PARTS_OF_RUNS.contains(&table.name.as_str())) {
            let sql = format!("DELETE FROM {} WHERE run_id NOT IN (SELECT run_id FROM runs)", table.name);
            table.from_backup = table.from_backup.saturating_sub(new.execute(&sql, [])?);
        }
    }
    keep_numbers(new, damaged)?;
    // Only tables that were damaged can have lost what others refer to.
    new.execute_batch(
        "DELETE FROM run_notes WHERE run_id NOT IN (SELECT run_id FROM runs);
         DELETE FROM run_approvals WHERE run_id NOT IN (SELECT run_id FROM runs);",
    )?;
    // Rows of an old backup may have secrets, whatever the damaged store had done.
    new.execute("DELETE FROM upkeep WHERE task = 'secrets'", [])?;
    if tables.iter().any(|table| table.name == "goals" && table.is_incomplete()) {
        charge_from_ledger(new)?;
    }
    Ok(tables)
}

/// What a store has that was made from a backup alone.
pub(super) fn only_backup(new: &Connection) -> Result<Vec<RecoveredTable>, StoreError> {
    let table = |name: String| {
        let from_backup = count(new, &name)?;
        Ok(RecoveredTable { name, from_backup, ..RecoveredTable::default() })
    };
    names(new)?.into_iter().map(table).collect()
}

/// Our tables, without those of the search index and those that a migration leaves beside a table.
fn names(db: &Connection) -> Result<Vec<String>, StoreError> {
    let sql = "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' ORDER BY name";
    let mut statement = db.prepare(sql)?;
    let names: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let is_left_out =
        |name: &str| name.starts_with("sqlite_") || NOT_COPIED.contains(&name) || LargeTable::is_beside(name);
    Ok(names.into_iter().filter(|name| !is_left_out(name)).collect())
}

fn count(db: &Connection, table: &str) -> Result<usize, StoreError> {
    let rows: i64 = db.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))?;
    Ok(usize::try_from(rows).unwrap_or(0))
}

fn merge_table(new: &Connection, damaged: &Connection, table: &str) -> Result<RecoveredTable, StoreError> {
    let before = count(new, table)?;
    let columns = shared_columns(new, damaged, table);
    if columns.is_empty() {
        let gaps = usize::from(!matches!(damaged.table_exists(Some("main"), table), Ok(false)));
        return Ok(RecoveredTable { name: table.to_owned(), from_backup: before, gaps, ..RecoveredTable::default() });
    }
    if is_whole(damaged, table) {
        new.execute_batch("SAVEPOINT whole")?;
        new.execute(&format!("DELETE FROM {table}"), [])?;
        let copied = copy(new, damaged, table, &columns)?;
        if !copied.is_incomplete() {
            new.execute_batch("RELEASE whole")?;
            return Ok(copied);
        }
        new.execute_batch("ROLLBACK TO whole; RELEASE whole")?;
    }
    if NOT_FROM_BACKUP.contains(&table) {
        new.execute(&format!("DELETE FROM {table}"), [])?;
    }
    let copied = copy(new, damaged, table, &columns)?;
    Ok(RecoveredTable { from_backup: count(new, table)?.saturating_sub(copied.salvaged), ..copied })
}

/// Removes the backup's responses that upkeep has deleted since: the sums of the damaged store, if they are whole, have
/// them.
fn drop_summed_responses(new: &Connection, damaged: &Connection) -> Result<(), StoreError> {
    let before = || damaged.query_row("SELECT before_ms FROM ledger_pruned", [], |row| row.get::<_, Millis>(0));
    if ["usage_days", "ledger_pruned"].iter().all(|table| is_whole(damaged, table))
        && let Ok(before) = before()
    {
        let sql = "DELETE FROM responses WHERE at_ms < ?1 AND (goal_id IS NULL OR goal_id NOT IN
                     (SELECT goal_id FROM goals WHERE status NOT IN ('complete', 'abandoned')))";
        new.execute(sql, [before])?;
    }
    Ok(())
}

/// Whether SQLite finds nothing wrong with a table and its indexes.
fn is_whole(damaged: &Connection, table: &str) -> bool {
    let checked: rusqlite::Result<Vec<String>> = damaged
        .prepare(&format!("PRAGMA integrity_check('{table}')"))
        .and_then(|mut check| check.query_map([], |row| row.get(0))?.collect());
    checked.is_ok_and(|lines| lines == ["ok"])
}

/// The columns that both tables have; none if the damaged store does not have the table.
fn shared_columns(new: &Connection, damaged: &Connection, table: &str) -> Vec<String> {
    let of = |db: &Connection| -> rusqlite::Result<Vec<String>> {
        db.prepare("SELECT name FROM pragma_table_info(?1)")?.query_map([table], |row| row.get(0))?.collect()
    };
    let theirs = of(damaged).unwrap_or_default();
    of(new).unwrap_or_default().into_iter().filter(|column| theirs.contains(column)).collect()
}

/// Copies the rows that can be read and are valid.
fn copy(new: &Connection, damaged: &Connection, table: &str, columns: &[String]) -> Result<RecoveredTable, StoreError> {
    let mut insert = new.prepare(&insertion(table, columns))?;
    let mut replaced = if table == "goals" { Some(new.prepare(&to_history(new)?)?) } else { None };
    let at = |name: &str| columns.iter().position(|column| column == name);
    let (session, goal) = (at("session_id"), at("goal_id"));
    let (mut salvaged, mut refused) = (0, 0);
    let mut reader = TableReader::new(damaged, table, columns)?;
    reader.read(&mut |values: &[Value]| {
        let value = |at: Option<usize>| at.and_then(|at| values.get(at)).cloned().unwrap_or(Value::Null);
        if let Some(replaced) = &mut replaced {
            // A goal of the backup that the damaged store has replaced.
            replaced.execute(params![value(session), value(goal)])?;
        }
        match insert.execute(params_from_iter(values)) {
            Ok(changed) => salvaged += changed,
            Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation) => refused += 1,
            Err(error) => return Err(error.into()),
        }
        Ok(())
    })?;
    let (refused, gaps) = (refused + reader.refused, reader.gaps);
    Ok(RecoveredTable { name: table.to_owned(), from_backup: 0, salvaged, refused, gaps })
}

fn to_history(new: &Connection) -> Result<String, StoreError> {
    let mut statement = new.prepare("SELECT name FROM pragma_table_info('goals')")?;
    let columns: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let columns = columns.join(", ");
    Ok(format!(
        "INSERT OR IGNORE INTO goal_history ({columns})
         SELECT {columns} FROM goals WHERE session_id = ?1 AND goal_id <> ?2"
    ))
}

/// Adds a row, or lets the newer one of two win.
fn insertion(table: &str, columns: &[String]) -> String {
    let (key, is_newer) = match table {
        "goals" => ("session_id", "excluded.version >= goals.version OR excluded.goal_id <> goals.goal_id"),
        "goal_history" => ("goal_id", "excluded.version >= goal_history.version"),
        "runs" => ("run_id", "excluded.version >= runs.version"),
        "responses" => (
            "host, response_id",
            "excluded.input_tokens + excluded.output_tokens + excluded.cache_creation_tokens
               + excluded.cache_read_tokens >= responses.input_tokens + responses.output_tokens
               + responses.cache_creation_tokens + responses.cache_read_tokens",
        ),
        // Nothing changes these once they are written.
        "goal_events" | "verifications" => ("id", "0"),
        // The damaged store is later than any backup.
        _ => ("", ""),
    };
    let (names, signs) = (columns.join(", "), vec!["?"; columns.len()].join(", "));
    if key.is_empty() {
        return format!("INSERT OR REPLACE INTO {table} ({names}) VALUES ({signs})");
    }
    let set: Vec<String> = columns.iter().map(|column| format!("{column} = excluded.{column}")).collect();
    let set = set.join(", ");
    format!("INSERT INTO {table} ({names}) VALUES ({signs}) ON CONFLICT ({key}) DO UPDATE SET {set} WHERE {is_newer}")
}

/// Numbers that were given out are not given out again, even if their rows are lost.
fn keep_numbers(new: &Connection, damaged: &Connection) -> Result<(), StoreError> {
    for table in names(new)? {
        let sql = "SELECT seq FROM sqlite_sequence WHERE name = ?1";
        let given: rusqlite::Result<Option<i64>> = damaged.query_row(sql, [&table], |row| row.get(0)).optional();
        // A number beyond reason is damage, and would end all numbers.
        if let Ok(Some(given)) = given
            && (1..1 << 48).contains(&given)
        {
            new.execute("UPDATE sqlite_sequence SET seq = max(seq, ?2) WHERE name = ?1", params![table, given])?;
        }
    }
    Ok(())
}

/// A goal from a backup lacks what it was charged since. The ledger knows the most of it.
fn charge_from_ledger(new: &Connection) -> Result<(), StoreError> {
    let sum = |what: &str, whose: &str| {
        format!("coalesce((SELECT sum({what}) FROM responses WHERE goal_id = goals.goal_id AND {whose}), 0)")
    };
    let counted = "input_tokens + cache_creation_tokens + output_tokens";
    new.execute_batch(&format!(
        "UPDATE goals SET tokens_used = max(tokens_used, {}), subagent_tokens = max(subagent_tokens, {}),
           cache_read_tokens = max(cache_read_tokens, {}), cost_micros = max(cost_micros, {})
         WHERE status NOT IN ('complete', 'abandoned')",
        sum(counted, "agent_id = ''"),
        sum(counted, "agent_id <> ''"),
        sum("cache_read_tokens", "1"),
        sum("coalesce(cost_micros, 0)", "1"),
    ))?;
    Ok(())
}
