//! The page of one run.

use steadfast_app::overview::runs::RunDetail;
use steadfast_app::overview::runs::page::status_page;
use steadfast_store::{Db, RunRow};
use steadfast_views::facts;

use super::{answer, manual_entry, show_entry};
use crate::commands::runs::RunContext;
use crate::error::code;
use crate::output::CommandResult;

/// Iterations on the page; JSON has all of them.
const ITERATIONS_SHOWN: usize = 15;

pub(in crate::commands::runs) fn status(context: &RunContext, name: &str) -> CommandResult {
    match context.find(name) {
        Ok((store, row)) => show_status(context, store.read(), &row, context.is_live(&row)?, 0),
        Err(failure) if failure.code == code::NOT_FOUND => match manual_entry(context, name) {
            Some(entry) => show_entry(context, entry),
            None => Err(failure),
        },
        Err(failure) => Err(failure),
    }
}

pub(in crate::commands::runs) fn show_status(
    context: &RunContext,
    db: Db<'_>,
    row: &RunRow,
    is_live: bool,
    code: u8,
) -> CommandResult {
    let most = (!context.json).then_some(ITERATIONS_SHOWN);
    let detail = facts::run_detail_if(is_live, db, row, &context.paths, most, context.now)?;
    answer(context, &detail, code, || status_page(&detail))
}

/// The page with all iterations that the detail has.
pub(in crate::commands::runs) fn show_detail(context: &RunContext, detail: &RunDetail) -> CommandResult {
    answer(context, detail, 0, || status_page(detail))
}
