//! `steadfast usage runs`: what each iteration of every run used, and how long it took. The store knows that, whoever
//! the agent was: a command has no transcript, and one in a worktree has it under another directory.

use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;
use serde_json::{Value, json};
use steadfast_app::usage::report::{Amounts, Filter};
use steadfast_app::usage::summary::{Summary, Tokens};
use steadfast_model::clock;
use steadfast_model::clock::Millis;
use steadfast_model::host::Host;
use steadfast_model::text;
use steadfast_store::{IterationUsage, Store};
use steadfast_system::paths::Paths;

use super::table::{self, Column};
use super::{amounts_json, day_of, last_part, width};
use crate::cli::UsageArgs;
use crate::error::{CliError, code};
use crate::output::{self, CommandOutput};

pub(super) fn view(
    db: Option<&Path>,
    arguments: &UsageArgs,
    filter: &Filter,
    zone: &TimeZone,
) -> Result<CommandOutput, CliError> {
    if arguments.host.is_some() || arguments.prices.is_some() {
        let hint = "leave them out: a run's agents are told apart by its stages, and its cost is what was counted then";
        return Err(CliError::new(code::USAGE, "--host and --prices are for the views of transcripts", hint));
    }
    let store = Store::open_if_there(&Paths::find(db)?.store)?;
    let mut rows = store.map(|store| store.read().iteration_usage()).transpose()?.unwrap_or_default();
    rows.retain(|row| {
        filter.project.as_ref().is_none_or(|project| project.takes(&row.project_dir))
            && filter.since.is_none_or(|since| day_of(row.started_at_ms, zone) >= since)
    });
    let totals = Totals::of(&rows);
    if rows.is_empty() {
        output::note("note: no iteration of a run matches");
    }
    let text = if rows.is_empty() || arguments.json { String::new() } else { draw(&rows, &totals, zone) };
    Ok(CommandOutput { text, json: to_json(&rows, &totals), code: 0 })
}

#[derive(Default)]
struct Totals {
    amounts: Amounts,
    lasted_ms: Millis,
}

impl Totals {
    fn of(rows: &[IterationUsage]) -> Self {
        let mut totals = Self::default();
        for row in rows {
            totals.amounts.join(&amounts(row));
            totals.lasted_ms = totals.lasted_ms.saturating_add(row.lasted_ms);
        }
        totals
    }
}

fn amounts(row: &IterationUsage) -> Amounts {
    let usage = &row.usage;
    Amounts {
        responses: 0,
        tokens: Tokens {
            input: usage.input_tokens,
            output: usage.output_tokens,
            cache_creation: usage.cache_creation_tokens,
            cache_creation_1h: 0,
            cache_read: usage.cache_read_tokens,
        },
        priced_micros: usage.cost_micros,
        unpriced_tokens: row.unpriced_tokens,
    }
}

fn to_json(rows: &[IterationUsage], totals: &Totals) -> Value {
    let rows: Vec<Value> = rows
        .iter()
        .map(|row| {
            let own = json!({
                "run": row.name,
                "run_id": row.run_id,
                "kind": row.kind.to_string(),
                "project": row.project_dir,
                "stage": row.stage,
                "stage_name": row.stage_name,
                "iteration": row.iteration,
                "attempts": row.attempts,
                "committed": row.is_committed,
                "started_at": clock::to_rfc3339(row.started_at_ms),
            });
            with_seconds(own, &amounts(row), row.lasted_ms)
        })
        .collect();
    json!({"view": "runs", "totals": with_seconds(json!({}), &totals.amounts, totals.lasted_ms), "rows": rows})
}

/// The responses of an agent are not counted by its run.
fn with_seconds(mut own: Value, amounts: &Amounts, lasted_ms: Millis) -> Value {
    if let (Value::Object(fields), Value::Object(amounts)) = (&mut own, amounts_json(amounts)) {
        fields.extend(amounts);
        fields.insert("responses".to_owned(), Value::Null);
        fields.insert("seconds".to_owned(), json!(lasted_ms / 1_000));
    }
    own
}

fn draw(rows: &[IterationUsage], totals: &Totals, zone: &TimeZone) -> String {
    let cells = |total: &str, cell: &dyn Fn(&IterationUsage) -> String| -> Vec<String> {
        rows.iter().map(cell).chain([total.to_owned()]).collect()
    };
    let when = |row: &IterationUsage| {
        let moment = jiff::Timestamp::from_millisecond(row.started_at_ms).unwrap_or_default();
        moment.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M").to_string()
    };
    let number = |row: &IterationUsage| format!("{}.{}", row.stage, row.iteration);
    let lasted = |ms: Millis| text::duration(ms / 1_000);
    let fixed = |goes, column: Column| Column { goes, name: false, ..column };
    let mut columns = vec![
        Column::text("Run", cells("Total", &|row| text::headline(&row.name, 64))),
        fixed(None, Column::text("Iteration", cells("", &number))),
        fixed(Some(1), Column::text("Stage", cells("", &|row| text::headline(&row.stage_name, 32)))),
        fixed(Some(0), Column::text("Project", cells("", &|row| last_part(&row.project_dir)))),
        fixed(Some(2), Column::text("Started", cells("", &when))),
        Column {
            right: true,
            ..fixed(Some(9), Column::text("Time", cells(&lasted(totals.lasted_ms), &|row| lasted(row.lasted_ms))))
        },
    ];
    let owned: Vec<Amounts> = rows.iter().map(amounts).chain([totals.amounts]).collect();
    columns.extend(table::amounts_columns(&owned.iter().collect::<Vec<_>>()));
    table::lay_out(columns, width())
}

/// An agent in a worktree of ours worked for the project of its run, and counts there.
pub(super) fn name_projects(db: Option<&Path>, summaries: &mut [(Host, Summary)]) {
    let Ok(paths) = Paths::find(db) else { return };
    let below = paths.home.join("worktrees");
    let mut places: Vec<PathBuf> = fs_err::canonicalize(&below).into_iter().collect();
    places.push(below);
    let run_of = |project: &str| -> Option<String> {
        let rest = places.iter().find_map(|place| Path::new(project).strip_prefix(place).ok())?;
        Some(rest.components().next()?.as_os_str().to_str()?.to_owned())
    };
    let mut store: Option<Option<Store>> = None;
    for session in summaries.iter_mut().flat_map(|(_, summary)| &mut summary.sessions) {
        let Some(run_id) = run_of(&session.project) else { continue };
        // Who only wants to know what was used gets it without the store, too.
        let store = store.get_or_insert_with(|| Store::open_if_there(&paths.store).ok().flatten());
        let project = store.as_ref().and_then(|store| store.read().project_of_run(&run_id).ok().flatten());
        session.project = project.unwrap_or_else(|| std::mem::take(&mut session.project));
    }
}
