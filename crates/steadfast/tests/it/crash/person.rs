//! A person who answers what the stages of a run ask, whether or not its engine lives: no to a question that says so,
//! yes to all others. The command that people use is tested elsewhere; this one is no process that could be killed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use steadfast_model::clock;
use steadfast_store::{RunFilter, Store, StoreError};

pub(super) struct Person {
    leaves: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Person {
    pub(super) fn of(store: &Path) -> Self {
        let leaves = Arc::new(AtomicBool::new(false));
        let (store, is_over): (PathBuf, _) = (store.to_owned(), leaves.clone());
        let thread = std::thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                // A store that is busy or not yet there is tried again.
                let _ = answer(&store);
                std::thread::sleep(Duration::from_millis(40));
            }
        });
        Self { leaves, thread: Some(thread) }
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        self.leaves.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn answer(store: &Path) -> Result<(), StoreError> {
    let Some(mut store) = Store::open_if_there(store)? else { return Ok(()) };
    for run in store.read().runs(RunFilter::default(), 9)? {
        let asked = store.read().approvals(&run.run_id)?;
        for row in asked.iter().filter(|row| row.approved.is_none()) {
            let is_yes = !row.question.contains("Refuse");
            store.write(|db| db.answer_approval(&run.run_id, row.stage, is_yes, None, clock::now()))?;
        }
    }
    Ok(())
}
