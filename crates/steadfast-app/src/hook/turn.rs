//! Hooks about a turn: its end, and an interrupt.

mod words;

pub(super) use words::{limited, repeated};

use std::time::{Duration, Instant};

use serde_json::json;

use super::{Call, HookError, overtime, quota, restore, session};
use crate::accounting::{self, AccountingFacts, FileReading, UNKNOWN_PRICE};
use crate::action::{self, Place};
use crate::prompting::{self, Brief};
use crate::{native, wake};
use steadfast_hosts::adapter;
use steadfast_model::clock::Millis;
use steadfast_model::goal::change::{self, Change, Span};
use steadfast_model::goal::event::{Event, EventKind};
use steadfast_model::goal::liveness;
use steadfast_model::goal::turn::{self, Decision, Drive, TurnEnd, TurnRules};
use steadfast_model::goal::{Goal, GoalStatus};
use steadfast_model::hook::HookReply;
use steadfast_model::host::Host;
use steadfast_model::limit::Axis;
use steadfast_model::prompt::Wording;
use steadfast_model::reading::NativeGoal;
use steadfast_model::text;
use steadfast_store::{Db, Store, StoreError};
use steadfast_system::config::OnCompact;

/// The client writes its file up to a tenth of a second late; while the hook runs it keeps writing.
const LAST_MESSAGE_WAIT: Duration = Duration::from_millis(500);
const LAST_MESSAGE_STEP: Duration = Duration::from_millis(5);

pub(super) const GOAL_VANISHED: &str = "the goal vanished during its turn";
const INTERRUPTED: &str = "◎ goal interrupted: your next prompt continues it, /goal-pause stops it.";

/// The message for the user when the readings have paused the goal.
pub(super) fn pause_notice(host: Host, facts: &AccountingFacts) -> Option<String> {
    if let Some(invalid) = &facts.invalid {
        return Some(host.spell(&format!(
            "steadfast: the transcript has a malformed token field ({}), so the goal is paused (accounting_error). \
             /goal-reconcile --accept-reset moves past it.",
            invalid.field
        )));
    }
    if let Some(model) = &facts.unpriced {
        let model = if model.is_empty() { "an unnamed model" } else { model };
        return Some(host.spell(&format!(
            "⚠ steadfast: {UNKNOWN_PRICE} ({model}): the goal is paused (accounting_uncertain). \
             /goal-reconcile --accept-reset continues without its cost.",
        )));
    }
    facts.interrupted.then(|| host.spell(INTERRUPTED))
}

pub(super) fn stopped(
    call: &Call<'_>,
    store: &mut Store,
    after_continuation: bool,
    last_message: Option<&str>,
    background_work: bool,
) -> Result<HookReply, HookError> {
    let Some(goal) = store.read().goal(call.session_id())? else {
        return Ok(HookReply::default());
    };
    let open = store.read().has_open_span(&goal.goal_id)?;
    // Read nothing for a goal that is over or stopped.
    if !accounting::is_charged(&goal) && !open {
        if goal.status.is_live() {
            store.write(|db| {
                session::seen(call, db)?;
                db.end_turn(call.session_id(), background_work, call.now)?;
                end_overtime(db, goal, call)
            })?;
            return Ok(HookReply::default());
        }
        return start_queued(call, store);
    }
    let readings = match (&call.input.transcript, open) {
        (Some(transcript), true) => {
            let mut readings = accounting::read_session(store, call.host(), call.session_id(), transcript)?;
            // A client that keeps no sessions names a file that will never exist.
            if call.host().capabilities().writes_transcript_late && transcript.exists() {
                wait_for_last_message(call.host(), &mut readings, last_message)?;
            }
            readings
        }
        _ => Vec::new(),
    };
    let native_goal =
        call.input.transcript.as_deref().and_then(|file| native::live(call.host(), call.session_id(), file));
    let end = TurnEnd {
        after_continuation,
        message: last_message.map(text::fingerprint),
        background_work,
        block_cap: (adapter(call.host()).block_cap)(),
        drive: drive(call.host()),
        background_until: call.now + background_wait(call),
        ..TurnEnd::default()
    };
    let Ended { goal, decision, warnings, brief, notice } =
        store.write(|db| decide(call, db, &readings, end, native_goal.as_ref()))?;
    if notice.is_some() {
        return Ok(HookReply { message: notice, wake_at_ms: wake::moment(&goal), ..HookReply::default() });
    }
    if !goal.status.is_live() {
        return start_queued(call, store);
    }
    let block = match brief {
        Some(brief) => Some(brief.text(&goal, restore::wording(call, store.read(), &goal)?, call.now)?),
        None => None,
    };
    let message = words::message(call, &goal, decision, &warnings);
    Ok(HookReply { block, message, wake_at_ms: wake::moment(&goal), ..HookReply::default() })
}

/// What the end of a turn led to.
struct Ended {
    goal: Goal,
    decision: Decision,
    warnings: Vec<Axis>,
    /// What the model is told, if the turn goes on.
    brief: Option<Brief>,
    /// Why the readings paused the goal.
    notice: Option<String>,
}

/// Charges what is new, decides, and saves what follows.
fn decide(
    call: &Call<'_>,
    db: Db<'_>,
    readings: &[FileReading],
    end: TurnEnd,
    native_goal: Option<&NativeGoal>,
) -> Result<Ended, StoreError> {
    let goal = db.goal(call.session_id())?.ok_or_else(|| StoreError::Value(GOAL_VANISHED.into()))?;
    let session = db.session(call.session_id())?;
    let tokens_before = goal.total_tokens();
    let (mut goal, seen) = accounting::record(db, goal, readings, call.origin, call.now)?;
    session::seen(call, db)?;
    let notice = pause_notice(call.host(), &seen);
    if notice.is_some() || !accounting::is_charged(&goal) || goal.overtime.is_some() {
        db.end_turn(call.session_id(), end.background_work, call.now)?;
        if notice.is_none() {
            goal = end_final_turn(db, &goal, tokens_before, call)?;
        }
        return Ok(Ended { goal, decision: Decision::Silent, warnings: Vec::new(), brief: None, notice });
    }
    let config = &call.paths.config;
    if let Some((goal, message)) = quota::pause(call, db, &goal)? {
        db.end_turn(call.session_id(), end.background_work, call.now)?;
        let notice = Some(message);
        return Ok(Ended { goal, decision: Decision::Silent, warnings: Vec::new(), brief: None, notice });
    }
    let shared = call.shared(db)?;
    let mut warnings = Vec::new();
    if let Some((change, limits)) = turn::warn(&goal, shared, call.now) {
        goal = db.save(&goal, change, call.origin)?;
        warnings = limits;
    }
    // A turn that a wake-up began is a turn of its own for the client.
    let was_woken = goal.last_continuation_at_ms > session.as_ref().and_then(|session| session.last_prompt_ms);
    let end = TurnEnd {
        after_continuation: end.after_continuation || was_woken,
        worked: seen.worked,
        user_waits: seen.user_waits,
        native_goal: native_goal.map_or(seen.native_goal.is_some(), |goal| *goal != NativeGoal::Over),
        ..end
    };
    let rules = TurnRules {
        no_progress_limit: config.goal.no_progress_limit,
        repeated_calls_limit: config.goal.repeated_calls_limit,
        always_pause_uncertain: config.accounting.on_compact == OnCompact::Pause,
        shared,
    };
    let (change, decision) = turn::at_stop(&goal, &end, rules, call.now);
    let is_blocked = end.drive == Drive::Block && matches!(decision, Decision::Continue | Decision::WindDown(_));
    let mut brief = None;
    if let Some(mut change) = change {
        call.name_cap(&mut change);
        if !warnings.is_empty() {
            change.goal.briefed_hash = None;
        }
        if is_blocked {
            brief = Some(prompting::brief(db, &mut change.goal)?);
            // The hook at the prompt may have given up on a busy store.
            if session.is_none_or(|session| session.activity.turn_since_ms.is_none()) {
                db.begin_turn(call.session_id(), call.input.turn_id.as_deref(), call.now)?;
                liveness::settle(&mut change.goal, true, call.now, call.now);
            }
        }
        goal = db.save(&goal, change, call.origin)?;
    }
    // A turn that the client's own goal keeps going begins again with its next tool call or prompt.
    if !is_blocked {
        db.end_turn(call.session_id(), end.background_work, call.now)?;
    }
    Ok(Ended { goal, decision, warnings, brief, notice: None })
}

/// The goal of the session is over: starts the next one of its queue.
fn start_queued(call: &Call<'_>, store: &mut Store) -> Result<HookReply, HookError> {
    let session = store.read().session(call.session_id())?;
    let Some(place) = session.as_ref().map(Place::from) else {
        return Ok(HookReply::default());
    };
    let Some(goal) = action::start_next(store, &place, call.origin, call.now)? else {
        return Ok(HookReply::default());
    };
    let message = Some(format!("◎ next goal started: {}", text::headline(&goal.objective, 80)));
    if drive(call.host()) == Drive::Wake {
        return Ok(HookReply { message, ..HookReply::default() });
    }
    let (goal, brief) = store.write(|db| {
        db.begin_turn(call.session_id(), call.input.turn_id.as_deref(), call.now)?;
        let mut change = change::turn_began(&goal, false, call.now).unwrap_or_else(|| Change {
            goal: goal.clone(),
            events: Vec::new(),
            span: Span::Keep,
        });
        let brief = prompting::brief(db, &mut change.goal)?;
        Ok::<_, StoreError>((db.save(&goal, change, call.origin)?, brief))
    })?;
    let block = Some(brief.text(&goal, Wording::Quoted, call.now)?);
    Ok(HookReply { block, message, ..HookReply::default() })
}

/// The terminal client is woken, which shows one line; a block shows its whole text.
fn drive(host: Host) -> Drive {
    if (adapter(host).can_rewake)() { Drive::Wake } else { Drive::Block }
}

fn background_wait(call: &Call<'_>) -> Millis {
    Millis::try_from(call.paths.config.goal.background_wait_seconds)
        .unwrap_or(Millis::MAX / 2_000)
        .saturating_mul(1_000)
}

/// The turn that ended the goal is over: nothing more is charged to it.
pub(super) fn end_final_turn(db: Db<'_>, goal: &Goal, tokens_before: i64, call: &Call<'_>) -> Result<Goal, StoreError> {
    let tokens = goal.total_tokens() - tokens_before;
    let after = Goal { updated_at_ms: call.now, overtime: None, ..goal.clone() };
    let mut event = Event::new(EventKind::FinalTurnAccounted, json!({"tokens": tokens}));
    event.tokens_delta = Some(tokens);
    db.save(goal, Change { goal: after, events: vec![event], span: Span::Close }, call.origin)
}

/// The turn of a goal that no longer runs is over.
pub(super) fn end_overtime(db: Db<'_>, goal: Goal, call: &Call<'_>) -> Result<Goal, StoreError> {
    match turn::overtime_over(&goal, call.now) {
        Some(change) => db.save(&goal, change, call.origin),
        None => Ok(goal),
    }
}

pub(super) fn wait_for_last_message(
    host: Host,
    readings: &mut [FileReading],
    last_message: Option<&str>,
) -> Result<(), StoreError> {
    let Some(expected) = last_message.map(str::trim).filter(|text| !text.is_empty()) else {
        return Ok(());
    };
    let deadline = Instant::now() + LAST_MESSAGE_WAIT;
    loop {
        // The client joins the text blocks of a message; the last one shows that it has arrived.
        let arrived = accounting::last_text(readings).is_some_and(|text| expected.ends_with(text.trim()));
        if arrived || Instant::now() >= deadline {
            return Ok(());
        }
        std::thread::sleep(LAST_MESSAGE_STEP);
        accounting::read_on(host, readings)?;
    }
}

/// The user stopped the turn: no Stop follows, and the goal pauses. A turn of the client's own goal does not count:
/// `codex exec` ends one in this way whenever it exits.
pub(super) fn interrupted(call: &Call<'_>, store: &mut Store) -> Result<HookReply, HookError> {
    if let Some(turn_id) = &call.input.turn_id {
        store.write(|db| db.interrupt_commands(call.session_id(), turn_id, call.now))?;
    }
    if native::of_session(store.read(), call.session_id())?.is_some() {
        return Ok(HookReply::default());
    }
    let Some(readings) = readings_of_running_goal(call, store)? else {
        return Ok(HookReply::default());
    };
    let message = store.write(|db| {
        let Some((goal, seen)) = call.record(db, &readings)? else {
            return Ok(None);
        };
        session::seen(call, db)?;
        if goal.status == GoalStatus::Active {
            accounting::pause_interrupted(db, &goal, call.now, call.origin, call.now)?;
            return Ok::<_, StoreError>(Some(call.host().spell(INTERRUPTED)));
        }
        if goal.overtime.is_some() {
            db.end_turn(call.session_id(), false, call.now)?;
            let why = overtime::why(&goal);
            end_overtime(db, goal, call)?;
            return Ok(Some(format!("◎ the turn is ended: {why}.")));
        }
        Ok(pause_notice(call.host(), &seen))
    })?;
    Ok(HookReply { message, ..HookReply::default() })
}

pub(super) fn readings_of_running_goal(call: &Call<'_>, store: &Store) -> Result<Option<Vec<FileReading>>, HookError> {
    let Some(goal) = store.read().goal(call.session_id())? else {
        return Ok(None);
    };
    // The turn that ended or stopped the goal counts to it.
    let runs = accounting::is_charged(&goal) || goal.overtime.is_some() || store.read().has_open_span(&goal.goal_id)?;
    if !runs {
        return Ok(None);
    }
    match &call.input.transcript {
        Some(transcript) => Ok(Some(accounting::read_session(store, call.host(), call.session_id(), transcript)?)),
        None => Ok(Some(Vec::new())),
    }
}
