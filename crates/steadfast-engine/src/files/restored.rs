//! What git put back: files that it tracks and that have the content of its index. No person edited them.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::exclude::ask_git;

/// The files below a path of the project that git put there. A tracked file that was edited since is not one of them.
pub(super) fn restored(project: &Path, below: &Path) -> BTreeSet<PathBuf> {
    let Some(relative) = below.strip_prefix(project).ok().and_then(Path::to_str) else { return BTreeSet::new() };
    let ask = |arguments: &[&str]| {
        let printed = ask_git(project, &[arguments, &["--", relative]].concat());
        printed.map(|names| {
            let names = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
            names.map(|name| project.join(OsStr::from_bytes(name))).collect::<BTreeSet<PathBuf>>()
        })
    };
    let tracked = ask(&["--literal-pathspecs", "ls-files", "-z"]).unwrap_or_default();
    if tracked.is_empty() {
        return tracked;
    }
    // If git cannot tell, an edit by hand is assumed.
    let Some(edited) = ask(&["--literal-pathspecs", "diff", "--no-ext-diff", "--name-only", "--relative", "-z"]) else {
        return BTreeSet::new();
    };
    tracked.difference(&edited).cloned().collect()
}

/// Whether git put a file back.
pub(super) fn is_restored(project: &Path, file: &Path) -> bool {
    restored(project, file).contains(file)
}
