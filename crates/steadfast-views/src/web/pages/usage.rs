//! The page of what everything on this machine used.

use jiff::tz::TimeZone;
use minijinja::{Value, context};
use steadfast_app::overview::now::Header;
use steadfast_app::usage::charts::{self, UsageCharts};
use steadfast_app::usage::machine;
use steadfast_app::usage::report::UsageReport;
use steadfast_model::clock::{self, Millis};
use steadfast_model::host::Host;
use steadfast_model::price::Table;
use steadfast_store::Db;
use steadfast_system::paths::Paths;

use super::PageError;
use super::template::{chart, serde};
use crate::{chart as drawn, facts};

/// A chart of more days has no room.
const MOST_DAYS: usize = 366;

pub(super) fn model(paths: &Paths, days: usize) -> Result<UsageCharts, PageError> {
    let mut summaries = machine::summaries(Host::ALL, &paths.home, Table::shipped(), &mut |_, _| {})?;
    machine::name_projects(paths, &mut summaries);
    // Session files are stamped by the wall clock.
    Ok(charts::charts(&summaries, days.clamp(1, MOST_DAYS), &TimeZone::system(), clock::wall()))
}

pub(super) fn content(db: Db<'_>, paths: &Paths, days: usize, at: Millis) -> Result<(String, Value), PageError> {
    let charts = model(paths, days)?;
    Ok(of(&charts, &facts::now(db, paths, at)?.header, days.clamp(1, MOST_DAYS)))
}

pub(super) fn of(charts: &UsageCharts, header: &Header, days: usize) -> (String, Value) {
    let (tokens, cost): (i64, f64) =
        charts.days.iter().fold((0, 0.0), |sum, day| (sum.0 + day.tokens, sum.1 + day.cost_usd));
    let has_usage = tokens > 0;
    let values = context! {
        days, tokens, cost, has_usage, header => serde(header),
        stacked => has_usage.then(|| chart(drawn::stacked_days(&charts.days))),
        heat => has_usage.then(|| chart(drawn::heat_map(&charts.hours))),
        models => rows(&charts.models), projects => rows(&charts.projects), blocks => rows(&charts.blocks),
    };
    ("Usage".to_owned(), values)
}

/// The rows of a report as their JSON has them, and their share of the most expensive one.
fn rows(report: &UsageReport) -> Value {
    let most = report.rows.iter().map(|row| row.amounts.priced_micros).max().unwrap_or(0).max(1);
    let row = report.rows.iter().map(|row| {
        let share = row.amounts.priced_micros.saturating_mul(100) / most;
        context! { share, ..serde(row) }
    });
    row.collect()
}
