//! Claims a wake-up, so that exactly one process acts on it, and remembers it until that is done: a wake-up whose process
//! was killed in between is put back.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::json;
use steadfast_engine::durable;
use steadfast_model::clock::Millis;
use steadfast_model::goal::change::{self, Change, Span};
use steadfast_model::goal::event::{Event, EventKind};
use steadfast_model::goal::{Actor, Goal, GoalStatus, watch};
use steadfast_store::{Origin, Store, StoreError};
use steadfast_system::paths::Paths;

pub(super) const ORIGIN: Origin = Origin { actor: Actor::Steadfast, place: "watch" };

/// Clears the wake-up of a goal and resumes a pause that ends by itself. Of all callers, one gets the goal.
pub(super) fn claim(
    store: &mut Store,
    session_id: &str,
    wake_at: Millis,
    now: Millis,
) -> Result<Option<Goal>, StoreError> {
    store.write(|db| {
        let Some(goal) = db.goal(session_id)?.filter(|goal| goal.wake_at_ms == Some(wake_at)) else {
            return Ok(None);
        };
        let mut change = match goal.status {
            GoalStatus::Active => Change { goal: goal.clone(), events: Vec::new(), span: Span::Keep },
            _ => match change::resume(&goal, now) {
                Ok(change) => change,
                Err(_) => return Ok(None),
            },
        };
        change.goal = Goal { updated_at_ms: now, wake_at_ms: None, woken_at_ms: Some(now), ..change.goal };
        change.events.push(Event::new(EventKind::GoalWoken, json!({"by": "watch"})));
        db.save(&goal, change, ORIGIN).map(Some)
    })
}

/// Applies a change to a goal that is still as it was read.
pub(super) fn change_if_same(
    store: &mut Store,
    read: &Goal,
    change: impl FnOnce(&Goal) -> Option<Change>,
) -> Result<Option<Goal>, StoreError> {
    store.write(|db| {
        let Some(goal) = db.goal(&read.session_id)?.filter(|goal| goal.version == read.version) else {
            return Ok(None);
        };
        change(&goal).map(|change| db.save(&goal, change, ORIGIN)).transpose()
    })
}

/// The claim that this process acts on now. Written before the claim, removed when the client is woken.
#[derive(Debug, Serialize, Deserialize)]
struct Unfinished {
    session_id: String,
    woken_at_ms: Millis,
}

pub(super) struct Journal {
    path: PathBuf,
}

impl Journal {
    pub(super) fn of(paths: &Paths) -> Self {
        Self { path: paths.home.join("watch.claim") }
    }

    pub(super) fn begin(&self, session_id: &str, now: Millis) -> std::io::Result<()> {
        let unfinished = Unfinished { session_id: session_id.to_owned(), woken_at_ms: now };
        durable::replace(&self.path, &serde_json::to_vec(&unfinished)?)
    }

    /// Ignores errors: what is left is checked against the store.
    pub(super) fn end(&self) {
        let _ = fs_err::remove_file(&self.path);
    }

    /// Puts back the wake-up that an earlier process claimed and did not act on. Returns the goal.
    pub(super) fn recover(&self, store: &mut Store, now: Millis) -> Result<Option<Goal>, StoreError> {
        let Ok(text) = fs_err::read(&self.path) else { return Ok(None) };
        let Ok(unfinished) = serde_json::from_slice::<Unfinished>(&text) else {
            self.end();
            return Ok(None);
        };
        let goal = store.read().goal(&unfinished.session_id)?;
        let lost = goal.filter(|goal| {
            goal.status == GoalStatus::Active
                && goal.woken_at_ms == Some(unfinished.woken_at_ms)
                && goal.wake_at_ms.is_none()
        });
        let back = match lost {
            Some(goal) => change_if_same(store, &goal, |goal| Some(watch::put_back(goal, now, now)))?,
            None => None,
        };
        self.end();
        Ok(back)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast_app::action::{self, Place};
    use steadfast_model::goal::NewGoal;
    use steadfast_store::Session;
    use steadfast_system::config::Config;

    const NOW: Millis = 1_794_744_000_000;

    fn world() -> (tempfile::TempDir, Paths, Store) {
        let home = tempfile::tempdir().unwrap();
        let store_path = home.path().join("goals.db");
        let mut store = Store::open(&store_path).unwrap();
        let session = Session { session_id: "s1".into(), started_at_ms: NOW, ..Session::default() };
        store.write(|db| db.put_session(&session)).unwrap();
        let new = NewGoal { objective: "wait for the build".into(), ..NewGoal::default() };
        action::start(&mut store, &Place::from(&session), new, ORIGIN, NOW).unwrap();
        action::apply(&mut store, "s1", ORIGIN, NOW, |goal| change::wait(goal, NOW + 1, NOW)).unwrap();
        let paths =
            Paths { home: home.path().to_owned(), store: store_path, store_from: "test", config: Config::default() };
        (home, paths, store)
    }

    #[test]
    fn one_claim_wins_and_resumes_the_goal() {
        let (_home, _, mut store) = world();
        assert_eq!(claim(&mut store, "s1", NOW, NOW).unwrap(), None, "another moment");
        let goal = claim(&mut store, "s1", NOW + 1, NOW + 5).unwrap().unwrap();
        assert_eq!((goal.status, goal.wake_at_ms, goal.woken_at_ms), (GoalStatus::Active, None, Some(NOW + 5)));
        assert_eq!(claim(&mut store, "s1", NOW + 1, NOW + 5).unwrap(), None, "only one wake-up");
    }

    #[test]
    fn a_claim_of_a_killed_process_is_put_back_once_and_a_finished_one_never() {
        let (_home, paths, mut store) = world();
        let journal = Journal::of(&paths);
        assert_eq!(journal.recover(&mut store, NOW).unwrap(), None);
        journal.begin("s1", NOW + 5).unwrap();
        assert_eq!(journal.recover(&mut store, NOW + 6).unwrap(), None, "killed before the claim");
        journal.begin("s1", NOW + 5).unwrap();
        claim(&mut store, "s1", NOW + 1, NOW + 5).unwrap().unwrap();
        let goal = journal.recover(&mut store, NOW + 7).unwrap().unwrap();
        assert_eq!((goal.wake_at_ms, goal.woken_at_ms), (Some(NOW + 7), None));
        assert_eq!(journal.recover(&mut store, NOW + 8).unwrap(), None);
        journal.begin("s1", NOW + 9).unwrap();
        claim(&mut store, "s1", NOW + 7, NOW + 9).unwrap().unwrap();
        journal.end();
        assert_eq!(journal.recover(&mut store, NOW + 10).unwrap(), None);
    }
}
