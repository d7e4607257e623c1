//! The workflow of a run. It hosts the machine: every step is decided by a local activity and recorded in the history,
//! so that a replay by a newer version reads the recorded steps. This file has the signals; `workflow/host.rs` the loop,
//! `workflow/acts.rs` what the machine's acts mean on a fleet, `workflow/outcome.rs` what failed activities mean.
//!
//! No clocks, no maps without an order and no threads here: the code runs again from the history.

pub(crate) mod acts;
mod host;
mod outcome;

use std::collections::{BTreeMap, VecDeque};

use steadfast_model::run::{AttemptUsage, RunEvent, RunReason, RunStatus, Stopping};
use temporalio_macros::{workflow, workflow_methods};
use temporalio_workflow::{SyncWorkflowContext, WorkflowContext, WorkflowContextView, WorkflowResult};

use crate::wire::{Answer, RunInput, Status, Using, attempt_key};

pub use acts::{agent_queue, check_queue};

/// The queue of workflows and of what they do by themselves.
pub const DRIVE_QUEUE: &str = "steadfast";
pub const WORKFLOW_TYPE: &str = "steadfast-run";
/// Keys of the memo.
pub(crate) const STATUS_MEMO: &str = "status";
pub(crate) const REPO_MEMO: &str = "repo";
const ID_PREFIX: &str = "steadfast/";

/// The id of the workflow of a run, which is also the name of its branch.
pub fn workflow_id(name: &str) -> String {
    format!("{ID_PREFIX}{name}")
}

/// The run of a workflow. A schedule appends the time, whose colons cannot be in the name of a branch.
pub fn run_name(workflow_id: &str) -> String {
    workflow_id.strip_prefix(ID_PREFIX).unwrap_or(workflow_id).replace(':', "-")
}

#[workflow]
pub struct RunWorkflow {
    input: RunInput,
    /// What signals asked for and no step has answered.
    inbox: VecDeque<RunEvent>,
    /// What people said and no agent has read.
    notes: Vec<String>,
    /// What the running attempts used so far, by `S-I-A`.
    using: BTreeMap<String, AttemptUsage>,
}

#[workflow_methods]
impl RunWorkflow {
    #[init]
    fn new(_: &WorkflowContextView, input: RunInput) -> Self {
        let carried = input.carried.as_ref();
        let inbox = carried.map(|carried| carried.inbox.iter().cloned().collect()).unwrap_or_default();
        let notes = carried.map(|carried| carried.notes.clone()).unwrap_or_default();
        Self { input, inbox, notes, using: BTreeMap::new() }
    }

    #[run(name = "steadfast-run")]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<Status> {
        host::drive(ctx).await
    }

    /// A person asks for the end.
    #[signal]
    pub fn kill(&mut self, _: &mut SyncWorkflowContext<Self>, reason: String) {
        let reason = if reason.is_empty() { RunReason::Killed.to_string() } else { reason };
        self.inbox.push_back(RunEvent::StopRequested(Stopping { status: RunStatus::Killed, reason }));
    }

    /// A person approves or rejects a stage.
    #[signal]
    pub fn answer(&mut self, _: &mut SyncWorkflowContext<Self>, answer: Answer) {
        let Answer { stage, approved, note } = answer;
        self.inbox.push_back(RunEvent::Answered { stage, approved, note });
    }

    /// A person tells the next agent something.
    #[signal]
    pub fn say(&mut self, _: &mut SyncWorkflowContext<Self>, note: String) {
        self.notes.push(note);
    }

    /// A worker reports what a running attempt used so far.
    #[signal]
    pub fn using(&mut self, _: &mut SyncWorkflowContext<Self>, using: Using) {
        let Using { id, usage } = using;
        self.using.insert(attempt_key(id), usage);
        let mut sum = AttemptUsage::default();
        for usage in self.using.values() {
            sum += *usage;
        }
        // A later sum replaces one that no step has answered.
        self.inbox.retain(|event| !matches!(event, RunEvent::Using { .. }));
        let (tokens, cost_micros) = (sum.tokens.charged(), sum.cost_micros);
        self.inbox.push_back(RunEvent::Using { tokens, cost_micros });
    }

    /// The ledger says that a cap over all runs is reached.
    #[signal]
    pub fn cap_reached(&mut self, _: &mut SyncWorkflowContext<Self>) {
        self.inbox.push_back(RunEvent::CapReached);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_workflow_is_the_branch_and_leads_back_to_the_name() {
        assert_eq!(workflow_id("fix"), "steadfast/fix");
        assert_eq!(run_name("steadfast/fix"), "fix");
        assert_eq!(run_name("steadfast/fix-2026-11-18T03:00:00Z"), "fix-2026-11-18T03-00-00Z");
    }
}
