//! `steadfast db`: prints the path of the store, backs it up, checks it, and imports goals from other stores.

use std::path::{Path, PathBuf};

use serde_json::json;
use steadfast_model::clock;
use steadfast_store::Store;
use steadfast_system::paths::Paths;

use super::own_paths;
use crate::cli::DbVerb;
use crate::error::{CliError, code};
use crate::output::{CommandOutput, CommandResult};

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
        DbVerb::Check => check(&paths),
        DbVerb::Import { path } => {
            super::refuse_agents(&paths, "db import")?;
            import(&paths, path)
        }
    }
}

fn backup(paths: &Paths, target: Option<&Path>) -> CommandResult {
    let store = Store::open_existing(&paths.store)?;
    let stamp = clock::to_rfc3339(clock::now()).replace(':', "");
    let target = target.map_or_else(|| PathBuf::from(format!("{}.{stamp}.bak", paths.store.display())), Path::to_owned);
    if target.exists() {
        let hint = "choose another path; backups are never overwritten";
        return Err(CliError::new(code::USAGE, format!("{} already exists", target.display()), hint));
    }
    store.backup_to(&target)?;
    let text = target.display().to_string();
    Ok(CommandOutput { json: json!({"path": text}), text, code: 0 })
}

fn check(paths: &Paths) -> CommandResult {
    let store = Store::open_existing(&paths.store)?;
    let faults = store.integrity_faults()?;
    let is_ok = faults.is_empty();
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
        "imported {} goals ({} of them into the history) and {} events; {} goals already existed",
        report.goals + report.to_history,
        report.to_history,
        report.events,
        report.already_here
    );
    let json = json!({
        "from_version": report.from_version, "goals": report.goals, "to_history": report.to_history,
        "already_here": report.already_here, "events": report.events,
    });
    Ok(CommandOutput { text, json, code: 0 })
}
