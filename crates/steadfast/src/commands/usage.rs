//! `steadfast usage`: what all sessions on this machine used, by day, month, session, block or model, and what
//! each iteration of a run used.

mod progress;
mod runs;
mod table;

use std::io::IsTerminal as _;
use std::path::Path;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde_json::{Map, Value, json};
use steadfast_core::clock::{self, Millis};
use steadfast_core::host::{Host, adapter};
use steadfast_core::price::{PriceError, Table};
use steadfast_core::usage::collect::{self, UsageError};
use steadfast_core::usage::report::{self, Amounts, Filter, Key, ProjectFilter, Report, Row, View};
use steadfast_core::usage::summary::Summary;
use steadfast_core::{env_vars, paths, text};

use self::progress::Bar;
use crate::cli::UsageArgs;
use crate::failure::{Failure, code};
use crate::output::{self, Done};

const SPARKLINE_DAYS: usize = 14;
/// The view that reads the store instead of transcripts.
const RUNS: &str = "runs";

pub(crate) fn run(db: Option<&Path>, arguments: &UsageArgs) -> Result<Done, Failure> {
    let zone = TimeZone::system();
    let now = clock::now();
    let today = day_of(now, &zone);
    let filter = filter(arguments, today)?;
    if arguments.view.as_deref() == Some(RUNS) {
        return runs::view(db, arguments, &filter, &zone);
    }
    let view = arguments.view.as_deref().map_or(Some(View::default()), |name| name.parse().ok());
    let view = view.ok_or_else(|| Failure::new(code::USAGE, "no such view", "`steadfast usage --help` lists them"))?;
    let hosts = match arguments.host.as_deref().and_then(|name| name.parse().ok()) {
        Some(host) => vec![host],
        None => Host::ALL.to_vec(),
    };
    let own_prices = arguments.prices.as_deref().map(Table::load).transpose()?;
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
    let report = report::report(view, &summaries, &filter, &zone);
    notes(&summaries, &report, arguments);
    let mut text = String::new();
    if !report.rows.is_empty() && !arguments.json {
        let width = width();
        text = table::render(view, &report, &zone, width);
        if view == View::Daily {
            let days = report::recent_days(&report.rows, today, SPARKLINE_DAYS);
            text.extend(table::sparkline(&days, width).map(|line| format!("\n\n{line}")));
        }
    }
    Ok(Done { text, json: to_json(view, &report, now), code: 0 })
}

fn filter(arguments: &UsageArgs, today: Date) -> Result<Filter, Failure> {
    let since = match arguments.since.as_deref() {
        Some(text) => Some(clock::parse_day(text, today).ok_or_else(|| {
            let hint = "give a day such as 2026-11-01, today, yesterday, or a span back from today such as 7d";
            Failure::new(code::USAGE, format!("`{}` is not a day", text::headline(text, 40)), hint)
        })?),
        None => None,
    };
    let project = match arguments.project.as_deref() {
        Some("") => {
            let hint = "give a directory or a project's name, such as --project . or --project website";
            return Err(Failure::new(code::USAGE, "--project is empty", hint));
        }
        Some(project) => Some(ProjectFilter::new(project, &std::env::current_dir()?)),
        None => None,
    };
    Ok(Filter { since, project })
}

/// What a person should know about the numbers, on stderr.
fn notes(summaries: &[(Host, Summary)], report: &Report, arguments: &UsageArgs) {
    let files: u64 = summaries.iter().map(|(_, summary)| summary.files).sum();
    let malformed: u64 = summaries.iter().map(|(_, summary)| summary.malformed_files).sum();
    if files == 0 {
        let places: Vec<String> = Host::ALL
            .iter()
            .map(|host| host.capabilities())
            .map(|facts| format!("{} or ~/{}", facts.config_variable, facts.default_config_dir))
            .collect();
        output::note(&format!("note: there are no transcripts (looked below {})", places.join(", and ")));
    } else if report.rows.is_empty() {
        output::note("note: no response matches");
    }
    if malformed > 0 {
        output::note(&format!(
            "note: {malformed} transcripts have responses with malformed token counts, which are left out"
        ));
    }
    if report.totals.unpriced_tokens > 0 && !arguments.json {
        output::note(&format!(
            "note: {} tokens are of models without a known price; --prices FILE can tell it",
            text::thousands(report.totals.unpriced_tokens)
        ));
    }
}

fn day_of(at: Millis, zone: &TimeZone) -> Date {
    jiff::Timestamp::from_millisecond(at).unwrap_or_default().to_zoned(zone.clone()).date()
}

/// How wide the output may be. What goes to a file or a pipe has no limit unless COLUMNS sets one.
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

fn to_json(view: View, report: &Report, now: Millis) -> Value {
    let rows: Vec<Value> = report.rows.iter().map(|row| row_json(row, now)).collect();
    json!({"view": view.to_string(), "totals": amounts_json(&report.totals), "rows": rows})
}

fn row_json(row: &Row, now: Millis) -> Value {
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| {
        fields.insert(name.to_owned(), value);
    };
    match &row.key {
        Key::Day(day) => put("date", json!(day.map(|day| day.to_string()))),
        Key::Month(month) => put("month", json!(month.map(|day| day.strftime("%Y-%m").to_string()))),
        Key::Session { id, project } => {
            put("session_id", json!(id));
            put("project", json!(project));
            put("first_date", json!(row.days.map(|days| days.0.to_string())));
            put("last_date", json!(row.days.map(|days| days.1.to_string())));
        }
        Key::Block { start } => {
            put("start", json!(start.map(clock::to_rfc3339)));
            put("end", json!(row.block_end().map(clock::to_rfc3339)));
            put("active", json!(row.block_end().is_some_and(|end| now < end)));
        }
        Key::Model(model) => put("model", json!(model)),
    }
    put("host", json!(row.host));
    if !matches!(row.key, Key::Model(_)) {
        put("models", json!(row.models));
    }
    if let Value::Object(amounts) = amounts_json(&row.amounts) {
        fields.extend(amounts);
    }
    Value::Object(fields)
}

fn amounts_json(amounts: &Amounts) -> Value {
    json!({
        "responses": amounts.responses,
        "input_tokens": amounts.tokens.input,
        "output_tokens": amounts.tokens.output,
        "cache_creation_tokens": amounts.tokens.cache_creation,
        "cache_read_tokens": amounts.tokens.cache_read,
        "total_tokens": amounts.tokens.total(),
        "cost_usd": amounts.cost_micros().map(dollars),
        "priced_cost_usd": dollars(amounts.priced_micros),
        "unpriced_tokens": amounts.unpriced_tokens,
    })
}

/// The last directory of a path, for people.
fn last_part(project: &str) -> String {
    let name = Path::new(project).file_name().and_then(|name| name.to_str());
    text::headline(name.unwrap_or(project), 32)
}

#[expect(clippy::cast_precision_loss, reason = "amounts are far below 2^53")]
fn dollars(micros: i64) -> f64 {
    micros as f64 / 1e6
}

impl From<UsageError> for Failure {
    fn from(error: UsageError) -> Self {
        Self::new(code::ENVIRONMENT, error.to_string(), error.hint())
    }
}

impl From<PriceError> for Failure {
    fn from(error: PriceError) -> Self {
        Self::new(code::USAGE, error.to_string(), error.hint())
    }
}
