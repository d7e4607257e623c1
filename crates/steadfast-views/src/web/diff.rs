//! What an iteration changed: the diff of its branch against the commit that it began from. Git only compares commits:
//! it runs no hook, no pager, no filter and no program that the repository names, and fetches nothing.

use std::path::Path;
use std::time::Duration;

use steadfast_engine::process::LimitedCommand;
use steadfast_engine::worktree;
use steadfast_model::redact::redact;
use steadfast_model::run::AttemptId;
use steadfast_model::text;
use steadfast_store::{RunRow, Store, StoreError};
use steadfast_system::env_vars;
use steadfast_system::paths::Paths;

use super::fields::Fields;
use crate::log;

const LIMIT: Duration = Duration::from_secs(20);
const MOST_BYTES: u64 = 512 << 10;
/// Merges that are searched for the one that took the branch in.
const MOST_MERGES: &str = "--max-count=1000";
const SETTINGS: [&str; 6] =
    ["--no-pager", "--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"];
const DIFF: [&str; 9] = [
    "diff-tree",
    "-p",
    "-r",
    "--stat",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--find-renames",
    "--ignore-submodules=all",
];

/// The diff as text, or why there is none; `None` if the run does not exist.
pub(crate) fn diff(paths: &Paths, run_id: &str, query: &Fields) -> Result<Option<String>, StoreError> {
    let store = Store::open_existing(&paths.store)?;
    let Some(row) = store.read().run(run_id)? else { return Ok(None) };
    let Some(branch) = branch(paths, &row, query) else {
        let project = text::printable(&row.project_dir);
        return Ok(Some(format!("No branch of its own: it works in the project itself.\n`git diff` in {project}\n")));
    };
    let shown = of_branch(Path::new(&row.project_dir), &branch)
        .unwrap_or_else(|| format!("The branch {} cannot be read; it may be deleted.\n", text::printable(&branch)));
    Ok(Some(shown))
}

/// The branch of the iteration that the query names. Without an iteration: that of the stage's newest one, or, for a stage
/// that has not begun, of the newest one before it.
fn branch(paths: &Paths, row: &RunRow, query: &Fields) -> Option<String> {
    let stage = query.number("stage").unwrap_or(row.run.stage);
    let kept = |id: AttemptId| worktree::kept(&paths.home, &row.run_id, row.plan.stage(id.stage)?, id);
    let first = |iteration| AttemptId { stage, iteration, attempt: 1 };
    if let Some(iteration) = query.number("iteration") {
        return kept(first(iteration)).map(|kept| kept.branch);
    }
    let all = log::attempts(&paths.home, &row.run_id);
    let before = all.iter().rev().filter(|id| id.stage <= stage).copied();
    // A stage that shares its worktree with others has a branch before it begins.
    let of_stage = before.clone().take_while(|id| id.stage == stage).next().unwrap_or(first(1));
    std::iter::once(of_stage).chain(before).find_map(kept).map(|kept| kept.branch)
}

fn of_branch(project: &Path, branch: &str) -> Option<String> {
    let tip = commit(project, &format!("refs/heads/{branch}"))?;
    let base = base(project, &tip)?;
    let printed = git(project, &[&DIFF[..], &[&base, &tip]].concat(), MOST_BYTES + 1)?;
    let is_cut = printed.len() as u64 > MOST_BYTES;
    let most = usize::try_from(MOST_BYTES).unwrap_or(usize::MAX);
    let lines = String::from_utf8_lossy(printed.get(..most).unwrap_or(&printed)).into_owned();
    let mut shown = redact(&text::printable(&lines)).into_owned();
    if is_cut {
        shown.push_str("\n[the rest is left out]\n");
    } else if shown.trim().is_empty() {
        shown = format!("The branch {branch} has no changes.\n");
    }
    Some(shown)
}

/// Where the branch began: its newest commit that the project has too. If the project has taken the branch in, that is
/// the one before the merge.
fn base(project: &Path, tip: &str) -> Option<String> {
    let base = first_word(&git(project, &["merge-base", "HEAD", tip], 1 << 10)?)?;
    if base != tip {
        return Some(base);
    }
    let range = format!("{tip}..HEAD");
    let printed = git(project, &["rev-list", "--merges", "--parents", MOST_MERGES, &range], 1 << 20)?;
    let printed = String::from_utf8_lossy(&printed).into_owned();
    let mut lines = printed.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let before = lines.find_map(|line| match line.as_slice() {
        [_, before, merged @ ..] if merged.contains(&tip) => Some((*before).to_owned()),
        _ => None,
    });
    match before {
        Some(before) => first_word(&git(project, &["merge-base", &before, tip], 1 << 10)?),
        None => Some(base),
    }
}

fn commit(project: &Path, reference: &str) -> Option<String> {
    let peeled = format!("{reference}^{{commit}}");
    let found = git(project, &["rev-parse", "--quiet", "--verify", &peeled], 1 << 10)?;
    first_word(&found)
}

fn first_word(printed: &[u8]) -> Option<String> {
    String::from_utf8_lossy(printed).split_whitespace().next().map(str::to_owned)
}

fn git(project: &Path, arguments: &[&str], most: u64) -> Option<Vec<u8>> {
    let command = LimitedCommand::new("git", project, LIMIT).args(SETTINGS).args(arguments);
    let captured = command.env(env_vars::LC_ALL, "C").env(env_vars::GIT_NO_LAZY_FETCH, "1").capture(most).ok()?;
    (captured.exit_code == Some(0)).then_some(captured.stdout)
}
