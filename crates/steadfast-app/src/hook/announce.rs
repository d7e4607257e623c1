//! One line for the user when the agent has changed the goal with one of our tools or in its shell: without it, the screen
//! shows only that a tool was called. The texts of the agent, the user and the project are quoted: one line each, printable and cut.

use super::{Call, HookError, batch, remember};
use crate::overview::next::SIGN_OFF;
use steadfast_model::clock::{self, Millis};
use steadfast_model::goal::event::EventKind;
use steadfast_model::goal::proof::CompletedBy;
use steadfast_model::goal::wait::WaitFor;
use steadfast_model::goal::{Goal, GoalStatus, PausedReason};
use steadfast_model::hook::{HookReply, OwnToolDone};
use steadfast_model::text;
use steadfast_store::{Db, Store, StoreError};

/// Where the events of commands in a shell come from.
const SHELL: &str = "cli";
const OBJECTIVE_SHOWN: usize = 60;
const REASON_SHOWN: usize = 120;
const COMMAND_SHOWN: usize = 60;

pub(super) fn own_tool_done(call: &Call<'_>, store: &mut Store, done: &OwnToolDone) -> Result<HookReply, HookError> {
    let line = match store.read().goal(call.session_id())? {
        Some(goal) => line(store.read(), &goal, done, call.now)?,
        None => None,
    };
    let reply = if done.is_batch { batch::batch(call, store)? } else { remember::seen(call, store)? };
    Ok(before(line.as_slice(), reply))
}

/// What the agent did to the goal by commands in its shell in the turn that ends.
pub(super) fn changed_in_shell(call: &Call<'_>, store: &Store) -> Result<Vec<String>, StoreError> {
    let db = store.read();
    let since = db.session(call.session_id())?.and_then(|session| session.activity.turn_since_ms);
    let (Some(since), Some(goal)) = (since, db.goal(call.session_id())?) else {
        return Ok(Vec::new());
    };
    // The client's turn may go on over continuations; what was before the last one is told.
    let since = goal.last_continuation_at_ms.map_or(since, |at| at.max(since));
    let mut lines = Vec::new();
    for event in db.agents_events(&goal.goal_id, SHELL, since)? {
        let tool = event.kind.parse().ok().and_then(same_tool);
        let done = tool.map(|tool| OwnToolDone { tool_name: tool.to_owned(), ..OwnToolDone::default() });
        lines.extend(done.map(|done| line(db, &goal, &done, call.now)).transpose()?.flatten());
    }
    lines.dedup();
    Ok(lines)
}

/// The tool that does what a command in the shell did; `pause` has none.
fn same_tool(kind: EventKind) -> Option<&'static str> {
    Some(match kind {
        EventKind::GoalAbandoned => "abandon_goal",
        EventKind::GoalBlocked => "update_goal",
        EventKind::GoalCreated => "create_goal",
        EventKind::GoalObjectiveUpdated => "update_objective",
        EventKind::GoalPaused => "pause",
        EventKind::GoalResumed => "resume_goal",
        EventKind::GoalWaiting => "wait_goal",
        _ => return None,
    })
}

/// A reply with these lines above its message.
pub(super) fn before(lines: &[String], reply: HookReply) -> HookReply {
    let messages: Vec<String> = lines.iter().map(|line| format!("◎ {line}")).chain(reply.message).collect();
    HookReply { message: (!messages.is_empty()).then(|| messages.join("\n")), ..reply }
}

/// What the call did to the goal; nothing if it did nothing that the user has to know.
fn line(db: Db<'_>, goal: &Goal, done: &OwnToolDone, now: Millis) -> Result<Option<String>, StoreError> {
    if let Some(refusal) = &done.refusal {
        return if done.claims_complete { completion_refused(db, goal, refusal) } else { Ok(None) };
    }
    let objective = || quoted(&goal.objective, OBJECTIVE_SHOWN);
    Ok(match (done.tool_name.as_str(), goal.status) {
        ("update_goal", GoalStatus::Complete) => Some(completed(goal)),
        ("update_goal", GoalStatus::Paused) if goal.paused_reason == Some(PausedReason::SignOff) => {
            Some(format!("the agent says that the goal is done: {}", goal.host.spell(SIGN_OFF)))
        }
        ("update_goal", GoalStatus::Blocked) => {
            let event = db.last_event(&goal.goal_id, EventKind::GoalBlocked)?;
            let reason = event.as_ref().and_then(|event| event.payload["reason"].as_str());
            Some(format!("goal blocked: {}", quoted(reason.unwrap_or("no reason given"), REASON_SHOWN)))
        }
        ("update_objective", status) if status.is_live() => {
            let event = db.last_event(&goal.goal_id, EventKind::GoalObjectiveUpdated)?;
            let old = event.as_ref().and_then(|event| event.payload["previous_objective"].as_str());
            let old = old.filter(|old| *old != goal.objective);
            old.map(|old| format!("objective changed: \"{}\" → \"{}\"", quoted(old, OBJECTIVE_SHOWN), objective()))
        }
        ("create_goal", GoalStatus::Active) => {
            let limits = if goal.limits.is_empty() { String::new() } else { format!(" ({})", goal.limits.describe()) };
            Some(format!("goal started by the agent: \"{}\"{limits}", objective()))
        }
        ("resume_goal", GoalStatus::Active) => Some("goal resumed by the agent".to_owned()),
        ("abandon_goal", GoalStatus::Abandoned) => Some(format!("goal abandoned by the agent: \"{}\"", objective())),
        ("pause", GoalStatus::Paused) => Some(format!("goal paused by the agent: \"{}\"", objective())),
        ("wait_goal", GoalStatus::Paused) if goal.paused_reason == Some(PausedReason::Waiting) => {
            Some(format!("goal waits {}", waits(goal, now)))
        }
        _ => None,
    })
}

fn completed(goal: &Goal) -> String {
    let judged = goal.completed_by == Some(CompletedBy::Evaluator);
    let mut proof = Vec::new();
    if !goal.verify.is_empty() {
        proof.push(format!("verified ({})", quoted(&goal.verify.join(", "), COMMAND_SHOWN)));
    }
    proof.extend(judged.then(|| "judged by the evaluator".to_owned()));
    let items = match i64::try_from(goal.items.len()) {
        Ok(0) | Err(_) => String::new(),
        Ok(items) => format!(", with its proof of {}", text::count(items, "item")),
    };
    if goal.is_unverified() {
        format!("goal complete (unverified): the agent's own word{items}")
    } else {
        format!("goal complete: {}{items}", proof.join(", "))
    }
}

/// The failing command, or why else the claim was refused. A mistake in the arguments is the agent's own business.
fn completion_refused(db: Db<'_>, goal: &Goal, refusal: &str) -> Result<Option<String>, StoreError> {
    let reason = refusal.trim().strip_prefix("Error: ").unwrap_or(refusal.trim());
    if reason.starts_with("argument") {
        return Ok(None);
    }
    let event = db.last_event(&goal.goal_id, EventKind::VerificationFailed)?;
    let results = event.iter().filter_map(|event| event.payload["results"].as_array()).flatten();
    let failed = results.into_iter().find(|result| result["exit_code"] != 0);
    let shown = match failed.filter(|_| reason.starts_with("verification failed")) {
        Some(result) => {
            let command = quoted(result["command"].as_str().unwrap_or_default(), COMMAND_SHOWN);
            match result["exit_code"].as_i64() {
                _ if result["timed_out"] == true => format!("`{command}` took longer than its time limit"),
                Some(code) => format!("`{command}` failed (exit {code})"),
                None => format!("`{command}` was ended by a signal"),
            }
        }
        None => quoted(reason.lines().next().unwrap_or_default(), REASON_SHOWN),
    };
    Ok(Some(format!("completion refused: {shown}")))
}

fn waits(goal: &Goal, now: Millis) -> String {
    let until = goal.wake_at_ms.map(|at| clock::to_local_short(at, now));
    let thing = match goal.wait.as_ref().map(|wait| &wait.wait_for) {
        Some(WaitFor::Command(command)) => format!("for `{}`", quoted(command, COMMAND_SHOWN)),
        Some(WaitFor::File(path)) => format!("for the file {}", quoted(path, COMMAND_SHOWN)),
        Some(WaitFor::Process { pid, .. }) => format!("for process {pid}"),
        Some(WaitFor::Time) | None => {
            return until.map_or_else(|| "for you".to_owned(), |until| format!("until {until}"));
        }
    };
    until.map_or_else(|| thing.clone(), |until| format!("{thing}, until {until} at the latest"))
}

fn quoted(text: &str, most: usize) -> String {
    text::cut(&text::one_line(text), most)
}
