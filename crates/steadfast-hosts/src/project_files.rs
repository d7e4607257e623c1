//! Files of a project that a client loads when it starts there without a terminal. Without a terminal it asks nobody, so
//! what they make it run has to be shown to the user before.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;
use steadfast_system::{bounded, folder};

/// A file of a project that a client loads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectFile {
    pub file: PathBuf,
    /// What it is, as a noun.
    pub what: &'static str,
    /// What it makes the client run.
    pub commands: Vec<String>,
    /// What else it sets, one line each.
    pub settings: Vec<String>,
}

/// More files, or deeper ones, are no project's own.
const MOST: usize = 5_000;
const DEEPEST: usize = 8;
const LONGEST: u64 = 16 * 1024 * 1024;

impl ProjectFile {
    /// A file that a model reads and nothing runs by itself.
    pub(crate) fn text(file: PathBuf, what: &'static str) -> Self {
        Self { file, what, commands: Vec::new(), settings: Vec::new() }
    }
}

/// All files below a directory, also behind links, because the client follows them too.
pub(crate) fn files_below(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let (mut files, mut seen) = (Vec::new(), BTreeSet::new());
    let mut open = vec![(directory.to_owned(), 0)];
    while let Some((directory, depth)) = open.pop() {
        let paths = folder::paths(&directory, MOST + 1)?;
        if paths.is_empty() || !seen.insert(fs_err::canonicalize(&directory)?) {
            continue;
        }
        for path in paths {
            if path.is_dir() {
                open.push((path, depth + 1));
            } else {
                files.push(path);
            }
            if files.len() + open.len() > MOST || depth > DEEPEST {
                let message = format!("`{}` has too many files to check", directory.display());
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
            }
        }
    }
    files.sort();
    Ok(files)
}

/// The JSON of a file; `None` if there is no such file, `Null` if it is no JSON.
pub(crate) fn json(file: &Path) -> io::Result<Option<Value>> {
    let Some(bytes) = bytes(file)? else { return Ok(None) };
    Ok(Some(serde_json::from_slice(&bytes).unwrap_or_default()))
}

pub(crate) fn bytes(file: &Path) -> io::Result<Option<Vec<u8>>> {
    match bounded::whole(file, LONGEST) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The command lines in a JSON value: each `command`, with its `args`.
pub(crate) fn commands_in(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| commands_in(value, found)),
        Value::Object(fields) => {
            let words = |value: &Value| match value {
                Value::String(word) => vec![word.clone()],
                Value::Array(words) => words.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
                _ => Vec::new(),
            };
            let line: Vec<String> =
                ["command", "args"].iter().filter_map(|key| fields.get(*key)).flat_map(words).collect();
            if !line.is_empty() {
                found.push(line.join(" "));
            }
            let others = fields.iter().filter(|(key, _)| !matches!(key.as_str(), "command" | "args"));
            others.for_each(|(_, value)| commands_in(value, found));
        }
        _ => {}
    }
}
