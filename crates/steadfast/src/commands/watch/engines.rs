//! Engines of detached runs: one that died with the machine, or was killed, is started again, a few times in a row.

use steadfast_app::overview::runs::is_starting;
use steadfast_engine::lock::RunLock;
use steadfast_engine::run_folder::RunFolder;
use steadfast_model::clock;
use steadfast_model::run::RunStatus;
use steadfast_model::run::restart::{self, Restart};
use steadfast_store::{RunFilter, RunLine};
use steadfast_system::process::ProcessId;

use super::report::ReportSubject;
use super::watching::Round;
use crate::commands::runs;
use crate::error::CliError;

/// How many of the newest runs are looked at for files that are still to be written.
const MOST_PUBLISHED: usize = 100;

/// Looks at the detached runs of this home. Other homes look after their own.
pub(super) fn look(round: &mut Round<'_>) -> Result<(), CliError> {
    let running = RunFilter { status: Some(RunStatus::Running), ..RunFilter::default() };
    for line in round.store.read().runs(running, usize::MAX)? {
        let folder = RunFolder::at(&round.paths.home, &line.run_id);
        if folder.is_detached() {
            round.outlook.waits = true;
            look_at(round, &line, &folder)?;
        }
    }
    // Ends whose files could not be written, of runs in any project. The commands of those projects say why.
    runs::publish_owed(round.paths, round.store, None, MOST_PUBLISHED, &|_| {})
}

fn look_at(round: &mut Round<'_>, line: &RunLine, folder: &RunFolder) -> Result<(), CliError> {
    let now = clock::now();
    let lives = line.engine.and_then(ProcessId::is_alive).unwrap_or(false)
        || is_starting(line.status, line.engine, line.updated_at_ms, now)
        || RunLock::is_held(&round.paths.home, &line.run_id)?;
    if lives {
        return Ok(());
    }
    match restart::decide(&folder.restarts(), (line.stage, line.iterations), now) {
        Restart::At(at) => round.outlook.look_at(at),
        Restart::Now(restarts) => {
            folder.set_restarts(&restarts)?;
            restart(round, line)?;
        }
        Restart::GiveUp => give_up(round, line)?,
    }
    Ok(())
}

fn restart(round: &mut Round<'_>, line: &RunLine) -> Result<(), CliError> {
    let Some(row) = round.store.read().run(&line.run_id)? else { return Ok(()) };
    let about = format!("{} {}", line.kind, line.name);
    match runs::restart(round.paths, &row) {
        Ok(child) => {
            let detail = format!("{about}, whose engine was gone (pid {})", child.id());
            round.report.line("resumed", ReportSubject::Run(&line.run_id), &detail);
            round.children.add_engine(child);
        }
        Err(error) => {
            round.report.line("failed", ReportSubject::Run(&line.run_id), &format!("{about}: {}", error.message));
        }
    }
    Ok(())
}

/// Records that the run ended with its engine, which tells the user. `loop resume` still continues it.
fn give_up(round: &mut Round<'_>, line: &RunLine) -> Result<(), CliError> {
    let Some(row) = round.store.read().run(&line.run_id)? else { return Ok(()) };
    round.store.write(|db| db.mark_orphan(&row, clock::now()))?;
    let detail = format!("{} {}: its engine ended again and again without progress", line.kind, line.name);
    round.report.line("gave_up", ReportSubject::Run(&line.run_id), &detail);
    Ok(())
}
