//! The result of a run: its rows, the public files and the work. Values that differ between two equal runs (times,
//! process ids, ids, number of attempts) are normalised.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use super::world::{Scenario, World};

/// Fields that depend on time, process or number of attempts.
const CIRCUMSTANCES: [&str; 31] = [
    "started_at",
    "completed_at",
    "timestamp",
    "updated_at",
    "last_updated",
    "duration_seconds",
    "pid",
    "supervisor_key",
    "run_id",
    "attempts",
    "attempt",
    "started_at_ms",
    "completed_at_ms",
    "updated_at_ms",
    "committed_at_ms",
    "closed_ms",
    "footprint",
    "version",
    "tmux_session",
    "store_id",
    "id",
    "goal_id",
    "ts",
    "created_at_ms",
    "last_continuation_at_ms",
    "duration_ms",
    "time_used_seconds",
    "time_used_rest_ms",
    "asked_at_ms",
    "answered_at_ms",
    "taken_at_ms",
];

/// One line per fact, so that a difference is easy to see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Truth(pub(super) BTreeMap<String, String>);

impl Truth {
    pub(super) fn of(world: &World) -> Self {
        let mut truth = Self::default();
        truth.read_tables(world);
        truth.read_files(world, &world.path("project/.claude"), "public");
        truth.read_work(world);
        truth
    }

    fn add(&mut self, world: &World, name: &str, text: &str) {
        // Every test has its own directory, and the run of a goal its own name.
        let root = world.path("").display().to_string();
        let even = |text: &str| {
            let text = text.replace(root.trim_end_matches('/'), "ROOT");
            if world.scenario() == Scenario::Goal { text.replace(&world.name(), "NAME") } else { text }
        };
        self.0.insert(even(name), even(text));
    }

    fn read_tables(&mut self, world: &World) {
        let db = rusqlite::Connection::open(world.path("home/goals.db")).unwrap();
        for (table, order) in [
            ("runs", "name"),
            ("run_stages", "stage"),
            ("run_iterations", "stage, iteration"),
            ("run_approvals", "stage"),
            ("goals", "created_at_ms"),
            ("goal_events", "id"),
            ("verifications", "id"),
        ] {
            for (at, row) in rows(&db, &format!("SELECT * FROM {table} ORDER BY {order}")).into_iter().enumerate() {
                self.add(world, &format!("{table} {at}"), &row.to_string());
            }
        }
        // The number of attempts varies; exactly one attempt succeeds and none stays open.
        let attempts = "SELECT stage, iteration, count(*) FILTER (WHERE status = 'succeeded') AS succeeded,
            count(*) FILTER (WHERE status = 'starting') AS starting FROM run_attempts
            GROUP BY stage, iteration ORDER BY stage, iteration";
        for (at, row) in rows(&db, attempts).into_iter().enumerate() {
            self.add(world, &format!("attempts {at}"), &row.to_string());
        }
    }

    fn read_files(&mut self, world: &World, directory: &Path, name: &str) {
        for entry in std::fs::read_dir(directory).unwrap().flatten() {
            let name = format!("{name}/{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                self.read_files(world, &entry.path(), &name);
                continue;
            }
            let text = std::fs::read_to_string(entry.path()).unwrap();
            let ends_with = |end: &str| entry.path().extension().is_some_and(|it| it == end);
            let text = match text {
                text if ends_with("json") => even(serde_json::from_str(&text).unwrap()).to_string(),
                // The owner, or the time of the registry.
                _ if ends_with("lock") => String::new(),
                text => text,
            };
            self.add(world, &name, &text);
        }
    }

    fn read_work(&mut self, world: &World) {
        let work = std::fs::read_to_string(world.path("project/work.txt")).unwrap();
        self.add(world, "work", &work);
        let doubled = std::fs::read_to_string(world.path("book/doubled")).unwrap_or_default();
        self.add(world, "two agents on one iteration", &doubled);
        if world.scenario().has_branches() {
            let branches = world.git(&["branch", "--format=%(refname:short)"]);
            for branch in branches.lines() {
                let content = world.git(&["show", &format!("{branch}:work.txt")]);
                self.add(world, &format!("branch {branch}"), &content);
                let commits = world.git(&["log", "--first-parent", "--format=%s", branch]);
                self.add(world, &format!("commits of {branch}"), &commits);
            }
            self.add(world, "worktrees", &world.git(&["worktree", "list"]).lines().count().to_string());
        }
    }

    /// The differences, in readable form.
    pub(super) fn difference(&self, other: &Self) -> String {
        let names: std::collections::BTreeSet<&String> = self.0.keys().chain(other.0.keys()).collect();
        let different = names.into_iter().filter(|name| self.0.get(*name) != other.0.get(*name));
        let shown = different.map(|name| format!("{name}:\n{}", apart(self.0.get(name), other.0.get(name))));
        shown.collect::<Vec<_>>().join("\n")
    }
}

/// The first difference between two texts.
fn apart(left: Option<&String>, right: Option<&String>) -> String {
    let (Some(left), Some(right)) = (left, right) else { return format!("  {left:?}\n  {right:?}") };
    let same = left.chars().zip(right.chars()).take_while(|(left, right)| left == right).count();
    let part = |text: &str| text.chars().skip(same.saturating_sub(60)).take(200).collect::<String>();
    format!("  {:?}\n  {:?}", part(left), part(right))
}

fn rows(db: &rusqlite::Connection, sql: &str) -> Vec<Value> {
    use rusqlite::types::Value as Sql;
    let mut statement = db.prepare(sql).unwrap();
    let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let rows = statement.query_map([], |row| {
        let mut object = serde_json::Map::new();
        for (at, name) in names.iter().enumerate() {
            let value = match row.get::<_, Sql>(at)? {
                Sql::Null | Sql::Blob(_) => Value::Null,
                Sql::Integer(number) => json!(number),
                Sql::Real(number) => json!(number),
                Sql::Text(text) if name.ends_with("_json") || name == "payload" => serde_json::from_str(&text).unwrap(),
                Sql::Text(text) => json!(text),
            };
            object.insert(name.clone(), value);
        }
        Ok(even(Value::Object(object)))
    });
    rows.unwrap().map(Result::unwrap).collect()
}

/// Varying values are replaced by their kind, so that a missing field still shows.
fn even(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| {
                let value = match value {
                    Value::String(_) if CIRCUMSTANCES.contains(&name.as_str()) => json!("…"),
                    Value::Number(_) if CIRCUMSTANCES.contains(&name.as_str()) => json!(0),
                    // Parallel iterations end in any order.
                    Value::Array(mut items) if name == "history" => {
                        items.sort_by_key(|item| (item["stage"].as_u64(), item["iteration"].as_u64()));
                        even(Value::Array(items))
                    }
                    other => even(other),
                };
                (name, value)
            })
            // The order of fields in a state file means nothing.
            .collect::<BTreeMap<_, _>>()
            .into_iter()
            .collect(),
        Value::Array(items) => items.into_iter().map(even).collect(),
        other => other,
    }
}
