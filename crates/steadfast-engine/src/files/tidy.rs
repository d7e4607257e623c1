//! Old and dead entries of the registry: a `running` one behind which nothing runs is marked, and finished ones are
//! removed after a while. An entry whose state is unknown stays.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use steadfast_model::clock::{self, Millis};

use super::document::{self, CLAUDE, Edit, FoundDocument, Lock, set};
use super::{FilesError, PIPELINES, ProjectPlace, RegistryEntry, address, registry};

/// The keys of entries that were changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tidied {
    /// Said `running` although nothing runs.
    pub marked: Vec<String>,
    /// Ended long ago.
    pub pruned: Vec<String>,
}

/// How to tidy.
#[derive(Clone, Copy)]
pub struct Tidy<'a> {
    /// Whether anything still runs behind an entry that says `running`.
    pub is_alive: &'a dyn Fn(&RegistryEntry) -> bool,
    /// Finished entries that ended before this are removed.
    pub before_ms: Millis,
    pub now: Millis,
    /// Change nothing, only return what would change.
    pub dry_run: bool,
}

/// Tidies a project's registry. A missing or broken one is left alone.
pub fn tidy(project: &Path, how: Tidy<'_>) -> Result<Tidied, FilesError> {
    let place = ProjectPlace::of(project)?;
    let mut document = registry::document();
    if document.peek(&place)?.is_none() {
        return Ok(Tidied::default());
    }
    let lock = Lock::take(&place)?;
    if !how.dry_run {
        address::sweep(&place)?;
        for directory in directories(&place)? {
            document::sweep(&directory, &lock);
        }
    }
    document.update(&place, &lock, |found| {
        let FoundDocument::Value(mut value) = found else { return Ok((Edit::Keep(None), Tidied::default())) };
        let tidied = tidy_value(&mut value, how);
        let changed = !how.dry_run && tidied != Tidied::default();
        Ok((Edit::write_if(changed, value), tidied))
    })
}

/// Where public files are written: runs and their stages have directories of their own.
fn directories(place: &ProjectPlace) -> Result<Vec<PathBuf>, FilesError> {
    let inside = |directory: &Path| -> Vec<PathBuf> {
        let is_directory = |path: &PathBuf| path.symlink_metadata().is_ok_and(|found| found.is_dir());
        document::files_named(directory, ["", ""]).filter(is_directory).collect()
    };
    let mut all = vec![place.directory(&[CLAUDE])?];
    for parent in ["loop-progress", PIPELINES] {
        // What leads out of the project is not ours.
        let Ok(parent) = place.directory(&[CLAUDE, parent]) else { continue };
        for run in inside(&parent) {
            all.extend(inside(&run));
            all.push(run);
        }
        all.push(parent);
    }
    Ok(all)
}

/// Marks a running entry that no run of ours is behind as killed; returns whether there was one.
pub fn mark_killed(project: &Path, key: &str, now: Millis) -> Result<bool, FilesError> {
    let place = ProjectPlace::of(project)?;
    let mut document = registry::document();
    let lock = Lock::take(&place)?;
    document.update(&place, &lock, |found| {
        let FoundDocument::Value(mut value) = found else { return Ok((Edit::Keep(None), false)) };
        let entry = value.get_mut("sessions").and_then(|sessions| sessions.get_mut(key)).and_then(Value::as_object_mut);
        let entry =
            entry.filter(|entry| !entry.contains_key("run_id") && entry.get("status") == Some(&json!("running")));
        let is_marked = entry.is_some();
        if let Some(entry) = entry {
            set(entry, "status", "killed");
            set(entry, "killed_at", clock::to_rfc3339(now));
        }
        Ok((Edit::write_if(is_marked, value), is_marked))
    })
}

fn tidy_value(value: &mut Value, how: Tidy<'_>) -> Tidied {
    let mut tidied = Tidied::default();
    let entries = registry::entries(value);
    let Some(sessions) = value.get_mut("sessions").and_then(Value::as_object_mut) else { return tidied };
    for entry in entries {
        let Some(object) = sessions.get_mut(&entry.key).and_then(Value::as_object_mut) else { continue };
        if entry.status == "running" {
            if !(how.is_alive)(&entry) {
                set(object, "status", "unknown_termination");
                set(object, "cleaned_at", clock::to_rfc3339(how.now));
                tidied.marked.push(entry.key);
            }
        } else if ended_at(object).is_some_and(|ended| ended < how.before_ms) {
            sessions.shift_remove(&entry.key);
            tidied.pruned.push(entry.key);
        }
    }
    tidied
}

/// As the documented recipe: `.completed_at // .killed_at // .started_at`. When an entry that we marked ended is unknown,
/// so the time of the mark counts.
fn ended_at(entry: &Map<String, Value>) -> Option<Millis> {
    let text = ["completed_at", "killed_at", "cleaned_at", "started_at"]
        .iter()
        .find_map(|name| entry.get(*name).filter(|value| **value != json!(null)));
    text.and_then(Value::as_str).and_then(clock::parse_rfc3339)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dead_entries_are_marked_old_ones_forgotten_and_the_rest_is_left_alone() {
        let mut value = json!({"sessions": {
            "loop-alive": {"status": "running", "started_at": "2025-01-01T00:00:00Z"},
            "loop-dead": {"status": "running", "started_at": "2025-01-01T00:00:00Z", "mine": 1},
            "loop-old": {"status": "completed", "started_at": "2025-01-01T00:00:00Z", "completed_at": "2025-01-02T00:00:00Z"},
            "loop-killed": {"status": "killed", "completed_at": null, "killed_at": "2025-01-02T00:00:00Z"},
            "loop-new": {"status": "completed", "completed_at": "2025-02-01T00:00:00Z"},
            "loop-odd": {"status": "completed", "completed_at": "yesterday"},
            "loop-bare": 7,
        }, "more": true});
        let at = |text| clock::parse_rfc3339(text).unwrap();
        let how = Tidy {
            is_alive: &|entry| entry.key == "loop-alive",
            before_ms: at("2025-01-20T00:00:00Z"),
            now: at("2025-02-02T00:00:00Z"),
            dry_run: false,
        };
        let tidied = tidy_value(&mut value, how);
        let marked = vec!["loop-dead".to_owned()];
        assert_eq!(tidied, Tidied { marked, pruned: vec!["loop-old".into(), "loop-killed".into()] });
        assert_eq!(
            value,
            json!({"sessions": {
                "loop-alive": {"status": "running", "started_at": "2025-01-01T00:00:00Z"},
                "loop-dead": {"status": "unknown_termination", "started_at": "2025-01-01T00:00:00Z", "mine": 1,
                              "cleaned_at": "2025-02-02T00:00:00Z"},
                "loop-new": {"status": "completed", "completed_at": "2025-02-01T00:00:00Z"},
                "loop-odd": {"status": "completed", "completed_at": "yesterday"},
                "loop-bare": 7,
            }, "more": true})
        );
        assert_eq!(tidy_value(&mut value, how), Tidied::default());
    }
}
