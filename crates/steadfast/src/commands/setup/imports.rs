//! Brings the goals that a plugin without `setup` kept in its own store into the one that hooks use from now on. There they
//! are paused: a process that still uses the old store must not drive them, and nor must the plugin after an uninstall.

use std::path::Path;

use steadfast_app::action;
use steadfast_hosts::install::Question;
use steadfast_model::clock;
use steadfast_model::goal::Actor;
use steadfast_model::run::RunStatus;
use steadfast_model::text;
use steadfast_store::{Origin, RunFilter, Store};
use steadfast_system::paths::Paths;

use super::SetupSummary;
use super::asking::{ask_question, can_ask};
use crate::cli::SetupArgs;
use crate::commands::other_stores::{self, count};
use crate::error::CliError;
use crate::watch;

/// After the clients are set up: no hook writes to the other store then, so that the copy is complete. A store that
/// cannot be read is only a note.
pub(super) fn import(arguments: &SetupArgs, summary: &mut SetupSummary) -> Result<(), CliError> {
    // The store of the hooks, whatever `--db` says here.
    let Ok(paths) = Paths::find(None) else { return Ok(()) };
    for other in other_stores::with_goals(&paths) {
        let from = other.path.display();
        let taken = match other.missing {
            Ok(goals) if arguments.dry_run => Ok(format!("import {} from {from}, and pause them there", count(goals))),
            Ok(goals) if !arguments.yes && !can_ask(arguments) => {
                let (count, command) = (count(goals), "`steadfast setup --yes`");
                summary.notes.push(format!("not imported: {count} in {from}; {command} imports them"));
                continue;
            }
            Ok(goals) if can_ask(arguments) && !agrees(goals, &other.path)? => {
                summary.notes.push(format!("the goals in {from} are not imported: you said no"));
                continue;
            }
            Ok(_) => take(&paths, &other.path),
            Err(error) => {
                summary.notes.push(format!("the goals in {from} are not imported: {error}"));
                continue;
            }
        };
        match taken {
            Ok(line) => summary.imports.push(line),
            Err(error) => summary.notes.push(format!(
                "the import of the goals in {from} is not over: {}; `steadfast setup` continues it",
                error.message
            )),
        }
    }
    Ok(())
}

fn agrees(goals: usize, from: &Path) -> Result<bool, CliError> {
    let text = format!("Import {} of the plugin?", count(goals));
    let change = format!("from {}, where they are paused", from.display());
    Ok(ask_question(&Question { text: &text, change: &change, default: true })?)
}

/// What the user deleted here stays deleted; `db import` brings it back.
fn take(paths: &Paths, from: &Path) -> Result<String, CliError> {
    let mut store = Store::open(&paths.store)?;
    let report = store.import_new(from)?;
    let origin = Origin { actor: Actor::User, place: "setup" };
    let mut other = Store::open_existing(from)?;
    let paused = action::pause_goals(&mut other, origin, clock::now())?.len();
    let running = RunFilter { status: Some(RunStatus::Running), ..RunFilter::default() };
    let runs = other.read().runs(running, usize::MAX)?.len();
    store.end_import(from)?;
    // What waits has lost its waker, which watched the other store.
    watch::ensure(paths);
    let imported = report.goals + report.to_history + report.ended;
    let mut parts = vec![format!("imported {} from {}", count(imported), from.display())];
    if paused > 0 {
        parts.push(format!("{} paused there", count(paused)));
    }
    if runs > 0 {
        parts.push(format!("left running there: {}", text::count(runs, "run")));
    }
    Ok(parts.join("; "))
}
