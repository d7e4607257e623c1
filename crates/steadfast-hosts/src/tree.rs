//! Which session files a machine has, and whose they are. No file is opened here; size and time show later what
//! changed.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use super::adapter;
use steadfast_model::host::Host;

/// Deep enough for `projects/<project>/<session>/subagents/…` and what clients may add below.
pub(crate) const DEEPEST: usize = 8;

/// A session file as the directory shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranscriptFile {
    pub path: PathBuf,
    pub session_id: String,
    /// The file of a subagent, which belongs to another file's session.
    pub is_subagent: bool,
    /// The project's folder in the path; the lines of the file name it exactly.
    pub folder: String,
    pub size: u64,
    /// Nanoseconds since 1970.
    pub modified: i64,
    /// Nanoseconds since 1970; 0 if the file system does not record it.
    pub created: i64,
}

/// All session files below these directories, the oldest first, so that a response which a fork copied belongs
/// to the session that asked for it.
pub fn transcripts(host: Host, roots: &[PathBuf]) -> std::io::Result<Vec<TranscriptFile>> {
    let mut files = Vec::new();
    for root in roots {
        walk(root, 0, &mut |path| (adapter(host).transcript_owner)(root, path), &mut files)?;
    }
    files.sort_by(|a, b| (a.created, &a.path).cmp(&(b.created, &b.path)));
    // A directory may be named twice.
    let mut seen = BTreeSet::new();
    files.retain(|file| seen.insert(file.path.clone()));
    Ok(files)
}

/// Whose session file it is, from the path alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    pub session_id: String,
    pub is_subagent: bool,
    /// The project's folder, if the path has one.
    pub folder: String,
}

/// Adds all session files below a directory.
pub(crate) fn walk(
    directory: &Path,
    depth: usize,
    owner: &mut impl FnMut(&Path) -> Option<Owner>,
    files: &mut Vec<TranscriptFile>,
) -> std::io::Result<()> {
    let entries = match fs_err::read_dir(directory) {
        Ok(entries) => entries,
        // Clients delete old sessions while we look.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        let kind = entry.file_type()?;
        let path = entry.path();
        let is_jsonl = path.extension().is_some_and(|extension| extension == "jsonl");
        // Links to projects are followed; deeper ones could lead round in circles.
        if kind.is_dir() || (kind.is_symlink() && depth == 0 && !is_jsonl) {
            let is_followed = depth < DEEPEST && (kind.is_dir() || path.is_dir());
            if is_followed {
                walk(&path, depth + 1, owner, files)?;
            }
            continue;
        }
        if !is_jsonl {
            continue;
        }
        let Some(owner) = owner(&path) else { continue };
        let metadata = match fs_err::metadata(&path) {
            Ok(metadata) => metadata,
            // A deleted file, or a link to one.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            // A sum without this file would look like the whole.
            Err(error) => return Err(error),
        };
        if metadata.is_file() {
            files.push(TranscriptFile {
                path,
                session_id: owner.session_id,
                is_subagent: owner.is_subagent,
                folder: owner.folder,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_file_that_cannot_be_looked_at_is_an_error_and_not_left_out() {
        let root = tempfile::tempdir().unwrap();
        let link = root.path().join("s1.jsonl");
        let found = || transcripts(Host::Claude, &[root.path().to_owned()]);
        std::os::unix::fs::symlink("gone.jsonl", &link).unwrap();
        assert_eq!(found().unwrap(), []);
        fs_err::remove_file(&link).unwrap();
        // No file can have this name, so the system refuses to look.
        std::os::unix::fs::symlink("x".repeat(300), &link).unwrap();
        let error = found().unwrap_err();
        assert!(error.to_string().contains("s1.jsonl"), "{error}");
    }

    #[test]
    fn a_path_tells_session_and_project() {
        let root = Path::new("/c/projects");
        let owner = |path: &str| (adapter(Host::Claude).transcript_owner)(root, &root.join(path)).unwrap();
        let expected = |session_id: &str, is_subagent, folder: &str| Owner {
            session_id: session_id.to_owned(),
            is_subagent,
            folder: folder.to_owned(),
        };
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
            let found = (adapter(Host::Codex).transcript_owner)(root, Path::new(&name)).map(|owner| owner.session_id);
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
