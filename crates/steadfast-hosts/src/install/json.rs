//! Edits single keys of a user's JSON file and keeps the rest: key order, indentation, line ends, byte order mark.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{InstallError, splice};

pub(super) const BOM: char = '\u{feff}';

/// A key that setup sets, addressed from the root.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct JsonEdit {
    pub(crate) keys: Vec<String>,
    pub(crate) written: Value,
    pub(crate) previous: Option<Value>,
    pub(crate) ours: Ours,
}

/// When a value that is no longer quite what we wrote still counts as ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ours {
    Exact,
    /// As long as this member is unchanged: the client adds and refreshes others.
    Member(String),
    /// Always: the key is our own name.
    Any,
    /// The key holds a list; what we wrote is one item of it, a group of hooks known by its commands.
    HookGroup,
}

impl JsonEdit {
    pub(crate) fn new(keys: &[&str], written: Value, ours: Ours) -> Self {
        Self { keys: keys.iter().map(ToString::to_string).collect(), written, previous: None, ours }
    }

    pub(crate) fn owns(&self, value: &Value) -> bool {
        match &self.ours {
            Ours::Exact => *value == self.written,
            Ours::Member(name) => value.get(name).is_some_and(|member| Some(member) == self.written.get(name)),
            Ours::Any => true,
            Ours::HookGroup => commands(value) == commands(&self.written),
        }
    }

    /// The value to set, given what the key held before us: for an item the whole list with it.
    pub(crate) fn merged(&self, path: &Path, present: &JsonDocument) -> Result<Value, InstallError> {
        if self.ours != Ours::HookGroup {
            return Ok(self.written.clone());
        }
        let mut list = match &self.previous {
            None => Vec::new(),
            Some(Value::Array(list)) => list.clone(),
            Some(_) => return Err(InstallError::broken(path, format!("`{}` is not a list", self.keys.join(".")))),
        };
        if list.iter().any(|item| self.owns(item)) {
            // There by other means, such as a manifest that got lost: twice would be worse.
            return Ok(Value::Array(list));
        }
        // Codex ties its trust to the place in the list, so an item stays where it is.
        let place = present.get(&self.keys).and_then(Value::as_array);
        let place = place.and_then(|list| list.iter().position(|item| self.owns(item)));
        list.insert(place.unwrap_or(list.len()).min(list.len()), self.written.clone());
        Ok(Value::Array(list))
    }
}

/// A JSON object and the text it came from.
#[derive(Debug, Clone)]
pub(crate) struct JsonDocument {
    pub(crate) root: Map<String, Value>,
    /// Kept in step with `root`; `None` once that was not possible, and for a file with nothing in it yet.
    text: Option<String>,
    /// One step of it; `None`: all on one line.
    indent: Option<String>,
    bom: bool,
}

impl JsonDocument {
    /// A missing or blank file reads as an empty object, as the client does it.
    pub(crate) fn parse(path: &Path, text: Option<&str>) -> Result<Self, InstallError> {
        let text = text.unwrap_or_default();
        let body = text.trim_start_matches(BOM);
        let blank = body.trim().is_empty();
        let root = match serde_json::from_slice((if blank { "{}" } else { body }).as_bytes()) {
            Ok(Value::Object(root)) => root,
            Ok(_) => return Err(InstallError::broken(path, "not a JSON object")),
            Err(source) => return Err(InstallError::broken(path, format!("not valid JSON: {source}"))),
        };
        Ok(Self {
            root,
            text: (!blank).then(|| body.to_owned()),
            indent: if blank { Some("  ".to_owned()) } else { indent(body) },
            bom: text.starts_with(BOM),
        })
    }

    pub(crate) fn get<K: AsRef<str>>(&self, keys: &[K]) -> Option<&Value> {
        let (first, rest) = keys.split_first()?;
        rest.iter().try_fold(self.root.get(first.as_ref())?, |value, key| value.get(key.as_ref()))
    }

    /// Sets the value and creates the objects above it.
    pub(crate) fn set(&mut self, path: &Path, keys: &[String], value: &Value) -> Result<(), InstallError> {
        let Some((last, parents)) = keys.split_last().filter(|_| self.get(keys) != Some(value)) else {
            return Ok(());
        };
        let mut object = &mut self.root;
        for key in parents {
            object = object
                .entry(key)
                .or_insert_with(|| Value::Object(Map::new()))
                .as_object_mut()
                .ok_or_else(|| InstallError::broken(path, format!("`{key}` is not a JSON object")))?;
        }
        object.insert(last.clone(), value.clone());
        let text = self.text.as_deref();
        let spliced = text.and_then(|text| splice::set(text, keys, value, self.indent.as_deref()));
        self.follow(spliced);
        Ok(())
    }

    /// Removes the value, then the objects above it that are now empty and were not there before.
    fn remove(&mut self, keys: &[String], before: &Self) {
        self.remove_one(keys);
        for depth in (1..keys.len()).rev() {
            let Some(above) = keys.get(..depth) else { continue };
            let is_empty = self.get(above) == Some(&Value::Object(Map::new()));
            if is_empty && before.get(above).is_none() {
                self.remove_one(above);
            }
        }
    }

    fn remove_one(&mut self, keys: &[String]) {
        let Some((last, parents)) = keys.split_last() else {
            return;
        };
        let object = parents.iter().try_fold(&mut self.root, |object, key| object.get_mut(key)?.as_object_mut());
        // The plain `remove` would move the last key into the gap.
        if object.and_then(|object| object.shift_remove(last)).is_some() {
            let spliced = self.text.as_deref().and_then(|text| splice::remove(text, keys));
            self.follow(spliced);
        }
    }

    /// Accepts a changed text only if it says the same as `root`.
    fn follow(&mut self, text: Option<String>) {
        self.text = text.filter(|text| {
            serde_json::from_slice::<Value>(text.as_bytes()).is_ok_and(|value| value.as_object() == Some(&self.root))
        });
    }

    /// Takes our edits out; names those the user has since made their own.
    pub(crate) fn undo(&mut self, path: &Path, edits: &[JsonEdit], before: &Self) -> Result<Vec<String>, InstallError> {
        let mut kept = Vec::new();
        for edit in edits {
            if edit.ours == Ours::HookGroup {
                self.undo_item(path, edit, before)?;
                continue;
            }
            match (self.get(&edit.keys), &edit.previous) {
                (Some(value), _) if !edit.owns(value) => kept.push(edit.keys.join(".")),
                (Some(_), Some(previous)) => self.set(path, &edit.keys, previous)?,
                (_, None) => self.remove(&edit.keys, before),
                (None, Some(_)) => {}
            }
        }
        Ok(kept)
    }

    fn undo_item(&mut self, path: &Path, edit: &JsonEdit, before: &Self) -> Result<(), InstallError> {
        let Some(Value::Array(list)) = self.get(&edit.keys) else {
            return Ok(());
        };
        let theirs = before.get(&edit.keys).and_then(Value::as_array);
        if theirs.is_some_and(|list| list.iter().any(|item| edit.owns(item))) {
            return Ok(());
        }
        let rest: Vec<Value> = list.iter().filter(|item| !edit.owns(item)).cloned().collect();
        if rest.is_empty() && before.get(&edit.keys).is_none() {
            self.remove(&edit.keys, before);
            return Ok(());
        }
        self.set(path, &edit.keys, &Value::Array(rest))
    }

    pub(crate) fn render(&self) -> String {
        let text = self.text.clone().unwrap_or_else(|| {
            let value = Value::Object(self.root.clone());
            format!("{}\n", splice::layout(&value, self.indent.as_deref(), "\n"))
        });
        if self.bom { format!("{BOM}{text}") } else { text }
    }
}

/// The commands of a group of hooks.
pub(crate) fn commands(group: &Value) -> Vec<&str> {
    let handlers = group.get("hooks").and_then(Value::as_array);
    handlers.into_iter().flatten().filter_map(|handler| handler.get("command")?.as_str()).collect()
}

/// Equal but for the order of keys and the spelling of numbers: the client writes `3e1` back as `30`.
pub(super) fn same_members(one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    one.len() == other.len() && one.iter().all(|(key, value)| other.get(key).is_some_and(|twin| same(value, twin)))
}

fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => same_members(one, other),
        _ => one == other,
    }
}

fn indent(text: &str) -> Option<String> {
    let (_, rest) = text.trim().split_once('\n')?;
    let margins = rest
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| line.strip_suffix(line.trim_start()).unwrap_or_default());
    let step = margins.into_iter().find(|margin| !margin.is_empty());
    Some(step.unwrap_or_default().to_owned())
}
