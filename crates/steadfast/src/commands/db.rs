//! `steadfast db`: prints the path of the store, backs it up, checks, recovers and rewrites it, and imports goals from
//! other stores.

mod compact;
mod recover;

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use steadfast_model::{clock, text};
use steadfast_store::{
    Backup, BackupKind, BackupLock, RecoveryOptions, Store, StoreError, backups, backups_dir, log_damage,
};
use steadfast_system::paths::Paths;

use super::own_paths;
use crate::cli::DbVerb;
use crate::error::{CliError, code};
use crate::output::{self, CommandOutput, CommandResult};

/// How long to wait for another process that makes a backup.
const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) fn run(db: Option<&Path>, verb: &DbVerb) -> CommandResult {
    let paths = match verb {
        DbVerb::Import { .. } => own_paths::find(db)?,
        _ => own_paths::find_to_read(db)?,
    };
    match verb {
        DbVerb::Path => {
            let text = paths.store.display().to_string();
            let json = json!({"path": text, "from": paths.store_from, "exists": paths.store.exists()});
            Ok(CommandOutput { text, json, code: 0 })
        }
        DbVerb::Backup { target } => backup(&paths, target.as_deref()),
        DbVerb::Backups => Ok(list(&paths)),
        DbVerb::Check => check(&paths),
        DbVerb::Compact { force } => {
            super::refuse_agents(&paths, "db compact")?;
            compact::run(&paths, *force)
        }
        DbVerb::Recover { from, dry_run, empty } => {
            let options = RecoveryOptions { from: from.as_deref(), dry_run: *dry_run, empty: *empty };
            recover::run(&paths, options)
        }
        DbVerb::Import { path } => {
            super::refuse_agents(&paths, "db import")?;
            import(&paths, path)
        }
    }
}

fn backup(paths: &Paths, target: Option<&Path>) -> CommandResult {
    let store = Store::open_existing(&paths.store)?;
    let made = match target {
        Some(target) if target.exists() => {
            let hint = "choose another path; backups are never overwritten";
            return Err(CliError::new(code::USAGE, format!("{} already exists", target.display()), hint));
        }
        Some(target) => {
            store.backup_to(target)?;
            target.to_owned()
        }
        None => {
            let lock = BackupLock::take(&paths.store, PATIENCE)?.ok_or_else(|| {
                CliError::new(code::WRONG_STATE, "another backup is being made", "wait for it, or name a path")
            })?;
            store.back_up(&lock, &BackupKind::Manual, usize::MAX, clock::now())?.path
        }
    };
    let text = made.display().to_string();
    Ok(CommandOutput { json: json!({"path": text}), text, code: 0 })
}

fn list(paths: &Paths) -> CommandOutput {
    let found = backups(&paths.store);
    let line = |backup: &Backup| {
        let (at, size) =
            (clock::to_local(backup.made_at_ms), text::thousands(i64::try_from(backup.bytes).unwrap_or(i64::MAX)));
        format!("{at}  {:<7}  {size:>13} bytes  {}", backup.kind.to_string(), backup.path.display())
    };
    let lines: Vec<String> = found.iter().map(line).collect();
    let text = if lines.is_empty() { "no backups yet".to_owned() } else { lines.join("\n") };
    let object = |backup: &Backup| {
        json!({"path": backup.path, "kind": backup.kind.to_string(), "bytes": backup.bytes,
               "made_at": clock::to_rfc3339(backup.made_at_ms)})
    };
    let listed: Value = found.iter().map(object).collect();
    CommandOutput { text, json: json!({"directory": backups_dir(&paths.store), "backups": listed}), code: 0 }
}

fn check(paths: &Paths) -> CommandResult {
    if let Some(message) = log_damage(&paths.store)? {
        return Err(StoreError::Corrupt { path: paths.store.clone(), message }.into());
    }
    let store = Store::open_existing(&paths.store)?;
    let faults = store.integrity_faults()?;
    let is_ok = faults.is_empty();
    if !is_ok {
        output::note("hint: nothing was changed; run `steadfast db recover`");
    }
    let text = if is_ok { "ok".to_owned() } else { faults.join("\n") };
    let code = if is_ok { 0 } else { code::ENVIRONMENT };
    Ok(CommandOutput { text, json: json!({"ok": is_ok, "faults": faults}), code })
}

fn import(paths: &Paths, path: &Path) -> CommandResult {
    let real = |path: &Path| fs_err::canonicalize(path).ok();
    if real(path).is_some() && real(path) == real(&paths.store) {
        let hint = "give the path of the other goals.db";
        return Err(CliError::new(code::USAGE, "cannot import a store into itself", hint));
    }
    let mut store = Store::open(&paths.store)?;
    let report = store.import(path)?;
    let text = format!(
        "imported {} ({} of them into the history), the ends of {} and {}; {} already existed",
        text::count(report.goals + report.to_history, "goal"),
        report.to_history,
        text::count(report.ended, "goal"),
        text::count(report.events, "event"),
        report.already_here
    );
    let json = json!({
        "from_version": report.from_version, "goals": report.goals, "to_history": report.to_history,
        "already_here": report.already_here, "ended": report.ended,
        "events": report.events,
    });
    Ok(CommandOutput { text, json, code: 0 })
}
