//! Compares the schema of a store with the one that the migrations make. SQLite does not do that: with one flipped byte, the
//! definition of a table is often a valid definition of another table, and only statements fail.

use rusqlite::{Connection, OpenFlags, params};

use super::migrate::{self, ADDITIONS};
use super::{SCHEMA_VERSION, StoreError, connect};

/// How the message about a damaged definition begins.
pub(crate) const SCHEMA_FAULT: &str = "the schema is damaged";
/// Tables that the claude-goal plugin may have made. Their text is the plugin's, so only their columns are compared.
const OF_PLUGIN: [&str; 4] = ["schema_version", "goal_events", "subagent_token_cursors", "continuation_leases"];
/// Only version 6 and later ones have this table.
const OF_VERSION_6: &str = "responses";

/// The definition of a table, index or trigger.
#[derive(Debug, Clone)]
struct SchemaObject {
    kind: String,
    name: String,
    table: String,
    sql: String,
    row: i64,
    /// The columns of a table or index, where they are compared instead of the text.
    columns: Vec<String>,
}

impl SchemaObject {
    /// Whether both define the same. Spaces do not count, nor do quotes: SQLite puts them around the name of a table that
    /// was renamed.
    fn is_same(&self, other: &Self) -> bool {
        let words = |text: &str| text.replace('"', "").split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let has_same_text = |text: fn(&Self) -> &str| words(text(self)) == words(text(other));
        let has_same_columns = || !self.columns.is_empty() && self.columns == other.columns;
        let has_same_formulas = || has_same_text(Self::formulas);
        (&self.kind, &self.name, &self.table) == (&other.kind, &other.name, &other.table)
            && (has_same_text(|object| &object.sql) || (has_same_columns() && has_same_formulas()))
    }

    /// The generated columns. Our migrations added them, so their text is ours in every table.
    fn formulas(&self) -> &str {
        self.sql.find("GENERATED").and_then(|at| self.sql.get(at..)).unwrap_or_default()
    }
}

/// What differs between the schema of a store and that of its version; empty if nothing does. Objects that the user added
/// and indexes that the user removed do not count.
pub(crate) fn schema_faults(db: &Connection) -> Result<Vec<String>, StoreError> {
    let (version, additions) = (migrate::version(db)?, migrate::additions(db)?);
    if version < SCHEMA_VERSION && db.table_exists(Some("main"), OF_VERSION_6)? {
        return Ok(vec![format!("{SCHEMA_FAULT}: version {version} has no table {OF_VERSION_6}")]);
    }
    // What a later release added is not known here.
    if version != SCHEMA_VERSION || additions > ADDITIONS.len() {
        return Ok(Vec::new());
    }
    let found = objects(db)?;
    let differs = |expected: &SchemaObject| format!("{SCHEMA_FAULT}: {} {}", expected.kind, expected.name);
    let expected = made_by_migrations(additions)?;
    let damaged = differences(&expected, &found).into_iter().filter(|expected| !was_removed(expected, &found));
    Ok(damaged.map(differs).collect())
}

/// Whether the user removed this index: no row is lost without it. One flipped byte leaves its name or its text, and a
/// unique index keeps rows from doubling.
fn was_removed(expected: &SchemaObject, found: &[SchemaObject]) -> bool {
    let is_optional = expected.kind == "index" && !expected.sql.starts_with("CREATE UNIQUE");
    is_optional && !found.iter().any(|found| found.name == expected.name || found.sql == expected.sql)
}

fn differences<'a>(expected: &'a [SchemaObject], found: &[SchemaObject]) -> Vec<&'a SchemaObject> {
    expected.iter().filter(|expected| !found.iter().any(|found| found.is_same(expected))).collect()
}

/// Puts the definitions of the migrations in the place of damaged ones, so that the rows can be read again. For the copy of
/// a damaged file: the pages that a definition names stay the same.
pub(crate) fn repair(db: &Connection) -> Result<(), StoreError> {
    // With this, SQLite reads the definitions although it does not understand all of them.
    db.pragma_update(None, "writable_schema", true)?;
    let found = objects(db)?;
    // The number of additions may be damaged too.
    let mut best: Option<(usize, Vec<SchemaObject>)> = None;
    for additions in (0..=ADDITIONS.len()).rev() {
        let expected = made_by_migrations(additions)?;
        let count = differences(&expected, &found).len();
        if best.as_ref().is_none_or(|(least, _)| count < *least) {
            best = Some((count, expected));
        }
        if count == 0 {
            break;
        }
    }
    let (_, expected) = best.unwrap_or_default();
    for wanted in differences(&expected, &found) {
        let has_name = |object: &&SchemaObject| object.name == wanted.name;
        let has_text = |object: &&SchemaObject| object.sql == wanted.sql;
        let Some(damaged) = found.iter().find(has_name).or_else(|| found.iter().find(has_text)) else { continue };
        db.execute(
            "UPDATE sqlite_schema SET type = ?2, name = ?3, tbl_name = ?4, sql = ?5 WHERE rowid = ?1",
            params![damaged.row, wanted.kind, wanted.name, wanted.table, wanted.sql],
        )?;
    }
    db.pragma_update(None, "writable_schema", "reset")?;
    Ok(())
}

/// The definitions of version 6 with its first additions.
fn made_by_migrations(additions: usize) -> Result<Vec<SchemaObject>, StoreError> {
    let memory = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let db = connect(":memory:".as_ref(), memory)?;
    migrate::make(&db, additions)?;
    objects(&db)
}

/// All definitions, without those that SQLite makes for itself.
fn objects(db: &Connection) -> Result<Vec<SchemaObject>, StoreError> {
    // A damaged text may not be UTF-8.
    let sql = "SELECT rowid, CAST(type AS BLOB), CAST(name AS BLOB), CAST(tbl_name AS BLOB), CAST(sql AS BLOB)
               FROM sqlite_schema WHERE sql IS NOT NULL";
    let mut statement = db.prepare(sql)?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let text = |at: usize| {
            let bytes: Option<Vec<u8>> = row.get(at)?;
            Ok::<_, rusqlite::Error>(String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned())
        };
        let (kind, name, table, sql) = (text(1)?, text(2)?, text(3)?, text(4)?);
        if name.starts_with("sqlite_") {
            continue;
        }
        let columns = if OF_PLUGIN.contains(&table.as_str()) { columns(db, &kind, &name)? } else { Vec::new() };
        found.push(SchemaObject { kind, name, table, sql, row: row.get(0)?, columns });
    }
    Ok(found)
}

fn columns(db: &Connection, kind: &str, name: &str) -> Result<Vec<String>, StoreError> {
    let sql = match kind {
        "table" => {
            "SELECT concat_ws(' ', name, upper(type), \"notnull\", dflt_value, pk, hidden) FROM pragma_table_xinfo(?1)"
        }
        _ => "SELECT concat_ws(' ', name, desc, coll) FROM pragma_index_xinfo(?1) WHERE key",
    };
    let mut statement = db.prepare(sql)?;
    Ok(statement.query_map([name], |row| row.get(0))?.collect::<Result<_, _>>()?)
}
