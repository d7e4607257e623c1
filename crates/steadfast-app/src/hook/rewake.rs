//! The waker: a hook that the client runs in the background and that wakes it by its exit. It starts beside other hooks,
//! registers itself as the session's waker, and watches the store while the session has a live goal and no turn runs. It
//! may outlive prompts, `/clear` and Esc, so it looks again right before it acts, and acts once. Trouble with the store
//! only delays it.

use std::time::{Duration, Instant};

use super::{HookError, handle_call, outage};
use crate::caller;
use crate::wake::{self, Woken};
use steadfast_hosts::adapter;
use steadfast_model::clock::{self, Millis};
use steadfast_model::goal::Goal;
use steadfast_model::hook::{HookEvent, HookInput};
use steadfast_model::prompt::Wording;
use steadfast_store::{Store, StoreError, StoreStamp};
use steadfast_system::log;
use steadfast_system::paths::Paths;
use steadfast_system::process::{self, ProcessId};

/// How long the hook that records the start of a session or the end of a turn may take: its wait for the store, and its
/// work. After that it has failed, and the waker takes over.
const DECISION_WAIT: Duration = Duration::from_secs(outage::LONGEST.as_secs() + 5);
/// What happens right after the start is seen at once.
const BUSY_TIME: Duration = Duration::from_secs(5);
const SHORT_STEP: Duration = Duration::from_millis(50);
const LONG_STEP: Duration = Duration::from_millis(500);
/// The store is read this often even if its files have not changed.
const READ_AT_LEAST: Duration = Duration::from_secs(10);

/// Looks at what a waiting goal waits for, and records it.
pub type LookAtWait<'a> = &'a dyn Fn(&mut Store, &Goal);

/// Waits until the goal is to be woken and returns the text that wakes the model; `None` if it is not to be woken.
pub fn rewake(
    input: &HookInput,
    paths: &Paths,
    client: Option<ProcessId>,
    look: LookAtWait<'_>,
) -> Result<Option<String>, HookError> {
    if !(adapter(input.host).can_rewake)() {
        return Ok(None);
    }
    let mut waker = Waker {
        input,
        paths,
        own: ProcessId::own(),
        client,
        started: Instant::now(),
        started_at_wall: clock::wall() - Millis::try_from(process::own_age().as_millis()).unwrap_or(0),
        started_at: None,
        is_registered: false,
        is_logged: false,
    };
    let Some(woken) = waker.watch(look) else {
        return Ok(None);
    };
    Ok(Some(woken.text(Wording::Quoted, clock::now())?))
}

struct Waker<'a> {
    input: &'a HookInput,
    paths: &'a Paths,
    own: ProcessId,
    client: Option<ProcessId>,
    started: Instant,
    /// When the client started this process. Its code may begin later, in the middle of the next turn.
    started_at_wall: Millis,
    /// The same in the store's time, once that is known.
    started_at: Option<Millis>,
    is_registered: bool,
    is_logged: bool,
}

/// What a look at the store says.
enum Look {
    /// There is nothing to wake, now or later.
    Done,
    /// Look again when something changes, at the latest at this moment.
    Again(Option<Millis>),
    /// The hook of this event has recorded nothing: it failed.
    Undecided,
    Woken(Box<Woken>),
}

impl Waker<'_> {
    fn watch(&mut self, look_at_wait: LookAtWait<'_>) -> Option<Box<Woken>> {
        let mut seen = None;
        let mut due: Option<Millis> = None;
        let mut last_read: Option<Instant> = None;
        loop {
            let files = StoreStamp::of(&self.paths.store);
            let is_due = due.is_some_and(|at| at <= clock::now());
            let is_old = last_read.is_none_or(|at| at.elapsed() >= READ_AT_LEAST);
            if is_due || is_old || seen.as_ref() != Some(&files) {
                seen = Some(files);
                last_read = Some(Instant::now());
                match self.look(look_at_wait) {
                    Ok(Look::Done) => return None,
                    Ok(Look::Woken(woken)) => return Some(woken),
                    Ok(Look::Again(at)) => due = at,
                    Ok(Look::Undecided) => {
                        // Ignore a refusal here; the next look reports it.
                        let _ = handle_call(self.input, self.paths, self.client, clock::wall());
                        seen = None;
                    }
                    // Busy or full: it is tried again, for as long as the client runs.
                    Err(error) => {
                        self.log_once(&error);
                        seen = None;
                        std::thread::sleep(LONG_STEP);
                    }
                }
            }
            if self.client.and_then(ProcessId::is_alive) == Some(false) {
                return None;
            }
            std::thread::sleep(if self.started.elapsed() < BUSY_TIME { SHORT_STEP } else { LONG_STEP });
        }
    }

    /// Opens the store only for a look, so that a long wait holds nothing.
    fn look(&mut self, look_at_wait: LookAtWait<'_>) -> Result<Look, StoreError> {
        let Some(mut store) = Store::open_if_there(&self.paths.store)? else {
            return Ok(Look::Done);
        };
        let started_at = *self.started_at.get_or_insert_with(|| clock::from_wall(self.started_at_wall));
        let id = &self.input.session_id;
        let Some(session) = store.read().session(id)? else {
            return Ok(Look::Done);
        };
        let Some(mut goal) = store.read().goal(id)?.filter(|goal| goal.status.is_live()) else {
            // The hook beside this one starts the next goal of the queue.
            let starts = store.read().has_queue(id)? && self.started.elapsed() < DECISION_WAIT;
            return Ok(if starts { Look::Again(None) } else { Look::Done });
        };
        let is_closed = session.ended_at_ms.is_some();
        let is_of_old_client = self.client.is_some() && session.client != self.client;
        if self.begins_session() && (is_closed || is_of_old_client) {
            return Ok(self.not_recorded_yet());
        }
        if is_closed {
            return Ok(Look::Done);
        }
        if let Some(since) = session.activity.turn_since_ms {
            let is_ending = self.ends_turn() && since <= started_at;
            return Ok(if is_ending { self.not_recorded_yet() } else { Look::Done });
        }
        if !self.is_registered {
            if caller::check(store.read(), id, self.client).is_err() {
                return Ok(Look::Done);
            }
            store.write(|db| db.set_waker(id, Some(self.own)))?;
            self.is_registered = true;
        } else if session.activity.waker != Some(self.own) {
            return Ok(Look::Done);
        }
        if goal.wait.is_some() {
            look_at_wait(&mut store, &goal);
            goal = store.read().goal(id)?.unwrap_or(goal);
        }
        let Some(at) = wake::moment(&goal) else {
            return Ok(Look::Again(None));
        };
        let now = clock::now();
        if at > now {
            return Ok(Look::Again(Some(at.min(goal.next_check().unwrap_or(at)))));
        }
        // The end of the session makes its goal due for others, maybe since the session was read above.
        if store.read().session(id)?.is_none_or(|session| session.ended_at_ms.is_some()) {
            return Ok(Look::Done);
        }
        let claimed = wake::claim(&mut store, self.paths, id, at, now)?;
        Ok(claimed.map_or(Look::Again(None), |woken| Look::Woken(Box::new(woken))))
    }

    /// The hook beside this one still has to record what happened, or has failed.
    fn not_recorded_yet(&self) -> Look {
        if self.started.elapsed() < DECISION_WAIT { Look::Again(None) } else { Look::Undecided }
    }

    fn begins_session(&self) -> bool {
        matches!(self.input.event, HookEvent::SessionStart(_))
    }

    fn ends_turn(&self) -> bool {
        matches!(self.input.event, HookEvent::Stop { .. } | HookEvent::StopFailure { .. })
    }

    fn log_once(&mut self, error: &StoreError) {
        if !self.is_logged {
            self.is_logged = true;
            log::line(&self.paths.log_file(), &format!("rewake {}: {error}; tries again", self.input.session_id));
        }
    }
}
