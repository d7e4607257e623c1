//! Writing the run directory: records in order, one batch at a time.

use futures_util::FutureExt;
use steadfast_model::run::{AttemptId, Record, Run};

use super::{FlightResult, RunHost, upkeep};
use crate::calls::Calls;
use crate::wire::{RecordInput, SaveInput, Spent, attempt_key};

impl RunHost<'_> {
    /// Writes the records that are not written, one batch at a time.
    pub(super) fn save(&mut self) {
        if self.is_saving || self.unsaved.is_empty() {
            return;
        }
        let Some(run) = self.run.clone() else { return };
        let files = |record: &Record| {
            let (Record::AttemptEnded { id, .. } | Record::Committed { id, .. }) = record else { return None };
            Some((*id, self.shas.get(&attempt_key(*id))?.files.clone()?))
        };
        let mut files: Vec<(AttemptId, String)> = self.unsaved.iter().filter_map(files).collect();
        files.dedup();
        let totals = (run.tokens, run.cost_micros);
        let spent = (self.spent != Some(totals)).then(|| self.spent_so_far(&run, false));
        self.spent = Some(totals);
        let record = RecordInput {
            run_ref: self.input.run.clone(),
            seq: self.saved,
            records: self.unsaved.clone(),
            run,
            heads: self.heads.clone(),
            files,
            shas: self.shas.clone(),
            options: self.input.options.clone(),
        };
        let upto = self.seq;
        self.is_saving = true;
        let saved = self.ctx.execute_activity(
            Calls::record,
            SaveInput { record, spent },
            upkeep("record", self.input.options.heartbeat()),
        );
        self.fly(saved.map(move |result| FlightResult::Saved(upto, result)));
    }

    pub(super) fn spent_so_far(&self, run: &Run, left: bool) -> Spent {
        let workflow = self.ctx.workflow_id().to_owned();
        let run_id = self.input.run.run_id.clone();
        let (tokens_before, cost_micros_before) = self.spent_before;
        let (tokens, cost_micros) = (run.tokens, run.cost_micros);
        Spent { workflow, run_id, tokens, cost_micros, tokens_before, cost_micros_before, left }
    }

    pub(super) fn was_saved(&mut self, upto: u64) {
        let written = usize::try_from(upto.saturating_sub(self.saved)).unwrap_or(0).min(self.unsaved.len());
        self.unsaved.drain(..written);
        self.saved = upto;
        self.is_saving = false;
        // Only work that is not committed, or whose record is still to be written, is looked up again.
        let run = self.run.as_ref();
        let mut needed: Vec<String> = self.unsaved.iter().filter_map(record_key).collect();
        needed.extend(run.iter().flat_map(|run| &run.active).map(|attempt| attempt_key(attempt.id)));
        let undecided = run.iter().flat_map(|run| &run.stages).flat_map(|stage| &stage.undecided);
        needed.extend(undecided.map(|undecided| attempt_key(undecided.id)));
        self.shas.retain(|key, _| needed.contains(key));
    }
}

fn record_key(record: &Record) -> Option<String> {
    match record {
        Record::AttemptEnded { id, .. } | Record::Committed { id, .. } => Some(attempt_key(*id)),
        _ => None,
    }
}
