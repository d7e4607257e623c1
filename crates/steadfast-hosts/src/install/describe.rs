//! A plan in words, for `--dry-run`: keys for files we share with the user, names for files that are ours.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::json::Document;
use super::{Access, Change, Plan};

/// From here on one line for all of them says enough.
const MANY_FOLDERS: usize = 4;
/// A longer value is shown member by member.
const LONG_VALUE: usize = 120;

impl Plan {
    /// `+` new, `~` changed, `-` removed; below a changed file the keys.
    pub fn describe(&self) -> String {
        let mut out = String::new();
        let mut whole: BTreeMap<(char, PathBuf), Vec<String>> = BTreeMap::new();
        let mut private: BTreeMap<char, Vec<&Path>> = BTreeMap::new();
        for change in &self.changes {
            let lines = key_lines(change);
            if !lines.is_empty() {
                let _ = writeln!(out, "{} {}", sign(change), change.path.display());
                for line in lines {
                    let _ = writeln!(out, "    {line}");
                }
            } else if change.access == Access::Private {
                private.entry(sign(change)).or_default().push(&change.path);
            } else {
                let folder = change.path.parent().unwrap_or(Path::new("")).to_path_buf();
                let name = change.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                whole.entry((sign(change), folder)).or_default().push(name);
            }
        }
        for sign in ['+', '-', '~'] {
            let folders: Vec<(&Path, &Vec<String>)> = whole
                .iter()
                .filter(|((of, _), _)| *of == sign)
                .map(|((_, folder), names)| (folder.as_path(), names))
                .collect();
            if folders.len() > MANY_FOLDERS {
                let files: usize = folders.iter().map(|(_, names)| names.len()).sum();
                let folders: Vec<&Path> = folders.into_iter().map(|(folder, _)| folder).collect();
                let _ = writeln!(out, "{sign} {}: {files} files", common_folder(&folders).display());
                continue;
            }
            for (folder, names) in folders {
                let _ = writeln!(out, "{sign} {}: {}", folder.display(), names.join(" "));
            }
        }
        for (sign, paths) in private {
            let _ = match paths.as_slice() {
                [path] => writeln!(out, "{sign} {}", path.display()),
                _ => writeln!(out, "{sign} {}: {} files", common_folder(&paths).display(), paths.len()),
            };
        }
        if self.changes.is_empty() {
            out.push_str("nothing to change\n");
        }
        for note in &self.notes {
            let _ = writeln!(out, "note: {note}");
        }
        out
    }
}

fn common_folder<'a>(paths: &[&'a Path]) -> &'a Path {
    let first = paths.first().copied().unwrap_or(Path::new(""));
    let holds_all = |folder: &&Path| paths.iter().all(|path| path.starts_with(folder));
    first.ancestors().skip(1).find(holds_all).unwrap_or(first)
}

fn sign(change: &Change) -> char {
    match (&change.before, &change.after) {
        (None, _) => '+',
        (_, None) => '-',
        _ => '~',
    }
}

/// Empty for files that are ours as a whole, and for a change of layout only.
fn key_lines(change: &Change) -> Vec<String> {
    let mut lines = Vec::new();
    let extension = change.path.extension().and_then(|extension| extension.to_str());
    match (extension, change.access) {
        (Some("json"), Access::Inherited) => {
            let parse =
                |text: &Option<String>| Document::parse(&change.path, text.as_deref()).map(|document| document.root);
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
        match after.get(key) {
            Some(new) if new == old => {}
            Some(Value::Object(new)) if old.is_object() => {
                let empty = Map::new();
                compare(&format!("{name}."), old.as_object().unwrap_or(&empty), new, lines);
            }
            Some(new) => lines.push(format!("~ {name} = {new} (was {old})")),
            None => lines.push(format!("- {name} = {old}")),
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
