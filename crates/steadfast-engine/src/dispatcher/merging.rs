//! Aborting merges of stages that are over, so that the files are as before.

use super::Dispatcher;
use crate::worktree::Merge;

impl Dispatcher<'_, '_> {
    /// Aborts merges that a killed engine left in progress when their stages ended.
    pub(super) fn abort_merges_of_ended(&mut self) {
        let stages = (1..).zip(&self.run.stages);
        let over: Vec<u32> = stages.filter(|(_, state)| state.status.is_over()).map(|(number, _)| number).collect();
        for stage in over {
            self.abort_merge(stage);
        }
    }

    /// Aborts the merge of a stage that is over, if one is in progress.
    pub(super) fn abort_merge(&mut self, stage: u32) {
        if self.plan.stage(stage).is_none_or(|planned| planned.merge.is_none()) {
            return;
        }
        let aborted = {
            let _one_at_a_time = self.git.lock();
            Merge::new(&self.engine.home, &self.run_id, stage, None).abort()
        };
        match aborted {
            Ok(None) => {}
            Ok(Some((branch, place))) => {
                let place = place.display();
                self.observers.note(&format!("aborted the merge of {branch}: the files in {place} are as before"));
            }
            Err(error) => self.observers.note(&format!(
                "cannot abort the merge of stage {stage}: {error} (run `git merge --abort` where it works)"
            )),
        }
    }
}
