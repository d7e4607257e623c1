//! `steadfast db recover`: rebuilds a damaged store. Goals that were active come out of it paused, because what they
//! spent last may be lost.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use steadfast_app::action;
use steadfast_app::hook::forget_told_of_damage;
use steadfast_model::clock;
use steadfast_model::goal::{Actor, Goal, GoalStatus};
use steadfast_store::{
    Damage, Origin, Rebuilt, RecoveredTable, Recovery, RecoveryOptions, Store, StoreError, damage, log_damage, recover,
};
use steadfast_system::paths::Paths;
use steadfast_system::process::{self, FileHolder, holders};

use crate::commands::person;
use crate::error::{CliError, code};
use crate::output::{CommandOutput, CommandResult};

/// How long to wait for processes that have the store open; hooks end soon.
const PATIENCE: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(50);
const CAUSE: &str = "the store was recovered; what the goal spent last may be missing";

pub(super) fn run(paths: &Paths, options: RecoveryOptions<'_>) -> CommandResult {
    let dry_run = options.dry_run;
    // A damaged log must not be opened: the last to close the store writes it into the file, as far as it is read.
    let log_is_damaged = log_damage(&paths.store)?.is_some();
    let is_agent = if log_is_damaged { process::is_inside_agent() } else { person::caller(paths) != Actor::User };
    if is_agent {
        let message = "an agent may not recover the store";
        return Err(CliError::new(code::WRONG_STATE, message, "type it in a terminal of your own"));
    }
    let damage = damage(&paths.store)?;
    if (options.from.is_some() || options.empty) && damage.is_none() {
        let hint = if options.empty {
            "to begin anew, move its file away first"
        } else {
            "a backup would replace newer goals; `steadfast db import` adds what is missing"
        };
        return Err(CliError::new(code::WRONG_STATE, "the store is not damaged", hint));
    }
    if !dry_run && damage == Some(Damage::File) {
        refuse_while_open(&paths.store, log_is_damaged)?;
    }
    let mut paused = Vec::new();
    let recovery = recover(&paths.store, options, |store| pause_goals(store, &mut paused), clock::now())?;
    if !dry_run {
        forget_told_of_damage(paths);
    }
    Ok(match &recovery {
        Recovery::NotNeeded => {
            output("the store passes its check; nothing to recover".to_owned(), "not_needed", json!({}))
        }
        Recovery::Continued { kept } => {
            let text = format!("finished an interrupted recovery\ndamaged file: {}", kept.display());
            output(text, "continued", json!({"kept": kept}))
        }
        Recovery::SearchIndex { kept } => {
            let text = match kept {
                Some(kept) => format!("made the search index again\nfile as it was: {}", kept.display()),
                None => "would make the search index again; all else passes the check".to_owned(),
            };
            output(text, "search_index", json!({"kept": kept}))
        }
        Recovery::Rebuilt(rebuilt) => of_rebuilt(rebuilt, &paused, options),
    })
}

/// Other processes would write on into the file that is moved aside. One that nothing can open has no such processes.
fn refuse_while_open(store: &Path, log_is_damaged: bool) -> Result<(), CliError> {
    if !log_is_damaged && Store::open_existing(store).is_err() {
        return Ok(());
    }
    let beside = ["-wal", "-shm"].map(|suffix| {
        let mut name = store.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    });
    let files: Vec<&Path> = std::iter::once(store).chain(beside.iter().map(PathBuf::as_path)).collect();
    let deadline = Instant::now() + PATIENCE;
    loop {
        let open = holders(&files);
        if open.is_empty() {
            return Ok(());
        }
        if Instant::now() > deadline {
            let named = |holder: &FileHolder| format!("{} (pid {})", holder.command, holder.pid);
            let named: Vec<String> = open.iter().map(named).collect();
            let message = format!("other processes have the store open: {}", named.join(", "));
            let hint = "end them first: close the agents, `steadfast goal pause --all`, `steadfast watch --stop`";
            return Err(CliError::new(code::WRONG_STATE, message, hint));
        }
        std::thread::sleep(PAUSE);
    }
}

fn pause_goals(store: &mut Store, paused: &mut Vec<Goal>) -> Result<(), StoreError> {
    let origin = Origin { actor: Actor::Steadfast, place: "recover" };
    for goal in store.read().goals()?.into_iter().filter(|goal| goal.status == GoalStatus::Active) {
        paused.extend(action::degrade(store, &goal.session_id, CAUSE, origin, clock::now())?);
    }
    Ok(())
}

fn of_rebuilt(rebuilt: &Rebuilt, paused: &[Goal], options: RecoveryOptions<'_>) -> CommandOutput {
    let RecoveryOptions { dry_run, empty, .. } = options;
    let done = match (dry_run, empty) {
        (true, true) => "would begin with an empty store",
        (false, true) => "began with an empty store",
        (true, false) => "would rebuild the store",
        (false, false) => "rebuilt the store",
    };
    let mut lines = vec![done.to_owned()];
    match &rebuilt.backup {
        Some(backup) => lines.push(format!("backup: {}", backup.display())),
        None if empty => {}
        None => lines.push("backup: none that can be used".to_owned()),
    }
    lines.extend(rebuilt.refused_backups.iter().map(|(path, why)| format!("not used: {} ({why})", path.display())));
    lines.extend(rebuilt.kept.iter().map(|kept| format!("damaged file: {}", kept.display())));
    lines.extend(rebuilt.unreadable.iter().map(|why| format!("only the backup could be used: {why}")));
    if !empty {
        lines.push(format!("{:<24} {:>11} {:>8}  lost", "table", "from backup", "salvaged"));
    }
    let is_worth_a_line = |table: &&RecoveredTable| table.from_backup + table.salvaged > 0 || table.is_incomplete();
    for table in rebuilt.tables.iter().filter(is_worth_a_line) {
        let RecoveredTable { name, from_backup, salvaged, .. } = table;
        lines.push(format!("{name:<24} {from_backup:>11} {salvaged:>8}  {}", lost(table, rebuilt)));
    }
    for goal in paused {
        let what = if dry_run { "would pause" } else { "paused" };
        lines.push(format!("{what} goal {} of session {}", goal.goal_id, goal.session_id));
    }
    if !paused.is_empty() {
        lines.push("check what they spent with `steadfast goal status`, then `steadfast goal resume`".to_owned());
    }
    let table = |table: &RecoveredTable| {
        json!({"table": table.name, "from_backup": table.from_backup, "salvaged": table.salvaged,
               "invalid_rows": table.refused, "unreadable_places": table.gaps})
    };
    let refused = |(path, why): &(PathBuf, String)| json!({"path": path, "error": why});
    let fields = json!({
        "backup": rebuilt.backup, "kept": rebuilt.kept, "unreadable": rebuilt.unreadable, "dry_run": dry_run,
        "refused_backups": rebuilt.refused_backups.iter().map(refused).collect::<Value>(),
        "tables": rebuilt.tables.iter().map(table).collect::<Value>(),
        "paused": paused.iter().map(|goal| json!({"goal_id": goal.goal_id, "session_id": goal.session_id})).collect::<Value>(),
    });
    output(lines.join("\n"), "rebuilt", fields)
}

fn lost(table: &RecoveredTable, rebuilt: &Rebuilt) -> String {
    if rebuilt.unreadable.is_some() {
        return "all since the backup".to_owned();
    }
    match (table.refused, table.gaps) {
        (0, 0) => "nothing".to_owned(),
        (refused, 0) => format!("{refused} rows"),
        (0, gaps) => format!("unknown, {gaps} unreadable places"),
        (refused, gaps) => format!("{refused} rows, {gaps} unreadable places"),
    }
}

fn output(text: String, outcome: &str, mut fields: Value) -> CommandOutput {
    fields["outcome"] = json!(outcome);
    CommandOutput { text, json: fields, code: 0 }
}
