//! `steadfast usage runs`: what each iteration of every run used, and how long it took.

use std::path::Path;

use jiff::tz::TimeZone;
use serde_json::json;
use steadfast_app::usage::report::Amounts;
use steadfast_app::usage::runs::{RunUsageRow, RunsReport};
use steadfast_model::clock::{self, Millis};
use steadfast_model::text;
use steadfast_store::Store;

use super::asked::Asked;
use super::table::{self, Column};
use super::{in_zone, last_part, width};
use crate::cli::UsageArgs;
use crate::commands::own_paths;
use crate::error::{CliError, code};
use crate::output::{self, CommandOutput, CommandResult};

pub(super) fn view(db: Option<&Path>, arguments: &UsageArgs, asked: &Asked, is_json: bool) -> CommandResult {
    if arguments.host.is_some() || arguments.prices.is_some() {
        let hint = "remove them: the cost of a run was recorded when it ran";
        return Err(CliError::new(code::USAGE, "--host and --prices only apply to views of transcripts", hint));
    }
    if arguments.breakdown {
        let hint = "use --breakdown with another view, such as `steadfast usage daily --breakdown`";
        return Err(CliError::new(code::USAGE, "--breakdown only applies to views of transcripts", hint));
    }
    let (filter, zone) = (&asked.filter, &asked.zone);
    let store = Store::open_if_there(&own_paths::find_to_read(db)?.store)?;
    let mut rows = store.map(|store| store.read().iteration_usage()).transpose()?.unwrap_or_default();
    rows.retain(|row| {
        filter.project.as_ref().is_none_or(|project| project.matches(&row.project_dir))
            && filter.has_day(Some(in_zone(clock::to_wall(row.started_at_ms), zone).date()))
    });
    rows.drain(..rows.len().saturating_sub(asked.select.last.unwrap_or(usize::MAX)));
    if asked.select.is_descending == Some(true) {
        rows.reverse();
    }
    let report = RunsReport::new(rows);
    if report.rows.is_empty() {
        output::note("note: no iteration of a run matches");
    }
    let text = if report.rows.is_empty() || is_json { String::new() } else { draw(&report, zone) };
    Ok(CommandOutput { text, json: json!(report), code: 0 })
}

fn draw(report: &RunsReport, zone: &TimeZone) -> String {
    let cells = |total: &str, cell: &dyn Fn(&RunUsageRow) -> String| -> Vec<String> {
        report.rows.iter().map(cell).chain([total.to_owned()]).collect()
    };
    let when =
        |row: &RunUsageRow| in_zone(clock::to_wall(row.started_at_ms), zone).strftime("%Y-%m-%d %H:%M").to_string();
    let seconds = |ms: Millis| text::duration(ms / 1_000);
    let time = cells(&seconds(report.totals.duration_ms), &|row| seconds(row.used.duration_ms));
    let mut columns = vec![
        Column::text("Run", cells("Total", &|row| text::headline(&row.run, 64))),
        Column::fixed("Iteration", None, cells("", &|row| format!("{}.{}", row.stage, row.iteration))),
        Column::fixed("Stage", Some(1), cells("", &|row| text::headline(&row.stage_name, 32))),
        Column::fixed("Project", Some(0), cells("", &|row| last_part(&row.project))),
        Column::fixed("Started", Some(2), cells("", &when)),
        Column { right: true, ..Column::fixed("Time", Some(9), time) },
    ];
    let used: Vec<&Amounts> = report.rows.iter().map(|row| &row.used.amounts).chain([&report.totals.amounts]).collect();
    columns.extend(table::amounts_columns(&used));
    table::lay_out(columns, width())
}
