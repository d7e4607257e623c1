//! `.claude/loop-sessions.json`: one entry for each run, under `loop-NAME` or `pipeline-NAME`. People add, mark and
//! remove entries by hand, with `jq` or an editor; `listing.rs` compares the file with what was written last.

use serde_json::{Map, Value, json};
use steadfast_model::clock::{self, Millis};
use steadfast_model::run::{RunKind, RunStatus};

use super::FileView;
use super::document::{CLAUDE, Document, object, set};

pub(super) const FILE: &str = "loop-sessions.json";
const SESSIONS: &str = "sessions";

/// An entry of the registry, ours or another tool's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistryEntry {
    /// `loop-NAME` or `pipeline-NAME`, or any other text in an entry made by hand.
    pub key: String,
    /// From the field `type`, else from the start of the key.
    pub kind: Option<RunKind>,
    pub status: String,
    pub started_at: Option<String>,
    pub project_path: Option<String>,
    pub note: Option<String>,
    /// The loop type, or the pipeline's file.
    pub title: Option<String>,
    pub max_iterations: Option<u64>,
    /// The process behind it.
    pub pid: Option<i64>,
    /// Set on entries that Steadfast wrote.
    pub run_id: Option<String>,
    /// The entry as it is.
    pub(super) entry: Value,
}

impl RegistryEntry {
    /// Whether a person marked the entry of a running run as killed since it started. `pid` is its last engine, if it is
    /// known.
    pub fn is_marked_killed(&self, run_id: &str, pid: Option<i64>, since_ms: Millis) -> bool {
        // An entry that names no process shows an end, whichever process was the last.
        let own = Own { run_id: run_id.to_owned(), pid: pid.or(self.pid).or(Some(0)), since_ms };
        self.run_id.as_deref() == Some(run_id) && mark(&self.entry, &own) == Mark::Valid
    }
}

pub(super) fn document() -> Document {
    Document::new(&[CLAUDE, FILE], is_registry)
}

fn is_registry(value: &Value) -> bool {
    // `{}` without `sessions` is a valid start of a registry made by hand.
    value.as_object().is_some_and(|object| object.get(SESSIONS).is_none_or(|it| it.is_object() || it.is_null()))
}

/// The key of a run's entry.
pub fn registry_key(kind: RunKind, name: &str) -> String {
    format!("{kind}-{name}")
}

pub(super) fn entry<'a>(registry: &'a Value, key: &str) -> Option<&'a Value> {
    registry.get(SESSIONS)?.get(key)
}

/// Writes a run's entry into the registry; returns whether that changed anything. `marked` keeps a `killed` by hand.
pub(super) fn write_entry(registry: &mut Value, key: &str, view: &FileView<'_>, project: &str, marked: bool) -> bool {
    let Some(sessions) = sessions_of(registry) else { return false };
    let Some(entry) = object(sessions.entry(key).or_insert_with(|| json!({}))) else { return false };
    // The note on an earlier run of that name is not about this one.
    let another = entry.get("run_id").is_some_and(|id| id.as_str() != Some(view.run_id));
    let mut changed = set_facts(entry, view, project, marked);
    if another || !entry.contains_key("note") {
        changed |= set(entry, "note", Value::Null);
    }
    let pid = view.pid.filter(|_| view.run.status == RunStatus::Running);
    // Fields that change with every iteration are in the state only, so that the registry rarely collides with an edit.
    changed | set(entry, "reason", view.run.reason.clone()) | set(entry, "pid", pid) | set(entry, "run_id", view.run_id)
}

/// The entries; anything but an object is replaced by one.
fn sessions_of(registry: &mut Value) -> Option<&mut Map<String, Value>> {
    object(registry.as_object_mut()?.entry(SESSIONS).or_insert_with(|| json!({})))
}

/// Inserts an entry unless the key has one of this run; returns whether that changed anything.
pub(super) fn put_back(registry: &mut Value, key: &str, entry: &Value, own: &Own) -> bool {
    let Some(sessions) = sessions_of(registry) else { return false };
    let is_there = sessions.get(key).is_some_and(|there| !is_stale(there, own));
    if !is_there {
        sessions.insert(key.to_owned(), entry.clone());
    }
    !is_there
}

fn set_facts(entry: &mut Map<String, Value>, view: &FileView<'_>, project: &str, marked: bool) -> bool {
    let (plan, run) = (view.plan, view.run);
    let mut changed = set(entry, "type", plan.kind.to_string());
    match plan.kind {
        RunKind::Loop => changed |= set(entry, "loop_type", plan.title.as_str()),
        RunKind::Pipeline => {
            let file = plan.pipeline_file.clone().unwrap_or_else(|| format!("{}.yaml", plan.title));
            changed |= set(entry, "pipeline_file", file);
        }
    }
    changed |= set(entry, "started_at", clock::to_rfc3339(run.started_at_ms));
    changed |= set(entry, "project_path", project);
    if plan.kind == RunKind::Loop {
        changed |= set(entry, "max_iterations", run.max_iterations(plan, 1));
    }
    if marked {
        return changed;
    }
    let ended = run.completed_at_ms.map(clock::to_rfc3339);
    let (killed_at, completed_at) = match run.status {
        RunStatus::Killed => (entry.get("killed_at").and_then(Value::as_str).map(str::to_owned).or(ended), None),
        RunStatus::Completed | RunStatus::Failed => (None, ended),
        RunStatus::Running | RunStatus::UnknownTermination => (None, None),
    };
    changed |= set(entry, "status", run.status.to_string());
    changed |= set(entry, "killed_at", killed_at);
    changed | set(entry, "completed_at", completed_at)
}

/// All entries of the registry.
pub(super) fn entries(registry: &Value) -> Vec<RegistryEntry> {
    let sessions = registry.get(SESSIONS).and_then(Value::as_object).into_iter().flatten();
    sessions.map(|(key, entry)| read_entry(key, entry)).collect()
}

fn read_entry(key: &str, entry: &Value) -> RegistryEntry {
    let text = |name: &str| entry.get(name).and_then(Value::as_str).map(str::to_owned);
    let from_key = || key.split_once('-').and_then(|(kind, _)| kind.parse().ok());
    RegistryEntry {
        key: key.to_owned(),
        kind: text("type").and_then(|kind| kind.parse().ok()).or_else(from_key),
        status: text("status").unwrap_or_default(),
        started_at: text("started_at"),
        project_path: text("project_path"),
        note: text("note"),
        title: text("loop_type").or_else(|| text("pipeline_file")),
        max_iterations: entry.get("max_iterations").and_then(Value::as_u64),
        pid: entry.get("pid").and_then(Value::as_i64),
        run_id: text("run_id"),
        entry: entry.clone(),
    }
}

/// Which run an entry must be about for a mark by hand to count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Own {
    pub(super) run_id: String,
    /// The engine, as the entry names it.
    pub(super) pid: Option<i64>,
    /// When the run was started or resumed.
    pub(super) since_ms: Millis,
}

/// Whether an entry is about another run, or about this one before its engine started: git put it back. An entry
/// without a run's id was written by hand.
pub(super) fn is_stale(entry: &Value, own: &Own) -> bool {
    let of_other = entry.get("run_id").and_then(Value::as_str).is_some_and(|run_id| {
        // The entry of a run that ended has `null`.
        run_id != own.run_id || entry.get("pid").is_some_and(|pid| pid.as_i64() != own.pid)
    });
    // Times in the files have whole seconds.
    let since_ms = own.since_ms - own.since_ms.rem_euclid(1_000);
    of_other || (is_killed(entry) && killed_at(entry).is_some_and(|killed_at| killed_at < since_ms))
}

fn is_killed(entry: &Value) -> bool {
    entry.get("status").and_then(Value::as_str) == Some("killed")
}

fn killed_at(entry: &Value) -> Option<Millis> {
    entry.get("killed_at").and_then(Value::as_str).and_then(clock::parse_rfc3339)
}

/// A `killed` that a person wrote into the entry of a running run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// There is none, or it is about an earlier time.
    Absent,
    /// Nothing in the entry says which run or time it is about.
    Undated,
    Valid,
}

pub(super) fn mark(entry: &Value, own: &Own) -> Mark {
    if !is_killed(entry) || is_stale(entry, own) {
        return Mark::Absent;
    }
    let is_dated = killed_at(entry).is_some() || entry.get("run_id").is_some_and(Value::is_string);
    if is_dated { Mark::Valid } else { Mark::Undated }
}
