//! Wakes goals. A wake-up is claimed in one transaction before anything is done, so that of all processes that see it
//! due only one acts.

use crate::prompting::{self, Brief};
use steadfast_model::clock::Millis;
use steadfast_model::goal::change::{self, Span};
use steadfast_model::goal::event::EventKind;
use steadfast_model::goal::liveness;
use steadfast_model::goal::{Actor, Goal, GoalStatus, PausedReason, turn};
use steadfast_model::limit::SharedSpend;
use steadfast_model::prompt::{self, PromptError, Wording};
use steadfast_store::spend::{self, Spender};
use steadfast_store::{Db, Origin, Store, StoreError};
use steadfast_system::paths::Paths;

const ORIGIN: Origin = Origin { actor: Actor::Steadfast, place: "rewake" };

const HANDED_OVER: &str =
    "Another agent worked on this goal while the plan was used up: look at the working tree first.";

/// A goal that was woken, and what its model is to be told.
#[derive(Debug)]
pub struct Woken {
    pub goal: Goal,
    pub brief: Brief,
    /// What ended its wait or happened meanwhile; empty if nothing did.
    pub wait_over: String,
}

impl Woken {
    /// The text that wakes the model.
    pub fn text(&self, wording: Wording, now: Millis) -> Result<String, PromptError> {
        let brief = self.brief.text(&self.goal, wording, now)?;
        Ok(if self.wait_over.is_empty() { brief } else { format!("{}\n{brief}", self.wait_over) })
    }
}

/// The moment at which a goal is to be woken; `None` if it is not.
pub fn moment(goal: &Goal) -> Option<Millis> {
    let may_wake = match goal.status {
        GoalStatus::Active => true,
        GoalStatus::BudgetLimited => goal.wind_down.is_some(),
        GoalStatus::Paused => goal.paused_reason.is_some_and(PausedReason::wakes_by_itself),
        _ => false,
    };
    goal.wake_at_ms.filter(|_| may_wake)
}

/// Claims the wake-up of a goal that is due at `wake_at`. Returns `None` if another process did, if the goal is no longer
/// to be woken, or if a turn of it runs.
pub fn claim(
    store: &mut Store,
    paths: &Paths,
    session_id: &str,
    wake_at: Millis,
    now: Millis,
) -> Result<Option<Woken>, StoreError> {
    store.write(|db| {
        let Some(goal) = db.goal(session_id)?.filter(|goal| moment(goal) == Some(wake_at)) else {
            return Ok(None);
        };
        if turn_runs(db, session_id)? {
            return Ok(None);
        }
        // The wake-up forgets the wait.
        let wait_over = match goal.paused_reason {
            Some(PausedReason::UsageLimit) if was_handed_over(db, &goal)? => HANDED_OVER.to_owned(),
            _ => prompt::wait_over(&goal, now).unwrap_or_default(),
        };
        let Some(goal) = resumed(db, goal, now)? else {
            return Ok(None);
        };
        let caps = spend::standings(db, &paths.config.limits.caps, Spender::Session(session_id), now)?;
        let shared = SharedSpend::of(&caps);
        let mut change = turn::wake(&goal, shared, now);
        let brief = prompting::brief(db, &mut change.goal)?;
        let goal = db.save(&goal, change, ORIGIN)?;
        Ok(Some(Woken { goal, brief, wait_over }))
    })
}

/// Whether the other agent worked on the goal in this pause.
pub fn was_handed_over(db: Db<'_>, goal: &Goal) -> Result<bool, StoreError> {
    let id = |kind| db.last_event(&goal.goal_id, kind).map(|event| event.map(|event| event.id));
    Ok(id(EventKind::GoalHandedOver)? > id(EventKind::GoalPaused)?)
}

/// Ends a pause that is over. Returns `None` if its budget was spent before, so that it gets no turn.
fn resumed(db: Db<'_>, goal: Goal, now: Millis) -> Result<Option<Goal>, StoreError> {
    if goal.status != GoalStatus::Paused {
        return Ok(Some(goal));
    }
    let Some(mut change) = change::end_pause(&goal, now) else {
        return Ok(None);
    };
    liveness::settle(&mut change.goal, false, now, now);
    let goal = db.save(&goal, change, ORIGIN)?;
    Ok((goal.status == GoalStatus::Active || !goal.budget_limit_reported).then_some(goal))
}

/// Takes a claimed wake-up back, to be tried again: the client could not be reached.
pub fn put_back(store: &mut Store, goal: &Goal, wake_at: Millis, now: Millis) -> Result<(), StoreError> {
    store.write(|db| {
        let current = db.goal(&goal.session_id)?.filter(|current| current.woken_at_ms.is_some());
        let Some(current) = current.filter(|current| current.woken_at_ms == goal.woken_at_ms) else {
            return Ok(());
        };
        let after = Goal { woken_at_ms: None, wake_at_ms: Some(wake_at), updated_at_ms: now, ..current.clone() };
        db.save(&current, change::Change { goal: after, events: Vec::new(), span: Span::Keep }, ORIGIN)?;
        Ok(())
    })
}

fn turn_runs(db: Db<'_>, session_id: &str) -> Result<bool, StoreError> {
    Ok(db.session(session_id)?.is_some_and(|session| session.activity.turn_since_ms.is_some()))
}
