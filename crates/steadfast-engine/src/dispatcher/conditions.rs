//! Testing the condition of a stage on a thread, because git says where the stage will work.

use super::{Dispatcher, DriveError, EngineMessage};
use crate::work::Deciding;

impl Dispatcher<'_, '_> {
    pub(super) fn decide(&mut self, stage: u32) -> Result<(), DriveError> {
        let (plan, run) = (self.plan.clone(), self.run.clone());
        let Some(planned) = plan.stage(stage) else { return Ok(()) };
        let at = self.paths();
        let Some(deciding) = Deciding::of(&at.view(&plan, &run), planned, self)? else {
            let _ = self.sender.send(EngineMessage::Decided { stage, holds: Some(true), detail: String::new() });
            return Ok(());
        };
        let (workplace, sender) = (self.shared_workplace(planned), self.sender.clone());
        let project = self.project.clone();
        self.threads.retain(|thread| !thread.is_finished());
        self.threads.push(std::thread::spawn(move || {
            // A worktree that is not there yet will start from the project.
            let directory = workplace.inside().ok().filter(|inside| inside.is_dir()).unwrap_or(project);
            let (holds, detail) = deciding.decide(&directory);
            // The receiver is gone once the run has ended.
            let _ = sender.send(EngineMessage::Decided { stage, holds, detail });
        }));
        Ok(())
    }
}
