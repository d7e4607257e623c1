//! `approve` and `reject`: a person's answer to a stage that waits for one. The answer is stored, and the engine reads
//! it; if the engine is gone, the one that resumes the run does.

use serde_json::json;
use steadfast_engine::observer::{Observer, SavedStep};
use steadfast_model::run::{Record, RunStatus, StageStatus};
use steadfast_model::text;
use steadfast_store::{ApprovalRow, Db, RunRow, Store, StoreError};
use steadfast_system::paths::Paths;

use super::RunContext;
use crate::cli::AnswerArgs;
use crate::commands::refuse_agents;
use crate::error::{CliError, code};
use crate::outbox::{self, Audience};
use crate::output::{CommandOutput, CommandResult};

const MOST_NOTE_CHARS: usize = 4_000;

pub(in crate::commands) fn answer(context: &RunContext, arguments: &AnswerArgs, approved: bool) -> CommandResult {
    refuse_agents(&context.paths, if approved { "approve" } else { "reject" })?;
    let note = arguments.note.as_deref().map(note).transpose()?;
    let (mut store, row) = context.find(&arguments.name)?;
    let stage = arguments.stage.as_deref();
    let decided = store.write(|db| {
        let row = db.run(&row.run_id)?.ok_or(StoreError::Stale)?;
        decide(db, &row, stage, approved, note.as_deref(), context.now)
    })?;
    let (number, is_new) = decided?;
    let (kind, name) = (row.plan.kind, &row.plan.name);
    let stage = name_of(&row, number);
    let verb = if approved { "approved" } else { "rejected" };
    let resume = if context.is_live(&row)? || !is_new {
        String::new()
    } else {
        format!("; its engine is gone: `steadfast {kind} resume {name}`")
    };
    let was = if is_new { "" } else { " before" };
    let text = format!("{verb} stage {stage} of {kind} {name}{was}{resume}");
    let json = json!({"name": name, "kind": kind, "stage": number, "stage_name": stage, "approved": approved, "changed": is_new});
    Ok(CommandOutput { text, json, code: 0 })
}

fn note(text: &str) -> Result<String, CliError> {
    let text = text::printable(text).trim().to_owned();
    if text.chars().count() > MOST_NOTE_CHARS {
        let message = format!("the note is longer than {MOST_NOTE_CHARS} characters");
        return Err(CliError::new(code::USAGE, message, "make it shorter"));
    }
    Ok(text)
}

/// The number of the stage, and whether the answer is new.
type Decided = Result<(u32, bool), CliError>;

/// Stores the answer, unless an engine has taken another one.
fn decide(
    db: Db<'_>,
    row: &RunRow,
    stage: Option<&str>,
    approved: bool,
    note: Option<&str>,
    now: i64,
) -> Result<Decided, StoreError> {
    let number = match chosen(row, stage) {
        Ok(number) => number,
        Err(refused) => return Ok(Err(refused)),
    };
    let is_waiting = waiting(row).any(|stage| stage == number);
    if is_waiting && db.answer_approval(&row.run_id, number, approved, note, now)? {
        return Ok(Ok((number, true)));
    }
    let asked = db.approvals(&row.run_id)?.into_iter().find(|asked| asked.stage == number);
    Ok(answered_before(row, number, asked.as_ref(), approved).map(|()| (number, false)))
}

/// Whether the same answer was given before; otherwise an error that says what happened.
fn answered_before(row: &RunRow, stage: u32, asked: Option<&ApprovalRow>, approved: bool) -> Result<(), CliError> {
    let (kind, name, stage) = (row.plan.kind, &row.plan.name, name_of(row, stage));
    let hint = format!("`steadfast {kind} status {name}` shows what waits");
    match asked.and_then(|asked| asked.approved) {
        Some(answer) if answer == approved => Ok(()),
        Some(answer) => {
            let verb = if answer { "approved" } else { "rejected" };
            let message = format!("stage {stage} of {kind} {name} was {verb}, and the run has acted on it");
            let hint = if answer { format!("`steadfast {kind} kill {name}` ends the run") } else { hint };
            Err(CliError::new(code::WRONG_STATE, message, hint))
        }
        None if row.run.status != RunStatus::Running => {
            let message = format!("{kind} {name} is over ({})", row.run.status);
            Err(CliError::new(code::WRONG_STATE, message, format!("`steadfast {kind} resume {name}` asks again")))
        }
        None => {
            Err(CliError::new(code::WRONG_STATE, format!("stage {stage} of {kind} {name} waits for no answer"), hint))
        }
    }
}

fn name_of(row: &RunRow, stage: u32) -> &str {
    row.plan.stage(stage).map_or("?", |stage| stage.name.as_str())
}

/// The stages that wait for an answer, by number.
fn waiting(row: &RunRow) -> impl Iterator<Item = u32> + '_ {
    let is_running = row.run.status == RunStatus::Running;
    let stages = (1_u32..).zip(&row.run.stages);
    stages
        .filter(move |(_, stage)| is_running && stage.status == StageStatus::AwaitingApproval)
        .map(|(number, _)| number)
}

/// The stage that a word means: a name, a number, or nothing if one stage waits.
fn chosen(row: &RunRow, stage: Option<&str>) -> Result<u32, CliError> {
    let (kind, name) = (row.plan.kind, &row.plan.name);
    let Some(word) = stage else {
        let waiting: Vec<u32> = waiting(row).collect();
        return match waiting.as_slice() {
            [only] => Ok(*only),
            [] => {
                let message = format!("no stage of {kind} {name} waits for an answer");
                let hint = format!("`steadfast {kind} status {name}` shows its stages");
                Err(CliError::new(code::WRONG_STATE, message, hint))
            }
            several => {
                let words: Vec<&str> = several.iter().map(|stage| name_of(row, *stage)).collect();
                let message = format!("{} stages of {kind} {name} wait for an answer", several.len());
                Err(CliError::new(code::WRONG_STATE, message, format!("name one of them: {}", words.join(", "))))
            }
        };
    };
    let stages = || (1_u32..).zip(&row.plan.stages);
    let by_name = stages().find(|(_, stage)| stage.name == word).map(|(number, _)| number);
    let by_number = || word.parse().ok().filter(|number| row.plan.stage(*number).is_some());
    by_name.or_else(by_number).ok_or_else(|| {
        let words: Vec<&str> = stages().map(|(_, stage)| stage.name.as_str()).take(20).collect();
        let message = format!("{kind} {name} has no stage {}", text::headline(word, 60));
        CliError::new(code::NOT_FOUND, message, format!("its stages: {}", words.join(", ")))
    })
}

/// Sends the message about a question as soon as it is saved, and one that an engine left when it died.
pub(super) struct Messenger<'a> {
    pub(super) paths: &'a Paths,
}

impl Observer for Messenger<'_> {
    fn saved(&mut self, step: &SavedStep<'_>, _notes: &mut Vec<String>) {
        let asks = |record: &Record| matches!(record, Record::ApprovalAsked { .. });
        let is_first = step.records.is_empty();
        if (is_first || step.records.iter().any(asks))
            && step.plan.stages.iter().any(|stage| stage.approve.is_some())
            && let Ok(mut store) = Store::open_existing(&self.paths.store)
        {
            outbox::send(self.paths, &mut store, Audience::Away);
        }
    }
}
