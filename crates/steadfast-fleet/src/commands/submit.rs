//! `fleet submit`: starts a run that `--fleet` planned in the main program. Code and run directory are pushed first, so
//! that a run on the server always has both.

use std::io::Read as _;

use steadfast_engine::submission::Submission;
use steadfast_model::run::RunStatus;
use temporalio_client::WorkflowExecutionStatus;
use tokio::sync::OnceCell;

use super::{Here, follow, status};
use crate::cli::NamedRunArgs;
use crate::client::Fleet;
use crate::connect::FleetError;
use crate::output::{self, CommandError, CommandResult, Output, code};
use crate::wire::{FleetOptions, RunInput, RunRef};
use crate::work::{self, NewFleetRun};
use crate::worker::MOST_LABELS;
use crate::workflow::DRIVE_QUEUE;

/// The most bytes of a submission.
const MOST_BYTES: u64 = 64 << 20;

pub(super) async fn submit(here: &Here) -> CommandResult {
    let mut text = String::new();
    std::io::stdin().take(MOST_BYTES).read_to_string(&mut text)?;
    let submission: Submission = serde_json::from_str(&text).map_err(|error| {
        let hint = "start runs with --fleet on `steadfast run`, `loop run` or `pipeline run`";
        CommandError::new(code::USAGE, format!("stdin is no submission: {error}"), hint)
    })?;
    let here = &Here {
        home: here.home.clone(),
        config: here.config.clone(),
        project: submission.project.clone(),
        json: submission.json || here.json,
        connection: OnceCell::new(),
    };
    let done = start(here, &submission).await;
    // The main program passed `--json` in the submission, not as an argument.
    if here.json { print_json(done) } else { done }
}

async fn start(here: &Here, submission: &Submission) -> CommandResult {
    let name = submission.plan.name.clone();
    if submission.labels.len() > MOST_LABELS {
        let message = format!("{} labels; the maximum is {MOST_LABELS}", submission.labels.len());
        return Err(CommandError::new(code::USAGE, message, "leave some out: a worker must have all of them"));
    }
    let fleet = here.connect().await?;
    refuse_live(&fleet, &name).await?;
    let run = push(here, submission).await?;
    let options = FleetOptions { labels: submission.labels.clone(), ..options(here) };
    let input = RunInput { run, options, carried: None };
    if let Some(cron) = &submission.cron {
        let input = RunInput { options: FleetOptions { scheduled: true, ..input.options }, ..input };
        fleet.create_schedule(cron, "UTC", input).await?;
        let text = format!(
            "{name} starts on the fleet at `{cron}` (UTC)\n  look:   steadfast fleet schedules\n  \
             end:    steadfast fleet schedules delete {name}"
        );
        return Output::new(text, serde_json::json!({"name": name, "cron": cron}));
    }
    fleet.start(input).await?;
    if fleet.pollers(DRIVE_QUEUE, true).await?.is_empty() {
        output::note("note: no worker drives runs now; start one with `steadfast fleet worker --drive`");
    }
    let run = NamedRunArgs { name: name.clone(), repo: None };
    if !submission.detach {
        return follow::follow(here, &run, 0).await;
    }
    let found = here.find_run(&run).await?;
    let state = &found.directory.state.run;
    if state.status != RunStatus::Running {
        // Exit 0 whatever came of it: it was started, which is what --detach asks for.
        return status::show(&found, here.json);
    }
    let text = format!(
        "{} {name} runs on the fleet\n  watch:  steadfast fleet attach {name}\n  look:   steadfast fleet status {name}\n  \
         stop:   steadfast fleet kill {name}",
        submission.plan.kind
    );
    Ok(Output { text, ..status::show(&found, here.json)? })
}

/// Fails while a run of this name is on the server.
async fn refuse_live(fleet: &Fleet, name: &str) -> Result<(), CommandError> {
    match fleet.describe(name).await {
        Ok(described) if described.server_status == WorkflowExecutionStatus::Running => {
            let hint =
                format!("`steadfast fleet attach {name}` watches it, `kill {name}` ends it; or choose another name");
            Err(CommandError::new(code::WRONG_STATE, format!("run {name} is already running on the fleet"), hint))
        }
        Ok(_) | Err(FleetError::NotFound(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

async fn push(here: &Here, submission: &Submission) -> Result<RunRef, CommandError> {
    let (home, submission) = (here.home.clone(), submission.clone());
    let pushed = tokio::task::spawn_blocking(move || {
        work::start_run(&NewFleetRun {
            home: &home,
            project: &submission.project,
            repo_url: submission.repo.as_deref(),
            run_id: &submission.run_id,
            plan: &submission.plan,
            inputs: submission.inputs.as_deref(),
            objective: submission.objective.as_deref().unwrap_or_default(),
            definition: submission.definition.as_deref(),
            allow_dirty: submission.allow_dirty,
        })
    });
    let started = pushed.await.map_err(|error| std::io::Error::other(error.to_string()))??;
    if let Some(earlier) = &started.earlier {
        output::note(&format!("note: the earlier run of this name is kept as {earlier}"));
    }
    Ok(started.run_ref)
}

/// The options of `[fleet]`.
fn options(here: &Here) -> FleetOptions {
    let (config, usual) = (here.fleet(), FleetOptions::default());
    FleetOptions {
        heartbeat_ms: config.heartbeat_seconds.map_or(usual.heartbeat_ms, |seconds| i64::from(seconds.max(1)) * 1_000),
        cut_after: config.cut_after.map_or(usual.cut_after, |steps| steps.max(2)),
        ..usual
    }
}

/// Prints what a run without `--json` in its arguments has to print as JSON.
fn print_json(done: CommandResult) -> CommandResult {
    let (json, code) = match done {
        Ok(output) => (output.json, output.code),
        Err(error) => (output::error_json(&error), error.code),
    };
    let text = serde_json::to_string_pretty(&json).map_err(std::io::Error::from)?;
    Ok(Output { text, json: serde_json::Value::Null, code })
}
