//! `fleet list`: the runs of the namespace, from the server alone. The last answer is kept for the views of this machine.

use std::collections::BTreeSet;

use steadfast_app::overview::runs::page::{HEADS, run_row};
use steadfast_app::overview::runs::{ListedRun, RunList, RunView, Timestamp, Usd};
use steadfast_engine::durable;
use steadfast_model::run::{RunKind, RunReason, RunStatus};
use temporalio_client::WorkflowExecutionStatus;

use super::Here;
use crate::client::Described;
use crate::output::{CommandResult, Output};
use crate::wire::Status;

const MOST_RUNS: usize = 1_000;

pub(super) async fn list(here: &Here, only_running: bool, all: bool) -> CommandResult {
    let found = here.connect().await?.list(only_running, MOST_RUNS).await?;
    // Without --all, a name means its newest run only.
    let mut seen = BTreeSet::new();
    let wanted = found.into_iter().filter(|run| all || seen.insert(run.name.clone()));
    let views: Vec<RunView> = wanted.map(view).collect();
    let rows: Vec<Vec<String>> =
        std::iter::once(HEADS.map(ToOwned::to_owned).to_vec()).chain(views.iter().map(run_row)).collect();
    let is_empty = views.is_empty();
    let list = RunList { runs: views.into_iter().map(ListedRun::Run).collect(), appointments: Vec::new() };
    let text = if is_empty {
        "no runs on the fleet yet\nstart one: steadfast loop run TYPE NAME --fleet".to_owned()
    } else {
        columns(&rows)
    };
    let output = Output::new(text, &list)?;
    if !only_running && !all {
        let kept = serde_json::to_vec(&output.json).map_err(std::io::Error::from)?;
        durable::replace(&here.folder()?.join("runs.json"), &kept)?;
    }
    Ok(output)
}

/// A run as the server knows it.
fn view(run: Described) -> RunView {
    let is_live = run.server_status == WorkflowExecutionStatus::Running;
    let known = run.status.is_some();
    let status = run.status.unwrap_or_else(|| Status { name: run.name.clone(), ..Status::default() });
    // The workflow ended, and its run did not.
    let is_orphaned = !is_live && status.status == RunStatus::Running;
    RunView {
        name: run.name,
        kind: status.kind.parse().unwrap_or(RunKind::Loop),
        status: if is_orphaned { RunStatus::UnknownTermination } else { status.status },
        iteration: status.iteration,
        max_iterations: status.max_iterations,
        started_at: Timestamp(if known { status.started_at_ms } else { run.started_at_ms.unwrap_or(0) }),
        completed_at: status.completed_at_ms.or(run.closed_at_ms.filter(|_| !is_live)).map(Timestamp),
        reason: status.reason.or_else(|| is_orphaned.then(|| RunReason::EngineGone.to_string())),
        tokens: (!status.tokens_unknown).then_some(status.tokens),
        cost: (!status.cost_unknown).then_some(Usd(status.cost_micros)),
        pid: None,
        is_live,
        is_orphaned,
        title: status.title,
        stage: status.stage.max(1),
        project: if status.repo.is_empty() { run.repo } else { status.repo },
        run_id: status.run_id,
        is_stop_requested: false,
        is_asking: status.asking.is_some(),
        is_of_fleet: true,
    }
}

/// Aligns rows in columns, each as wide as its widest cell; the last column is not padded.
fn columns(rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let line = |row: &Vec<String>| {
        let cells = row.iter().enumerate().map(|(column, cell)| format!("{cell:<width$}", width = width(column)));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}
