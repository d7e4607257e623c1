//! `steadfast usage`: tokens and cost of all sessions on this machine, by day, month, session, block or model, and of
//! each iteration of a run.

mod progress;
mod runs;
mod table;

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use jiff::Zoned;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde_json::json;
use steadfast_app::usage::collect;
use steadfast_app::usage::report::{self, Filter, ProjectFilter, UsageReport, View};
use steadfast_app::usage::summary::Summary;
use steadfast_hosts::adapter;
use steadfast_model::clock::{self, Millis};
use steadfast_model::host::Host;
use steadfast_model::price::Table;
use steadfast_model::text;
use steadfast_system::{bounded, env_vars, paths};

use self::progress::Bar;
use crate::cli::UsageArgs;
use crate::error::{CliError, code};
use crate::output::{self, CommandOutput, CommandResult};

const SPARKLINE_DAYS: usize = 14;
/// The view that reads the store instead of transcripts.
const RUNS: &str = "runs";

pub(crate) fn run(db: Option<&Path>, arguments: &UsageArgs, is_json: bool) -> CommandResult {
    let zone = TimeZone::system();
    let now = clock::now();
    let today = in_zone(now, &zone).date();
    let filter = filter(arguments, today)?;
    if arguments.view.as_deref() == Some(RUNS) {
        return runs::view(db, arguments, &filter, &zone, is_json);
    }
    let view = arguments.view.as_deref().map_or(Some(View::default()), |name| name.parse().ok());
    let view = view.ok_or_else(|| CliError::new(code::USAGE, "no such view", "`steadfast usage --help` lists them"))?;
    let hosts = match arguments.host.as_deref().and_then(|name| name.parse().ok()) {
        Some(host) => vec![host],
        None => Host::ALL.to_vec(),
    };
    let load = |path: &PathBuf| Table::from_toml(&bounded::text(path, 16 * 1024 * 1024)?, path);
    let own_prices = arguments.prices.as_ref().map(load).transpose()?;
    let prices = own_prices.as_ref().unwrap_or_else(|| Table::shipped());

    let cache = paths::home()?.join("usage-cache");
    let mut bar = Bar::new();
    let mut summaries = Vec::new();
    for host in hosts {
        let cache = cache.join(host.to_string());
        let summary =
            collect::collect(host, &(adapter(host).transcript_roots)(), &cache, prices, &mut |done, total| {
                bar.show(done, total);
            });
        bar.clear();
        summaries.push((host, summary?));
    }
    runs::name_projects(db, &mut summaries);
    let report = report::report(view, &summaries, &filter, &zone, now);
    notes(&summaries, &report, is_json);
    let mut text = String::new();
    if !report.rows.is_empty() && !is_json {
        let width = width();
        text = table::render(&report, &zone, width);
        if view == View::Daily {
            let days = report::recent_days(&report.rows, today, SPARKLINE_DAYS);
            text.extend(table::sparkline(&days, width).map(|line| format!("\n\n{line}")));
        }
    }
    Ok(CommandOutput { text, json: json!(report), code: 0 })
}

fn filter(arguments: &UsageArgs, today: Date) -> Result<Filter, CliError> {
    let since = match arguments.since.as_deref() {
        Some(text) => Some(clock::parse_day(text, today).ok_or_else(|| {
            let hint = "use a date such as 2026-11-01, today, yesterday, or a number of days back such as 7d";
            CliError::new(code::USAGE, format!("invalid date `{}`", text::headline(text, 40)), hint)
        })?),
        None => None,
    };
    let project = match arguments.project.as_deref() {
        Some("") => {
            let hint = "pass a directory or the name of a project, such as --project . or --project website";
            return Err(CliError::new(code::USAGE, "--project is empty", hint));
        }
        Some(project) => Some(ProjectFilter::new(project, &std::env::current_dir()?)),
        None => None,
    };
    Ok(Filter { since, project })
}

fn notes(summaries: &[(Host, Summary)], report: &UsageReport, is_json: bool) {
    let files: u64 = summaries.iter().map(|(_, summary)| summary.files).sum();
    let malformed: u64 = summaries.iter().map(|(_, summary)| summary.malformed_files).sum();
    if files == 0 {
        let places: Vec<String> = Host::ALL
            .iter()
            .map(|host| host.capabilities())
            .map(|facts| format!("{} or ~/{}", facts.config_variable, facts.default_config_dir))
            .collect();
        output::note(&format!("note: no transcripts found (searched {})", places.join(", and ")));
    } else if report.rows.is_empty() {
        output::note("note: no response matches");
    }
    if malformed > 0 {
        output::note(&format!("note: left out responses with malformed token counts in {malformed} transcripts"));
    }
    if report.totals.unpriced_tokens > 0 && !is_json {
        output::note(&format!(
            "note: {} tokens are of models without a known price; add prices with --prices FILE",
            text::thousands(report.totals.unpriced_tokens)
        ));
    }
}

fn in_zone(at: Millis, zone: &TimeZone) -> Zoned {
    jiff::Timestamp::from_millisecond(at).unwrap_or_default().to_zoned(zone.clone())
}

/// The width of the terminal; for a file or a pipe COLUMNS, else no limit.
fn width() -> usize {
    let terminal = std::io::stdout().is_terminal().then(terminal_size::terminal_size).flatten();
    match terminal {
        Some((width, _)) => usize::from(width.0),
        None => env_vars::text(env_vars::COLUMNS)
            .and_then(|columns| columns.parse().ok())
            .filter(|columns| *columns > 0)
            .unwrap_or(usize::MAX),
    }
}

fn last_part(project: &str) -> String {
    let name = Path::new(project).file_name().and_then(|name| name.to_str());
    text::headline(name.unwrap_or(project), 32)
}
