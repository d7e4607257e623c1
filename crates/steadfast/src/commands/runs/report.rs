//! `loop report`, `pipeline report` and `run report`: a run with all its iterations, as text, JSON or one HTML file.

use std::path::Path;

use steadfast_app::overview::goal_page::{GoalPage, goal_page};
use steadfast_model::run::{RunKind, name};
use steadfast_store::{Db, RunRow, StoreError};
use steadfast_views::{facts, report};

use super::{RunContext, on_run, view};
use crate::cli::{RunReportArgs, RunVerb};
use crate::commands::{html, person};
use crate::error::{CliError, code};
use crate::output::CommandResult;

pub(super) fn report(context: &RunContext, arguments: &RunReportArgs) -> CommandResult {
    let (store, row) = context.find(&arguments.name)?;
    let db = store.read();
    let detail = facts::run_detail_if(context.is_live(&row)?, db, &row, &context.paths, None, context.now)?;
    let Some(target) = &arguments.html.html else { return view::show_detail(context, &detail) };
    let goal = goal_of(context, db, &row)?;
    let html = report::run_html(&detail, goal.as_ref(), context.now)?;
    let json = serde_json::to_value(&detail).map_err(|error| StoreError::Value(error.to_string()))?;
    html::hand_out(target, html, json, context.json)
}

/// The goal that the run pursues, unless the caller may not see it.
fn goal_of(context: &RunContext, db: Db<'_>, row: &RunRow) -> Result<Option<GoalPage>, CliError> {
    let session_id = name::of_goal(&row.run_id);
    let Some(goal) = db.goal(&session_id)?.filter(|_| row.plan.pursues_goal()) else { return Ok(None) };
    let actor = person::caller(&context.paths);
    if person::refuse_foreign_session(actor, db, &session_id).is_err() {
        return Ok(None);
    }
    Ok(Some(goal_page(db, &goal, &context.paths, context.now)?))
}

/// `steadfast run report`: of a loop, or of a pipeline if no loop has the name.
pub(in crate::commands) fn of_any_kind(db: Option<&Path>, arguments: RunReportArgs, json: bool) -> CommandResult {
    let verb = RunVerb::Report(arguments);
    let of_kind = |kind| on_run(&RunContext::on_run(db, kind, json, &verb)?, &verb);
    let first = match of_kind(RunKind::Loop) {
        Err(error) if error.code == code::NOT_FOUND => error,
        done => return done,
    };
    match of_kind(RunKind::Pipeline) {
        Err(error) if error.code == code::NOT_FOUND => {
            let hint = format!("{}; an objective that begins with `report` has to be quoted", first.hint);
            Err(CliError { hint, ..first })
        }
        done => done,
    }
}
