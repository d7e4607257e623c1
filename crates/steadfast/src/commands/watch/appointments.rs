//! Appointments: runs that the user put off, or wants again and again. A due one is claimed, then started as `loop run
//! … --detach` in its project.

use std::path::Path;
use std::process::{Command, Stdio};

use steadfast_engine::run_folder::RunFolder;
use steadfast_model::clock::{self, Millis};
use steadfast_model::run::{RunStatus, appointment};
use steadfast_model::text;
use steadfast_store::Appointment;
use steadfast_system::env_vars;

use super::report::ReportSubject;
use super::watching::Round;
use crate::error::CliError;
use crate::watch as starting;

/// A process that starts a run and does not report for this long has died.
const LEASE: Millis = 120_000;

pub(super) fn look(round: &mut Round<'_>) -> Result<(), CliError> {
    for row in round.store.read().appointments(None, None)? {
        let now = clock::now();
        match (row.claimed_at_ms, row.next_at_ms) {
            (Some(claimed), _) if (0..LEASE).contains(&(now - claimed)) => round.outlook.look_at(claimed + LEASE),
            (Some(_), _) => take_over(round, &row, now)?,
            (None, Some(at)) if at > now => round.outlook.look_at(at),
            (None, Some(_)) => keep(round, &row, now)?,
            (None, None) => {}
        }
    }
    Ok(())
}

/// Starts the run of a due appointment, unless the one before is still running.
fn keep(round: &mut Round<'_>, row: &Appointment, now: Millis) -> Result<(), CliError> {
    let next = row.every_ms.and_then(|every| appointment::next_after(row.first_at_ms, every, now));
    let run_id = uuid::Uuid::new_v4().to_string();
    if !round.store.write(|db| db.claim_appointment(row, next, &run_id, now))? {
        return Ok(());
    }
    if let Some(next) = next {
        round.outlook.look_at(next);
    }
    let before = round.store.read().newest_run(&row.project_dir, row.kind, &row.name)?;
    if before.is_some_and(|before| before.run.status == RunStatus::Running) {
        let why = "skipped: the run before had not ended";
        round.store.write(|db| db.skip_appointment(row, why))?;
        forget_if_over(round, row);
        round.report.line(
            "skipped",
            ReportSubject::Run(&row.appointment_id),
            &format!("{} {}: {why}", row.kind, row.name),
        );
        return Ok(());
    }
    start(round, row, &run_id)
}

/// Goes on where a process died that had claimed the appointment.
fn take_over(round: &mut Round<'_>, row: &Appointment, now: Millis) -> Result<(), CliError> {
    if !round.store.write(|db| db.take_over_appointment(row, now))? {
        return Ok(());
    }
    let run_id = row.last_run_id.clone().unwrap_or_default();
    match round.store.read().run(&run_id)? {
        Some(_) => {
            round.store.write(|db| db.keep_appointment(row))?;
            forget_if_over(round, row);
            Ok(())
        }
        None => start(round, row, &run_id),
    }
}

fn start(round: &mut Round<'_>, row: &Appointment, run_id: &str) -> Result<(), CliError> {
    let directory = Path::new(&row.directory);
    if !directory.is_dir() {
        return miss(round, row, &format!("{} does not exist", row.directory));
    }
    let mut command = Command::new(std::env::current_exe()?);
    starting::forget_agent(&mut command);
    let words = match RunFolder::at(&round.paths.home, &row.appointment_id).unseal_words(&row.arguments) {
        Ok(words) => words,
        Err(gone) => return miss(round, row, &gone.to_string()),
    };
    let (verb, rest) = words.split_at(words.len().min(2));
    command.args(verb).args(["--detach", "--run-id", run_id]).args(rest).current_dir(directory).stdin(Stdio::null());
    command.env(env_vars::HOME, &round.paths.home).env(env_vars::DB, &round.paths.store);
    let done = command.output()?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        let error = said.lines().find_map(|line| line.strip_prefix("error: ")).unwrap_or("it did not start");
        return miss(round, row, &text::headline(error, 200));
    }
    round.store.write(|db| db.keep_appointment(row))?;
    forget_if_over(round, row);
    round.report.line("started", ReportSubject::Run(run_id), &format!("{} {} at its time", row.kind, row.name));
    // Its engine may need to be started again.
    round.outlook.waits = true;
    Ok(())
}

/// Only a repeated run needs its words again.
fn forget_if_over(round: &Round<'_>, row: &Appointment) {
    if row.every_ms.is_none() {
        RunFolder::at(&round.paths.home, &row.appointment_id).forget_words();
    }
}

fn miss(round: &mut Round<'_>, row: &Appointment, error: &str) -> Result<(), CliError> {
    round.store.write(|db| db.miss_appointment(row, error, clock::now()))?;
    forget_if_over(round, row);
    let detail = format!("{} {}: {error}", row.kind, row.name);
    round.report.line("missed", ReportSubject::Run(&row.appointment_id), &detail);
    Ok(())
}
