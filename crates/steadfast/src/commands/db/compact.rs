//! `db compact`: gives the free space of the store back, in short steps. The file of an earlier version is rewritten
//! once, which no step can do; hooks and engines wait meanwhile, so that is refused while a client, goal or run is live.

use serde_json::json;
use steadfast_model::goal::GoalStatus;
use steadfast_model::run::RunStatus;
use steadfast_model::text;
use steadfast_store::{Db, RunFilter, Store, StoreError};
use steadfast_system::paths::Paths;
use steadfast_system::process::ProcessId;

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
        let hint =
            "wait until it is over or close it, or use --force: hooks and engines wait while the store is rewritten";
        return Err(CliError::new(code::WRONG_STATE, format!("{live} is live"), hint));
    }
    output::note("rewriting the store; hooks and engines wait until it is done");
    Ok(store.rewrite()?)
}

/// A goal that an agent works on, a run with an engine, or a client whose hooks would wait.
fn live(db: Db<'_>) -> Result<Option<String>, StoreError> {
    let running = RunFilter { project_dir: None, kind: None, status: Some(RunStatus::Running) };
    if let Some(line) = db.runs(running, 1)?.first() {
        return Ok(Some(format!("{} {}", line.kind, line.name)));
    }
    let goals = db.live_goals()?;
    let works = |status| matches!(status, GoalStatus::Active | GoalStatus::BudgetLimited);
    if let Some(goal) = goals.iter().find(|goal| works(goal.status)) {
        let id = text::head(&goal.goal_id, 8);
        return Ok(Some(format!("goal {id} ({})", text::headline(&goal.objective, 60))));
    }
    let sessions = db.known_sessions()?.into_iter().filter_map(|known| known.session);
    let mut clients = sessions.filter(|session| session.ended_at_ms.is_none()).filter_map(|session| {
        let is_alive = session.client.and_then(ProcessId::is_alive)?;
        is_alive.then(|| format!("session {} ({})", text::head(&session.session_id, 8), session.cwd))
    });
    Ok(clients.next())
}
