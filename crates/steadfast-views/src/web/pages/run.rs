//! The page of a run: its stages, its iterations, and the output of one of them.

use minijinja::{Value, context};
use steadfast_app::overview::runs::RunDetail;
use steadfast_model::clock::Millis;
use steadfast_model::run::{RunStatus, name};
use steadfast_model::text;
use steadfast_store::{Db, RunRow};
use steadfast_system::paths::Paths;

use super::template::{chart, serde};
use super::{PageError, log};
use crate::{chart as charts, facts};

/// Iterations in the table; JSON has all of them.
const ITERATIONS_SHOWN: usize = 50;

pub(super) fn model(
    db: Db<'_>,
    paths: &Paths,
    id: &str,
    most: Option<usize>,
    at: Millis,
) -> Result<RunDetail, PageError> {
    Ok(facts::run_detail(db, &find(db, id)?, paths, most, at)?)
}

fn find(db: Db<'_>, id: &str) -> Result<RunRow, PageError> {
    db.run(id)?.ok_or_else(|| PageError::NotFound { noun: "run", id: text::headline(id, 60) })
}

pub(super) fn content(
    db: Db<'_>,
    paths: &Paths,
    id: &str,
    chosen: (Option<u32>, Option<u32>),
    at: Millis,
) -> Result<(String, Value), PageError> {
    let row = find(db, id)?;
    let detail = facts::run_detail(db, &row, paths, Some(ITERATIONS_SHOWN), at)?;
    let goal = if detail.goal.is_some() { db.goal(&name::of_goal(id))? } else { None };
    let output = log::tail(paths, &row, chosen);
    Ok(of(&detail, goal.map(|goal| goal.goal_id), output.as_ref()))
}

/// The title and values of a run's page.
fn of(detail: &RunDetail, goal_id: Option<String>, output: Option<&log::LogOutput>) -> (String, Value) {
    let run = &detail.run;
    let graph = (detail.stages.len() > 1).then(|| chart(charts::stage_graph(&detail.stages)));
    let mut iterations: Vec<_> = detail.history.iter().map(serde).collect();
    iterations.reverse();
    let shown = |stage: u32, iteration: u32| output.is_some_and(|out| (out.stage, out.iteration) == (stage, iteration));
    let ended = detail.history.iter().filter(|row| shown(row.stage, row.iteration)).map(|row| &row.place);
    let under_way = detail.under_way.iter().filter(|row| shown(row.stage, row.iteration)).map(|row| &row.place);
    let branch = ended.chain(under_way).find_map(|place| place.branch.clone());
    let can_resume = !run.is_live && !detail.is_history_only && run.status != RunStatus::Completed;
    let values = context! {
        run => serde(detail), graph, iterations, branch, goal_id, output => output.map(serde),
        is_cut => detail.history.len() >= ITERATIONS_SHOWN, elapsed => detail.elapsed_seconds,
        is_live => run.is_live, can_resume, can_kill => run.is_live || run.is_orphaned,
        has_stages => detail.stages.len() > 1, is_stopping => detail.is_stopping,
        goal_state => detail.goal.as_ref().map(|goal| goal.state.clone()),
    };
    (text::headline(&run.name, 60), values)
}
