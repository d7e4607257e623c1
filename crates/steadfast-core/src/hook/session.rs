//! Hooks about the session itself: start, end and prompts.

use serde_json::json;

use super::{Call, HookError, restore, turn};
use crate::accounting;
use crate::action;
use crate::goal::change::{self, Change, Event, Span};
use crate::goal::{Goal, GoalStatus};
use crate::host::hook::{HookReply, StartSource};
use crate::host::{self, Host, process};
use crate::store::{Session, Store};
use crate::text;

/// What this hook call tells about its session.
fn session_record(call: &Call<'_>) -> Session {
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
        last_prompt_ms: None,
        started_at_ms: call.now,
        last_seen_ms: call.now,
        ended_at_ms: None,
        end_reason: None,
    }
}

pub(super) fn started(call: &Call<'_>, store: &mut Store, source: StartSource) -> Result<HookReply, HookError> {
    let mut session = session_record(call);
    let known = store.read().session(call.session_id())?;
    match source {
        StartSource::Clear => {
            let parent = session_before_clear(call, store, &session)?;
            // Codex says that the old session ended only when the whole client does.
            if let Some(parent) = parent.as_ref().filter(|_| call.host() == Host::Codex) {
                leave(call, store, parent)?;
            }
            session.parent_session_id = parent.map(|parent| parent.session_id);
        }
        StartSource::Fork => {
            session.parent_session_id =
                call.input.transcript.as_deref().and_then(|file| host::fork_parent(call.host(), file));
        }
        StartSource::Startup | StartSource::Resume | StartSource::Compact => {}
    }
    store.write(|db| db.put_session(&session))?;
    match source {
        StartSource::Startup => Ok(HookReply::default()),
        StartSource::Resume => restore::resumed(call, store, known.as_ref()),
        StartSource::Compact => restore::compacted(call, store),
        StartSource::Clear => match &session.parent_session_id {
            Some(parent) => offer_adoption(call, store, parent, "before /clear"),
            None => Ok(HookReply::default()),
        },
        StartSource::Fork => match &session.parent_session_id {
            Some(parent) => offer_adoption(call, store, parent, "this one was forked from"),
            None => Ok(HookReply::default()),
        },
    }
}

/// The session that this client ran before. One process of Codex may run several at once, so there it must also
/// be of this directory.
fn session_before_clear(call: &Call<'_>, store: &Store, session: &Session) -> Result<Option<Session>, HookError> {
    let Some(client) = session.client else {
        return Ok(None);
    };
    let previous = store.read().previous_session(client, call.session_id())?;
    Ok(previous.filter(|previous| {
        previous.host == call.host() && (call.host() == Host::Claude || previous.cwd == session.cwd)
    }))
}

/// The client moved on from a session without telling that it ended.
fn leave(call: &Call<'_>, store: &mut Store, session: &Session) -> Result<(), HookError> {
    if let Some(goal) = store.read().goal(&session.session_id)? {
        action::refresh(store, &goal, call.origin, call.now)?;
    }
    end_session(call, store, session.clone(), "clear")
}

/// The same client ran another session with a goal before: say how to take it over, and do nothing unasked.
fn offer_adoption(call: &Call<'_>, store: &Store, parent: &str, when: &str) -> Result<HookReply, HookError> {
    let Some(goal) = store.read().goal(parent)?.filter(|goal| goal.status.is_live()) else {
        return Ok(HookReply::default());
    };
    let id: String = goal.goal_id.chars().take(8).collect();
    let objective = text::headline(&goal.objective, 80);
    let adopt = call.host().spell(&format!("/goal-adopt {id}"));
    let message =
        format!("steadfast: the session {when} has a goal ({}): {objective}\n{adopt} takes it over here.", goal.status);
    let context = format!(
        "The session {when} has a goal that is not this session's. The user can take it over with {adopt}; \
         do not work on it unless the user asks. Its objective begins: {}",
        text::escape_xml(&objective)
    );
    Ok(HookReply { message: Some(message), context: Some(context), ..HookReply::default() })
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
            let event = Event::new("goal_orphaned", json!({"cause": "clear"}));
            let mut after = goal.clone();
            after.updated_at_ms = call.now;
            db.save(&goal, Change { goal: after, events: vec![event], span: Span::Keep }, call.origin)?;
        }
        Ok::<(), HookError>(())
    })
}

pub(super) fn prompted(call: &Call<'_>, store: &mut Store, typed: bool) -> Result<HookReply, HookError> {
    let session = register(call, store, typed)?;
    if let Some(parent) = &session.parent_session_id {
        return offer_adoption(call, store, parent, "this one was forked from");
    }
    if !typed {
        return Ok(HookReply::default());
    }
    let tokens_before = store.read().goal(call.session_id())?.map_or(0, |goal| goal.total_tokens());
    let Some((goal, facts)) = account(call, store)? else {
        return Ok(HookReply::default());
    };
    let driving = matches!(goal.status, GoalStatus::Active | GoalStatus::BudgetLimited);
    if !driving && store.read().has_open_span(&goal.goal_id)? {
        // The turn that ended the goal was interrupted, so no Stop came; this prompt is not the goal's any more.
        store.write(|db| turn::end_final_turn(db, &goal, tokens_before, call))?;
    }
    if let Some(notice) = turn::pause_notice(call.host(), &facts) {
        return Ok(HookReply { message: Some(notice), ..HookReply::default() });
    }
    // Where nothing wakes the client, the prompt after a reset takes the goal up again.
    let woken = match call.host() {
        Host::Codex if goal.status == GoalStatus::Paused => change::session_resumed(&goal, call.now, call.now),
        _ => None,
    };
    if let Some(change) = woken.or_else(|| change::prompted(&goal, call.now)) {
        store.write(|db| db.save(&goal, change, call.origin))?;
    }
    Ok(HookReply::default())
}

/// A slash command is a person's word, like a prompt.
pub(super) fn typed_command(call: &Call<'_>, store: &mut Store) -> Result<HookReply, HookError> {
    register(call, store, true)?;
    Ok(HookReply::default())
}

/// Notes a session that takes a prompt. A fork announces itself under its parent's id; its own id appears only
/// here, and then its parent is the session that the same client ran before.
fn register(call: &Call<'_>, store: &mut Store, typed: bool) -> Result<Session, HookError> {
    let known = store.read().session(call.session_id())?;
    let mut session = session_record(call);
    session.last_prompt_ms = typed.then_some(call.now);
    // Codex names a fork's parent in the fork's own file.
    if known.is_none()
        && call.host() == Host::Claude
        && let Some(client) = session.client
    {
        let parent = store.read().previous_session(client, call.session_id())?;
        session.parent_session_id =
            parent.filter(|parent| parent.ended_at_ms.is_none()).map(|parent| parent.session_id);
    }
    store.write(|db| db.put_session(&session))?;
    Ok(session)
}

/// Reads and records what is new, when the session has a goal whose time may be running.
pub(super) fn account(call: &Call<'_>, store: &mut Store) -> Result<Option<(Goal, accounting::Facts)>, HookError> {
    let Some(goal) = store.read().goal(call.session_id())? else {
        return Ok(None);
    };
    let open = store.read().has_open_span(&goal.goal_id)?;
    let Some(transcript) = call.input.transcript.as_ref().filter(|_| open) else {
        return Ok(Some((goal, accounting::Facts::default())));
    };
    let readings = accounting::read_session(store, call.host(), call.session_id(), transcript)?;
    let recorded = store.write(|db| match db.goal(call.session_id())? {
        Some(goal) => accounting::record(db, goal, &readings, call.origin, call.now).map(Some),
        None => Ok(None),
    })?;
    Ok(recorded)
}
