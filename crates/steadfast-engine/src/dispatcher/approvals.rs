//! Answers of a person to stages that wait for one.

use steadfast_model::clock;
use steadfast_model::run::{RunEvent, StageStatus};

use super::{Dispatcher, DriveError};

impl Dispatcher<'_, '_> {
    /// Passes on what a person answered. An answer is taken first, so that a later one cannot contradict it.
    pub(super) fn take_answers(&mut self) -> Result<(), DriveError> {
        let is_waiting = |stage: &u32| {
            self.run.stage_state(*stage).is_some_and(|state| state.status == StageStatus::AwaitingApproval)
        };
        let waiting: Vec<u32> = (1..).take(self.run.stages.len()).filter(is_waiting).collect();
        if waiting.is_empty() {
            return Ok(());
        }
        let run_id = self.run_id.clone();
        let asked = self.with_store(|store| store.read().approvals(&run_id))?;
        let answered = asked.iter().filter(|row| row.approved.is_some() && waiting.contains(&row.stage));
        for stage in answered.map(|row| row.stage) {
            let now = clock::now();
            let taken = self.with_store(|store| store.write(|db| db.take_answer(&run_id, stage, now)))?;
            if let Some((approved, note)) = taken {
                self.apply(RunEvent::Answered { stage, approved, note })?;
            }
        }
        Ok(())
    }
}
