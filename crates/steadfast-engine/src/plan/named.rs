//! Keys that map names to values: `env` (variables of the agents), `matrix` (one iteration for each combination),
//! `artifacts` (files that a stage leaves) and `commands` (which agents can look up).

use std::collections::BTreeMap;

use steadfast_model::run::EnvVariable;
use steadfast_model::run::name::RunName;

use super::fault::Location;
use super::keys::{Inherit, Slot, Value, text, texts};
use super::rules::is_inside_project;
use super::yaml::Yaml;

const MAX_CELLS: usize = 64;
const MAX_NAMES: usize = 100;

/// Values of the axes, by name.
pub(super) type Cell = BTreeMap<String, String>;

/// Artifacts in the order of the file: name, path, place.
pub(super) type Artifacts = Vec<(String, String, Location)>;

/// Commands of the user's by name. A stage adds to those that its loop type and its pipeline name.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Commands(pub(super) BTreeMap<String, String>);

impl Slot<Self> for Commands {
    fn fill(value: Option<Value<'_>>, read: impl FnOnce(&Value<'_>) -> Option<Self>) -> Self {
        value.and_then(|value| read(&value)).unwrap_or_default()
    }
}

impl Inherit for Commands {
    fn or(mut self, other: Self) -> Self {
        for (name, command) in other.0 {
            self.0.entry(name).or_insert(command);
        }
        self
    }
}

pub(super) fn commands(value: &Value<'_>) -> Option<Commands> {
    let Yaml::Map(entries) = &value.node.value else {
        let fix = "write `commands: {test: \"make test\"}`";
        return if value.is_off() { None } else { value.wrong("names with commands", fix) };
    };
    let mut commands = BTreeMap::new();
    for entry in entries.iter().take(MAX_NAMES) {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        let argument = Value::of_entry(entry, &value.at);
        if entry.key.len() > 64 || !entry.key.bytes().all(is_name) {
            argument.at.error("a command has a strange name", "use letters, digits, `_`, `-` and `.`");
        }
        commands.extend(text(&argument).map(|command| (entry.key.clone(), command)));
    }
    Some(Commands(commands))
}

/// Names of variables, or `NEW: $OLD`. Values never stand in a definition, because secrets would.
pub(super) fn env(value: &Value<'_>) -> Option<Vec<EnvVariable>> {
    if value.is_off() {
        return None;
    }
    let variables: Vec<EnvVariable> = if let Yaml::Map(entries) = &value.node.value {
        let entries = entries.iter().map(|entry| Value::of_entry(entry, &value.at));
        entries.filter_map(|entry| renamed(&entry)).collect()
    } else {
        let named = value.elements().filter_map(|element| {
            let name = text(&element)?;
            let name = checked(name.trim(), &element.at)?;
            Some(EnvVariable { from: name.clone(), name })
        });
        named.collect()
    };
    let is_empty = match &value.node.value {
        Yaml::Map(entries) => entries.is_empty(),
        Yaml::List(nodes) => nodes.is_empty(),
        _ => false,
    };
    if is_empty {
        return value.at.refuse("`env` is empty", "name what the agent needs, such as `env: [API_KEY]`, or remove it");
    }
    if variables.len() > MAX_NAMES {
        return value.at.refuse(format!("{} variables", variables.len()), format!("use at most {MAX_NAMES}"));
    }
    Some(variables)
}

fn renamed(entry: &Value<'_>) -> Option<EnvVariable> {
    let name = checked(entry.key, &entry.at)?;
    let old = match &entry.node.value {
        Yaml::Text(text) => text.trim().strip_prefix('$').map(|old| {
            let inner = old.strip_prefix('{').and_then(|old| old.strip_suffix('}'));
            inner.unwrap_or(old).to_owned()
        }),
        _ => None,
    };
    let Some(old) = old else {
        let fix = format!("values are never written into a definition: write `{name}: $NAME`");
        return entry.at.refuse(format!("`{name}` has a value"), fix);
    };
    Some(EnvVariable { name, from: checked(&old, &entry.at)? })
}

/// The name of a variable that a definition may use.
fn checked(name: &str, at: &Location) -> Option<String> {
    if !is_identifier(name) {
        let shown: String = name.escape_debug().take(80).collect();
        let (shown, has_value) = shown.split_once('=').map_or((shown.as_str(), false), |(name, _)| (name, true));
        let fix = if has_value {
            format!("values are never written into a definition: write `{shown}`, and set it before the run")
        } else {
            "use letters, digits and `_`, such as `API_KEY`".to_owned()
        };
        return at.refuse(format!("`{shown}` is not the name of a variable"), fix);
    }
    if name.starts_with("STEADFAST_") {
        return at.refuse(format!("`{name}` is set by Steadfast itself"), "choose another variable");
    }
    Some(name.to_owned())
}

fn is_identifier(name: &str) -> bool {
    let begins_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    begins_well && name.len() <= 200 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// All combinations of the axes, the last axis fastest.
pub(super) fn matrix(value: &Value<'_>) -> Option<Vec<Cell>> {
    let entries = match &value.node.value {
        _ if value.is_off() => return None,
        Yaml::Map(entries) if !entries.is_empty() => entries,
        _ => return value.at.refuse("`matrix` has to be axes with values", "write `matrix: {os: [linux, mac]}`"),
    };
    let mut cells = vec![Cell::new()];
    for entry in entries {
        let axis = Value::of_entry(entry, &value.at);
        if !is_identifier(axis.key) {
            let shown: String = axis.key.escape_debug().take(80).collect();
            return axis.at.refuse(format!("`{shown}` is not the name of an axis"), "use letters, digits and `_`");
        }
        let values = if axis.is_map() { None } else { texts(&axis) };
        let Some(values) = values.filter(|values| !values.is_empty()) else {
            let fix = format!("write for example `{}: [one, two]`", axis.key);
            return axis.at.refuse(format!("the axis `{}` has no values", axis.key), fix);
        };
        let number = cells.len().saturating_mul(values.len());
        if number > MAX_CELLS {
            return value
                .at
                .refuse(format!("the matrix has {number} combinations or more"), format!("use at most {MAX_CELLS}"));
        }
        let with = |cell: &Cell, value: &String| {
            let mut cell = cell.clone();
            cell.insert(axis.key.to_owned(), value.clone());
            cell
        };
        cells =
            cells.iter().flat_map(|cell| values.iter().map(|value| with(cell, value)).collect::<Vec<_>>()).collect();
    }
    Some(cells)
}

/// Paths of files that every iteration leaves, by name.
pub(super) fn artifacts(value: &Value<'_>) -> Option<Artifacts> {
    let fix = "write `artifacts: {report: out/report.md}`";
    let entries = match &value.node.value {
        _ if value.is_off() => return None,
        Yaml::Map(entries) if entries.len() <= MAX_NAMES => entries,
        Yaml::Map(_) => return value.at.refuse("too many artifacts", format!("use at most {MAX_NAMES}")),
        _ => return value.at.refuse("`artifacts` has to be names with paths", fix),
    };
    let mut artifacts = Vec::new();
    for entry in entries {
        let entry = Value::of_entry(entry, &value.at);
        if let Err(error) = entry.key.parse::<RunName>() {
            entry.at.error(format!("{error}; it is part of a variable"), error.hint());
            continue;
        }
        let Some(path) = text(&entry) else {
            if entry.is_off() {
                entry.at.error(format!("the artifact `{}` has no path", entry.key), fix);
            }
            continue;
        };
        let path = path.trim();
        if !is_inside_project(path) || path.contains(['\n', '\0']) {
            let fix = format!("write a path inside the project, such as `{}: out/{0}.md`", entry.key);
            entry.at.error(format!("the artifact `{}` has to be in the project", entry.key), fix);
            continue;
        }
        artifacts.push((entry.key.to_owned(), path.to_owned(), entry.at));
    }
    Some(artifacts)
}
