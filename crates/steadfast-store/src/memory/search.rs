//! Full-text search of events. Each word of a query is quoted, so that no query is a syntax error or an expression.

mod rank;

use rusqlite::{Row, ToSql, params};
use serde::Serialize;
use serde_json::json;

use super::{COLUMNS, Db, StoreError, read};
use steadfast_model::clock::Millis;
use steadfast_model::host::Host;
use steadfast_model::memory::{Category, MemoryEvent};

/// A longer query is cut.
const QUERY_READ: usize = 400;
const WORDS_READ: usize = 32;
/// The newest hits that are ranked; more of them when most belong to other sessions.
const SEEN: i64 = 1_000;
const SEEN_WITHIN: i64 = 5_000;
/// The newest events whose texts are looked at for parts of words.
const TEXTS_SEEN: i64 = 20_000;

/// Where to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope<'a> {
    /// A session and those it was forked from.
    Lineage(&'a str),
    /// Sessions of these directories, as they are stored: one project may have several.
    Project(&'a [String]),
    All,
}

/// An event that was found, and where it happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hit {
    #[serde(flatten)]
    pub event: MemoryEvent,
    pub host: Option<Host>,
    pub project: Option<String>,
}

impl Db<'_> {
    /// The best matches first, of equal ones the newest. All words must occur; the last one may be a beginning, unless
    /// it is common by itself. When the index knows none, parts of words count too (languages without spaces, fragments of code); then, any of the
    /// words.
    pub fn search(
        self,
        query: &str,
        scope: Scope<'_>,
        category: Option<Category>,
        limit: usize,
    ) -> Result<Vec<Hit>, StoreError> {
        let words = words(query);
        if words.is_empty() || limit == 0 {
            return Ok(Vec::new());
        }
        let within = self.within(scope)?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let category = category.map(<&str>::from);
        let mut hits = self.find_words(&words, " AND ", within.as_deref(), category, limit)?;
        if hits.is_empty() {
            hits = self.find_parts(&words, within.as_deref(), category, limit)?;
        }
        if hits.is_empty() && words.len() > 1 {
            hits = self.find_words(&words, " OR ", within.as_deref(), category, limit)?;
        }
        Ok(hits)
    }

    /// Sessions that count, as JSON for SQLite: each with the moment until which it does. `None` stands for all.
    fn within(self, scope: Scope<'_>) -> Result<Option<String>, StoreError> {
        let sessions = match scope {
            Scope::All => return Ok(None),
            Scope::Lineage(id) => {
                let kin = self.lineage(id)?.into_iter();
                kin.map(|kin| json!({"id": kin.session_id, "until": kin.until})).collect()
            }
            Scope::Project(directories) => {
                let sql = "SELECT session_id FROM sessions WHERE project_dir IN (SELECT value FROM json_each(?1))";
                let session = |row: &Row<'_>| Ok(json!({"id": row.get::<_, String>(0)?, "until": Millis::MAX}));
                self.all(sql, [json!(directories).to_string()], session)?
            }
        };
        Ok(Some(json!(sessions).to_string()))
    }

    fn find_words(
        self,
        words: &[String],
        joined_by: &str,
        within: Option<&str>,
        category: Option<&str>,
        limit: i64,
    ) -> Result<Vec<Hit>, StoreError> {
        // Without a letter or digit there is nothing that the index could know.
        let known: Vec<&String> = words.iter().filter(|word| word.chars().any(char::is_alphanumeric)).collect();
        if known.is_empty() {
            return Ok(Vec::new());
        }
        let quoted: Vec<String> = known.iter().map(|word| format!("\"{}\"", word.replace('"', "\"\""))).collect();
        // The index walks from the newest hit back, and ranking by it would look at all hits of each word.
        let sql = format!(
            "SELECT {COLUMNS}, s.host, s.project_dir
             FROM (SELECT rowid AS id FROM session_events_fts WHERE session_events_fts MATCH ?1
                     AND rowid BETWEEN ?5 AND ?6 ORDER BY rowid DESC LIMIT ?4) f
               CROSS JOIN session_events e ON e.id = f.id LEFT JOIN sessions s ON s.session_id = e.session_id
             WHERE (?2 IS NULL OR e.category = ?2)
               AND (?3 IS NULL OR EXISTS (SELECT 1 FROM json_each(?3) w
                      WHERE w.value ->> 'id' = e.session_id AND e.created_at_ms <= w.value ->> 'until'))"
        );
        let seen = if within.is_some() { SEEN_WITHIN } else { SEEN };
        let (first, last) = within.map_or(Ok((0, i64::MAX)), |within| self.range_of(within))?;
        let whole = quoted.join(joined_by);
        // For a beginning, the index collects all hits of all words that begin so before it returns the first.
        let is_common = self.count_words(&whole, seen, first, last)? == seen;
        let expression = if is_common { whole } else { format!("{whole}*") };
        let mut hits = self.all_understood(&sql, (expression, category, within, seen, first, last), read_hit)?;
        let words: Vec<&str> = known.iter().map(|word| word.as_str()).collect();
        rank::best_first(&mut hits, &words);
        hits.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(hits)
    }

    /// How many events match, counted up to `most`.
    fn count_words(self, expression: &str, most: i64, first: i64, last: i64) -> Result<i64, StoreError> {
        let sql = "SELECT count(*) FROM (SELECT 1 FROM session_events_fts WHERE session_events_fts MATCH ?1
                     AND rowid BETWEEN ?3 AND ?4 ORDER BY rowid DESC LIMIT ?2)";
        let mut statement = self.0.prepare_cached(sql)?;
        Ok(statement.query_row(params![expression, most, first, last], |row| row.get(0))?)
    }

    /// The first and the last event of these sessions.
    fn range_of(self, within: &str) -> Result<(i64, i64), StoreError> {
        let sql = "SELECT coalesce(min(first), 0), coalesce(max(last), 0) FROM
                     (SELECT (SELECT min(id) FROM session_events WHERE session_id = w.value ->> 'id') AS first,
                             (SELECT max(id) FROM session_events WHERE session_id = w.value ->> 'id') AS last
                      FROM json_each(?1) w)";
        Ok(self.0.prepare_cached(sql)?.query_row([within], |row| Ok((row.get(0)?, row.get(1)?)))?)
    }

    /// Looks at the texts themselves, newest first.
    fn find_parts(
        self,
        words: &[String],
        within: Option<&str>,
        category: Option<&str>,
        limit: i64,
    ) -> Result<Vec<Hit>, StoreError> {
        let patterns: Vec<String> = words.iter().map(|word| like_pattern(word)).collect();
        let conditions: Vec<String> = (0..patterns.len())
            .map(|at| at + 4)
            .map(|number| format!("(e.text LIKE ?{number} ESCAPE '\\' OR e.subject LIKE ?{number} ESCAPE '\\')"))
            .collect();
        // Where sessions are named, they lead the way to their events.
        let from = match within {
            Some(_) => {
                "json_each(?1) w CROSS JOIN session_events e
                   ON e.session_id = w.value ->> 'id' AND e.created_at_ms <= w.value ->> 'until'"
            }
            None => "(SELECT * FROM session_events ORDER BY id DESC LIMIT {TEXTS_SEEN}) e",
        };
        let from = from.replace("{TEXTS_SEEN}", &TEXTS_SEEN.to_string());
        let sql = format!(
            "SELECT {COLUMNS}, s.host, s.project_dir FROM {from} LEFT JOIN sessions s ON s.session_id = e.session_id
             WHERE (?2 IS NULL OR e.category = ?2) AND {}
             ORDER BY e.id DESC LIMIT ?3",
            conditions.join(" AND ")
        );
        let mut values: Vec<&dyn ToSql> = vec![&within, &category, &limit];
        values.extend(patterns.iter().map(|pattern| pattern as &dyn ToSql));
        self.all_understood(&sql, values.as_slice(), read_hit)
    }
}

fn read_hit(row: &Row<'_>) -> rusqlite::Result<Option<Hit>> {
    let host: Option<String> = row.get("host")?;
    let project: Option<String> = row.get("project_dir")?;
    Ok(read(row)?.map(|event| Hit {
        event,
        host: host.and_then(|host| host.parse().ok()),
        project: project.filter(|project| !project.is_empty()),
    }))
}

/// The words of a query, bounded and without control characters.
fn words(query: &str) -> Vec<String> {
    let readable: String = query.chars().take(QUERY_READ).map(|c| if c.is_control() { ' ' } else { c }).collect();
    readable.split_whitespace().take(WORDS_READ).map(str::to_owned).collect()
}

fn like_pattern(word: &str) -> String {
    let escaped = word.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
    format!("%{escaped}%")
}
