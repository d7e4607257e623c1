//! What a killed git or a power cut leaves of a merge: some files of the result without a sign that a merge is in progress,
//! or a committed merge without some of its files. Such files are changed only if their content is that of the merge, whole
//! or cut off, or that of before, so that no other change is lost.

use std::path::Path;

use steadfast_system::bounded;

use super::place::MergePlace;
use super::{FILE_BYTES, MOST_LISTED, MergeRecord};
use crate::durable;
use crate::worktree::WorktreeError;

pub(super) fn take_back(place: &MergePlace<'_>, record: &MergeRecord) -> Result<(), WorktreeError> {
    let Some(result) = result_of(place, record)? else { return Ok(()) };
    let root = place.root()?;
    let is_of_merge = |file: &String| is_part_of(place, &root.join(file), &result, file);
    let added =
        place.paths(&["diff", "--name-only", "--diff-filter=A", "--no-renames", "-z", &record.before, &result])?;
    let changed = place.uncommitted()?;
    let tracked: Vec<&String> = changed.iter().filter(|file| !added.contains(file)).collect();
    if !tracked.iter().all(|file| is_of_merge(file)) {
        // Somebody works here: the caller refuses to merge.
        return Ok(());
    }
    for file in tracked {
        place.git(&["checkout", "--quiet", "HEAD", "--", &format!(":(top,literal){file}")])?;
    }
    for file in added.iter().filter(|file| is_of_merge(file)) {
        // The index may have the whole file, of which the disk has a part.
        place.git(&[
            "rm",
            "--cached",
            "--force",
            "--quiet",
            "--ignore-unmatch",
            "--",
            &format!(":(top,literal){file}"),
        ])?;
        durable::if_exists(fs_err::remove_file(root.join(file)))?;
    }
    Ok(())
}

/// Makes files of a committed merge again that a power cut took. Git syncs its own files, not those that people see.
pub(super) fn complete(place: &MergePlace<'_>, record: &MergeRecord) -> Result<(), WorktreeError> {
    if !place.has(&record.tip)? {
        return Ok(());
    }
    let root = place.root()?;
    let merged =
        place.paths(&["diff", "--name-only", "--diff-filter=d", "--no-renames", "-z", &record.before, "HEAD"])?;
    for file in place.uncommitted()?.iter().filter(|file| merged.contains(file)) {
        let path = root.join(file);
        if is_part_of(place, &path, "HEAD", file) || is_as_in(place, &path, &record.before, file) {
            place.git(&["checkout", "--quiet", "HEAD", "--", &format!(":(top,literal){file}")])?;
        }
    }
    Ok(())
}

/// The tree that the merge results in, with conflict markers where there are conflicts.
fn result_of(place: &MergePlace<'_>, record: &MergeRecord) -> Result<Option<String>, WorktreeError> {
    let arguments = ["merge-tree", "--write-tree", "--no-messages", "--name-only", &record.before, &record.tip];
    let printed = place.reading().capture(&arguments, MOST_LISTED)?;
    // 1 is a conflict; older versions of git cannot do this at all.
    let is_known = matches!(printed.exit_code, Some(0 | 1));
    let text = String::from_utf8_lossy(&printed.stdout).into_owned();
    let is_tree = |line: &&str| line.len() >= 40 && line.bytes().all(|byte| byte.is_ascii_hexdigit());
    Ok(text.lines().next().filter(is_tree).filter(|_| is_known).map(str::to_owned))
}

/// Whether a file has the content that it has in a commit.
fn is_as_in(place: &MergePlace<'_>, path: &Path, commit: &str, file: &str) -> bool {
    let known = place.reading().bytes(&["cat-file", "blob", &format!("{commit}:{file}")], FILE_BYTES);
    known.is_ok_and(|known| bounded::whole(path, FILE_BYTES).is_ok_and(|found| found == known))
}

/// Whether a file is the beginning of what a tree has there, or is missing.
fn is_part_of(place: &MergePlace<'_>, path: &Path, tree: &str, file: &str) -> bool {
    let Ok(found) = durable::if_exists(bounded::whole(path, FILE_BYTES)) else { return false };
    let Some(found) = found else { return true };
    let expected = place.reading().bytes(&["cat-file", "blob", &format!("{tree}:{file}")], FILE_BYTES);
    expected.is_ok_and(|expected| expected.starts_with(&found))
}
