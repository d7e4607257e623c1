//! Our part of Codex's `config.toml`, in and out; comments and layout of the rest stay as they are. The part is appended
//! as text where that says what we mean, because an editor of TOML would put it before a comment at the end.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, TableLike};

use super::InstallError;
use super::codex_tables::{EVALUATOR, OwnTable, SERVER};
use super::json::{BOM, commands};
use super::splice::newline;

const HOOKS: &str = "hooks";
const STATE: &str = "state";

/// What setup puts into the file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct CodexEdits {
    /// The tool server's table; `None` if the user has one of that name.
    pub(crate) server: Option<Value>,
    /// The evaluator's table; `None` if the user has one of that name.
    #[serde(default)]
    pub(crate) evaluator: Option<Value>,
    /// Our hooks, for users who keep theirs in this file.
    pub(crate) groups: Vec<Group>,
    /// How to know our hooks among those that Codex notes as trusted.
    pub(crate) trust: Vec<Trust>,
    /// All of it as it was appended.
    pub(crate) block: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Group {
    pub(crate) event: String,
    pub(crate) group: Value,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Trust {
    /// File and event, as Codex's key begins.
    pub(crate) prefix: String,
    pub(crate) hash: String,
}

/// The file's content, whatever its layout.
pub(crate) fn content(path: &Path, text: Option<&str>) -> Result<Value, InstallError> {
    let broken = |problem: &str| InstallError::broken(path, format!("not valid TOML: {problem}"));
    let table: toml::Table =
        body(text.unwrap_or_default()).parse().map_err(|error: toml::de::Error| broken(error.message()))?;
    serde_json::to_value(table).map_err(|error| broken(&error.to_string()))
}

pub(super) fn parse(path: &Path, text: Option<&str>) -> Result<DocumentMut, InstallError> {
    let parsed = text.unwrap_or_default().parse::<DocumentMut>();
    parsed.map_err(|error| InstallError::broken(path, format!("not valid TOML: {}", error.message())))
}

/// Does the user keep hooks in this file? What Codex notes about hooks does not count.
pub(crate) fn has_events(content: &Value) -> bool {
    content[HOOKS].as_object().is_some_and(|hooks| hooks.keys().any(|key| key != STATE))
}

/// The text with our part in it, in the place of what an earlier setup wrote.
pub(crate) fn with(
    path: &Path,
    current: Option<&str>,
    earlier: &CodexEdits,
    wanted: &mut CodexEdits,
) -> Result<String, InstallError> {
    let text = current.unwrap_or_default();
    let present = content(path, current)?;
    let mut document = parse(path, Some(body(text)))?;
    for old in &earlier.groups {
        if !wanted.groups.iter().any(|new| new.event == old.event) {
            remove_group(&mut document, &present, old);
        }
    }
    wanted.put(path, &mut document, &present, earlier)?;
    let edited = render(text, &document);
    let meant = content(path, Some(&edited))?;
    if meant == present {
        wanted.block.clone_from(&earlier.block);
        return Ok(text.to_owned());
    }
    let mut alone = DocumentMut::new();
    wanted.put(path, &mut alone, &Value::Null, &CodexEdits::default())?;
    let gap = if text.trim().is_empty() { "" } else { "\n" };
    let block = with_line_ends(text, &format!("{gap}{alone}"));
    let line_end = if text.is_empty() || text.ends_with('\n') { "" } else { newline(text) };
    let appended = format!("{text}{line_end}{block}");
    if content(path, Some(&appended)).is_ok_and(|content| content == meant) {
        wanted.block = Some(block);
        return Ok(appended);
    }
    Ok(edited)
}

/// The text without our part and without what Codex noted about it, and the keys the user has made their own.
pub(crate) fn without(
    path: &Path,
    text: &str,
    ours: &CodexEdits,
    before: Option<&str>,
) -> Result<(Option<String>, Vec<String>), InstallError> {
    let original = content(path, before)?;
    let cut = ours.block.as_ref().filter(|block| text.matches(block.as_str()).count() == 1);
    let cut = cut.map(|block| text.replacen(block.as_str(), "", 1));
    let text = cut.filter(|text| content(path, Some(text)).is_ok()).unwrap_or_else(|| text.to_owned());
    let present = content(path, Some(&text))?;
    let mut document = parse(path, Some(body(&text)))?;
    let mut kept = Vec::new();

    for group in &ours.groups {
        remove_group(&mut document, &present, group);
    }
    for (table, value) in ours.tables() {
        if !table.remove(&mut document, &present, value) {
            kept.push(table.key());
        }
    }
    forget_trust(&mut document, &present, &original, &ours.trust);
    prune(&mut document, &original);

    let edited = render(&text, &document);
    let rest = if content(path, Some(&edited))? == present { text } else { edited };
    if content(path, Some(&rest))? == original {
        return Ok((before.map(str::to_owned), kept));
    }
    Ok(((before.is_some() || !rest.trim().is_empty()).then_some(rest), kept))
}

impl CodexEdits {
    fn put(
        &self,
        path: &Path,
        document: &mut DocumentMut,
        present: &Value,
        earlier: &Self,
    ) -> Result<(), InstallError> {
        for new in &self.groups {
            let old = earlier.groups.iter().find(|old| old.event == new.event);
            put_group(path, document, present, new, old)?;
        }
        self.tables().try_for_each(|(table, value)| table.put(path, document, present, value))
    }

    fn tables(&self) -> impl Iterator<Item = (&'static OwnTable, &Value)> {
        let tables = [(&SERVER, &self.server), (&EVALUATOR, &self.evaluator)];
        tables.into_iter().filter_map(|(table, value)| Some((table, value.as_ref()?)))
    }
}

fn put_group(
    path: &Path,
    document: &mut DocumentMut,
    present: &Value,
    new: &Group,
    old: Option<&Group>,
) -> Result<(), InstallError> {
    let owned = |item: &Value| {
        let found = commands(item);
        found == commands(&new.group) || old.is_some_and(|old| found == commands(&old.group))
    };
    let list = present[HOOKS][&new.event].as_array();
    let place = list.and_then(|list| list.iter().position(owned));
    if place.is_some_and(|place| present[HOOKS][&new.event][place] == new.group) {
        return Ok(());
    }
    let (hooks, inline) = section(path, document, HOOKS)?;
    match (hooks.get_mut(&new.event), place) {
        (None, _) if inline => {
            let list = Array::from_iter([toml_value(&new.group)]);
            hooks.insert(&new.event, Item::Value(list.into()));
        }
        (None, _) => {
            let list = ArrayOfTables::from_iter([table(&new.group)]);
            hooks.insert(&new.event, Item::ArrayOfTables(list));
        }
        (Some(Item::ArrayOfTables(list)), None) => list.push(table(&new.group)),
        (Some(Item::ArrayOfTables(list)), Some(place)) => {
            if let (Some(slot), Value::Object(members)) = (list.get_mut(place), &new.group) {
                slot.clear();
                slot.extend(members.iter().map(|(key, value)| (key.clone(), Item::Value(toml_value(value)))));
            }
        }
        (Some(Item::Value(toml_edit::Value::Array(list))), None) => list.push(toml_value(&new.group)),
        (Some(Item::Value(toml_edit::Value::Array(list))), Some(place)) => {
            list.replace(place, toml_value(&new.group));
        }
        _ => return Err(InstallError::broken(path, format!("`{HOOKS}.{}` is not a list", new.event))),
    }
    Ok(())
}

/// A table at the root, made if it is missing, and whether only values fit into it.
pub(super) fn section<'a>(
    path: &Path,
    document: &'a mut DocumentMut,
    name: &str,
) -> Result<(&'a mut dyn TableLike, bool), InstallError> {
    let item = document.entry(name).or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let inline = item.is_inline_table() || item.as_table().is_some_and(Table::is_dotted);
    let table = item.as_table_like_mut();
    Ok((table.ok_or_else(|| InstallError::broken(path, format!("`{name}` is not a table")))?, inline))
}

fn remove_group(document: &mut DocumentMut, present: &Value, ours: &Group) {
    let Some(list) = present[HOOKS][&ours.event].as_array() else {
        return;
    };
    let hooks = document.get_mut(HOOKS).and_then(Item::as_table_like_mut);
    let Some(item) = hooks.and_then(|hooks| hooks.get_mut(&ours.event)) else {
        return;
    };
    let mut stays = list.iter().map(|item| commands(item) != commands(&ours.group));
    match item {
        Item::ArrayOfTables(list) => list.retain(|_| stays.next().unwrap_or(true)),
        Item::Value(toml_edit::Value::Array(list)) => list.retain(|_| stays.next().unwrap_or(true)),
        _ => {}
    }
}

/// What Codex noted about our hooks: the trust given, or that one was switched off before any was given.
fn forget_trust(document: &mut DocumentMut, present: &Value, original: &Value, ours: &[Trust]) {
    let hooks = document.get_mut(HOOKS).and_then(Item::as_table_like_mut);
    let state = hooks.and_then(|hooks| hooks.get_mut(STATE)).and_then(Item::as_table_like_mut);
    let (Some(state), Some(notes)) = (state, present[HOOKS][STATE].as_object()) else {
        return;
    };
    for (key, note) in notes {
        let is_new = original[HOOKS][STATE][key].is_null();
        let known = |hash: &str| match note["trusted_hash"].as_str() {
            Some(trusted) => trusted == hash,
            None => is_new,
        };
        if ours.iter().any(|trust| key.starts_with(&trust.prefix) && known(&trust.hash)) {
            state.remove(key);
        }
    }
}

/// Removes tables that are empty now and were not there before.
fn prune(document: &mut DocumentMut, original: &Value) {
    let empty = |item: Option<&Item>| match item {
        Some(Item::ArrayOfTables(list)) => list.is_empty(),
        Some(Item::Value(toml_edit::Value::Array(list))) => list.is_empty(),
        Some(item) => item.as_table_like().is_some_and(TableLike::is_empty),
        None => false,
    };
    if let Some(hooks) = document.get_mut(HOOKS).and_then(Item::as_table_like_mut) {
        let keys: Vec<String> = hooks.iter().map(|(key, _)| key.to_owned()).collect();
        for key in keys {
            if empty(hooks.get(&key)) && original[HOOKS][&key].is_null() {
                hooks.remove(&key);
            }
        }
    }
    for key in [HOOKS, SERVER.section, EVALUATOR.section] {
        if empty(document.get(key)) && original[key].is_null() {
            document.remove(key);
        }
    }
}

pub(super) fn table(object: &Value) -> Table {
    let members = object.as_object().into_iter().flatten();
    members.map(|(key, value)| (key.clone(), Item::Value(toml_value(value)))).collect()
}

pub(crate) fn toml_value(value: &Value) -> toml_edit::Value {
    match value {
        Value::Bool(flag) => (*flag).into(),
        Value::Number(number) => number.as_i64().unwrap_or_default().into(),
        Value::Array(list) => list.iter().map(toml_value).collect::<Array>().into(),
        Value::Object(members) => {
            members.iter().map(|(key, value)| (key.clone(), toml_value(value))).collect::<InlineTable>().into()
        }
        Value::String(text) => text.as_str().into(),
        Value::Null => "".into(),
    }
}

fn body(text: &str) -> &str {
    text.trim_start_matches(BOM)
}

/// The document in the line ends and with the byte order mark of the text it came from.
fn render(text: &str, document: &DocumentMut) -> String {
    let edited = with_line_ends(text, &document.to_string());
    if text.starts_with(BOM) { format!("{BOM}{edited}") } else { edited }
}

fn with_line_ends(like: &str, text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', newline(like))
}
