//! The content of a repository's working tree as one id: the tree that git would commit. Equal content gives an equal id
//! on every machine, whatever its commits and times are. Nothing of the repository changes: the index is a copy, and
//! objects are written to a directory that is removed.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use steadfast_system::env_vars;
use tempfile::TempDir;

use super::TOOL_DIRECTORIES;
use crate::process::LimitedCommand;

const LIMIT: Duration = Duration::from_secs(20);
const MOST_OUTPUT: u64 = 16 << 20;
/// More than this is not read. Names, sizes and times are looked at then.
const MOST_CHANGED: u64 = 256 << 20;
/// Nothing of the repository is run, and what is removed soon is not compressed.
const SETTINGS: [&str; 8] = [
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.compression=0",
    "-c",
    "core.safecrlf=false",
];

/// The id of the content; `None` if git cannot say.
pub(super) fn of(directory: &Path) -> Option<Vec<u8>> {
    Checkout::at(directory)?.tree()
}

struct Checkout {
    top: PathBuf,
    /// The real objects.
    objects: PathBuf,
    /// The copy of the index, and new objects.
    scratch: TempDir,
    until: Instant,
}

impl Checkout {
    fn at(directory: &Path) -> Option<Self> {
        let until = Instant::now() + LIMIT;
        let asked = ["rev-parse", "--show-toplevel", "--git-path", "index", "--git-path", "objects"];
        let printed = LimitedCommand::ask_git(&asked, directory, LIMIT, MOST_OUTPUT)?;
        let mut lines = printed.split(|byte| *byte == b'\n').map(|line| Path::new(OsStr::from_bytes(line)));
        let top = lines.next()?.to_owned();
        // Relative to the directory in which git was asked.
        let (index, objects) = (directory.join(lines.next()?), directory.join(lines.next()?));
        let checkout =
            Self { top, objects: fs_err::canonicalize(objects).ok()?, scratch: tempfile::tempdir().ok()?, until };
        fs_err::create_dir(checkout.scratch.path().join("objects")).ok()?;
        copy_index(&index, &checkout.index())?;
        Some(checkout)
    }

    fn index(&self) -> PathBuf {
        self.scratch.path().join("index")
    }

    fn ask(&self, arguments: &[&str]) -> Option<Vec<u8>> {
        let left = self.until.saturating_duration_since(Instant::now());
        let captured = LimitedCommand::new("git", &self.top, left)
            .args(SETTINGS)
            .args(arguments.iter().copied())
            .env(env_vars::GIT_INDEX_FILE, self.index())
            .env(env_vars::GIT_OBJECT_DIRECTORY, self.scratch.path().join("objects"))
            .env(env_vars::GIT_ALTERNATE_OBJECT_DIRECTORIES, &self.objects)
            .capture(MOST_OUTPUT)
            .ok()?;
        (captured.exit_code == Some(0)).then_some(captured.stdout)
    }

    fn tree(&self) -> Option<Vec<u8>> {
        let left_out = left_out();
        let but = |before: &[&str]| -> Vec<String> {
            let all = before.iter().map(|word| (*word).to_owned()).chain(["--".to_owned(), ".".to_owned()]);
            all.chain(left_out.iter().map(|pattern| format!(":(exclude,glob){pattern}"))).collect()
        };
        let ask = |words: Vec<String>| self.ask(&words.iter().map(String::as_str).collect::<Vec<&str>>());
        let changed = ask(but(&["ls-files", "-m", "-o", "--exclude-standard", "-z"]))?;
        let size = |name: &[u8]| {
            let file = self.top.join(OsStr::from_bytes(name));
            fs_err::symlink_metadata(file).map_or(0, |metadata| metadata.len())
        };
        let bytes: u64 = changed.split(|byte| *byte == 0).filter(|name| !name.is_empty()).map(size).sum();
        if bytes > MOST_CHANGED || changed.len() as u64 >= MOST_OUTPUT {
            return None;
        }
        if !changed.is_empty() {
            ask(but(&["add", "--all"]))?;
        }
        // State files that are tracked change with every iteration.
        let mut remove = vec!["rm", "-r", "--cached", "--quiet", "--ignore-unmatch", "--"];
        let patterns: Vec<String> = left_out.iter().map(|pattern| format!(":(glob){pattern}")).collect();
        remove.extend(patterns.iter().map(String::as_str));
        self.ask(&remove)?;
        self.ask(&["write-tree"])
    }
}

/// What does not count, as patterns of git: the state files of runs, and directories that tools write to.
fn left_out() -> Vec<String> {
    let ours = ["loop-*", "loop-*/**", "pipeline-runs*", "pipeline-runs*/**", ".steadfast*"];
    let ours = ours.map(|name| format!("**/.claude/{name}"));
    let of_tools = TOOL_DIRECTORIES.iter().filter(|name| **name != ".git").map(|name| format!("**/{name}/**"));
    ours.into_iter().chain(of_tools).collect()
}

/// Copies the index with its time: git compares the times of files with it to know which of them it has to read.
fn copy_index(from: &Path, to: &Path) -> Option<()> {
    let Ok(metadata) = fs_err::metadata(from) else { return Some(()) };
    fs_err::copy(from, to).ok()?;
    let copy = fs_err::OpenOptions::new().write(true).open(to).ok()?;
    copy.file().set_modified(metadata.modified().ok()?).ok()
}
