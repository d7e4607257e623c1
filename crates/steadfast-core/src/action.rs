//! What people, hooks and tools do to goals: each function is one transaction, shared by the command line, the
//! slash commands and the MCP server.

use std::path::PathBuf;

use serde_json::json;

use crate::accounting;
use crate::clock::Millis;
use crate::goal::change::{self, Change, CompletedBy, Event, Extension, Refusal, Span};
use crate::goal::{Actor, Goal, GoalStatus, NewGoal, PausedReason};
use crate::host::Host;
use crate::store::{Db, Origin, Session, Store, StoreError, Verification};
use crate::text;

#[derive(Debug, thiserror::Error)]
pub enum ActionError {
    #[error("session {0} has no goal")]
    NoGoal(String),
    #[error("no goal has the id `{0}`")]
    UnknownGoal(String),
    #[error("`{0}` is the beginning of several goals' ids")]
    AmbiguousGoal(String),
    #[error("a goal already exists in status '{status}': {objective}")]
    GoalExists { status: GoalStatus, objective: String },
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("`{0}` is for the user: an agent may not use it")]
    NotForAgents(&'static str),
    #[error("the goal's session {0} is still running; only an orphaned goal can be adopted")]
    NotOrphaned(String),
    #[error("verification failed: {0}")]
    VerificationFailed(String),
    #[error("the previous goal was abandoned by the agent; a new one needs the user's word")]
    NeedsUser,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ActionError {
    pub fn hint(&self) -> String {
        match self {
            Self::NoGoal(_) => "start one with `steadfast goal start \"OBJECTIVE\"`".into(),
            Self::UnknownGoal(_) => "`steadfast goal history --all` lists them".into(),
            Self::AmbiguousGoal(_) => "give more of the id".into(),
            Self::GoalExists { .. } => "complete or abandon it first (`steadfast goal status` shows it)".into(),
            Self::Refused(refusal) => refusal.hint().to_owned(),
            Self::NotForAgents(_) => "type it as a slash command, or run it in a terminal of your own".into(),
            Self::NotOrphaned(_) => "end that session first".into(),
            Self::VerificationFailed(_) => {
                "mend what the output shows; `steadfast goal verify` runs the checks again".into()
            }
            Self::NeedsUser => "ask the user to start it".into(),
            Self::Store(error) => error.hint().to_owned(),
        }
    }
}

/// Where a new goal belongs.
#[derive(Debug, Clone)]
pub struct Place {
    pub session_id: String,
    pub host: Host,
    pub project_dir: Option<String>,
    pub transcript: Option<PathBuf>,
}

/// Starts a goal in a session that has none, or whose last one is over.
pub fn start(store: &mut Store, place: &Place, new: NewGoal, origin: Origin, now: Millis) -> Result<Goal, ActionError> {
    // What the previous goal's last turn spent is still its own.
    if let Some(old) = store.read().goal(&place.session_id)? {
        refresh(store, &old, origin, now)?;
    }
    store.write(|db| {
        let old = db.goal(&place.session_id)?;
        if let Some(old) = &old {
            if old.status.is_live() {
                let objective = text::headline(&old.objective, 80);
                return Err(ActionError::GoalExists { status: old.status, objective });
            }
            if origin.actor.is_agent() && abandoned_by_agent(db, old)? {
                return Err(ActionError::NeedsUser);
            }
            db.move_span(old, Span::Close, now)?;
        }
        let mut goal = Goal::start(new, &place.session_id, place.host, place.project_dir.clone(), now);
        if let Some(transcript) = &place.transcript {
            goal.last_accounted_byte_offset =
                accounting::skip_to_end(db, place.host, &place.session_id, transcript, now)?;
        }
        Ok(db.start_goal(&goal, old.as_ref(), origin)?)
    })
}

/// An agent that gave up a limited goal must not hand itself a fresh budget.
fn abandoned_by_agent(db: Db<'_>, old: &Goal) -> Result<bool, StoreError> {
    let Some(event) = db.last_event(&old.goal_id, "goal_abandoned")? else {
        return Ok(false);
    };
    let prompted_since = db
        .session(&old.session_id)?
        .and_then(|session| session.last_prompt_ms)
        .is_some_and(|at| at > event.created_at_ms);
    let by_agent =
        [Actor::Worker, Actor::Evaluator].into_iter().any(|agent| event.actor.as_deref() == Some(agent.into()));
    Ok(by_agent && !prompted_since)
}

/// Reads what the session spent since the last look, so that a change starts from true numbers.
pub fn refresh(store: &mut Store, goal: &Goal, origin: Origin, now: Millis) -> Result<(), StoreError> {
    let Some(session) = store.read().session(&goal.session_id)? else {
        return Ok(());
    };
    // A paused goal's session is read too: what it says now must not be charged after a resume.
    let may_matter = goal.status.is_live() || store.read().has_open_span(&goal.goal_id)?;
    if session.transcript_path.is_empty() || !may_matter {
        return Ok(());
    }
    let readings = accounting::read_session(store, goal.host, &goal.session_id, session.transcript_path.as_ref())?;
    store.write(|db| {
        if let Some(goal) = db.goal(&goal.session_id)? {
            accounting::record(db, goal, &readings, origin, now)?;
        }
        Ok(())
    })
}

/// Applies one pure change to the goal of a session.
pub fn apply(
    store: &mut Store,
    session_id: &str,
    origin: Origin,
    now: Millis,
    change: impl FnOnce(&Goal) -> Result<Change, Refusal>,
) -> Result<Goal, ActionError> {
    let goal = store.read().goal(session_id)?.ok_or_else(|| ActionError::NoGoal(session_id.to_owned()))?;
    refresh(store, &goal, origin, now)?;
    store.write(|db| {
        let goal = db.goal(session_id)?.ok_or_else(|| ActionError::NoGoal(session_id.to_owned()))?;
        let mut changed = change(&goal)?;
        // The rest of a turn in which the agent itself ended the goal is still the goal's.
        if origin.actor.is_agent() && !changed.goal.status.is_live() {
            changed.span = Span::Keep;
        }
        Ok(db.save(&goal, changed, origin)?)
    })
}

/// Resumes. An agent may take up a goal it blocked itself, never undo a pause.
pub fn resume(store: &mut Store, session_id: &str, origin: Origin, now: Millis) -> Result<Goal, ActionError> {
    let goal = store.read().goal(session_id)?.ok_or_else(|| ActionError::NoGoal(session_id.to_owned()))?;
    if origin.actor != Actor::User && goal.status == GoalStatus::Paused {
        return refuse_agent(store, session_id, "resume", origin, now);
    }
    apply(store, session_id, origin, now, |goal| change::resume(goal, now))
}

pub fn extend(
    store: &mut Store,
    session_id: &str,
    add: Extension,
    origin: Origin,
    now: Millis,
) -> Result<Goal, ActionError> {
    if origin.actor != Actor::User {
        return refuse_agent(store, session_id, "extend", origin, now);
    }
    apply(store, session_id, origin, now, |goal| change::extend(goal, add, now))
}

/// Notes that an agent reached for a privileged verb, and refuses it.
pub fn refuse_agent(
    store: &mut Store,
    session_id: &str,
    verb: &'static str,
    origin: Origin,
    now: Millis,
) -> Result<Goal, ActionError> {
    store.write(|db| {
        if let Some(goal) = db.goal(session_id)? {
            db.save(&goal, change::refused(&goal, verb, now), origin)?;
        }
        Ok::<(), StoreError>(())
    })?;
    Err(ActionError::NotForAgents(verb))
}

/// Accepts a gap in the accounting: flag cleared, cursor to the end of the file, goal resumed.
pub fn reconcile(store: &mut Store, session_id: &str, origin: Origin, now: Millis) -> Result<Goal, ActionError> {
    if origin.actor != Actor::User {
        return refuse_agent(store, session_id, "reconcile", origin, now);
    }
    store.write(|db| {
        let goal = db.goal(session_id)?.ok_or_else(|| ActionError::NoGoal(session_id.to_owned()))?;
        change::reconcile(&goal, 0, now)?;
        let transcript = db.session(session_id)?.map(|session| session.transcript_path).filter(|path| !path.is_empty());
        let offset = match transcript {
            Some(path) => accounting::skip_to_end(db, goal.host, session_id, path.as_ref(), now)?,
            None => goal.last_accounted_byte_offset,
        };
        Ok(db.save(&goal, change::reconcile(&goal, offset, now)?, origin)?)
    })
}

/// Stores evidence and says whether all of it is good.
pub fn add_evidence(
    store: &mut Store,
    goal: &Goal,
    runs: &[Verification],
    origin: Origin,
    now: Millis,
) -> Result<(), ActionError> {
    store.write(|db| {
        let Some(current) = db.goal(&goal.session_id)?.filter(|current| current.goal_id == goal.goal_id) else {
            return Err(ActionError::NoGoal(goal.session_id.clone()));
        };
        for run in runs {
            db.add_verification(&goal.goal_id, run)?;
        }
        let results: Vec<_> = runs
            .iter()
            .map(|run| json!({"command": run.command, "exit_code": run.exit_code, "timed_out": run.timed_out, "duration_ms": run.duration_ms}))
            .collect();
        let kind = if runs.iter().all(Verification::passed) { "verification_passed" } else { "verification_failed" };
        let mut after = current.clone();
        after.updated_at_ms = now;
        let change = Change { goal: after, events: vec![Event::new(kind, json!({"results": results}))], span: Span::Keep };
        db.save(&current, change, origin)?;
        Ok(())
    })?;
    match runs.iter().find(|run| !run.passed()) {
        None => Ok(()),
        Some(run) => {
            let how = match (run.timed_out, run.exit_code) {
                (true, _) => "took longer than its time limit".to_owned(),
                (false, Some(code)) => format!("exited with {code}"),
                (false, None) => "was ended by a signal".to_owned(),
            };
            let tail = text::tail(run.output_tail.trim_end(), 1_500);
            let shown = if tail.is_empty() { String::new() } else { format!("\n{tail}") };
            Err(ActionError::VerificationFailed(format!("`{}` {how}{shown}", run.command)))
        }
    }
}

/// Completes the goal of a session. Verification commands have passed before this is called.
pub fn complete(
    store: &mut Store,
    session_id: &str,
    by: CompletedBy,
    origin: Origin,
    now: Millis,
) -> Result<Goal, ActionError> {
    if by == CompletedBy::Evaluator {
        let goal = store.read().goal(session_id)?.ok_or_else(|| ActionError::NoGoal(session_id.to_owned()))?;
        require_verdict(store.read(), &goal)?;
    }
    apply(store, session_id, origin, now, |goal| {
        // Commands of the user that just passed weigh as much as the evaluator's word.
        let verified = by == CompletedBy::SelfUpdate && !goal.verify.is_empty();
        change::complete(goal, if verified { CompletedBy::Verification } else { by }, now)
    })
}

/// The newest verdict must say `complete`, about this goal and this text of its objective.
fn require_verdict(db: Db<'_>, goal: &Goal) -> Result<(), ActionError> {
    let not_proven = |message: &str| {
        let hint = "let the goal-evaluator subagent judge the goal and record its verdict";
        ActionError::Refused(Refusal::NotProven { message: message.to_owned(), hint: hint.to_owned() })
    };
    let verdict = db
        .last_event(&goal.goal_id, "evaluator_verdict")?
        .ok_or_else(|| not_proven("the evaluator has given no verdict on this goal"))?;
    if verdict.payload["objective_hash"] != json!(text::fingerprint(&goal.objective)) {
        return Err(not_proven("the newest verdict is about an earlier text of the objective"));
    }
    if verdict.payload["verdict"] != json!("complete") {
        let said = verdict.payload["verdict"].as_str().unwrap_or("unknown").to_owned();
        return Err(not_proven(&format!("the newest verdict is '{said}'")));
    }
    Ok(())
}

/// Finds a goal by its id or the beginning of it.
pub fn find_goal(db: Db<'_>, id: &str) -> Result<Goal, ActionError> {
    let mut found = if id.is_empty() { Vec::new() } else { db.goals_by_id(id)? };
    match found.len() {
        0 => Err(ActionError::UnknownGoal(id.to_owned())),
        1 => Ok(found.remove(0)),
        _ => Err(ActionError::AmbiguousGoal(id.to_owned())),
    }
}

/// Whether no client drives the goal's session any more.
pub fn is_orphaned(db: Db<'_>, goal: &Goal) -> Result<bool, StoreError> {
    Ok(!db.session(&goal.session_id)?.is_some_and(|session| session.is_alive()))
}

/// Moves an orphaned goal to this session, with its budget, history and events.
pub fn adopt(
    store: &mut Store,
    goal_id: &str,
    place: &Place,
    origin: Origin,
    now: Millis,
) -> Result<Goal, ActionError> {
    store.write(|db| {
        let goal = find_goal(db, goal_id)?;
        if goal.session_id == place.session_id {
            return Ok(goal);
        }
        if !goal.status.is_live() {
            let hint = "it is over; start a new one with `steadfast goal start`".to_owned();
            return Err(Refusal::WrongState { status: goal.status, reason: goal.paused_reason, hint }.into());
        }
        if !is_orphaned(db, &goal)? {
            return Err(ActionError::NotOrphaned(goal.session_id));
        }
        if let Some(own) = db.goal(&place.session_id)? {
            if own.status.is_live() {
                return Err(ActionError::GoalExists {
                    status: own.status,
                    objective: text::headline(&own.objective, 80),
                });
            }
            db.archive_goal(&own)?;
        }
        db.move_span(&goal, Span::Close, now)?;
        let mut after = goal.clone();
        after.updated_at_ms = now;
        after.session_id.clone_from(&place.session_id);
        after.host = place.host;
        after.project_dir = place.project_dir.clone().or(after.project_dir);
        after.resume_at_ms = (goal.status == GoalStatus::Active).then_some(now);
        after.idle_continuations = 0;
        after.blocks_in_row = 0;
        if let Some(transcript) = &place.transcript {
            after.last_accounted_byte_offset =
                accounting::skip_to_end(db, place.host, &place.session_id, transcript, now)?;
            after.last_accounted_uuid = None;
        }
        let span = if goal.status == GoalStatus::Active { Span::Open } else { Span::Keep };
        let event = Event::new("goal_adopted", json!({"from_session": goal.session_id, "from_host": goal.host}));
        Ok(db.save(&goal, Change { goal: after, events: vec![event], span }, origin)?)
    })
}

/// Goals whose session is gone and that were not touched for a while, oldest first.
pub fn orphans(db: Db<'_>, older_than: Millis, now: Millis) -> Result<Vec<Goal>, StoreError> {
    let mut orphans = Vec::new();
    for goal in db.goals()? {
        if goal.status.is_live() && now - goal.updated_at_ms >= older_than && is_orphaned(db, &goal)? {
            orphans.push(goal);
        }
    }
    orphans.reverse();
    Ok(orphans)
}

/// Deletes orphans. A goal that came back to life in between stays.
pub fn delete_orphans(store: &mut Store, older_than: Millis, now: Millis) -> Result<Vec<Goal>, ActionError> {
    store.write(|db| {
        let orphans = orphans(db, older_than, now)?;
        for goal in &orphans {
            db.delete_goal(goal)?;
        }
        Ok(orphans)
    })
}

/// Pauses a live goal because something of ours broke.
pub fn degrade(
    store: &mut Store,
    session_id: &str,
    cause: &str,
    origin: Origin,
    now: Millis,
) -> Result<Option<Goal>, StoreError> {
    store.write(|db| {
        let Some(goal) = db.goal(session_id)?.filter(|goal| goal.status == GoalStatus::Active) else {
            return Ok(None);
        };
        let event = Event::new("paused_degraded", json!({"cause": text::cut(cause, 500)}));
        Ok(Some(db.save(&goal, change::pause_for(&goal, PausedReason::Degraded, event, now), origin)?))
    })
}

impl From<&Session> for Place {
    fn from(session: &Session) -> Self {
        let known = |text: &String| (!text.is_empty()).then(|| text.clone());
        Self {
            session_id: session.session_id.clone(),
            host: session.host,
            project_dir: known(&session.project_dir),
            transcript: known(&session.transcript_path).map(PathBuf::from),
        }
    }
}

#[cfg(test)]
mod tests;
