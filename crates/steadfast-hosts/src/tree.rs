//! Which session files a machine has, and whose they are. Nothing is opened here; size and time tell later what
//! changed.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use super::{Host, claude, codex};
use steadfast_model::clock;
use steadfast_model::clock::{DAY, Millis};

/// Deep enough for `projects/<project>/<session>/subagents/…` and what clients may add below.
const DEEPEST: usize = 8;

/// A session file as the directory shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranscriptFile {
    pub path: PathBuf,
    pub session_id: String,
    /// The file of a subagent, which belongs to another file's session.
    pub is_subagent: bool,
    /// The project, as far as the path tells it; the file's own lines know better.
    pub folder: String,
    pub size: u64,
    /// Nanoseconds since 1970.
    pub modified: i64,
    /// Nanoseconds since 1970; 0 where the file system does not tell.
    pub created: i64,
}

/// The directories below which a host keeps its session files.
pub fn roots(host: Host) -> Vec<PathBuf> {
    match host {
        Host::Claude => claude::config_dirs().iter().map(|dir| dir.join("projects")).collect(),
        Host::Codex => codex::session_dirs(),
    }
}

/// All session files below these directories, the oldest first, so that a response which a fork copied belongs
/// to the session that asked for it.
pub fn transcripts(host: Host, roots: &[PathBuf]) -> std::io::Result<Vec<TranscriptFile>> {
    let mut files = Vec::new();
    for root in roots {
        match host {
            Host::Claude => walk(root, 0, &mut |path| claude_file(root, path), &mut files)?,
            Host::Codex => walk(root, 0, &mut codex_file, &mut files)?,
        }
    }
    files.sort_by(|a, b| (a.created, &a.path).cmp(&(b.created, &b.path)));
    // A directory may be named twice.
    let mut seen = BTreeSet::new();
    files.retain(|file| seen.insert(file.path.clone()));
    Ok(files)
}

/// The file of one session of Claude Code and those of its subagents.
pub fn claude_session_files(roots: &[PathBuf], session_id: &str) -> Vec<PathBuf> {
    // The id comes from outside and becomes a file name.
    if !is_plain_name(session_id) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for root in roots {
        let Ok(projects) = fs_err::read_dir(root) else { continue };
        for project in projects.flatten() {
            let file = project.path().join(format!("{session_id}.jsonl"));
            if !file.is_file() {
                continue;
            }
            found.push(file);
            let mut below = Vec::new();
            let subagents = project.path().join(session_id);
            // A subagent's file that cannot be listed is not counted; its session's own is.
            let _ = walk(&subagents, 1, &mut |path| claude_file(root, path), &mut below);
            found.extend(below.into_iter().filter(|file| file.is_subagent).map(|file| file.path));
        }
    }
    found
}

/// The rollouts of a thread of Codex and of its subagents: those that are named, and those that say themselves that
/// they belong to it. Only the folders of the days around these times are looked at.
pub fn codex_session_files(
    roots: &[PathBuf],
    thread: &str,
    subagents: &[String],
    started_at_ms: Millis,
    ended_at_ms: Millis,
) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in day_folders(roots, started_at_ms, ended_at_ms) {
        let mut files = Vec::new();
        // Days without sessions have no folder.
        let _ = walk(&folder, DEEPEST, &mut codex_file, &mut files);
        for file in files {
            let named = file.session_id == thread || subagents.contains(&file.session_id);
            let is_recent = file.modified / 1_000_000 >= started_at_ms;
            if named || (is_recent && codex::rollout::root_session(&file.path).as_deref() == Some(thread)) {
                found.push(file.path);
            }
        }
    }
    found
}

/// `<root>/2026/11/15`; the names are in local time, so a day more on both sides is looked at.
fn day_folders(roots: &[PathBuf], started_at_ms: Millis, ended_at_ms: Millis) -> Vec<PathBuf> {
    const MOST_DAYS: usize = 40;
    let mut days = Vec::new();
    let mut at = started_at_ms - DAY;
    while at <= ended_at_ms + DAY && days.len() < MOST_DAYS {
        let day = clock::to_rfc3339(at);
        if let Some((date, _)) = day.split_once('T') {
            days.push(date.replace('-', "/"));
        }
        at += DAY;
    }
    roots.iter().flat_map(|root| days.iter().map(move |day| root.join(day))).collect()
}

fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= 128 && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
}

/// Session, whether it is a subagent's file, and project folder, from the path alone.
type Owner = (String, bool, String);

fn walk(
    directory: &Path,
    depth: usize,
    owner: &mut impl FnMut(&Path) -> Option<Owner>,
    files: &mut Vec<TranscriptFile>,
) -> std::io::Result<()> {
    let entries = match fs_err::read_dir(directory) {
        Ok(entries) => entries,
        // Clients delete old sessions while we look.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        let kind = entry.file_type()?;
        let path = entry.path();
        let is_jsonl = path.extension().is_some_and(|extension| extension == "jsonl");
        // Links to projects are followed; deeper ones could lead round in circles.
        if kind.is_dir() || (kind.is_symlink() && depth == 0 && !is_jsonl) {
            let goes_on = depth < DEEPEST && (kind.is_dir() || path.is_dir());
            if goes_on {
                walk(&path, depth + 1, owner, files)?;
            }
            continue;
        }
        if !is_jsonl {
            continue;
        }
        let (Some((session_id, is_subagent, folder)), Ok(metadata)) = (owner(&path), fs_err::metadata(&path)) else {
            continue;
        };
        if metadata.is_file() {
            files.push(TranscriptFile {
                path,
                session_id,
                is_subagent,
                folder,
                size: metadata.len(),
                modified: nanoseconds(&metadata, Metadata::modified),
                created: nanoseconds(&metadata, Metadata::created),
            });
        }
    }
    Ok(())
}

fn nanoseconds(metadata: &Metadata, time: impl FnOnce(&Metadata) -> std::io::Result<std::time::SystemTime>) -> i64 {
    time(metadata)
        .ok()
        .and_then(|at| at.duration_since(UNIX_EPOCH).ok())
        .and_then(|since| i64::try_from(since.as_nanos()).ok())
        .unwrap_or(0)
}

/// `<project>/<session>.jsonl` or `<project>/<session>/subagents/…/agent-<id>.jsonl`.
fn claude_file(root: &Path, path: &Path) -> Option<Owner> {
    let parts: Vec<&str> = path.strip_prefix(root).ok()?.iter().filter_map(|part| part.to_str()).collect();
    let name = path.file_stem()?.to_str()?.to_owned();
    match parts.as_slice() {
        [folder, session, "subagents", ..] => Some(((*session).to_owned(), true, (*folder).to_owned())),
        [folder, ..] if parts.len() > 1 => Some((name, false, (*folder).to_owned())),
        _ => Some((name, false, String::new())),
    }
}

/// `rollout-<time>-<thread>.jsonl`, where the thread is a UUID; after a revert `…-<thread>_<rollout>.jsonl`.
fn codex_file(path: &Path) -> Option<Owner> {
    const UUID: usize = 36;
    let name = path.file_stem()?.to_str()?.strip_prefix("rollout-")?;
    let name = name.split_once('_').map_or(name, |(thread, _)| thread);
    let thread = name.len().checked_sub(UUID).and_then(|from| name.get(from..)).unwrap_or(name);
    Some((thread.to_owned(), false, String::new()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_tells_session_and_project() {
        let root = Path::new("/c/projects");
        let owner = |path: &str| claude_file(root, &root.join(path)).unwrap();
        let expected = |session: &str, subagent, folder: &str| (session.to_owned(), subagent, folder.to_owned());
        assert_eq!(owner("-home-x/s1.jsonl"), expected("s1", false, "-home-x"));
        assert_eq!(owner("-home-x/s1/subagents/agent-a1.jsonl"), expected("s1", true, "-home-x"));
        assert_eq!(owner("-home-x/s1/subagents/deeper/agent-a1.jsonl"), expected("s1", true, "-home-x"));
        assert_eq!(owner("stray.jsonl"), expected("stray", false, ""));

        let thread = "01936f0e-5d3a-7c11-8a11-aaaaaaaaaaaa";
        for (name, expected) in [
            (format!("rollout-2026-11-15T10-00-00-{thread}.jsonl"), Some(thread)),
            (format!("rollout-2026-11-15T10-00-00-{thread}_2.jsonl"), Some(thread)),
            ("rollout-short.jsonl".to_owned(), Some("short")),
            ("history.jsonl".to_owned(), None),
        ] {
            let found = codex_file(Path::new(&name)).map(|(session, ..)| session);
            assert_eq!(found.as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn all_files_below_are_found_and_a_missing_tree_is_empty() {
        let root = tempfile::tempdir().unwrap();
        let none = transcripts(Host::Codex, &[root.path().join("none")]).unwrap();
        assert!(none.is_empty());
        for path in ["p/a.jsonl", "p/a/subagents/agent-1.jsonl", "p/a/tool-results/x.txt", "q/b.jsonl", "q/b.meta.json"]
        {
            steadfast_model::testing::append(&root.path().join(path), "{}\n");
        }
        let twice = [root.path().to_owned(), root.path().to_owned()];
        let files = transcripts(Host::Claude, &twice).unwrap();
        let mut sessions: Vec<_> = files.iter().map(|f| (f.session_id.as_str(), f.is_subagent, f.size)).collect();
        sessions.sort_unstable();
        assert_eq!(sessions, [("a", false, 3), ("a", true, 3), ("b", false, 3)]);
        assert!(files.iter().all(|file| file.modified > 0));
        let no_directory = [root.path().join("q/b.jsonl")];
        assert!(transcripts(Host::Claude, &no_directory).is_err());
    }
}
