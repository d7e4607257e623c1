//! Attempts that have not ended: where they work, and what they left if their engine is gone.

use serde::Serialize;
use steadfast_model::run::{ActiveAttempt, AttemptId, Phase, Plan, Run, RunStatus};

use super::RunFacts;
use super::units::Timestamp;

/// The branch that an attempt works on, if not in the project itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct BranchView {
    pub branch: Option<String>,
    /// The branch's worktree, while it exists.
    pub worktree: Option<String>,
    /// Why the worktree still exists although its work is done.
    #[serde(skip)]
    pub kept_because: Option<String>,
}

/// An attempt that has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AttemptView {
    pub stage: u32,
    pub iteration: u32,
    pub attempt: u32,
    pub phase: &'static str,
    pub errors: u32,
    #[serde(flatten)]
    pub place: BranchView,
    pub waiting_until: Option<Timestamp>,
    /// What the attempt left, if the engine is gone; null otherwise.
    pub left: Option<LeftView>,
}

/// What an attempt of a dead engine left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftView {
    pub state: Left,
    /// Its live processes.
    pub pids: Vec<i32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Left {
    /// The agent was not started.
    NotStarted,
    /// The agent still runs.
    Running,
    /// The agent has finished, and its result waits to be collected.
    Finished,
    /// The result is collected, and the completion rule waits to be tested.
    Unchecked,
    /// The agent ended without a record of how.
    Lost,
}

pub(super) fn branch_view(plan: &Plan, id: AttemptId, facts: &RunFacts<'_>) -> BranchView {
    plan.stage(id.stage).map_or_else(BranchView::default, |stage| (facts.branch_of)(id, stage))
}

/// The attempts that have not ended.
pub(super) fn attempt_views(plan: &Plan, run: &Run, facts: &RunFacts<'_>) -> Vec<AttemptView> {
    let is_orphaned = run.status == RunStatus::Running && !facts.is_live;
    run.active.iter().map(|attempt| attempt_view(plan, attempt, facts, is_orphaned)).collect()
}

fn attempt_view(plan: &Plan, attempt: &ActiveAttempt, facts: &RunFacts<'_>, is_orphaned: bool) -> AttemptView {
    let left = || match &attempt.phase {
        Phase::Running => (facts.left_of)(attempt.id),
        Phase::Checking(_) => LeftView { state: Left::Unchecked, pids: Vec::new() },
        Phase::CheckingBefore | Phase::Resting => LeftView { state: Left::NotStarted, pids: Vec::new() },
    };
    AttemptView {
        stage: attempt.id.stage,
        iteration: attempt.id.iteration,
        attempt: attempt.id.attempt,
        phase: match attempt.phase {
            Phase::CheckingBefore | Phase::Checking(_) => "checking",
            Phase::Running => "running",
            Phase::Resting => "resting",
        },
        errors: attempt.errors,
        place: branch_view(plan, attempt.id, facts),
        waiting_until: attempt.wait.as_ref().map(|wait| Timestamp(wait.until_ms)),
        left: is_orphaned.then(left),
    }
}
