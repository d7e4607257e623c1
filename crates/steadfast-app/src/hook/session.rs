//! Hooks about the session itself: start, end and prompts.

use std::path::Path;

use serde_json::json;
use steadfast_hosts::adapter;

use super::{Call, HookError, remember, restore, steering, turn};
use crate::accounting::{self, FileReading};
use crate::{action, wake};
use steadfast_memory::snapshot::After;
use steadfast_model::clock::Millis;
use steadfast_model::directive::Form;
use steadfast_model::goal::Goal;
use steadfast_model::goal::change::{self, Change, Span};
use steadfast_model::goal::event::{Event, EventKind};
use steadfast_model::hook::{HookEvent, HookReply, StartSource};
use steadfast_model::text;
use steadfast_store::{Db, ParentLink, Session, Store, StoreError};
use steadfast_system::process;
use steadfast_system::process::ProcessId;

/// The most time between the end of a session by `/clear` and the start of the next one.
const CLEAR_TAKES: Millis = 30_000;

/// What this hook call contains about its session.
pub(super) fn session_record(call: &Call<'_>) -> Session {
    let transcript = call.input.transcript.as_ref();
    Session {
        session_id: call.session_id().to_owned(),
        host: call.host(),
        cwd: call.input.cwd.clone(),
        project_dir: call.input.project_dir.clone(),
        transcript_path: transcript.map(|path| path.to_string_lossy().into_owned()).unwrap_or_default(),
        client: call.client,
        started_at_ms: call.now,
        last_seen_ms: call.now,
        ..Session::default()
    }
}

/// A hook of the session ran. A session whose start no hook saw is recorded now: it is alive.
pub(super) fn seen(call: &Call<'_>, db: Db<'_>) -> Result<(), StoreError> {
    if db.touch_session(call.session_id(), call.now)? { Ok(()) } else { db.put_session(&session_record(call)) }
}

pub(super) fn started(call: &Call<'_>, store: &mut Store, source: StartSource) -> Result<HookReply, HookError> {
    let reply = begun(call, store, source)?;
    // The client reads the files of agents when it starts.
    if source == StartSource::Compact {
        return Ok(reply);
    }
    let Some(file) = (adapter(call.host()).evaluator_hidden_by)(Path::new(&call.input.cwd)) else { return Ok(reply) };
    store.write(|db| db.hide_evaluator(call.session_id(), &file))?;
    let shown = text::headline(&file.to_string_lossy(), 200);
    let note = format!("◎ {shown} takes the name of the goal-evaluator: its verdicts do not count in this session.");
    Ok(reply.with_line_before(note))
}

fn begun(call: &Call<'_>, store: &mut Store, source: StartSource) -> Result<HookReply, HookError> {
    let mut session = session_record(call);
    let source = if is_unannounced_fork(call, store, source)? { StartSource::Fork } else { source };
    match source {
        StartSource::Startup => {
            store.write(|db| db.put_session(&session))?;
            Ok(HookReply::default())
        }
        StartSource::Resume => restore::resumed(call, store, &session),
        StartSource::Compact => restore::compacted(call, store, &session),
        StartSource::Clear => {
            let left = store.read().sessions_left_by_clear(call.session_id(), call.now - CLEAR_TAKES)?;
            let parent = left_for(&session, left, store.read().open_sessions()?);
            if let Some(parent) = parent.as_ref().filter(|_| !call.host().capabilities().announces_clear_end) {
                end_session(call, store, parent.clone(), "clear")?;
            }
            session.parent_session_id = parent.map(|parent| parent.session_id);
            follow(call, store, session, ParentLink::Clear, After::Clear)
        }
        StartSource::Fork => {
            session.parent_session_id = parent_in_file(call);
            // The fork was announced under its parent's id, whose file names no other session.
            if session.parent_session_id.is_none() && !call.host().capabilities().announces_forks {
                return restore::resumed(call, store, &session);
            }
            follow(call, store, session, ParentLink::Fork, After::Fork)
        }
    }
}

/// Stores a session and offers the goal of the one that it follows.
fn follow(
    call: &Call<'_>,
    store: &mut Store,
    mut session: Session,
    link: ParentLink,
    after: After,
) -> Result<HookReply, HookError> {
    session.parent_link = session.parent_session_id.as_ref().map(|_| link);
    store.write(|db| db.put_session(&session))?;
    match &session.parent_session_id {
        Some(parent) => restore::offer(call, store, parent, after),
        None => Ok(HookReply::default()),
    }
}

/// Whether a resumed session is a fork: a host that does not announce forks resumes the copy like any other session.
fn is_unannounced_fork(call: &Call<'_>, store: &Store, source: StartSource) -> Result<bool, HookError> {
    let may_be = source == StartSource::Resume && !call.host().capabilities().announces_forks;
    Ok(may_be && store.read().session(call.session_id())?.is_none() && parent_in_file(call).is_some())
}

/// The session that was left by `/clear` for this one: the one that reported it, in this directory; where clients do
/// not report it, the only open one of this client. `None` if there are several.
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

pub(super) fn ended(call: &Call<'_>, store: &mut Store, reason: &str) -> Result<HookReply, HookError> {
    end_session(call, store, session_record(call), reason)?;
    let goal = store.read().goal(call.session_id())?;
    Ok(HookReply { wake_at_ms: goal.as_ref().and_then(wake::moment), ..HookReply::default() })
}

fn end_session(call: &Call<'_>, store: &mut Store, mut session: Session, reason: &str) -> Result<(), HookError> {
    if let Some(goal) = store.read().goal(&session.session_id)? {
        action::refresh(store, &goal, call.origin, call.now)?;
    }
    session.ended_at_ms = Some(call.now);
    session.end_reason = Some(text::cut(reason, 60));
    store.write(|db| {
        db.put_session(&session)?;
        db.end_turn(&session.session_id, false, call.now)?;
        let Some(mut goal) = db.goal(&session.session_id)? else {
            return Ok(());
        };
        if let Some(change) = change::session_ended(&goal, call.now, call.now) {
            goal = db.save(&goal, change, call.origin)?;
        }
        goal = turn::end_overtime(db, goal, call)?;
        db.move_span(&goal, Span::Close, call.now)?;
        if reason == "clear" && goal.status.is_live() {
            let event = Event::new(EventKind::GoalOrphaned, json!({"cause": "clear"}));
            let after = Goal { updated_at_ms: call.now, ..goal.clone() };
            db.save(&goal, Change { goal: after, events: vec![event], span: Span::Keep }, call.origin)?;
        }
        Ok::<(), HookError>(())
    })
}

pub(super) fn prompted(call: &Call<'_>, store: &mut Store, typed: bool) -> Result<HookReply, HookError> {
    let prompt = Prompt::read(call, store, typed)?;
    if let Some(parent) = &prompt.session.parent_session_id {
        return first_prompt_of_fork(call, store, &prompt, parent);
    }
    let readings = match read_new(call, store) {
        Ok(readings) => readings.unwrap_or_default(),
        // Keep the user's words, whatever is wrong with the files.
        Err(error) => {
            store.write(|db| prompt.store(call, db))?;
            return Err(error);
        }
    };
    let message = store.write(|db| {
        let noted = prompt.store(call, db)?;
        let notice = goal_at_prompt(call, db, &readings, typed)?;
        Ok::<_, HookError>(notice.or(noted))
    })?;
    Ok(HookReply { message, ..HookReply::default() })
}

/// A fork has the conversation of its parent, but not its goal.
fn first_prompt_of_fork(
    call: &Call<'_>,
    store: &mut Store,
    prompt: &Prompt,
    parent: &str,
) -> Result<HookReply, HookError> {
    let noted = store.write(|db| {
        let noted = prompt.store(call, db)?;
        name_turn(call, db)?;
        Ok::<_, StoreError>(noted)
    })?;
    let goal = restore::live_goal(store.read(), parent)?;
    let context = goal.as_ref().map(|goal| restore::not_of_this_session(call, goal)).transpose()?;
    let message = goal.map(|goal| restore::adoption_hint(call, &goal, After::Fork)).or(noted);
    Ok(HookReply { context, message, ..HookReply::default() })
}

/// A turn begins: applies the prompt to the goal of the session. Returns the message for the user if the readings
/// paused it.
fn goal_at_prompt(
    call: &Call<'_>,
    db: Db<'_>,
    readings: &[FileReading],
    typed: bool,
) -> Result<Option<String>, HookError> {
    name_turn(call, db)?;
    let tokens_before = db.goal(call.session_id())?.map_or(0, |goal| goal.total_tokens());
    let Some((mut goal, facts)) = call.record(db, readings)? else {
        return Ok(None);
    };
    // A command in the middle of that turn leaves it as it is.
    let is_command =
        matches!(call.input.event, HookEvent::Command { .. } | HookEvent::Commands { other_text: false, .. });
    let is_prompt = typed && !(is_command && goal.overtime.is_some());
    let was_last_turn = goal.overtime.is_some() || !accounting::is_charged(&goal);
    if was_last_turn && is_prompt && db.has_open_span(&goal.goal_id)? {
        // The turn that ended the goal was interrupted, so no Stop came; this prompt is not charged to the goal.
        goal = turn::end_final_turn(db, &goal, tokens_before, call)?;
    } else if was_last_turn && is_prompt {
        goal = turn::end_overtime(db, goal, call)?;
    }
    if goal.status.is_live() {
        db.begin_turn(call.session_id(), call.input.turn_id.as_deref(), call.now)?;
    }
    if let Some(change) = change::turn_began(&goal, typed, call.now) {
        db.save(&goal, change, call.origin)?;
    }
    Ok(turn::pause_notice(call.host(), &facts))
}

/// Records in which turn the prompt reaches the model, with a goal or without one: a command in the same turn comes in
/// the middle of it.
fn name_turn(call: &Call<'_>, db: Db<'_>) -> Result<(), StoreError> {
    match &call.input.turn_id {
        Some(turn_id) => db.name_turn(call.session_id(), turn_id),
        None => Ok(()),
    }
}

/// One of our commands was let through to the model, so a turn begins.
pub(super) fn command_passed(call: &Call<'_>, store: &mut Store) -> Result<(), HookError> {
    store.write(|db| goal_at_prompt(call, db, &[], true).map(|_| ()))
}

/// A slash command counts as a prompt.
pub(super) fn typed_command(call: &Call<'_>, store: &mut Store) -> Result<HookReply, HookError> {
    let prompt = Prompt::read(call, store, true)?;
    let message = store.write(|db| prompt.store(call, db))?;
    Ok(HookReply { message, ..HookReply::default() })
}

/// What is read from files about a prompt, before the transaction.
struct Prompt {
    session: Session,
    /// The objective of the client's own goal, read for a prompt that begins with `/goal`.
    native_goal: Option<String>,
}

impl Prompt {
    /// A fork announces itself under its parent's id. Its own id first appears in a prompt, and then its parent is the
    /// session that the same client ran before.
    fn read(call: &Call<'_>, store: &Store, typed: bool) -> Result<Self, HookError> {
        let known = store.read().session(call.session_id())?;
        let mut session = session_record(call);
        session.last_prompt_ms = typed.then_some(call.now);
        session.user_prompt_ms = is_users_prompt(call).then_some(call.now);
        if known.is_none() && !call.host().capabilities().announces_forks {
            session.parent_session_id = match (parent_in_file(call), session.client) {
                (Some(parent), _) => Some(parent),
                (None, Some(client)) => fork_parent(call, store, &session, client)?,
                (None, None) => None,
            };
            session.parent_link = session.parent_session_id.as_ref().map(|_| ParentLink::Fork);
        }
        let native_goal = match &call.found.steering {
            Some((Form::Slash, _)) => steering::native_goal(store.read(), call.input)?,
            _ => None,
        };
        Ok(Self { session, native_goal })
    }

    /// Stores the session and the findings of the prompt. Returns the message for the user.
    fn store(&self, call: &Call<'_>, db: Db<'_>) -> Result<Option<String>, StoreError> {
        db.put_session(&self.session)?;
        db.remember(call.session_id(), &call.found, call.now)?;
        remember::keep_stated(call, db, self.native_goal.as_deref())
    }
}

/// Whether a person typed the prompt, and it is more than commands of ours. Only such a prompt gives the worker the right
/// to change the goal.
fn is_users_prompt(call: &Call<'_>) -> bool {
    matches!(
        call.input.event,
        HookEvent::Prompt { typed: true } | HookEvent::Commands { other_text: true, .. } | HookEvent::Directive { .. }
    ) && !process::is_client_automated()
}

/// The session that this one was forked from, as its file says.
fn parent_in_file(call: &Call<'_>) -> Option<String> {
    let parent = (adapter(call.host()).fork_parent)(call.input.transcript.as_deref()?)?;
    (parent != call.session_id()).then_some(parent)
}

/// The parent of a fork by its first prompt: the session that the client has just resumed in the same directory. One
/// process may run several unrelated sessions.
fn fork_parent(
    call: &Call<'_>,
    store: &Store,
    session: &Session,
    client: ProcessId,
) -> Result<Option<String>, HookError> {
    let Some(parent) = store.read().previous_session(client, call.session_id())? else {
        return Ok(None);
    };
    let snapshot = store.read().snapshot(&parent.session_id)?;
    let resumed = snapshot
        .filter(|snapshot| snapshot.injected_by.as_deref() == Some(After::Resume.into()))
        .and_then(|snapshot| snapshot.injected_at_ms)
        .is_some_and(|at| parent.last_prompt_ms.is_none_or(|prompt| prompt <= at));
    let same_place = parent.host == session.host && parent.project_dir == session.project_dir;
    Ok((resumed && same_place && parent.ended_at_ms.is_none()).then_some(parent.session_id))
}

/// What is new in the files of the session; empty while its goal is not charged, `None` without a goal.
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

#[cfg(test)]
mod tests;
