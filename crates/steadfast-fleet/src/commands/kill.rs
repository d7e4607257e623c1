//! `fleet kill`: a signal, which the server keeps until a worker drives the run.

use std::time::Duration;

use serde_json::json;
use steadfast_model::run::RunStatus;
use temporalio_client::WorkflowExecutionStatus;

use super::{Here, exit_code, status};
use crate::cli::NamedRunArgs;
use crate::client::Fleet;
use crate::output::{CommandError, CommandResult, Output, code};
use crate::workflow::DRIVE_QUEUE;

/// How long the command waits for the end before it returns.
const PATIENCE: Duration = Duration::from_secs(15);

pub(super) async fn kill(here: &Here, name: &str, wait: bool) -> CommandResult {
    let fleet = live_on(here, name).await?;
    fleet.kill(name, "").await?;
    let asked = |text: String| Output::new(text, json!({"name": name, "status": "running", "stopping": true}));
    if !wait {
        return asked(format!("asked run {name} to stop"));
    }
    if fleet.pollers(DRIVE_QUEUE, true).await?.is_empty() {
        return asked(format!("no worker drives runs now; run {name} stops as soon as one is up"));
    }
    match tokio::time::timeout(PATIENCE, fleet.result(name)).await {
        Ok(result) => {
            result?;
            let found = here.find_run(&NamedRunArgs { name: name.to_owned(), repo: None }).await?;
            let code = exit_code(&found.directory.plan, &found.directory.state.run);
            let shown = status::show(&found, here.json)?;
            // To stop it was the wish.
            let is_killed = found.directory.state.run.status == RunStatus::Killed;
            Ok(Output { code: if is_killed { 0 } else { code }, ..shown })
        }
        Err(_) => asked(format!("run {name} is stopping; `steadfast fleet status {name}` shows when it has ended")),
    }
}

/// Ends a run on the server without its machine, for one that cannot end by itself: its repository is gone, or no worker
/// has its key.
pub(super) async fn end_at_once(here: &Here, name: &str) -> CommandResult {
    let fleet = live_on(here, name).await?;
    fleet.terminate(name, "kill --force").await?;
    let text = format!(
        "run {name} is ended on the server; its agents stop with their next heartbeat\n  \
         continue: steadfast fleet resume {name}, from the last records in the repository"
    );
    Output::new(text, json!({"name": name, "status": "unknown_termination", "forced": true}))
}

/// The connection, if the run is not over.
async fn live_on(here: &Here, name: &str) -> Result<Fleet, CommandError> {
    let fleet = here.connect().await?;
    let described = fleet.describe(name).await?;
    if described.server_status == WorkflowExecutionStatus::Running {
        return Ok(fleet);
    }
    let status = described.status.map_or_else(|| "over".to_owned(), |status| status.status.to_string());
    let hint = format!("`steadfast fleet status {name}` shows it, `resume {name}` continues it");
    Err(CommandError::new(code::WRONG_STATE, format!("run {name} is over ({status})"), hint))
}
