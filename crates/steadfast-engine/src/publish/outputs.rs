//! The outputs of committed iterations. One that cannot be written now is owed: it is tried again with each step, and by
//! every command that looks at the run. The text comes from the attempt: the agent's answer, or a copy of the output
//! that the agent wrote itself, so that nothing is lost if git removes or replaces the file.

use std::collections::BTreeSet;
use std::path::PathBuf;

use steadfast_model::run::{AttemptId, Plan, Run, RunKind};
use steadfast_store::{Db, StoreError};
use steadfast_system::bounded;

use crate::attempt::Attempt;
use crate::durable;
use crate::files::{FilesError, OutputOf, PublicFiles, without_secrets};
use crate::observer::KeptOutput;

/// The copy of an output that the agent wrote itself.
const KEPT: &str = "kept-output.md";
/// A longer output is not copied.
const MAX_KEPT: u64 = 16 << 20;
/// How many iterations of a pipeline are searched for missing outputs.
const MOST_REPAIRED: usize = 10_000;

#[derive(Debug)]
pub(super) struct PublicOutputs {
    home: PathBuf,
    run_id: String,
    owed: Vec<Owed>,
}

#[derive(Debug, Clone, Copy)]
struct Owed {
    id: AttemptId,
    /// Committed just now: what is in the file is the agent's own.
    is_new: bool,
}

impl PublicOutputs {
    pub(super) fn new(home: PathBuf, run_id: String) -> Self {
        Self { home, run_id, owed: Vec::new() }
    }

    pub(super) fn add_new(&mut self, plan: &Plan, id: AttemptId) {
        if plan.kind == RunKind::Pipeline {
            self.owed.push(Owed { id, is_new: true });
        }
    }

    /// Adds the outputs of all committed iterations, which are there as a rule.
    pub(super) fn add_all(&mut self, plan: &Plan, db: Db<'_>) -> Result<(), StoreError> {
        if plan.kind != RunKind::Pipeline {
            return Ok(());
        }
        let known: BTreeSet<AttemptId> = self.owed.iter().map(|owed| owed.id).collect();
        let rows = db.run_history(&self.run_id, None, MOST_REPAIRED)?;
        let ids = rows.iter().map(|row| row.id).filter(|id| !known.contains(id));
        self.owed.extend(ids.map(|id| Owed { id, is_new: false }));
        Ok(())
    }

    /// The output as it is kept in the folder of the run.
    pub(super) fn read(&self, id: AttemptId) -> Option<KeptOutput> {
        let attempt = Attempt::at(&self.home, &self.run_id, id);
        KeptOutput::read(attempt.directory().join(KEPT)).or_else(|| KeptOutput::read(attempt.answer()))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.owed.is_empty()
    }

    /// Saves what is owed. Returns the first error and the number of its stage; the rest stays owed.
    pub(super) fn save(&mut self, files: &mut PublicFiles, plan: &Plan, run: &Run) -> Option<(u32, FilesError)> {
        let restored =
            if self.owed.iter().all(|owed| owed.is_new) { BTreeSet::new() } else { files.restored_outputs() };
        let (mut first_error, mut names) = (None, Vec::new());
        for owed in std::mem::take(&mut self.owed) {
            let of = output_of(plan, run, owed.id);
            if let Err(error) = self.save_one(files, of, owed, &restored) {
                first_error.get_or_insert((owed.id.stage, error));
                names.extend(of.public_name());
                self.owed.push(owed);
            }
        }
        files.set_owed_outputs(names);
        first_error
    }

    fn save_one(
        &self,
        files: &PublicFiles,
        of: OutputOf<'_>,
        owed: Owed,
        restored: &BTreeSet<PathBuf>,
    ) -> Result<(), FilesError> {
        let Some(path) = files.output_file(of)? else { return Ok(()) };
        let attempt = Attempt::at(&self.home, &self.run_id, owed.id);
        let kept = attempt.directory().join(KEPT);
        let answer = || attempt.read_answer().map(String::into_bytes);
        let text = without_secrets(bounded::whole(&kept, MAX_KEPT).ok().or_else(answer).unwrap_or_default());
        let content = || bounded::whole(&path, MAX_KEPT).ok();
        if !owed.is_new && restored.contains(&path) && content().as_ref() != Some(&text) {
            durable::if_exists(fs_err::remove_file(&path))?;
        }
        // Whole, before the secrets are removed from it.
        let own = content().filter(|own| !own.is_empty());
        files.save_output(of, &text)?;
        if owed.is_new
            && let Some(own) = own.or_else(content).filter(|content| *content != text)
        {
            // Best effort: the output itself is in its place.
            let _ = durable::hand_over(&kept, &own);
        }
        Ok(())
    }
}

pub(super) fn output_of<'a>(plan: &'a Plan, run: &'a Run, id: AttemptId) -> OutputOf<'a> {
    OutputOf { plan, run, stage: id.stage, iteration: id.iteration }
}
