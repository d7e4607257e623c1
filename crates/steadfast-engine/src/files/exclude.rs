//! Keeps the state files out of commits and stashes: lines in `info/exclude` of the repository, between marker lines of
//! ours. The lines name only our own files, because people commit the rest of `.claude`. They come first in the file, so
//! that later lines of the user win, and all other bytes of the file stay as they are. Where there is no repository,
//! `files/ignore.rs` prepares for one.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use steadfast_system::bounded;

use super::document::{CLAUDE, LOCK, files_named};
use super::{FilesError, PIPELINES};
use crate::durable::{self, Readers, UNFINISHED, if_exists};
use crate::lock;
use crate::process::LimitedCommand;

/// Our files below `.claude`, as git patterns.
const PATTERNS: [&str; 9] = [
    ".steadfast.lock",
    ".steadfast-*.lock",
    ".steadfast-*.tmp",
    "loop-sessions.json*",
    "loop-state-*.json",
    "loop-state-*.json.*-*",
    "loop-completions.json*",
    "loop-progress/",
    "pipeline-runs/",
];
/// Lines for the exclude file of a repository that is ours alone: our files in any directory of it.
pub fn patterns_anywhere() -> impl Iterator<Item = String> {
    PATTERNS.into_iter().map(|pattern| format!("**/{CLAUDE}/{pattern}"))
}

/// How our patterns begin, those of other versions too.
const BEGINNINGS: [&str; 3] = [".steadfast", "loop-", PIPELINES];
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// A longer exclude file is not one that people wrote.
const MAX_BYTES: u64 = 1 << 20;
const LOCK_PATIENCE: Duration = Duration::from_secs(2);
const GIT_LIMIT: Duration = Duration::from_secs(20);
const GIT_BYTES: u64 = 16 << 20;

/// What a git command that only reads prints in a project; `None` if there is no repository.
pub(super) fn ask_git(project: &Path, arguments: &[&str]) -> Option<Vec<u8>> {
    // Do not start git only to learn that there is no repository.
    let _repository = nearest_git(project)?;
    let arguments = [&["-c", "core.fsmonitor=false"], arguments].concat();
    LimitedCommand::ask_git(&arguments, project, GIT_LIMIT, GIT_BYTES)
}

/// The nearest `.git` at or above a project.
pub(super) fn nearest_git(project: &Path) -> Option<PathBuf> {
    project.ancestors().map(|place| place.join(".git")).find(|git| git.symlink_metadata().is_ok())
}

/// The exclude file of the repository that a project is in.
struct ExcludeFile {
    top: PathBuf,
    /// The project as a path in the repository: empty, or with a `/` at its end.
    prefix: Vec<u8>,
    exclude: PathBuf,
}

impl ExcludeFile {
    fn of(project: &Path) -> Option<Self> {
        let asked = ["rev-parse", "--show-toplevel", "--show-prefix", "--git-path", "info/exclude"];
        let printed = ask_git(project, &asked)?;
        let mut lines = printed.split(|byte| *byte == b'\n');
        let path = |line: &[u8]| PathBuf::from(OsStr::from_bytes(line));
        let (top, prefix) = (path(lines.next()?), lines.next()?.to_owned());
        // Relative to the directory in which git was asked.
        let exclude = project.join(path(lines.next().filter(|line| !line.is_empty())?));
        Some(Self { top, prefix, exclude })
    }

    /// Changes the exclude file; returns whether that changed anything. Links are refused: a repository must not decide
    /// where Steadfast writes.
    fn edit(&self, dry_run: bool, change: impl FnOnce(&[u8]) -> Vec<u8>) -> Result<bool, FilesError> {
        let git = self.top.join(".git");
        let is_outside = || Ok::<bool, io::Error>(!git.canonicalize()?.starts_with(self.top.canonicalize()?));
        if git.is_symlink() && is_outside()? {
            return Err(FilesError::LeavesProject { path: git });
        }
        let info = self.exclude.parent().unwrap_or(Path::new("."));
        for path in [info, &self.exclude] {
            if path.is_symlink() {
                return Err(FilesError::LeavesProject { path: path.to_owned() });
            }
        }
        if !dry_run && !info.exists() {
            fs_err::create_dir(info)?;
        }
        let Some(directory) = if_exists(File::open(info))? else { return Ok(false) };
        // A lock on the directory leaves no file behind.
        if !lock::lock_within(&directory, LOCK_PATIENCE, || false)? {
            return Err(FilesError::Busy { path: info.to_owned() });
        }
        let before = if_exists(bounded::whole(&self.exclude, MAX_BYTES))?.unwrap_or_default();
        let after = change(&before);
        if after == before || dry_run {
            return Ok(after != before);
        }
        if self.exclude.metadata().is_ok_and(|metadata| metadata.permissions().readonly()) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is read-only").into());
        }
        // Temporary files of a killed process: the lock makes sure that none is in use.
        files_named(info, UNFINISHED).for_each(|path| drop(fs_err::remove_file(path)));
        if after.is_empty() {
            fs_err::remove_file(&self.exclude)?;
        } else {
            durable::replace_for(Readers::Project, &self.exclude, &after)?;
        }
        Ok(true)
    }
}

/// Keeps the state files of a project out of its repository. Returns the file that has the lines, and notes for the user:
/// why that is not possible, and which files git tracks already. `None` if there is no repository, `Busy` to try again.
pub(super) fn exclude(project: &Path) -> Result<Option<(PathBuf, Vec<String>)>, FilesError> {
    let Some(repository) = ExcludeFile::of(project) else { return Ok(None) };
    let mut notes = Vec::new();
    match repository.edit(false, |text| Lines::below(&repository.prefix).added(text)) {
        Ok(_) => {}
        Err(error @ FilesError::Busy { .. }) => return Err(error),
        Err(error) => {
            let file = repository.exclude.display();
            notes.push(format!(
                "`git add` will commit the state files of runs: cannot change `{file}`: {error} (ignore \
                 `.claude/loop-*` and `.claude/{PIPELINES}` with a .gitignore)"
            ));
        }
    }
    let tracked = tracked(project);
    if !tracked.is_empty() {
        let paths: Vec<String> = tracked.iter().map(|pattern| format!("'{CLAUDE}/{pattern}'")).collect();
        notes.push(format!(
            "git tracks state files of runs, and overwrites them with each checkout; to stop it: git rm -r --cached -- {}",
            paths.join(" ")
        ));
    }
    Ok(Some((repository.exclude, notes)))
}

/// Removes the lines of a project again; returns the file if it had them.
pub fn stop_excluding(project: &Path, dry_run: bool) -> Result<Option<PathBuf>, FilesError> {
    let Some(repository) = ExcludeFile::of(project) else { return Ok(None) };
    let changed = repository.edit(dry_run, |text| Lines::below(&repository.prefix).removed(text))?;
    Ok(changed.then_some(repository.exclude))
}

/// Whether state files are left in a project, or in another worktree of its repository, which has the same exclude file.
pub fn has_state_files(project: &Path) -> bool {
    let prefix = ExcludeFile::of(project).map(|repository| repository.prefix).unwrap_or_default();
    let listed = ask_git(project, &["worktree", "list", "--porcelain"]).unwrap_or_default();
    let worktrees = listed.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"worktree "));
    let places = worktrees.map(|path| Path::new(OsStr::from_bytes(path)).join(OsStr::from_bytes(&prefix)));
    let is_state = |name: &str| PATTERNS.iter().any(|it| !it.starts_with('.') && matches(it, name));
    places.chain([project.to_owned()]).any(|place| {
        let entries = fs_err::read_dir(place.join(CLAUDE)).into_iter().flatten().flatten();
        // Folders count with what is in them.
        entries.into_iter().any(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_empty = fs_err::read_dir(entry.path()).is_ok_and(|mut inside| inside.next().is_none());
            !is_empty && (is_state(&name) || is_state(&format!("{name}/")))
        })
    })
}

/// Removes the lock file of a project without state files, unless it is in use.
pub fn remove_lock_file(project: &Path) {
    let path = project.join(CLAUDE).join(LOCK);
    if let Ok(file) = bounded::open(&path).map(|file| file.into_parts().0)
        && lock::try_lock(&file).unwrap_or(false)
    {
        // Best effort: a leftover does no harm.
        let _ = fs_err::remove_file(path);
    }
}

/// The patterns of state files that git tracks: committed by hand, or before there was an exclude file.
fn tracked(project: &Path) -> Vec<&'static str> {
    let names = ask_git(project, &["ls-files", "-z", "--", CLAUDE]).unwrap_or_default();
    let is_tracked = |pattern: &&str| {
        names.split(|byte| *byte == 0).any(|name| {
            let name = String::from_utf8_lossy(name);
            name.strip_prefix(".claude/").is_some_and(|name| matches(pattern, name))
        })
    };
    PATTERNS.into_iter().filter(is_tracked).collect()
}

/// Whether one of [`PATTERNS`] matches a path below `.claude`.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    if pattern.ends_with('/') {
        return name.starts_with(pattern);
    }
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    for part in parts {
        let Some(at) = rest.rfind(part) else { return false };
        rest = rest.get(at + part.len()..).unwrap_or_default();
    }
    rest.is_empty()
}

/// A path of the repository as a part of a pattern. A line break, which no pattern can have, matches as any character.
fn escaped(prefix: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::new();
    for byte in prefix {
        match byte {
            b'\\' | b'*' | b'?' | b'[' => escaped.extend([b'\\', *byte]),
            b'\n' | b'\r' => escaped.push(b'?'),
            other => escaped.push(*other),
        }
    }
    escaped
}

/// The byte order mark, which stays first, and the rest.
fn split_mark(text: &[u8]) -> (&[u8], &[u8]) {
    text.split_at(if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 })
}

/// Our lines in a file of git patterns, between two markers.
pub(super) struct Lines {
    begin: Vec<u8>,
    end: Vec<u8>,
    /// What stands before each pattern.
    folder: Vec<u8>,
    /// The file itself, if it is to be ignored too.
    own: Option<&'static str>,
}

impl Lines {
    /// Of a project, as a path in its repository: empty, or with a `/` at its end.
    pub(super) fn below(prefix: &[u8]) -> Self {
        let words = ["# steadfast: state files of runs in /", "# steadfast: end of /"];
        let [begin, end] = words.map(|words| [words.as_bytes(), &escaped(prefix)].concat());
        Self { begin, end, folder: [b"/", &escaped(prefix)[..], b".claude/"].concat(), own: None }
    }

    /// Of an ignore file beside our files.
    pub(super) fn beside(own: &'static str) -> Self {
        let [begin, end] = ["# steadfast: state files of runs", "# steadfast: end"].map(|it| it.as_bytes().to_owned());
        Self { begin, end, folder: b"/".to_vec(), own: Some(own) }
    }

    pub(super) fn added(&self, text: &[u8]) -> Vec<u8> {
        let rest = self.removed(text);
        let (mark, rest) = split_mark(&rest);
        let patterns = self.own.into_iter().chain(PATTERNS);
        let patterns = patterns.map(|pattern| [&self.folder[..], pattern.as_bytes()].concat());
        let lines = [self.begin.clone()].into_iter().chain(patterns).chain([self.end.clone()]);
        let block: Vec<u8> = lines.flat_map(|line| [&line[..], b"\n"].concat()).collect();
        [mark, &block, rest].concat()
    }

    /// Lines that a person added between the markers stay.
    pub(super) fn removed(&self, text: &[u8]) -> Vec<u8> {
        let is_pattern = |line: &[u8]| {
            let beginnings = BEGINNINGS.into_iter().chain(self.own);
            let rest = line.strip_prefix(&self.folder[..]);
            rest.is_some_and(|rest| beginnings.into_iter().any(|it| rest.starts_with(it.as_bytes())))
        };
        let (mut kept, mut is_inside) = (Vec::new(), false);
        let (mark, text) = split_mark(text);
        kept.extend(mark);
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let bare = line.strip_suffix(b"\n").unwrap_or(line);
            let bare = bare.strip_suffix(b"\r").unwrap_or(bare);
            let is_ours = bare == self.begin || (is_inside && (bare == self.end || is_pattern(bare)));
            is_inside = bare == self.begin || (is_inside && bare != self.end);
            if !is_ours {
                kept.extend(line);
            }
        }
        kept
    }
}
