//! Changes of goals, one transaction each, shared by the command line, the slash commands, hooks and the MCP server.

mod completion;
mod orphan;
mod power;
mod queue;
mod stop_all;
pub mod wait;

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::accounting::{self, FileEnd};
pub use completion::{Claim, add_evidence, complete};
pub use orphan::{adopt, delete_orphans, find_goal, find_goal_ever, is_orphaned, orphans};
pub use power::{abandon, block, edit, pause};
pub use queue::{Enqueued, drop_queued, enqueue, move_queued, start_next, start_next_with};
use steadfast_hosts::adapter;
use steadfast_model::clock::Millis;
use steadfast_model::goal::change::{self, Change, Refusal, Span};
use steadfast_model::goal::environment::StartEnvironment;
use steadfast_model::goal::event::{Event, EventKind};
use steadfast_model::goal::power::Denial;
use steadfast_model::goal::wait::WaitError;
use steadfast_model::goal::{Actor, Goal, GoalStatus, NewGoal, PausedReason, liveness};
use steadfast_model::host::Host;
use steadfast_model::limit::{Axis, Limits};
use steadfast_model::price;
use steadfast_model::run::name;
use steadfast_model::text;
use steadfast_store::{Db, Origin, Session, Store, StoreError};
pub use stop_all::{StoppedAll, pause_all, pause_goals};

#[derive(Debug, thiserror::Error)]
pub enum ActionError {
    #[error("session {0} has no goal")]
    NoGoal(String),
    #[error("no goal has the id `{0}`")]
    UnknownGoal(String),
    #[error("ambiguous goal id prefix `{0}`")]
    AmbiguousGoal(String),
    #[error("a goal already exists in status '{status}': {objective}")]
    GoalExists { status: GoalStatus, objective: String },
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Wait(#[from] WaitError),
    #[error("`{0}` is for the user: an agent may not use it")]
    NotForAgents(&'static str),
    #[error("the goal's session {0} is still running; only an orphaned goal can be adopted")]
    NotOrphaned(String),
    #[error("verification failed: {0}")]
    VerificationFailed(String),
    #[error("the user has queued the next goal, and it starts when this turn ends")]
    QueueWaits,
    #[error("the goal of a run has no queue")]
    NoQueueOfRun,
    #[error("{}", if *.count == 0 { "the queue is empty".to_owned() } else { format!("no queued goal has the number {number}") })]
    NotQueued { number: usize, count: usize },
    #[error("a limit on money cannot hold: model `{0}` has no known price")]
    UnknownPrice(String),
    #[error(transparent)]
    Denied(#[from] Denial),
    #[error("nothing is left of the {} of the goal before, which the next one continues", .0.noun())]
    NothingLeft(Axis),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ActionError {
    pub fn hint(&self) -> String {
        match self {
            Self::NoGoal(_) => "start one with `/goal-start \"OBJECTIVE\"`".into(),
            Self::UnknownGoal(_) => "`/goal-history --all` lists them".into(),
            Self::AmbiguousGoal(_) => "give more of the id".into(),
            Self::GoalExists { .. } => {
                "complete or abandon it first (`/goal-status` shows it); the user can queue this one with `--queue`"
                    .into()
            }
            Self::Refused(refusal) => refusal.hint().to_owned(),
            Self::Wait(error) => error.hint().to_owned(),
            Self::NotForAgents(_) => "type it as a slash command, or in your own terminal; a script cannot do this while a client runs the session"
                    .into(),
            Self::NotOrphaned(_) => "end that session first".into(),
            Self::VerificationFailed(_) => "fix what the output shows; `/goal-verify` runs the checks again".into(),
            Self::QueueWaits => "end the turn".into(),
            Self::NoQueueOfRun => "start another run: `steadfast run \"OBJECTIVE\"`".into(),
            Self::NotQueued { count: 0, .. } => "add a goal with `/goal-start \"OBJECTIVE\" --queue`".into(),
            Self::NotQueued { count, .. } => format!("use a number from 1 to {count}; `/goal-queue list` shows them"),
            Self::UnknownPrice(_) => {
                "limit tokens, turns or hours instead: --budget N, --max-turns N, --max-hours H".into()
            }
            Self::Denied(denial) => denial.hint(),
            Self::NothingLeft(_) => "ask the user to start it with /goal-start \"OBJECTIVE\"".into(),
            Self::Store(error) => error.hint().to_owned(),
        }
    }
}

/// How long after a command the prompt that it is part of may reach the model.
const PROMPT_FOLLOWS: Millis = 2_000;

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
    start_in(store, place, new, None, origin, now)
}

/// The same, with the environment in which the goal's checks will run.
pub fn start_in(
    store: &mut Store,
    place: &Place,
    new: NewGoal,
    environment: Option<&StartEnvironment>,
    origin: Origin,
    now: Millis,
) -> Result<Goal, ActionError> {
    refuse_unknown_price(place, &new)?;
    let ends = read_before_start(store, place, origin, now)?;
    store.write(|db| {
        let goal = start_with(db, place, new, &ends, origin, now)?;
        if let Some(environment) = environment.filter(|_| !goal.verify.is_empty()) {
            db.keep_environment(&goal.goal_id, environment)?;
        }
        Ok(goal)
    })
}

/// A session that has not answered yet is accepted: the goal pauses at the first response without a price.
fn refuse_unknown_price(place: &Place, new: &NewGoal) -> Result<(), ActionError> {
    let limits_money = new.budget.limits.get(Axis::Usd).is_some();
    let model = place.transcript.as_deref().filter(|_| limits_money).and_then(adapter(place.host).last_model);
    match model.filter(|model| !price::is_priced(model)) {
        Some(model) => Err(ActionError::UnknownPrice(text::headline(&model, 60))),
        None => Ok(()),
    }
}

/// Charges the last turn of the previous goal to that goal, and finds the ends of the session's files.
fn read_before_start(
    store: &mut Store,
    place: &Place,
    origin: Origin,
    now: Millis,
) -> Result<Vec<FileEnd>, StoreError> {
    if let Some(old) = store.read().goal(&place.session_id)? {
        refresh(store, &old, origin, now)?;
    }
    place.find_ends(store.read())
}

/// The same in the caller's transaction. The session's files are charged from `ends`.
pub fn start_with(
    db: Db<'_>,
    place: &Place,
    new: NewGoal,
    ends: &[FileEnd],
    origin: Origin,
    now: Millis,
) -> Result<Goal, ActionError> {
    let new = if origin.actor.is_agent() { power::inherit(db, place, new, now)? } else { new };
    let (mut goal, old) = place.new_goal(db, new, ends, now)?;
    if origin.actor.is_agent() {
        if db.has_queue(&place.session_id)? {
            return Err(ActionError::QueueWaits);
        }
        // Only turns of live goals are recorded; an agent that starts one is in a turn.
        db.begin_turn(&place.session_id, None, now)?;
    }
    settle(db, &mut goal, now + PROMPT_FOLLOWS, now)?;
    Ok(db.start_goal(&goal, old.as_ref(), origin)?)
}

/// Charges what the session spent since the last reading, so that a change starts from true numbers.
pub fn refresh(store: &mut Store, goal: &Goal, origin: Origin, now: Millis) -> Result<(), StoreError> {
    let Some(session) = store.read().session(&goal.session_id)? else {
        return Ok(());
    };
    // A paused goal's session is read too: what is in its files now must not be charged after a resume.
    let may_matter = goal.status.is_live() || store.read().has_open_span(&goal.goal_id)?;
    let Some(transcript) = session.transcript().filter(|_| may_matter) else {
        return Ok(());
    };
    let mut readings = accounting::read_session(store, goal.host, &goal.session_id, transcript)?;
    // While a goal is paused, hooks may read nothing for days.
    if !accounting::is_charged(goal) && !store.read().has_open_span(&goal.goal_id)? {
        accounting::record_ahead(store, goal.host, &goal.session_id, &mut readings, origin, now)?;
    }
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
    let goal = goal_of(store.read(), session_id)?;
    refresh(store, &goal, origin, now)?;
    store.write(|db| {
        let goal = still_the_goal(db, &goal)?;
        save(db, &goal, change(&goal)?, origin)
    })
}

fn goal_of(db: Db<'_>, session_id: &str) -> Result<Goal, ActionError> {
    db.goal(session_id)?.ok_or_else(|| ActionError::NoGoal(session_id.to_owned()))
}

/// The newest row of a goal. A command must not change the goal that replaced it meanwhile.
fn still_the_goal(db: Db<'_>, goal: &Goal) -> Result<Goal, ActionError> {
    let current = goal_of(db, &goal.session_id)?;
    if current.goal_id == goal.goal_id { Ok(current) } else { Err(StoreError::Stale.into()) }
}

fn save(db: Db<'_>, goal: &Goal, mut change: Change, origin: Origin) -> Result<Goal, ActionError> {
    let now = change.goal.updated_at_ms;
    settle(db, &mut change.goal, now, now)?;
    // A turn in which the agent itself ended the goal is charged to the goal until its end.
    if origin.actor.is_agent() && !change.goal.status.is_live() {
        change.span = Span::Keep;
    }
    Ok(db.save(goal, change, origin)?)
}

/// Makes clock and wake-up of a goal agree with what its client does. A goal of a run has no client.
fn settle(db: Db<'_>, goal: &mut Goal, wake_at: Millis, now: Millis) -> Result<(), StoreError> {
    if !name::is_of_goal(&goal.session_id) {
        let session = db.session(&goal.session_id)?;
        let turn_runs = session.is_some_and(|session| session.activity.turn_since_ms.is_some());
        liveness::settle(goal, turn_runs, wake_at, now);
    }
    Ok(())
}

/// Resumes. An agent may resume a goal that it blocked itself, but not a paused one.
pub fn resume(store: &mut Store, session_id: &str, origin: Origin, now: Millis) -> Result<Goal, ActionError> {
    let goal = goal_of(store.read(), session_id)?;
    if origin.actor != Actor::User && goal.status == GoalStatus::Paused {
        return refuse_agent(store, session_id, "resume", origin, now);
    }
    apply(store, session_id, origin, now, |goal| change::resume(goal, now))
}

pub fn extend(
    store: &mut Store,
    session_id: &str,
    add: Limits,
    origin: Origin,
    now: Millis,
) -> Result<Goal, ActionError> {
    if origin.actor != Actor::User {
        return refuse_agent(store, session_id, "extend", origin, now);
    }
    apply(store, session_id, origin, now, |goal| change::extend(goal, add, now))
}

/// Records that an agent tried a privileged verb, and refuses it.
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
    let host = goal_of(store.read(), session_id)?.host;
    let session = store.read().session(session_id)?;
    let transcript = session.as_ref().and_then(Session::transcript);
    let ends = accounting::find_ends(store.read(), host, session_id, transcript)?;
    store.write(|db| {
        let goal = goal_of(db, session_id)?;
        let skipped = accounting::skip_to(db, host, session_id, &ends, now)?;
        let offset = skipped.unwrap_or(goal.last_accounted_byte_offset);
        save(db, &goal, change::reconcile(&goal, offset, now)?, origin)
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
        let event = Event::new(EventKind::PausedDegraded, json!({"cause": text::cut(cause, 500)}));
        Ok(Some(db.save(&goal, change::pause_for(&goal, PausedReason::Degraded, event, now), origin)?))
    })
}

impl Place {
    fn find_ends(&self, db: Db<'_>) -> Result<Vec<FileEnd>, StoreError> {
        accounting::find_ends(db, self.host, &self.session_id, self.transcript.as_deref())
    }

    /// A goal to be started here, and the finished one that it replaces.
    fn new_goal(
        &self,
        db: Db<'_>,
        new: NewGoal,
        ends: &[FileEnd],
        now: Millis,
    ) -> Result<(Goal, Option<Goal>), ActionError> {
        let old = db.goal(&self.session_id)?;
        if let Some(old) = &old {
            if old.status.is_live() {
                let objective = text::headline(&old.objective, 80);
                return Err(ActionError::GoalExists { status: old.status, objective });
            }
            db.move_span(old, Span::Close, now)?;
        }
        let mut goal = Goal::start(new, &self.session_id, self.host, self.project_dir.clone(), now);
        if let Some(offset) = accounting::skip_to(db, self.host, &self.session_id, ends, now)? {
            goal.last_accounted_byte_offset = offset;
        }
        Ok((goal, old))
    }
}

impl From<&Session> for Place {
    fn from(session: &Session) -> Self {
        Self {
            session_id: session.session_id.clone(),
            host: session.host,
            project_dir: session.project().map(str::to_owned),
            transcript: session.transcript().map(Path::to_owned),
        }
    }
}

#[cfg(test)]
mod tests;
