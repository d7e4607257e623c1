//! Commands that a person typed into a client: what was true before, whether this call carries them out, and the reply.
//! Most commands need no model, so the answer blocks the prompt. In the middle of a turn a block would end the turn, so
//! the prompt goes through, and the model is told to continue. A command after which the goal moves also goes through,
//! where no background hook begins the next turn.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::HookError;
use crate::{prompting, wake};
use steadfast_hosts::adapter;
use steadfast_model::clock::{self, Millis};
use steadfast_model::goal::{Goal, GoalStatus};
use steadfast_model::hook::{HookInput, HookReply, TypedCommand};
use steadfast_model::prompt::{self, Wording};
use steadfast_model::text;
use steadfast_store::{Store, StoreError, TextClaim, TypedText};
use steadfast_system::paths::Paths;

/// How long a repeated call waits for the reply of the first one.
const REPLY_WAIT: Duration = Duration::from_secs(3);
const REPLY_STEP: Duration = Duration::from_millis(50);
const DONE_BEFORE: &str = "this command was carried out before you interrupted the turn";
/// Commands that may run again: the answer is that of the moment.
const READ_ONLY: [&str; 4] = ["status", "history", "report", "doctor"];
/// Where the events of typed commands come from.
pub const PLACE: &str = "slash-command";

/// What is known before the commands of a prompt are carried out.
pub struct Typed<'a> {
    input: &'a HookInput,
    prompt: Option<TypedText>,
    goal: Option<Goal>,
    in_turn: bool,
    /// A background hook begins the next turn of an idle client.
    is_woken: bool,
    now: Millis,
}

/// What the commands of a prompt answered.
pub struct Answered<'a> {
    pub verbs: Vec<&'a str>,
    pub text: String,
    /// The prompt has more than commands.
    pub other_text: bool,
    /// The user asked an active goal to continue.
    pub asked_to_continue: bool,
}

/// Claims the commands of a prompt for this call. A repeated call gets the reply of the first one instead.
pub fn claim<'a>(
    input: &'a HookInput,
    commands: &[TypedCommand],
    paths: &Paths,
    now: Millis,
) -> Result<Result<Typed<'a>, HookReply>, HookError> {
    let prompt = typed_text(input, &format!("prompt {commands:?}"));
    let mut store = Store::open(&paths.store)?;
    if let Some(prompt) = &prompt
        && let TextClaim::Repeated(reply) = store.write(|db| db.claim_text(prompt, now))?
    {
        return Ok(Err(reply_of_first(&store, prompt, reply, now)?));
    }
    let db = store.read();
    let running = db.session(&input.session_id)?.and_then(|session| session.activity.turn_id);
    let in_turn = running.is_some() && running == input.turn_id;
    let is_woken = (adapter(input.host).can_rewake)();
    Ok(Ok(Typed { input, prompt, goal: db.goal(&input.session_id)?, in_turn, is_woken, now }))
}

/// Hosts that name no turns repeat no calls.
fn typed_text(input: &HookInput, text: &str) -> Option<TypedText> {
    let turn_id = input.turn_id.clone()?;
    Some(TypedText { session_id: input.session_id.clone(), turn_id, text_hash: text::fingerprint(text) })
}

fn reply_of_first(
    store: &Store,
    prompt: &TypedText,
    mut reply: Option<String>,
    now: Millis,
) -> Result<HookReply, HookError> {
    let deadline = Instant::now() + REPLY_WAIT;
    while reply.is_none() && Instant::now() < deadline {
        std::thread::sleep(REPLY_STEP);
        reply = store.read().reply_to(prompt, now)?.flatten();
    }
    let kept: Value = reply.and_then(|reply| serde_json::from_slice(reply.as_bytes()).ok()).unwrap_or_default();
    let part = |name: &str| kept[name].as_str().map(str::to_owned);
    Ok(HookReply { block: part("block"), context: part("context"), message: part("message"), ..HookReply::default() })
}

impl Typed<'_> {
    /// Whether the goal is active while no turn runs and no background hook begins one: the user's word does.
    pub fn waits_for_user(&self) -> bool {
        let active = self.goal.as_ref().is_some_and(|goal| goal.status == GoalStatus::Active);
        active && !self.in_turn && !self.is_woken
    }

    /// Runs a command and returns its answer, unless a turn that was interrupted ran it already: Esc cuts off the hook of a
    /// pending prompt and sends the prompt again.
    pub fn run_once(
        &self,
        command: &TypedCommand,
        paths: &Paths,
        run: impl FnOnce() -> String,
    ) -> Result<String, HookError> {
        let text = typed_text(self.input, &format!("command {command:?}"));
        let Some(text) = text.filter(|_| !READ_ONLY.contains(&command.verb.as_str())) else {
            return Ok(run());
        };
        let mut store = Store::open(&paths.store)?;
        let done = store.write(|db| {
            let now = clock::now();
            let Some(earlier) = db.take_sent_again(&text, now)? else {
                db.begin_text(&text, now)?;
                return Ok(None);
            };
            let was_done = match earlier.reply {
                Some(reply) => return Ok(Some(reply)),
                None => db.has_command_event(&text.session_id, PLACE, earlier.created_at_ms)?,
            };
            Ok::<_, StoreError>(was_done.then(|| DONE_BEFORE.to_owned()))
        })?;
        if let Some(answer) = done {
            return Ok(answer);
        }
        let answer = run();
        store.write(|db| db.keep_reply(&text, &answer, clock::now()))?;
        Ok(answer)
    }

    /// Decides the reply after the commands were carried out.
    pub fn reply(&self, answered: &Answered<'_>, paths: &Paths) -> Result<HookReply, HookError> {
        let mut store = Store::open(&paths.store)?;
        store.write(|db| {
            let goal = db.goal(&self.input.session_id)?;
            let work = self.work(answered, goal.as_ref())?;
            if let (Some(goal), Some(_)) = (&goal, &work) {
                prompting::note_briefed(db, goal, self.now)?;
            }
            let reply = self.decide(answered, goal.as_ref(), work)?;
            if let Some(prompt) = &self.prompt {
                let kept = json!({"block": reply.block, "context": reply.context, "message": reply.message});
                db.keep_reply(prompt, &kept.to_string(), clock::now())?;
            }
            Ok(reply)
        })
    }

    fn decide(
        &self,
        answered: &Answered<'_>,
        after: Option<&Goal>,
        work: Option<String>,
    ) -> Result<HookReply, HookError> {
        let wake_at_ms = after.and_then(wake::moment);
        if !self.in_turn && !answered.other_text {
            return Ok(match work {
                Some(work) => HookReply {
                    context: Some(work),
                    message: Some(continues_now(&answered.text)),
                    ..HookReply::default()
                },
                None => HookReply { block: Some(answered.text.clone()), wake_at_ms, ..HookReply::default() },
            });
        }
        let was_active = self.goal.as_ref().is_some_and(|goal| goal.status == GoalStatus::Active);
        let stopped = after.filter(|goal| was_active && goal.status != GoalStatus::Active);
        let note = prompt::answered(self.input.host, &answered.verbs, stopped, answered.other_text)?;
        let context = work.map_or(note.clone(), |work| format!("{note}\n\n{work}"));
        Ok(HookReply { context: Some(context), message: Some(answered.text.clone()), ..HookReply::default() })
    }

    /// What the model has to know, if the commands made the goal move.
    fn work(&self, answered: &Answered<'_>, after: Option<&Goal>) -> Result<Option<String>, HookError> {
        let Some(after) = after.filter(|goal| goal.status == GoalStatus::Active) else {
            return Ok(None);
        };
        let before = self.goal.as_ref().filter(|goal| goal.goal_id == after.goal_id);
        // The end of a goal may have started the next one of the queue, which is woken.
        let gives_work = answered.verbs.iter().any(|verb| matches!(*verb, "start" | "adopt"));
        Ok(match before {
            None if self.is_woken && !gives_work => None,
            None if after.created_at_ms >= self.now => Some(prompt::started(after, Wording::Quoted)?),
            None => Some(prompt::restore(after, ", taken over from another session", self.now)?),
            Some(before) if before.objective != after.objective => {
                Some(prompt::restore(after, "; the user has just changed its objective", self.now)?)
            }
            Some(before) => {
                let moved = before.status != GoalStatus::Active || answered.asked_to_continue;
                let continues = moved && !self.is_woken;
                continues.then(|| prompt::continuation(after, Wording::Quoted, &[], self.now)).transpose()?
            }
        })
    }
}

/// The answer with what comes next as it is once the prompt goes through.
fn continues_now(text: &str) -> String {
    let lines = text.lines().map(|line| if line.starts_with("next: ") { "next: continues now" } else { line });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests;
