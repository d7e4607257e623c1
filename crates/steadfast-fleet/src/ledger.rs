//! The ledger of a namespace: one workflow that adds up what all runs spend in a day, and tells them when a cap is
//! reached. Runs report totals, so a report that comes twice counts once.

use std::collections::VecDeque;
use std::time::UNIX_EPOCH;

use steadfast_model::clock::{HOUR, Millis};
use temporalio_client::{WorkflowIdConflictPolicy, WorkflowIdReusePolicy, WorkflowStartOptions};
use temporalio_common::MemoValue;
use temporalio_macros::{workflow, workflow_methods};
use temporalio_workflow::{
    ContinueAsNewOptions, SignalWorkflowOptions, SyncWorkflowContext, WorkflowContext, WorkflowContextView,
    WorkflowResult,
};

use crate::wire::{Caps, LedgerRun, LedgerState, Spent};
use crate::workflow::{DRIVE_QUEUE, RunWorkflow, STATUS_MEMO};

pub const LEDGER_ID: &str = "steadfast-ledger";
/// Signals after which the history is cut.
const CUT_AFTER: u32 = 1_000;

#[workflow]
pub struct LedgerWorkflow {
    state: LedgerState,
    news: VecDeque<LedgerSignal>,
}

#[derive(Debug, Clone)]
enum LedgerSignal {
    Spent(Spent),
    Caps(Caps),
}

#[workflow_methods]
impl LedgerWorkflow {
    #[init]
    fn new(_: &WorkflowContextView, state: LedgerState) -> Self {
        Self { state, news: VecDeque::new() }
    }

    #[run(name = "steadfast-ledger")]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<()> {
        let mut heard = 0;
        loop {
            ctx.wait_condition(|ledger| !ledger.news.is_empty()).await?;
            while let Some(news) = ctx.state_mut(|ledger| ledger.news.pop_front()) {
                heard += 1;
                let day = day_of(now(ctx));
                let told = ctx.state_mut(|ledger| match news {
                    LedgerSignal::Spent(spent) => ledger.state.spent(spent, day),
                    LedgerSignal::Caps(caps) => ledger.state.set_caps(caps, day),
                });
                for workflow in told {
                    let run = ctx.external_workflow(workflow.clone(), None);
                    let sent = run.signal(RunWorkflow::cap_reached, (), SignalWorkflowOptions::default()).await;
                    if sent.is_err() {
                        // The run is over, so it has nothing to stop.
                        ctx.state_mut(|ledger| ledger.state.runs.remove(&workflow));
                    }
                }
            }
            let state = ctx.state(|ledger| ledger.state.clone());
            ctx.upsert_memo([(STATUS_MEMO, Some(MemoValue::new(shown(&state))))])?;
            if heard >= CUT_AFTER || ctx.continue_as_new_suggested() {
                ctx.continue_as_new(state, ContinueAsNewOptions::default())?;
            }
        }
    }

    /// What a run has spent in all.
    #[signal]
    pub fn spent(&mut self, _: &mut SyncWorkflowContext<Self>, spent: Spent) {
        self.news.push_back(LedgerSignal::Spent(spent));
    }

    #[signal]
    pub fn set_caps(&mut self, _: &mut SyncWorkflowContext<Self>, caps: Caps) {
        self.news.push_back(LedgerSignal::Caps(caps));
    }
}

/// The ledger is started by the first report.
pub(crate) fn start_options() -> WorkflowStartOptions {
    WorkflowStartOptions::new(DRIVE_QUEUE, LEDGER_ID)
        .id_reuse_policy(WorkflowIdReusePolicy::AllowDuplicate)
        .id_conflict_policy(WorkflowIdConflictPolicy::UseExisting)
        .build()
}

fn now(ctx: &WorkflowContext<LedgerWorkflow>) -> Millis {
    let time = ctx.workflow_time().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    time.and_then(|time| Millis::try_from(time.as_millis()).ok()).unwrap_or(0)
}

fn day_of(now: Millis) -> i64 {
    now.div_euclid(24 * HOUR)
}

/// A memo stays small, so the runs are left out.
fn shown(state: &LedgerState) -> LedgerState {
    LedgerState { runs: std::collections::BTreeMap::default(), ..state.clone() }
}

impl LedgerState {
    /// Adds what a run spent since its last report. Returns the workflows to tell that a cap is reached.
    fn spent(&mut self, spent: Spent, day: i64) -> Vec<String> {
        self.turn_to(day);
        let Spent { workflow, run_id, tokens, cost_micros, left, .. } = spent;
        let (tokens_before, cost_micros_before) = (spent.tokens_before, spent.cost_micros_before);
        let seen = self.runs.entry(workflow.clone()).or_default();
        if seen.run_id != run_id {
            // New here, resumed, or another run of the same name.
            *seen = LedgerRun { run_id, tokens: tokens_before, cost_micros: cost_micros_before, capped_on: None };
        }
        let (more_tokens, more_cost) = (tokens - seen.tokens, cost_micros - seen.cost_micros);
        (seen.tokens, seen.cost_micros) = (seen.tokens.max(tokens), seen.cost_micros.max(cost_micros));
        self.tokens = self.tokens.saturating_add(more_tokens.max(0));
        self.cost_micros = self.cost_micros.saturating_add(more_cost.max(0));
        if left {
            self.runs.remove(&workflow);
        }
        self.newly_capped()
    }

    fn set_caps(&mut self, caps: Caps, day: i64) -> Vec<String> {
        self.turn_to(day);
        self.caps = caps;
        self.newly_capped()
    }

    fn turn_to(&mut self, day: i64) {
        if self.day != day {
            (self.day, self.tokens, self.cost_micros) = (day, 0, 0);
        }
    }

    fn is_reached(&self) -> bool {
        let over = |cap: Option<i64>, spent: i64| cap.is_some_and(|cap| spent >= cap);
        over(self.caps.tokens, self.tokens) || over(self.caps.cost_micros, self.cost_micros)
    }

    /// The runs that do not know yet that a cap is reached today.
    fn newly_capped(&mut self) -> Vec<String> {
        if !self.is_reached() {
            return Vec::new();
        }
        let day = self.day;
        let unaware = self.runs.iter_mut().filter(|(_, seen)| seen.capped_on != Some(day));
        unaware
            .map(|(workflow, seen)| {
                seen.capped_on = Some(day);
                workflow.clone()
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spent(name: &str, tokens: i64, cost_micros: i64, left: bool) -> Spent {
        let (workflow, run_id) = (name.to_owned(), format!("{name}-id"));
        Spent { workflow, run_id, tokens, cost_micros, left, ..Spent::default() }
    }

    #[test]
    fn a_report_that_comes_twice_counts_once() {
        let mut ledger = LedgerState::default();
        for _ in 0..2 {
            assert!(ledger.spent(spent("a", 10, 5, false), 1).is_empty());
        }
        ledger.spent(spent("a", 7, 5, false), 1);
        ledger.spent(spent("b", 3, 1, true), 1);
        assert_eq!((ledger.tokens, ledger.cost_micros), (13, 6));
        assert_eq!(ledger.runs.keys().collect::<Vec<_>>(), ["a"]);
    }

    #[test]
    fn a_cap_stops_every_run_of_the_day_and_those_that_join_later() {
        let mut ledger = LedgerState { caps: Caps { tokens: Some(10), cost_micros: None }, ..LedgerState::default() };
        ledger.spent(spent("a", 4, 0, false), 1);
        assert_eq!(ledger.spent(spent("b", 6, 0, false), 1), ["a", "b"]);
        assert!(ledger.spent(spent("a", 5, 0, false), 1).is_empty(), "told once");
        assert_eq!(ledger.spent(spent("c", 0, 0, false), 1), ["c"]);
        assert!(ledger.spent(spent("d", 0, 0, false), 2).is_empty(), "a new day");
        assert_eq!(ledger.set_caps(Caps { tokens: Some(0), cost_micros: None }, 2), ["a", "b", "c", "d"]);
    }

    #[test]
    fn another_run_of_the_same_name_counts_from_0() {
        let mut ledger = LedgerState::default();
        ledger.spent(spent("a", 10, 0, false), 1);
        ledger.spent(Spent { run_id: "other".to_owned(), ..spent("a", 4, 0, false) }, 1);
        assert_eq!(ledger.tokens, 14);
    }

    #[test]
    fn a_resumed_run_counts_from_what_it_had_spent() {
        let mut ledger = LedgerState::default();
        ledger.spent(spent("a", 10, 0, true), 1);
        ledger.spent(Spent { tokens_before: 10, ..spent("a", 13, 0, false) }, 1);
        assert_eq!(ledger.tokens, 13);
    }
}
