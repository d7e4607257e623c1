//! `fleet approve`, `reject` and `say`: what a person tells a run, as signals.

use serde_json::json;
use steadfast_model::run::{Plan, Run, StageStatus};

use super::Here;
use crate::cli::FleetAnswerArgs;
use crate::output::{CommandError, CommandResult, Output, code};
use crate::wire::Answer;

const MOST_CHARS: usize = 4_000;

pub(super) async fn answer(here: &Here, arguments: &FleetAnswerArgs, approved: bool) -> CommandResult {
    let found = here.find_run(&arguments.run).await?;
    let name = arguments.run.name.as_str();
    let is_live = found.is_live();
    let Some((fleet, _)) = found.server.filter(|_| is_live) else {
        let hint = format!("`steadfast fleet resume {name}` continues it; then answer");
        return Err(CommandError::new(code::WRONG_STATE, format!("run {name} is over"), hint));
    };
    let (plan, run) = (&found.directory.plan, &found.directory.state.run);
    let stage = waiting_stage(plan, run, name, arguments.stage.as_deref())?;
    fleet.answer(name, Answer { stage, approved, note: arguments.note.clone() }).await?;
    let stage_name = plan.stage(stage).map_or("?", |stage| stage.name.as_str());
    let done = if approved { "approved" } else { "rejected" };
    Output::new(
        format!("stage {stage_name} of {name} {done}"),
        json!({"name": name, "stage": stage, "stage_name": stage_name, "approved": approved, "note": arguments.note}),
    )
}

/// The stage that waits for an answer, by name, number, or as the only one.
fn waiting_stage(plan: &Plan, run: &Run, name: &str, given: Option<&str>) -> Result<u32, CommandError> {
    let waits =
        |stage: &u32| run.stage_state(*stage).is_some_and(|state| state.status == StageStatus::AwaitingApproval);
    let numbers: Vec<u32> = (1..).zip(&plan.stages).map(|(number, _)| number).collect();
    let waiting: Vec<u32> = numbers.iter().copied().filter(waits).collect();
    let named = |given: &str| {
        let of_name = (1..).zip(&plan.stages).find(|(_, stage)| stage.name == given).map(|(number, _)| number);
        of_name.or_else(|| given.parse().ok().filter(|number| numbers.contains(number)))
    };
    match (given, waiting.as_slice()) {
        (Some(given), _) => match named(given) {
            Some(stage) if waiting.contains(&stage) => Ok(stage),
            Some(_) => {
                let hint = format!("`steadfast fleet status {name}` shows what waits");
                Err(CommandError::new(code::WRONG_STATE, format!("stage {given} of {name} waits for no answer"), hint))
            }
            None => {
                let hint = format!("`steadfast fleet status {name}` lists the stages");
                Err(CommandError::new(code::NOT_FOUND, format!("run {name} has no stage {given}"), hint))
            }
        },
        (None, [only]) => Ok(*only),
        (None, []) => {
            let hint = format!("`steadfast fleet status {name}` shows where it is");
            Err(CommandError::new(code::WRONG_STATE, format!("no stage of {name} waits for an answer"), hint))
        }
        (None, several) => {
            let message = format!("{} stages of {name} wait for an answer", several.len());
            Err(CommandError::new(code::USAGE, message, format!("name one: approve {name} STAGE")))
        }
    }
}

pub(super) async fn say(here: &Here, name: &str, text: &str) -> CommandResult {
    let text = text.trim();
    let count = text.chars().count();
    if count == 0 || count > MOST_CHARS {
        let message = if count == 0 {
            "the message is empty".to_owned()
        } else {
            format!("the message is longer than {MOST_CHARS} characters")
        };
        return Err(CommandError::new(code::USAGE, message, "for example: say auth \"Leave the database alone\""));
    }
    here.connect().await?.say(name, text).await?;
    Output::new(format!("the next iteration of {name} reads it"), json!({"name": name, "text": text}))
}
