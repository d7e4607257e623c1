//! Remembers the wake-up that this process has claimed until the client is woken: one whose process was killed in between
//! is put back.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use steadfast_app::wake;
use steadfast_engine::durable;
use steadfast_model::clock::Millis;
use steadfast_model::goal::{Actor, Goal};
use steadfast_store::{Origin, Store, StoreError};
use steadfast_system::bounded;
use steadfast_system::paths::Paths;

pub(super) const ORIGIN: Origin = Origin { actor: Actor::Steadfast, place: "watch" };

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
        let Ok(text) = bounded::whole(&self.path, 1024 * 1024) else { return Ok(None) };
        let Ok(unfinished) = serde_json::from_slice::<Unfinished>(&text) else {
            self.end();
            return Ok(None);
        };
        let goal = store.read().goal(&unfinished.session_id)?;
        let lost = goal.filter(|goal| goal.status.is_live() && goal.woken_at_ms == Some(unfinished.woken_at_ms));
        if let Some(goal) = &lost {
            wake::put_back(store, goal, now, now)?;
        }
        self.end();
        Ok(lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast_app::action::{self, Place};
    use steadfast_model::goal::wait::WaitFor;
    use steadfast_model::goal::{NewGoal, change};
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
        action::apply(&mut store, "s1", ORIGIN, NOW, |goal| change::wait(goal, WaitFor::Time, Some(NOW + 1), NOW))
            .unwrap();
        let paths = Paths {
            home: home.path().to_owned(),
            store: store_path,
            store_from: "test",
            config: Config::default(),
            closed: Vec::new(),
        };
        (home, paths, store)
    }

    #[test]
    fn a_claim_of_a_killed_process_is_put_back_once_and_a_finished_one_never() {
        let (_home, paths, mut store) = world();
        let journal = Journal::of(&paths);
        assert_eq!(journal.recover(&mut store, NOW).unwrap(), None);
        journal.begin("s1", NOW + 5).unwrap();
        assert_eq!(journal.recover(&mut store, NOW + 6).unwrap(), None, "killed before the claim");
        journal.begin("s1", NOW + 5).unwrap();
        wake::claim(&mut store, &paths, "s1", NOW + 1, NOW + 5).unwrap().unwrap();
        journal.recover(&mut store, NOW + 7).unwrap().unwrap();
        let goal = store.read().goal("s1").unwrap().unwrap();
        assert_eq!((goal.wake_at_ms, goal.woken_at_ms), (Some(NOW + 7), None));
        assert_eq!(journal.recover(&mut store, NOW + 8).unwrap(), None);
        journal.begin("s1", NOW + 9).unwrap();
        wake::claim(&mut store, &paths, "s1", NOW + 7, NOW + 9).unwrap().unwrap();
        journal.end();
        assert_eq!(journal.recover(&mut store, NOW + 10).unwrap(), None);
    }
}
