//! Gives the goal and the working state back to the model after a resume, a compaction or `/clear`, once each time.

use std::time::Duration;

use minijinja::context;

use super::session::{read_new, session_record};
use super::{Call, HookError, turn};
use crate::overview::snapshot::{Occasion, snapshot_text};
use crate::{accounting, wake};
use steadfast_hosts::Since;
use steadfast_memory::snapshot::After;
use steadfast_model::clock::Millis;
use steadfast_model::goal::change::{self, Change, Span};
use steadfast_model::goal::{Goal, liveness};
use steadfast_model::hook::{HookEvent, HookReply, StartSource};
use steadfast_model::prompt::{self, Wording};
use steadfast_model::text;
use steadfast_store::{Db, Session, Store};
use steadfast_system::config::OnCompact;

const UNCERTAIN: &str =
    "⚠ /compact event detected: token accounting is uncertain. Run /goal-reconcile --accept-reset to go on.";

/// A client may be started with a prompt, which comes first.
const FIRST_PROMPT_WAIT: Millis = 2_000;

pub(super) fn resumed(call: &Call<'_>, store: &mut Store, session: &Session) -> Result<HookReply, HookError> {
    let is_double = snapshot_injected_recently(call, store.read(), After::Resume)?;
    let wake_at_ms = store.write(|db| {
        let known = db.session(call.session_id())?;
        db.put_session(session)?;
        if is_double {
            db.note_injection(call.session_id(), DOUBLE_START, call.now)?;
        }
        let Some(mut goal) = db.goal(call.session_id())? else {
            return Ok::<_, HookError>(None);
        };
        // A goal from before the upgrade was last seen when it was last written.
        let last_seen = known.map_or(goal.updated_at_ms, |session| session.last_seen_ms);
        // A client that was killed left its turn open.
        db.end_turn(call.session_id(), false, call.now)?;
        if let Some(mut change) = change::session_resumed(&goal, last_seen.min(call.now), call.now) {
            liveness::settle(&mut change.goal, false, call.now + FIRST_PROMPT_WAIT, call.now);
            goal = db.save(&goal, change, call.origin)?;
        }
        Ok(wake::moment(&goal))
    })?;
    let reply = if is_double { HookReply::default() } else { inject_snapshot(call, store, After::Resume)? };
    Ok(HookReply { wake_at_ms, ..reply })
}

pub(super) fn compacted(call: &Call<'_>, store: &mut Store, session: &Session) -> Result<HookReply, HookError> {
    let readings = read_new(call, store)?.unwrap_or_default();
    let is_double = snapshot_injected_recently(call, store.read(), After::Compaction)?;
    let message = store.write(|db| {
        db.put_session(session)?;
        let recorded = call.record(db, &readings)?;
        db.note_compaction(call.session_id(), call.now)?;
        if is_double {
            db.note_injection(call.session_id(), DOUBLE_START, call.now)?;
            return Ok::<_, HookError>(None);
        }
        match recorded.filter(|(goal, _)| goal.status.is_live()) {
            Some((goal, facts)) => {
                let goal = brief_anew(call, db, &goal)?;
                after_compaction(call, db, &goal, &facts)
            }
            None => Ok(None),
        }
    })?;
    if is_double {
        return Ok(HookReply::default());
    }
    // Reads the session's files, so outside the transaction.
    Ok(HookReply { message, ..inject_snapshot(call, store, After::Compaction)? })
}

/// The model lost what it was told. A goal whose user typed `/compact` has no turn running, and is woken.
fn brief_anew(call: &Call<'_>, db: Db<'_>, goal: &Goal) -> Result<Goal, HookError> {
    let turn_runs = db.session(call.session_id())?.is_some_and(|session| session.activity.turn_since_ms.is_some());
    let mut after = Goal { briefed_hash: None, ..goal.clone() };
    liveness::settle(&mut after, turn_runs, call.now, call.now);
    if after == *goal {
        return Ok(after);
    }
    after.updated_at_ms = call.now;
    Ok(db.save(goal, Change { goal: after, events: Vec::new(), span: Span::Keep }, call.origin)?)
}

/// Flags the accounting of the goal after a compaction, if needed. Returns the message for the user.
fn after_compaction(
    call: &Call<'_>,
    db: Db<'_>,
    goal: &Goal,
    facts: &accounting::AccountingFacts,
) -> Result<Option<String>, HookError> {
    let always = call.paths.config.accounting.on_compact == OnCompact::Pause;
    let flags_now = always && accounting::is_charged(goal) && !goal.accounting_uncertain;
    if flags_now {
        accounting::flag_uncertain(db, goal, "compact", call.origin, call.now)?;
    }
    if flags_now || facts.became_uncertain {
        return Ok(Some(call.host().spell(UNCERTAIN)));
    }
    Ok(turn::pause_notice(call.host(), facts))
}

/// Recorded for a start without an injection, because its counterpart had one. The next start injects again.
const DOUBLE_START: &str = "double_start";
/// Two starts of one kind of event are never further apart.
const SAME_START: i64 = 60_000;

/// Whether the model still has a snapshot: a client may announce one start twice, as resumed (or forked) and as
/// compacted. Reads the session's file, so call it before the transaction that records this start.
fn snapshot_injected_recently(call: &Call<'_>, db: Db<'_>, after: After) -> Result<bool, HookError> {
    let Some(snapshot) = db.snapshot(call.session_id())? else {
        return Ok(false);
    };
    let counterparts: &[After] = match after {
        After::Compaction => &[After::Resume, After::Fork],
        After::Resume => &[After::Compaction],
        After::Fork | After::Clear => &[],
    };
    let by_counterpart = counterparts.iter().any(|other| snapshot.injected_by.as_deref() == Some((*other).into()));
    let Some(at) = snapshot.injected_at_ms.filter(|at| by_counterpart && call.now - at < SAME_START) else {
        return Ok(false);
    };
    let Some(known) = db.session(call.session_id())? else {
        return Ok(false);
    };
    let client = session_record(call).client;
    let same_process = known.client.is_none() || client.is_none() || known.client == client;
    let newest = db.newest_event_ms(call.session_id())?;
    let nothing_since =
        [Some(known.last_seen_ms), newest, snapshot.compacting_at_ms].into_iter().flatten().all(|moment| moment <= at);
    let file = call.input.transcript.as_deref();
    let worked = || file.is_some_and(|file| steadfast_hosts::worked_since(call.host(), file, at));
    Ok(same_process && nothing_since && !worked())
}

/// Records activity after an injection, so that the next start injects again. One write after each injection is enough;
/// most hooks only read one row here.
pub(super) fn note_activity(call: &Call<'_>, store: &mut Store) -> Result<(), HookError> {
    let Some(at) = store.read().injected_at(call.session_id())?.filter(|at| call.now - at < SAME_START) else {
        return Ok(());
    };
    let seen = store.read().session(call.session_id())?.map(|session| session.last_seen_ms);
    if seen.is_some_and(|seen| seen <= at) {
        store.write(|db| db.touch_session(call.session_id(), call.now.max(at + 1)))?;
    }
    Ok(())
}

/// Gives the model the snapshot of its session.
fn inject_snapshot(call: &Call<'_>, store: &mut Store, after: After) -> Result<HookReply, HookError> {
    let text = snapshot_text(store.read(), call.session_id(), &occasion(call, after))?;
    if text.is_empty() {
        return Ok(HookReply::default());
    }
    store.write(|db| {
        db.put_snapshot(call.session_id(), &text, call.now)?;
        db.note_injection(call.session_id(), after.into(), call.now)
    })?;
    Ok(HookReply { context: Some(text), ..HookReply::default() })
}

/// What the model gets after a start that could not be recorded: a compaction takes its goal away whatever the store or
/// its disk is like, and reading may still work.
pub(super) fn context_despite_error(call: &Call<'_>) -> Option<String> {
    let after = match call.input.event {
        HookEvent::SessionStart(StartSource::Compact) => After::Compaction,
        HookEvent::SessionStart(StartSource::Resume) => After::Resume,
        _ => return None,
    };
    let store = Store::open_migrated_within(&call.paths.store, Duration::ZERO).ok()?;
    let text = snapshot_text(store.read(), call.session_id(), &occasion(call, after)).ok()?;
    Some(text).filter(|text| !text.is_empty())
}

fn occasion<'a>(call: &'a Call<'_>, after: After) -> Occasion<'a> {
    Occasion { host: call.host(), after, conversation: call.input.transcript.as_deref(), elsewhere: false }
}

/// Describes the session before `/clear`, or the one this session was forked from, and how to adopt its goal.
pub(super) fn offer(call: &Call<'_>, store: &mut Store, parent: &str, after: After) -> Result<HookReply, HookError> {
    let goal = live_goal(store.read(), parent)?;
    let text = snapshot_text(store.read(), parent, &Occasion { elsewhere: true, ..occasion(call, after) })?;
    let message = goal.map(|goal| adoption_hint(call, &goal, after));
    if text.is_empty() {
        return Ok(HookReply { message, ..HookReply::default() });
    }
    // The text belongs to the other session and is deleted with it, so it is not stored here.
    store.write(|db| db.note_injection(call.session_id(), after.into(), call.now))?;
    Ok(HookReply { context: Some(text), message, ..HookReply::default() })
}

pub(super) fn adoption_hint(call: &Call<'_>, goal: &Goal, after: After) -> String {
    let when = if after == After::Clear { "before /clear" } else { "this one was forked from" };
    let objective = text::headline(&goal.objective, 80);
    format!(
        "steadfast: the session {when} has a goal ({}): {objective}\n{} takes it over here.",
        goal.status,
        adopting(call, goal)
    )
}

/// Cancels the instructions about the parent's goal that a fork has in its conversation.
pub(super) fn not_of_this_session(call: &Call<'_>, goal: &Goal) -> Result<String, HookError> {
    let adopt = adopting(call, goal);
    Ok(prompt::render(include_str!("../../prompts/forked_goal.md"), context! { adopt })?)
}

/// The command that adopts a goal.
fn adopting(call: &Call<'_>, goal: &Goal) -> String {
    let id: String = goal.goal_id.chars().take(8).collect();
    call.host().spell(&format!("/goal-adopt {id}"))
}

pub(super) fn live_goal(db: Db<'_>, session_id: &str) -> Result<Option<Goal>, HookError> {
    Ok(db.goal(session_id)?.filter(|goal| goal.status.is_live()))
}

/// Whether a prompt must quote the objective. It need not if the objective was stated in a prompt that the client
/// keeps in the conversation.
pub(super) fn wording(call: &Call<'_>, db: Db<'_>, goal: &Goal) -> Result<Wording, HookError> {
    let Some(file) =
        call.input.transcript.as_deref().filter(|_| call.host().capabilities().keeps_prompts_in_compaction)
    else {
        return Ok(Wording::Quoted);
    };
    let stated = db.stated_goal(call.session_id())?.is_some_and(|stated| stated.says(&goal.objective));
    let kept = stated && steadfast_hosts::holds_text(call.host(), file, &goal.objective, Since::Resume);
    Ok(if kept { Wording::InConversation } else { Wording::Quoted })
}

/// Records everything that is new, and stores the snapshot of this moment.
pub(super) fn before_compaction(call: &Call<'_>, store: &mut Store) -> Result<HookReply, HookError> {
    let readings = read_new(call, store)?;
    if let Some(readings) = &readings {
        store.write(|db| call.record(db, readings))?;
    }
    let text = snapshot_text(store.read(), call.session_id(), &occasion(call, After::Compaction))?;
    let file = call.input.transcript.as_deref();
    let bytes = file.and_then(|file| fs_err::metadata(file).ok()).and_then(|file| i64::try_from(file.len()).ok());
    store.write(|db| {
        if let Some(file) = file.filter(|_| readings.is_some()) {
            call.update_cursor(db, file, |cursor| cursor.read_before_compaction = true)?;
        }
        db.put_snapshot_before_compaction(call.session_id(), &text, bytes, call.now)?;
        Ok::<_, HookError>(HookReply::default())
    })
}
