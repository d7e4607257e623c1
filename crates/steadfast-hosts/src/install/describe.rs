//! A plan in words: all of it for `--dry-run`, a line for each file before a question. Keys for files we share with the
//! user, names for files that are ours.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use serde_json::{Map, Value};

use super::codex_config;
use super::json::JsonDocument;
use super::{Access, FileChange, InstallPlan};

/// From here on one line for all of them says enough.
const MANY_FOLDERS: usize = 4;
/// A longer value is shown member by member.
const LONG_VALUE: usize = 120;

impl InstallPlan {
    /// `+` new, `~` changed, `-` removed; below a changed file the keys.
    pub fn describe(&self) -> String {
        if self.changes.is_empty() {
            return "nothing to change\n".to_owned();
        }
        let mut out = String::new();
        let mut whole: BTreeMap<(char, Access), Vec<&Path>> = BTreeMap::new();
        for change in &self.changes {
            let lines = key_lines(change);
            if lines.is_empty() {
                whole.entry((sign(change), change.access)).or_default().push(&change.path);
                continue;
            }
            let _ = writeln!(out, "{} {}", sign(change), change.path.display());
            for line in lines {
                let _ = writeln!(out, "    {line}");
            }
        }
        for ((sign, _), paths) in whole {
            let mut folders: BTreeMap<&Path, String> = BTreeMap::new();
            for path in &paths {
                let names = folders.entry(path.parent().unwrap_or(Path::new(""))).or_default();
                let _ = write!(names, " {}", path.file_name().unwrap_or_default().display());
            }
            if folders.len() > MANY_FOLDERS {
                let _ = writeln!(out, "{sign} {}: {} files", common_folder(&paths).display(), paths.len());
                continue;
            }
            for (folder, names) in folders {
                let _ = writeln!(out, "{sign} {}:{names}", folder.display());
            }
        }
        out
    }
}

impl InstallPlan {
    /// One line for each file that we share with the user, with the names of what changes in it, and one for each kind
    /// of files that are ours.
    pub fn outline(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut whole: BTreeMap<(char, Access), Vec<&Path>> = BTreeMap::new();
        for change in &self.changes {
            match names(change) {
                names if names.is_empty() => whole.entry((sign(change), change.access)).or_default().push(&change.path),
                names => lines.push(format!("{} {}: {}", sign(change), change.path.display(), names.join("; "))),
            }
        }
        let files = |((sign, _), paths): ((char, Access), Vec<&Path>)| match paths.as_slice() {
            [path] => format!("{sign} {}", path.display()),
            paths => format!("{sign} {}: {} files", common_folder(paths).display(), paths.len()),
        };
        lines.extend(whole.into_iter().map(files));
        lines
    }
}

/// What is added, changed and removed in a file of settings, by name.
fn names(change: &FileChange) -> Vec<String> {
    let (Some(before), Some(after)) =
        (content(change, change.before.as_deref()), content(change, change.after.as_deref()))
    else {
        return Vec::new();
    };
    let (mut added, mut changed, mut removed) = (Vec::new(), Vec::new(), Vec::new());
    let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for key in keys {
        let (old, new) = (before.get(key), after.get(key));
        let list = match (old, new) {
            (old, new) if old == new => continue,
            (None, _) => &mut added,
            (_, None) => &mut removed,
            _ => &mut changed,
        };
        let members = |value: Option<&Value>| value.and_then(Value::as_object).cloned().unwrap_or_default();
        let (old, new) = (members(old), members(new));
        let differing: BTreeSet<&String> =
            old.keys().chain(new.keys()).filter(|member| old.get(*member) != new.get(*member)).collect();
        list.push(match differing.iter().next() {
            Some(_) if differing.len() > 1 => format!("{key} ({} keys)", differing.len()),
            Some(member) => format!("{key}.{member}"),
            None => key.clone(),
        });
    }
    let listed = [("adds", added), ("changes", changed), ("removes", removed)];
    let listed = listed.into_iter().filter(|(_, names)| !names.is_empty());
    listed.map(|(verb, names)| format!("{verb} {}", names.join(", "))).collect()
}

/// The content of a file of settings; `None` for other files, and for what is not valid.
fn content(change: &FileChange, text: Option<&str>) -> Option<Map<String, Value>> {
    let extension = change.path.extension().and_then(|extension| extension.to_str());
    match (extension, change.access) {
        (Some("json"), Access::Inherited) => Some(JsonDocument::parse(&change.path, text).ok()?.root),
        (Some("toml"), _) => match codex_config::content(&change.path, text).ok()? {
            Value::Object(content) => Some(content),
            _ => None,
        },
        _ => None,
    }
}

fn common_folder<'a>(paths: &[&'a Path]) -> &'a Path {
    let first = paths.first().copied().unwrap_or(Path::new(""));
    let holds_all = |folder: &&Path| paths.iter().all(|path| path.starts_with(folder));
    first.ancestors().skip(1).find(holds_all).unwrap_or(first)
}

fn sign(change: &FileChange) -> char {
    match (&change.before, &change.after) {
        (None, _) => '+',
        (_, None) => '-',
        _ => '~',
    }
}

/// Empty for files that are ours as a whole, and for a change of layout only.
fn key_lines(change: &FileChange) -> Vec<String> {
    let mut lines = Vec::new();
    let extension = change.path.extension().and_then(|extension| extension.to_str());
    match (extension, change.access) {
        (Some("json"), Access::Inherited) => {
            let parse = |text: &Option<String>| {
                JsonDocument::parse(&change.path, text.as_deref()).map(|document| document.root)
            };
            if let (Ok(before), Ok(after)) = (parse(&change.before), parse(&change.after)) {
                compare("", &before, &after, &mut lines);
            }
        }
        (Some("toml"), _) => {
            let (before, after) = (change.before.as_deref().unwrap_or(""), change.after.as_deref().unwrap_or(""));
            let missing = |line: &&str, text: &str| !text.lines().any(|other| other == *line);
            lines.extend(before.lines().filter(|line| missing(line, after)).map(|line| format!("- {line}")));
            lines.extend(after.lines().filter(|line| missing(line, before)).map(|line| format!("+ {line}")));
        }
        _ => {}
    }
    lines
}

fn compare(prefix: &str, before: &Map<String, Value>, after: &Map<String, Value>, lines: &mut Vec<String>) {
    for (key, old) in before {
        let name = format!("{prefix}{key}");
        match (old, after.get(key)) {
            (old, Some(new)) if new == old => {}
            (Value::Object(old), Some(Value::Object(new))) => compare(&format!("{name}."), old, new, lines),
            (old, Some(new)) => lines.push(format!("~ {name} = {new} (was {old})")),
            (old, None) => lines.push(format!("- {name} = {old}")),
        }
    }
    for (key, new) in after.iter().filter(|(key, _)| !before.contains_key(*key)) {
        let text = new.to_string();
        match new {
            Value::Object(members) if text.len() > LONG_VALUE => {
                compare(&format!("{prefix}{key}."), &Map::new(), members, lines);
            }
            _ => lines.push(format!("+ {prefix}{key} = {text}")),
        }
    }
}
