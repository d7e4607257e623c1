//! `steadfast usage`: tokens and cost of all sessions on this machine in many views, of each iteration of a run, and
//! against the caps of the day and the week.

mod asked;
mod chart;
mod check;
mod runs;
mod table;

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use jiff::Zoned;
use jiff::tz::TimeZone;
use serde_json::json;
use steadfast_app::usage::machine;
use steadfast_app::usage::report::{self, UsageReport, View};
use steadfast_app::usage::summary::Summary;
use steadfast_model::clock::{self, Millis};
use steadfast_model::host::Host;
use steadfast_model::price::Table;
use steadfast_model::text;
use steadfast_system::{bounded, env_vars, paths};

use self::asked::Asked;
use crate::cli::UsageArgs;
use crate::commands::own_paths;
use crate::error::{CliError, code};
use crate::output::{self, CommandOutput, CommandResult};
use crate::progress::Bar;

const SPARKLINE_DAYS: usize = 14;
/// The view that reads the store instead of transcripts.
const RUNS: &str = "runs";

pub(crate) fn run(db: Option<&Path>, arguments: &UsageArgs, is_json: bool) -> CommandResult {
    // Transcripts are stamped by the wall clock, and days are of that clock.
    let now = clock::wall();
    let asked = Asked::new(arguments, now)?;
    if arguments.view.as_deref() == Some(RUNS) {
        if arguments.chart {
            let hint = "use another view, such as `steadfast usage daily --chart`";
            return Err(CliError::new(code::USAGE, "--chart does not show runs", hint));
        }
        return runs::view(db, arguments, &asked, is_json);
    }
    let view = arguments.view.as_deref().map_or(Some(View::default()), |name| name.parse().ok());
    let view = view.ok_or_else(|| CliError::new(code::USAGE, "no such view", "`steadfast usage --help` lists them"))?;
    let mut summaries = summaries(arguments)?;
    if arguments.check {
        return check::run(db, &summaries, now);
    }
    if let Ok(paths) = own_paths::find_to_read(db) {
        machine::name_projects(&paths, &mut summaries);
    }
    let report = report::report(view, &summaries, &asked.filter, asked.select, &asked.zone, now);
    if let Some(id) = asked.filter.session.as_deref().filter(|_| report.rows.is_empty()) {
        let message = format!("no session with the id `{}` matches", text::headline(id, 60));
        return Err(CliError::new(code::NOT_FOUND, message, "`steadfast usage session` lists them"));
    }
    notes(&summaries, &report, is_json);
    if arguments.chart && is_json {
        output::note("note: --chart changes nothing about JSON");
    }
    if asked.select.only_active && report.rows.is_empty() {
        output::note("note: no 5-hour block is running");
    }
    let mut text = String::new();
    if !report.rows.is_empty() && !is_json {
        let width = width();
        let render = if arguments.chart { chart::render } else { table::render };
        text = render(&report, &asked.zone, width);
        if view == View::Daily && asked.shows_last_days() && !arguments.chart {
            let days = report::recent_days(&report.rows, asked.today, SPARKLINE_DAYS);
            text.extend(table::sparkline(&days, width).map(|line| format!("\n\n{line}")));
        }
        if asked.select.only_active {
            text = format!("{text}\n\n{}", table::burn_lines(&report, &asked.zone));
        }
    }
    Ok(CommandOutput { text, json: json!(report), code: 0 })
}

/// Everything that the hosts wrote, read as far as it is new.
fn summaries(arguments: &UsageArgs) -> Result<Vec<(Host, Summary)>, CliError> {
    let hosts = match arguments.host.as_deref().and_then(|name| name.parse().ok()) {
        Some(host) => vec![host],
        None => Host::ALL.to_vec(),
    };
    let load = |path: &PathBuf| Table::from_toml(&bounded::text(path, 16 * 1024 * 1024)?, path);
    let own_prices = arguments.prices.as_ref().map(load).transpose()?;
    let prices = own_prices.as_ref().unwrap_or_else(|| Table::shipped());

    let mut bar = Bar::new();
    let summaries = machine::summaries(&hosts, &paths::home()?, prices, &mut |done, total| {
        bar.show("reading transcripts", done, total);
    });
    bar.clear();
    Ok(summaries?)
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
            "note: {} tokens have no known price; add prices with --prices FILE",
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
