//! Hooks about the session itself: start, end and prompts.

use serde_json::json;
use steadfast_hosts::adapter;

use super::{Call, HookError, remember, restore, turn};
use crate::accounting::{self, FileReading};
use crate::action;
use steadfast_memory::snapshot::After;
use steadfast_model::goal::change::{self, Change, Span};
use steadfast_model::goal::event::{Event, EventKind};
use steadfast_model::goal::{Goal, GoalStatus};
use steadfast_model::hook::{HookReply, StartSource};
use steadfast_model::text;
use steadfast_store::{Db, ParentLink, Session, Store, StoreError};
use steadfast_system::process::{self, ProcessId};

/// What this hook call tells about its session.
pub(super) fn session_record(call: &Call<'_>) -> Session {
    Session {
        session_id: call.session_id().to_owned(),
        host: call.host(),
        cwd: call.input.cwd.clone(),
        project_dir: call.input.project_dir.clone(),
        transcript_path: call
            .input
            .transcript
            .as_ref()
            .map(|path| path.to_string_lossy().into_owned())
            .unwrap_or_default(),
        client: process::client_of_hook(),
        parent_session_id: None,
        parent_link: None,
        last_prompt_ms: None,
        started_at_ms: call.now,
        last_seen_ms: call.now,
        ended_at_ms: None,
        end_reason: None,
    }
}

pub(super) fn started(call: &Call<'_>, store: &mut Store, source: StartSource) -> Result<HookReply, HookError> {
    let mut session = session_record(call);
    let source = if is_unannounced_fork(call, store, source)? { StartSource::Fork } else { source };
    match source {
        StartSource::Clear => {
            let parent = session_before_clear(call, store, &session)?;
            if let Some(parent) = parent.as_ref().filter(|_| !call.host().capabilities().announces_clear_end) {
                leave(call, store, parent)?;
            }
            session.parent_session_id = parent.map(|parent| parent.session_id);
            session.parent_link = session.parent_session_id.as_ref().map(|_| ParentLink::Clear);
        }
        StartSource::Fork => {
            session.parent_session_id = parent_in_file(call);
            session.parent_link = session.parent_session_id.as_ref().map(|_| ParentLink::Fork);
        }
        StartSource::Startup | StartSource::Resume | StartSource::Compact => {}
    }
    match source {
        // The fork was announced under its parent's id, whose file names no other session.
        StartSource::Fork if !call.host().capabilities().announces_forks && session.parent_session_id.is_none() => {
            return restore::resumed(call, store, &session);
        }
        StartSource::Resume => return restore::resumed(call, store, &session),
        StartSource::Compact => return restore::compacted(call, store, &session),
        StartSource::Startup | StartSource::Clear | StartSource::Fork => {}
    }
    if source == StartSource::Startup {
        return begin(call, store, &session);
    }
    store.write(|db| db.put_session(&session))?;
    match (source, &session.parent_session_id) {
        (StartSource::Clear, Some(parent)) => restore::offer(call, store, parent, After::Clear),
        (_, Some(parent)) => restore::offer(call, store, parent, After::Fork),
        (_, None) => Ok(HookReply::default()),
    }
}

/// Whether a resumed session is a fork: a host that does not announce forks resumes the copy like any other session.
fn is_unannounced_fork(call: &Call<'_>, store: &Store, source: StartSource) -> Result<bool, HookError> {
    let may_be = source == StartSource::Resume && !call.host().capabilities().announces_forks;
    Ok(may_be && store.read().session(call.session_id())?.is_none() && parent_in_file(call).is_some())
}

fn session_before_clear(call: &Call<'_>, store: &Store, session: &Session) -> Result<Option<Session>, HookError> {
    /// The client starts the new session right after the old one's end.
    const RIGHT_AFTER: i64 = 30_000;
    let left = store.read().sessions_left_by_clear(call.session_id(), call.now - RIGHT_AFTER)?;
    Ok(left_for(session, left, store.read().open_sessions()?))
}

/// The session that was left by `/clear` for this one. A client may run several at once, so it is the one that said
/// so, in this place; where clients do not say it, the only other one that it can be. Nobody guesses.
fn left_for(session: &Session, mut left: Vec<Session>, mut open: Vec<Session>) -> Option<Session> {
    let is_near = |other: &Session| {
        let here = [&session.cwd, &session.project_dir].contains(&&other.project_dir) || other.cwd == session.cwd;
        other.host == session.host && other.session_id != session.session_id && here
    };
    left.retain(|other| is_near(other) && (session.client.is_none() || other.client == session.client));
    if left.is_empty() {
        open.retain(|other| is_near(other) && session.client.is_some() && other.client == session.client);
        left = open;
    }
    left.pop().filter(|_| left.is_empty())
}

/// A new session is the time to let go of those that nobody came back to. Looking for them takes long where much is
/// remembered, so that happens before anybody has to wait.
fn begin(call: &Call<'_>, store: &mut Store, session: &Session) -> Result<HookReply, HookError> {
    let days = call.paths.config.memory.retention_days;
    let old = store.read().old_sessions(call.now, days)?;
    store.write(|db| {
        db.put_session(session)?;
        db.forget_old(&old, call.now, days)
    })?;
    Ok(HookReply::default())
}

/// The client moved on from a session without telling that it ended.
fn leave(call: &Call<'_>, store: &mut Store, session: &Session) -> Result<(), HookError> {
    if let Some(goal) = store.read().goal(&session.session_id)? {
        action::refresh(store, &goal, call.origin, call.now)?;
    }
    end_session(call, store, session.clone(), "clear")
}

pub(super) fn ended(call: &Call<'_>, store: &mut Store, reason: &str) -> Result<HookReply, HookError> {
    if let Some(goal) = store.read().goal(call.session_id())? {
        action::refresh(store, &goal, call.origin, call.now)?;
    }
    end_session(call, store, session_record(call), reason)?;
    Ok(HookReply::default())
}

fn end_session(call: &Call<'_>, store: &mut Store, mut session: Session, reason: &str) -> Result<(), HookError> {
    session.ended_at_ms = Some(call.now);
    session.end_reason = Some(text::cut(reason, 60));
    store.write(|db| {
        db.put_session(&session)?;
        let Some(mut goal) = db.goal(&session.session_id)? else {
            return Ok(());
        };
        if let Some(change) = change::session_ended(&goal, call.now, call.now) {
            goal = db.save(&goal, change, call.origin)?;
        }
        db.move_span(&goal, Span::Close, call.now)?;
        if reason == "clear" && goal.status.is_live() {
            let event = Event::new(EventKind::GoalOrphaned, json!({"cause": "clear"}));
            let mut after = goal.clone();
            after.updated_at_ms = call.now;
            db.save(&goal, Change { goal: after, events: vec![event], span: Span::Keep }, call.origin)?;
        }
        Ok::<(), HookError>(())
    })
}

pub(super) fn prompted(call: &Call<'_>, store: &mut Store, typed: bool) -> Result<HookReply, HookError> {
    let session = taking_prompt(call, store, typed)?;
    if let Some(parent) = session.parent_session_id.clone() {
        return first_prompt_of_fork(call, store, &session, &parent);
    }
    let readings = if typed { read_new(call, store) } else { Ok(None) };
    let readings = match readings {
        Ok(readings) => readings.unwrap_or_default(),
        // What the user said is worth keeping, whatever is wrong with the files.
        Err(error) => {
            store.write(|db| note_prompt(call, db, &session))?;
            return Err(error);
        }
    };
    let message = store.write(|db| {
        let noted = note_prompt(call, db, &session)?;
        let notice = if typed { goal_at_prompt(call, db, &readings)? } else { None };
        Ok::<_, HookError>(notice.or(noted))
    })?;
    Ok(HookReply { message, ..HookReply::default() })
}

/// The conversation came along with the fork; only its goal did not.
fn first_prompt_of_fork(
    call: &Call<'_>,
    store: &mut Store,
    session: &Session,
    parent: &str,
) -> Result<HookReply, HookError> {
    let noted = store.write(|db| note_prompt(call, db, session))?;
    let goal = restore::live_goal(store.read(), parent)?;
    let context = goal.as_ref().map(|goal| restore::not_of_this_session(call, goal)).transpose()?;
    let message = goal.map(|goal| restore::adoption_hint(call, &goal, After::Fork)).or(noted);
    Ok(HookReply { context, message, ..HookReply::default() })
}

/// What a person's prompt means for the goal of the session, and the words for the user, if reading paused it.
fn goal_at_prompt(call: &Call<'_>, db: Db<'_>, readings: &[FileReading]) -> Result<Option<String>, HookError> {
    let tokens_before = db.goal(call.session_id())?.map_or(0, |goal| goal.total_tokens());
    let Some((mut goal, facts)) = record_new(call, db, readings)? else {
        return Ok(None);
    };
    let driving = matches!(goal.status, GoalStatus::Active | GoalStatus::BudgetLimited);
    if !driving && db.has_open_span(&goal.goal_id)? {
        // The turn that ended the goal was interrupted, so no Stop came; this prompt is not the goal's any more.
        goal = turn::end_final_turn(db, &goal, tokens_before, call)?;
    }
    if let Some(notice) = turn::pause_notice(call.host(), &facts) {
        return Ok(Some(notice));
    }
    // Where nothing wakes the client, the prompt after a reset takes the goal up again.
    let woken = if goal.status == GoalStatus::Paused && !call.host().capabilities().can_wake {
        change::session_resumed(&goal, call.now, call.now)
    } else {
        None
    };
    if let Some(change) = woken.or_else(|| change::prompted(&goal, call.now)) {
        db.save(&goal, change, call.origin)?;
    }
    Ok(None)
}

/// A slash command is a person's word, like a prompt.
pub(super) fn typed_command(call: &Call<'_>, store: &mut Store) -> Result<HookReply, HookError> {
    let session = taking_prompt(call, store, true)?;
    let message = store.write(|db| note_prompt(call, db, &session))?;
    Ok(HookReply { message, ..HookReply::default() })
}

/// The session that takes a prompt. A fork announces itself under its parent's id; its own id appears only here, and
/// then its parent is the session that the same client ran before.
fn taking_prompt(call: &Call<'_>, store: &Store, typed: bool) -> Result<Session, HookError> {
    let known = store.read().session(call.session_id())?;
    let mut session = session_record(call);
    session.last_prompt_ms = typed.then_some(call.now);
    if known.is_none() && !call.host().capabilities().announces_forks {
        session.parent_session_id = match (parent_in_file(call), session.client) {
            (Some(parent), _) => Some(parent),
            (None, Some(client)) => fork_parent(call, store, &session, client)?,
            (None, None) => None,
        };
        session.parent_link = session.parent_session_id.as_ref().map(|_| ParentLink::Fork);
    }
    Ok(session)
}

/// Notes the session and what its prompt says that is worth keeping, and gives the words for the user.
fn note_prompt(call: &Call<'_>, db: Db<'_>, session: &Session) -> Result<Option<String>, StoreError> {
    db.put_session(session)?;
    remember::keep(call, db)?;
    remember::keep_stated(call, db)
}

/// The session that this one was forked from, as its file says.
fn parent_in_file(call: &Call<'_>) -> Option<String> {
    let parent = (adapter(call.host()).fork_parent)(call.input.transcript.as_deref()?)?;
    (parent != call.session_id()).then_some(parent)
}

/// A fork's first prompt follows the start of its parent, which the client has just resumed in the same place. One
/// process may drive several sessions that have nothing to do with each other.
fn fork_parent(
    call: &Call<'_>,
    store: &Store,
    session: &Session,
    client: ProcessId,
) -> Result<Option<String>, HookError> {
    let Some(parent) = store.read().previous_session(client, call.session_id())? else {
        return Ok(None);
    };
    let told = store.read().snapshot(&parent.session_id)?;
    let resumed = told
        .filter(|told| told.injected_by.as_deref() == Some(After::Resume.into()))
        .and_then(|told| told.injected_at_ms)
        .is_some_and(|at| parent.last_prompt_ms.is_none_or(|prompt| prompt <= at));
    let same_place = parent.host == session.host && parent.project_dir == session.project_dir;
    Ok((resumed && same_place && parent.ended_at_ms.is_none()).then_some(parent.session_id))
}

/// Reads and records what is new, when the session has a goal whose time may be running.
pub(super) fn account(call: &Call<'_>, store: &mut Store) -> Result<Option<(Goal, accounting::Facts)>, HookError> {
    let Some(readings) = read_new(call, store)? else {
        return Ok(None);
    };
    store.write(|db| record_new(call, db, &readings))
}

/// What the files of the session say that is new, or nothing while no goal's time is running; none without a goal.
pub(super) fn read_new(call: &Call<'_>, store: &Store) -> Result<Option<Vec<FileReading>>, HookError> {
    let Some(goal) = store.read().goal(call.session_id())? else {
        return Ok(None);
    };
    let open = store.read().has_open_span(&goal.goal_id)?;
    Ok(Some(match call.input.transcript.as_ref().filter(|_| open) {
        Some(transcript) => accounting::read_session(store, call.host(), call.session_id(), transcript)?,
        None => Vec::new(),
    }))
}

/// Records what was read and gives the goal as it is then.
pub(super) fn record_new(
    call: &Call<'_>,
    db: Db<'_>,
    readings: &[FileReading],
) -> Result<Option<(Goal, accounting::Facts)>, HookError> {
    let Some(goal) = db.goal(call.session_id())? else {
        return Ok(None);
    };
    if readings.is_empty() {
        return Ok(Some((goal, accounting::Facts::default())));
    }
    Ok(Some(accounting::record(db, goal, readings, call.origin, call.now)?))
}

#[cfg(test)]
mod tests;
