//! `/goal pause` and the like, typed as a prompt: for the durable goal of the session if one is live, else for the
//! stated one. While the client's own goal feature has a goal, such prompts are for the client.

use crate::native;
use steadfast_model::directive::{self, Directive, Form};
use steadfast_model::hook::{HookEvent, HookInput};
use steadfast_model::memory::observation::Observation;
use steadfast_model::memory::stated::{StatedChange, StatedGoal, StatedStatus};
use steadfast_model::text;
use steadfast_store::{Db, Store, StoreError};
use steadfast_system::paths::Paths;

/// The same call as one of our commands, if it steers a live durable goal.
pub fn as_command(input: HookInput, paths: &Paths) -> HookInput {
    let Some((verb, arguments)) = prompt_of(&input).and_then(verb_of) else {
        return input;
    };
    let event = HookEvent::Command { verb: verb.to_owned(), arguments: arguments.to_owned() };
    // Ignore errors here; the handler reports them.
    let is_ours = Store::open_existing(&paths.store).and_then(|store| steers_live_goal(store.read(), &input));
    if is_ours.unwrap_or(false) { HookInput { event, ..input } } else { input }
}

fn prompt_of(input: &HookInput) -> Option<&str> {
    input.observations.iter().find_map(|seen| match seen {
        Observation::Prompt(prompt) => Some(prompt.as_str()),
        _ => None,
    })
}

/// Our command for a prompt that steers a goal, and what follows it.
fn verb_of(prompt: &str) -> Option<(&'static str, &str)> {
    let (Form::Slash, directive) = directive::read(prompt)? else {
        return None;
    };
    Some(match directive {
        Directive::State(_) => return None,
        Directive::Edit(text) => ("edit", text.unwrap_or_default()),
        Directive::Clear => ("abandon", ""),
        Directive::Pause => ("pause", ""),
        Directive::Resume => ("resume", ""),
        Directive::Status => ("status", ""),
        Directive::Done => ("complete", ""),
    })
}

fn steers_live_goal(db: Db<'_>, input: &HookInput) -> Result<bool, StoreError> {
    if !db.goal(&input.session_id)?.is_some_and(|goal| goal.status.is_live()) {
        return Ok(false);
    }
    let native = native_goal(db, input)?;
    // Claude Code makes a goal of most words after its own `/goal`; a goal made of this prompt does not count.
    let typed = prompt_of(input).and_then(|prompt| prompt.trim().get("/goal".len()..)).unwrap_or_default();
    Ok(native.is_none_or(|native| native.trim() == typed.trim()))
}

/// The objective of the client's own goal.
pub(super) fn native_goal(db: Db<'_>, input: &HookInput) -> Result<Option<String>, StoreError> {
    match &input.transcript {
        Some(transcript) => native::by_now(db, input.host, &input.session_id, transcript),
        None => native::of_session(db, &input.session_id),
    }
}

/// What a prompt did to the stated goal that held before it, in one line.
pub(super) fn outcome(
    holding: Option<&StatedGoal>,
    directive: &Directive<String>,
    change: &StatedChange,
) -> Option<String> {
    let goal = holding?;
    let (was, objective) = (goal.status, text::headline(&goal.objective, 80));
    let did = match (directive, change) {
        (Directive::Edit(None), _) => "stays (/goal edit TEXT changes it)".to_owned(),
        (Directive::Status, _) => format!("is {was}"),
        (_, StatedChange::Nothing) => format!("is {was} already"),
        (_, StatedChange::Set(new)) => {
            return Some(format!("steadfast: the goal stated in this session is changed: {}", text::headline(new, 80)));
        }
        (_, StatedChange::Move(StatedStatus::Active)) => "is active again".to_owned(),
        (_, StatedChange::Move(StatedStatus::Paused)) => "is paused".to_owned(),
        (_, StatedChange::Move(status)) => format!("is {status} and does not come back any more"),
    };
    Some(format!("steadfast: the goal stated in this session {did}: {objective}"))
}
