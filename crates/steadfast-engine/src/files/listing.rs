//! A run's entry in the registry: written when it changes, left alone when a person removed it, and put back when the
//! registry as a whole was lost. The two are told apart by a number in the lock's file that whoever comes first and finds
//! no registry, or a broken one, changes.

use serde_json::Value;
use steadfast_model::run::RunStatus;

use super::document::{self, Found, Lock, MOST_TRIES, Put};
use super::exchange::Placed;
use super::publishing::broken;
use super::shown::Shown;
use super::{FilesError, PublicFiles, View, registry, registry_key};

/// What we wrote last into the registry.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) status: RunStatus,
    /// The entry, unless it was removed by a person.
    entry: Option<Value>,
    /// The number of losses at that time.
    losses: u64,
    /// When it was put there.
    placed: Option<Placed>,
}

impl PublicFiles {
    pub(super) fn publish_entry(
        &mut self,
        view: &View<'_>,
        shown: &Shown,
        lock: &Lock,
        warnings: &mut Vec<String>,
    ) -> Result<(), FilesError> {
        for _ in 0..MOST_TRIES {
            if self.try_entry(view, shown, lock, warnings)? == Put::Done {
                return Ok(());
            }
        }
        Err(self.registry.busy(&self.place))
    }

    fn try_entry(
        &mut self,
        view: &View<'_>,
        shown: &Shown,
        lock: &Lock,
        warnings: &mut Vec<String>,
    ) -> Result<Put, FilesError> {
        let key = registry_key(self.kind, &self.name);
        let (mut value, was_there) = self.take_registry(lock, warnings)?;
        let present = registry::entry(&value, &key).is_some();
        let reopened = view.run.status == RunStatus::Running && shown.ended;
        // An entry that we still owe was never there to be removed.
        let was_shown = shown.run_id.as_deref() == Some(view.run_id) && !shown.owes(registry::FILE);
        let known = was_shown || self.listed.is_some();
        let losses = lock.losses()?;
        let was_lost = !was_there || self.listed.as_ref().is_some_and(|listed| listed.losses != losses);
        let is_older = was_there && !present && self.is_older_there()?;
        let was_removed = !present && known && !reopened && !was_lost && !is_older;
        let mut changed = false;
        if !was_removed {
            let is_marked = self.wrote_running() && registry::is_marked_killed(&value, &key);
            let marked = is_marked && view.run.status == RunStatus::Running;
            let project = self.place.root().to_string_lossy();
            changed = registry::write_entry(&mut value, &key, view, &project, marked);
        }
        let entry = registry::entry(&value, &key).filter(|_| !was_removed).cloned();
        let put = self.registry.put(&self.place, lock, value, changed)?;
        if put == Put::Done {
            let before = self.listed.take().and_then(|listed| listed.placed);
            let placed = if present || was_removed { before } else { Placed::now(&self.registry.path(&self.place)?) };
            self.listed = Some(Listed { status: view.run.status, entry, losses, placed });
        }
        Ok(put)
    }

    /// Whether the registry that is there was begun before our entry was in it, so that nobody removed that.
    fn is_older_there(&self) -> Result<bool, FilesError> {
        let path = self.registry.path(&self.place)?;
        let placed = self.listed.as_ref().and_then(|listed| listed.placed.as_ref());
        Ok(placed.is_some_and(|placed| placed.is_older_there(&path)))
    }

    pub(super) fn wrote_running(&self) -> bool {
        self.listed.as_ref().is_some_and(|listed| listed.status == RunStatus::Running)
    }

    /// Puts the entry of a running run back if the registry as a whole was lost. Costs a look at the file's time while
    /// the entry is there. Returns what the user should know.
    pub fn put_entry_back(&mut self) -> Result<Vec<String>, FilesError> {
        let key = registry_key(self.kind, &self.name);
        let listed = self.listed.as_ref().filter(|listed| listed.status == RunStatus::Running);
        let Some((Some(entry), losses)) = listed.map(|listed| (listed.entry.clone(), listed.losses)) else {
            return Ok(Vec::new());
        };
        let registry = self.registry.peek(&self.place)?;
        let is_whole = registry.is_some();
        let is_listed = registry.is_some_and(|registry| registry::entry(registry, &key).is_some());
        if is_listed || (is_whole && document::losses(&self.place)? == losses && !self.is_older_there()?) {
            self.missed = false;
            return Ok(Vec::new());
        }
        // One look is not enough: an editor may be about to write what it has just emptied.
        if !std::mem::replace(&mut self.missed, true) {
            return Ok(Vec::new());
        }
        let lock = Lock::take(&self.place)?;
        let mut warnings = Vec::new();
        for _ in 0..MOST_TRIES {
            let (mut value, _) = self.take_registry(&lock, &mut warnings)?;
            let changed = registry::put_back(&mut value, &key, &entry);
            if self.registry.put(&self.place, &lock, value, changed)? == Put::Done {
                self.missed = false;
                let placed = Placed::now(&self.registry.path(&self.place)?);
                let losses = lock.losses()?;
                self.listed = Some(Listed { status: RunStatus::Running, entry: Some(entry), losses, placed });
                return Ok(warnings);
            }
        }
        Err(self.registry.busy(&self.place))
    }

    /// The registry, and whether it was there. One that was lost is counted.
    fn take_registry(&mut self, lock: &Lock, warnings: &mut Vec<String>) -> Result<(Value, bool), FilesError> {
        match self.registry.take(&self.place, lock)? {
            Found::Value(value) => return Ok((value, true)),
            Found::Missing => {}
            Found::Broken(aside) => warnings.push(broken(&aside)),
        }
        lock.count_loss()?;
        Ok((registry::empty(), false))
    }
}
