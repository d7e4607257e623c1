//! `db compact`: gives the free space of the store back, in short steps. The file of an earlier version is rewritten
//! once; hooks and engines wait meanwhile, so that is refused while they are at work.

use serde_json::json;
use steadfast_model::goal::GoalStatus;
use steadfast_model::run::RunStatus;
use steadfast_model::text;
use steadfast_store::{Db, RunFilter, Store, StoreError};
use steadfast_system::paths::Paths;

use crate::error::{CliError, code};
use crate::output::{self, CommandOutput, CommandResult};

pub(super) fn run(paths: &Paths, force: bool) -> CommandResult {
    let mut store = Store::open_existing(&paths.store)?;
    let before = store.size()?;
    store.drop_replaced_tables()?;
    if store.returns_pages()? {
        store.compact(&mut |_, _, _| {})?;
    } else {
        rewrite(&store, force)?;
    }
    let after = store.size()?;
    let mb = |bytes: u64| format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10);
    let text = format!("{} → {}", mb(before), mb(after));
    Ok(CommandOutput { text, json: json!({"before_bytes": before, "after_bytes": after}), code: 0 })
}

fn rewrite(store: &Store, force: bool) -> Result<(), CliError> {
    if let Some(live) = live(store.read())?.filter(|_| !force) {
        let hint = "wait until it is over, or use --force: hooks and engines wait while the store is rewritten";
        return Err(CliError::new(code::WRONG_STATE, format!("{live} is live"), hint));
    }
    output::note("rewriting the store; hooks and engines wait until it is done");
    Ok(store.rewrite()?)
}

/// A goal that an agent works on, or a run with an engine.
fn live(db: Db<'_>) -> Result<Option<String>, StoreError> {
    let running = RunFilter { project_dir: None, kind: None, status: Some(RunStatus::Running) };
    if let Some(line) = db.runs(running, 1)?.first() {
        return Ok(Some(format!("{} {}", line.kind, line.name)));
    }
    let goals = db.live_goals()?;
    let works = |status| matches!(status, GoalStatus::Active | GoalStatus::BudgetLimited);
    Ok(goals.iter().find(|goal| works(goal.status)).map(|goal| {
        let id = goal.goal_id.get(..8).unwrap_or(&goal.goal_id);
        format!("goal {id} ({})", text::headline(&goal.objective, 60))
    }))
}
