//! Gathers the facts that decide what moves a goal next, for every view and for whoever wakes goals.

use std::borrow::Cow;
use std::path::Path;
use std::time::UNIX_EPOCH;

use crate::native;
use steadfast_hosts::adapter;
use steadfast_hosts::wake::WakeRequest;
use steadfast_model::clock::{self, Millis};
use steadfast_model::goal::change;
use steadfast_model::goal::liveness::{self, Facts, Next};
use steadfast_model::goal::{Goal, GoalStatus};
use steadfast_store::{Db, Session, StoreError};
use steadfast_system::config::ClosedSessions;
use steadfast_system::paths::Paths;
use steadfast_system::process::ProcessId;
use steadfast_system::watch_lock;

/// A turn that has written nothing to the session's file for this long after its beginning never began: the user took
/// the prompt back.
const TURN_WRITES_WITHIN: Millis = 60_000;
/// A hook at the end of a turn takes less than this.
const STOP_TAKES: Millis = 15_000;

/// The goal as it is by now: an interrupt that no hook has seen yet pauses it, and the end of a client that no hook
/// reported stops its clock.
pub fn by_now<'a>(db: Db<'_>, goal: &'a Goal, now: Millis) -> Result<Cow<'a, Goal>, StoreError> {
    let Some(session) = db.session(&goal.session_id)?.filter(|_| goal.status == GoalStatus::Active) else {
        return Ok(Cow::Borrowed(goal));
    };
    if let Some(at) = interrupted_at(db, &session)? {
        return Ok(Cow::Owned(change::interrupt(goal, at, now).goal));
    }
    let is_lost = goal.resume_at_ms.is_some() && !session.is_alive();
    let ended = if is_lost { change::session_ended(goal, last_seen(&session), now) } else { None };
    Ok(ended.map_or(Cow::Borrowed(goal), |ended| Cow::Owned(ended.goal)))
}

/// When the session was last seen to do anything.
pub fn last_seen(session: &Session) -> Millis {
    let activity = &session.activity;
    let moments = [session.ended_at_ms, activity.turn_since_ms, activity.asked_at_ms];
    moments.into_iter().flatten().fold(session.last_seen_ms, Millis::max)
}

/// What moves the goal next.
pub fn next(db: Db<'_>, goal: &Goal, paths: &Paths, now: Millis) -> Result<Next, StoreError> {
    if !goal.status.is_live() {
        return Ok(Next::Over);
    }
    Ok(liveness::next(goal, facts(db, goal, paths, now)?, now))
}

/// What is known about the client of a goal.
pub fn facts(db: Db<'_>, goal: &Goal, paths: &Paths, now: Millis) -> Result<Facts, StoreError> {
    let Some(session) = db.session(&goal.session_id)? else {
        return Ok(Facts::default());
    };
    let is_active = goal.status == GoalStatus::Active;
    let turn_since = session.activity.turn_since_ms.filter(|since| has_begun(&session, *since, now));
    let was_taken_back = session.activity.turn_since_ms.is_some() && turn_since.is_none();
    let turn_since = turn_since.filter(|_| !turn_ended_unseen(&session, now));
    Ok(Facts {
        client_runs: session.is_alive(),
        turn_runs: turn_since.is_some(),
        interrupted: is_active && was_taken_back,
        asks_permission: session.activity.asked_at_ms.is_some(),
        background_work: session.activity.background_since_ms.is_some(),
        native_goal: is_active && native::of_session(db, &goal.session_id)?.is_some(),
        waker_waits: session.activity.waker.is_some_and(|waker| ProcessId::is_alive(waker).unwrap_or(true)),
        starts_waker: goal.host.capabilities().can_wake,
        supervisor_runs: watch_lock::is_held(&paths.home),
        wakes_from_outside: wakes_from_outside(&session),
        headless_allowed: paths.config.watch.closed_sessions == ClosedSessions::Headless,
    })
}

fn wakes_from_outside(session: &Session) -> bool {
    let adapter = adapter(session.host);
    let program = Path::new(session.host.capabilities().program);
    let request = WakeRequest { program, session_id: &session.session_id, transcript: session.transcript() };
    (adapter.wake_command)(&request).is_some()
}

/// When the user interrupted the running turn, if no hook has seen it yet: Claude Code calls none.
fn interrupted_at(db: Db<'_>, session: &Session) -> Result<Option<Millis>, StoreError> {
    let (Some(since), Some(file)) = (session.activity.turn_since_ms, session.transcript()) else {
        return Ok(None);
    };
    let from = db.cursor(file)?.unwrap_or_default().position;
    let reading = (adapter(session.host).read_transcript)(file, &from)?.in_steady_time();
    Ok(reading.interrupted_at.filter(|at| *at >= since && Some(*at) >= session.last_prompt_ms))
}

fn has_begun(session: &Session, since: Millis, now: Millis) -> bool {
    let written = session.transcript().and_then(modified_at);
    now - since < TURN_WRITES_WITHIN || written.is_none_or(|at| at >= since)
}

/// Whether the session's file shows that its turn ended, although no hook could record that: the store was busy or full.
pub fn turn_ended_unseen(session: &Session, now: Millis) -> bool {
    let is_recorded = session.activity.turn_since_ms.is_some_and(|since| now - since >= STOP_TAKES);
    let runs = session.transcript().and_then(adapter(session.host).turn_runs);
    is_recorded && runs == Some(false)
}

fn modified_at(file: &Path) -> Option<Millis> {
    let modified = fs_err::metadata(file).and_then(|meta| meta.modified()).ok()?;
    i64::try_from(modified.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok().map(clock::from_wall)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{HOUR, SECOND, SESSION, START, World};
    use steadfast_model::goal::budget::Budget;

    /// A client that was killed calls no hook.
    #[cfg(target_os = "linux")]
    #[test]
    fn the_clock_of_a_goal_stands_when_its_client_is_gone() {
        let mut world = World::new();
        let gone = ProcessId { pid: i64::from(i32::MAX), started: 1 };
        let session = Session {
            session_id: SESSION.into(),
            client: Some(gone),
            started_at_ms: START,
            last_seen_ms: START,
            ..Session::default()
        };
        world.store.write(|db| db.put_session(&session).and_then(|()| db.begin_turn(SESSION, None, START))).unwrap();
        let goal = world.start(Budget::default(), START);
        world.store.write(|db| db.touch_session(SESSION, START + 7 * SECOND)).unwrap();
        let now = START + HOUR;
        assert_eq!(goal.active_seconds(now), 3_600, "nothing was recorded");
        assert_eq!(by_now(world.store.read(), &goal, now).unwrap().active_seconds(now), 7);
    }
}
