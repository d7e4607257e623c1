//! Starting an attempt. The dispatcher's thread renders the prompt; the attempt's own thread creates the worktree, which
//! may take git minutes, and starts the supervisor, so that requests to stop and limits are seen meanwhile. The attempt
//! is saved before: an engine that finds it not started abandons it, and a supervisor that comes late starts nothing.

use steadfast_model::run::{AttemptId, StagePlan};
use steadfast_system::paths;

use super::Dispatcher;
use crate::outage;
use crate::work::{self, Workplace};
use crate::worktree::{self, Worktree};

impl Dispatcher<'_, '_> {
    pub(super) fn workplace(&self, stage: &StagePlan, id: AttemptId) -> Workplace {
        let shared = self.shared_worktree(stage);
        if !stage.parallel {
            return self.workplace_in(shared);
        }
        let own = self.worktree(&worktree::part_of(stage, id));
        // The work of earlier stages is in the worktree of the lane or run, not in the project.
        self.workplace_in(Some(match shared {
            Some(from) => own.starting_from(from),
            None => own,
        }))
    }

    /// Where a stage works, or where its parallel iterations start from.
    pub(super) fn shared_workplace(&self, stage: &StagePlan) -> Workplace {
        self.workplace_in(self.shared_worktree(stage))
    }

    fn shared_worktree(&self, stage: &StagePlan) -> Option<Worktree> {
        let of_run = self.in_worktree.then(|| self.worktree(worktree::OF_RUN));
        let of_lane = stage.lane.as_ref().map(|lane| self.worktree(&worktree::part_of_lane(lane)));
        match (of_lane, of_run) {
            (Some(lane), Some(run)) => Some(lane.starting_from(run)),
            (lane, run) => lane.or(run),
        }
    }

    fn workplace_in(&self, worktree: Option<Worktree>) -> Workplace {
        Workplace::new(self.project.clone(), worktree, self.git.clone())
    }

    fn worktree(&self, part: &str) -> Worktree {
        Worktree::new(&self.engine.home, &self.project, &self.run_id, &self.plan.name, part)
    }

    pub(super) fn try_start(&mut self, id: AttemptId) -> Result<(), String> {
        let (plan, run, at) = (self.plan.clone(), self.run.clone(), self.paths());
        let attempt = self.attempt(id);
        // One that has started may have written its output.
        if attempt.supervisor().map_err(|error| error.to_string())?.is_none() {
            self.observers.starting(&plan, &run, id)?;
        }
        let launch = work::prepare(&at.view(&plan, &run), id, &attempt, self, |dispatcher| {
            let create = || paths::create_private_dir(attempt.directory());
            let (pending, observers) = (&dispatcher.pending, &mut dispatcher.observers);
            outage::wait_for_room(|| pending.any(), |message| observers.note(message), create)
        })?;
        self.wait_for(id, Some(launch));
        Ok(())
    }
}
