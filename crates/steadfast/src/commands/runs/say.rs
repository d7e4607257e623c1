//! `say`: what the user wants the next iteration of a run to know. Only a person may say something; an agent would talk
//! to itself in the user's name.

use std::io::Read as _;

use serde_json::json;
use steadfast_app::overview::runs::page::note_line;
use steadfast_app::overview::runs::talk::note_views;
use steadfast_model::run::RunStatus;
use steadfast_model::run::machine::{self, ReopenError};
use steadfast_model::text;
use steadfast_store::{RunRow, Store, StoreError};

use super::RunContext;
use crate::cli::SayArgs;
use crate::commands::refuse_agents;
use crate::error::{CliError, code};
use crate::output::{CommandOutput, CommandResult};

const MOST_CHARS: usize = 4_000;
const MOST_WAITING: usize = 20;

pub(super) fn say(context: &RunContext, arguments: &SayArgs) -> CommandResult {
    let changes = arguments.drop || !arguments.text.is_empty();
    if changes {
        refuse_agents(&context.paths, "say")?;
    }
    let text = if arguments.text.is_empty() { None } else { Some(said(&arguments.text)?) };
    let (mut store, row) = context.find(&arguments.name)?;
    let (kind, name) = (row.plan.kind, row.plan.name.as_str());
    let done = if arguments.drop {
        let dropped = store.write(|db| db.drop_notes(&row.run_id))?;
        Some(format!("removed {}", text::count(dropped, "message")))
    } else if let Some(text) = &text {
        add(&mut store, &row.run_id, text, context)?;
        let waits = if context.is_live(&row)? {
            String::new()
        } else {
            format!("; its engine is gone: `steadfast {kind} resume {name}`")
        };
        Some(format!("the next iteration of {kind} {name} reads it{waits}"))
    } else {
        None
    };
    let notes = note_views(store.read(), &row.run_id)?;
    let lines = notes.iter().map(|note| note_line(note, row.plan.stages.len() > 1));
    let listed = || if notes.is_empty() { "nothing was said".to_owned() } else { lines.collect::<Vec<_>>().join("\n") };
    let text = done.unwrap_or_else(listed);
    Ok(CommandOutput { text, json: json!({"name": name, "kind": kind, "notes": notes}), code: 0 })
}

/// The words of the command line, or all of stdin for `-`.
fn said(words: &[String]) -> Result<String, CliError> {
    let mut text = words.join(" ");
    if text == "-" {
        text.clear();
        let most = u64::try_from(MOST_CHARS * 4 + 1).unwrap_or(u64::MAX);
        let read = std::io::stdin().lock().take(most).read_to_string(&mut text);
        read.map_err(|error| CliError::new(code::USAGE, format!("cannot read stdin: {error}"), "it must be UTF-8"))?;
    }
    let text = text::printable(&text).trim().to_owned();
    let count = text.chars().count();
    let example = "for example: say auth \"Leave the database alone\"";
    match count {
        0 => Err(CliError::new(code::USAGE, "the message is empty", example)),
        1..=MOST_CHARS => Ok(text),
        _ => {
            let message = format!("the message is longer than {MOST_CHARS} characters");
            Err(CliError::new(code::USAGE, message, "write it to a file in the project and name the file"))
        }
    }
}

/// Adds a note, unless the run has ended or too many wait.
fn add(store: &mut Store, run_id: &str, text: &str, context: &RunContext) -> Result<(), CliError> {
    let refused = store.write(|db| {
        let Some(row) = db.run(run_id)? else { return Err(StoreError::Stale) };
        let waiting = db.notes(run_id)?.iter().filter(|note| note.taken_by.is_none()).count();
        let refused = refusal(&row, waiting);
        if refused.is_none() {
            db.add_note(run_id, text, context.now)?;
        }
        Ok(refused)
    })?;
    refused.map_or(Ok(()), Err)
}

fn refusal(row: &RunRow, waiting: usize) -> Option<CliError> {
    let (kind, name, status) = (row.plan.kind, row.plan.name.as_str(), row.run.status);
    if status != RunStatus::Running {
        let reopened = machine::reopen(&row.plan, &row.run, Some(u32::MAX), row.run.started_at_ms);
        let hint = if matches!(reopened, Err(ReopenError::Completed { .. })) {
            format!("start a new run; then `steadfast {kind} say NAME \"…\"`")
        } else {
            format!("`steadfast {kind} resume {name}` continues it; then say it")
        };
        return Some(CliError::new(code::WRONG_STATE, format!("{kind} {name} is over ({status})"), hint));
    }
    (waiting >= MOST_WAITING).then(|| {
        let hint = format!("`steadfast {kind} say {name} --drop` removes them");
        CliError::new(code::WRONG_STATE, format!("{waiting} messages already wait for {kind} {name}"), hint)
    })
}
