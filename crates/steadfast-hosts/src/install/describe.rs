//! A plan in words, for `--dry-run`: keys for files we share with the user, names for files that are ours.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use serde_json::{Map, Value};

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
