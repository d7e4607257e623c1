//! One fingerprint of an iteration: the agent's answer, its summary, the progress file, and the files it works on. Two
//! equal fingerprints mean that nothing changed. Files count by their content in a git repository, so that a fresh
//! checkout is equal, and by names, sizes and times elsewhere.

mod content;

use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use steadfast_model::text::Fingerprint;
use steadfast_system::bounded;

use crate::process::LimitedCommand;

/// More files are not looked at; the answer is part of the fingerprint all the same.
const MOST_FILES: usize = 50_000;
const DEEPEST: usize = 24;
const PROGRESS_BYTES: u64 = 1 << 20;
const GIT_LIMIT: Duration = Duration::from_secs(20);
const GIT_BYTES: u64 = 16 << 20;
/// Directories that tools write to.
const TOOL_DIRECTORIES: [&str; 6] = [".git", "node_modules", "target", "__pycache__", ".venv", ".pytest_cache"];

/// The files whose changes count as progress.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProgressTree<'a> {
    pub(crate) directory: &'a Path,
    pub(crate) progress: Option<&'a Path>,
    /// The fingerprint before the first attempt of the stage, if it is known.
    pub(crate) before: Option<&'a str>,
}

/// The fingerprint of an answer over a tree.
pub(crate) fn of(answer: &str, summary: Option<&str>, tree: &str) -> String {
    let mut print = Fingerprint::default();
    for part in [&normalized(answer), &normalized(summary.unwrap_or_default()), tree] {
        print.add(part.as_bytes());
        print.add(&[0]);
    }
    format!("{:032x}", print.value())
}

/// The fingerprint of the files and the progress file.
pub(crate) fn of_tree(tree: &ProgressTree<'_>) -> String {
    let mut print = Fingerprint::default();
    let mut add = |bytes: &[u8]| {
        print.add(bytes);
        print.add(&[0]);
    };
    let progress = tree.progress.and_then(|path| bounded::end_of(path, PROGRESS_BYTES).ok());
    add(String::from_utf8_lossy(&progress.map(|part| part.bytes).unwrap_or_default()).as_bytes());
    // Do not start git processes only to learn that there is no repository.
    let is_in_repository = tree.directory.ancestors().any(|place| place.join(".git").exists());
    let ask = |arguments: &[&str]| {
        is_in_repository.then(|| LimitedCommand::ask_git(arguments, tree.directory, GIT_LIMIT, GIT_BYTES)).flatten()
    };
    if let Some(tree) = is_in_repository.then(|| content::of(tree.directory)).flatten() {
        add(&tree);
        return format!("{:032x}", print.value());
    }
    add(ask(&["rev-parse", "HEAD"]).as_deref().unwrap_or_default());
    let mut files = Vec::new();
    if let Some(names) = ask(&["ls-files", "-co", "--exclude-standard", "-z"]) {
        let names = names.split(|byte| *byte == 0).filter(|name| !name.is_empty()).take(MOST_FILES);
        files.extend(names.map(|name| PathBuf::from(String::from_utf8_lossy(name).into_owned())));
    } else {
        walk(tree.directory, Path::new(""), 0, &mut files);
    }
    files.sort_unstable();
    for file in files.iter().filter(|file| !is_ours(file) && !is_of_tool(file)) {
        let Ok(metadata) = fs_err::symlink_metadata(tree.directory.join(file)) else { continue };
        let modified = metadata.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
        add(file.as_os_str().as_encoded_bytes());
        add(&metadata.len().to_le_bytes());
        add(&modified.as_nanos().to_le_bytes());
    }
    format!("{:032x}", print.value())
}

/// A text without case, numbers and spacing: a new date or counter is no progress.
fn normalized(text: &str) -> String {
    let mut normalized = String::with_capacity(text.len());
    for character in text.chars().flat_map(char::to_lowercase) {
        let kept = match character {
            digit if digit.is_numeric() => '#',
            space if space.is_whitespace() => ' ',
            other => other,
        };
        if !(matches!(kept, '#' | ' ') && normalized.ends_with(kept)) {
            normalized.push(kept);
        }
    }
    normalized
}

/// Whether a file is one of the public state files, which change with every iteration.
pub(crate) fn is_ours(file: &Path) -> bool {
    let Ok(inside) = file.strip_prefix(".claude") else { return false };
    let first = inside.iter().next().and_then(|name| name.to_str()).unwrap_or_default();
    first.starts_with("loop-") || first.starts_with("pipeline-runs") || first.starts_with(".steadfast")
}

fn is_of_tool(file: &Path) -> bool {
    file.iter().any(|name| name.to_str().is_some_and(|name| TOOL_DIRECTORIES.contains(&name)))
}

fn walk(root: &Path, below: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs_err::read_dir(root.join(below)) else { return };
    let mut entries: Vec<_> = entries.flatten().collect();
    entries.sort_by_key(fs_err::DirEntry::file_name);
    for entry in entries {
        if files.len() >= MOST_FILES {
            return;
        }
        let path = below.join(entry.file_name());
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && !is_of_tool(&path) && depth < DEEPEST => walk(root, &path, depth + 1, files),
            Ok(kind) if kind.is_dir() => {}
            _ => files.push(path),
        }
    }
}

#[cfg(test)]
mod tests;
