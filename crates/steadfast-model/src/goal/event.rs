//! The event log of a goal: one list of kinds, the same words in Rust, SQL and JSON.

use serde_json::Value;
use strum::{Display, EnumIter, EnumString, IntoStaticStr};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumIter, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum EventKind {
    AccountingUncertainSet,
    BlockCapReached,
    BudgetLimitReported,
    BudgetLimited,
    CapReached,
    ClockAdjusted,
    ContinuationInjected,
    EvaluatorVerdict,
    FinalTurnAccounted,
    GoalAbandoned,
    GoalAdopted,
    GoalBlocked,
    GoalCompletedByEvaluator,
    GoalCompletedBySelfUpdate,
    GoalCompletedByUser,
    GoalCreated,
    GoalExtended,
    GoalHandedOver,
    GoalObjectiveUpdated,
    GoalOrphaned,
    GoalPaused,
    GoalQueued,
    GoalReconciled,
    GoalReplaced,
    GoalResumed,
    GoalStalled,
    GoalWaiting,
    GoalWoken,
    InvalidUsageField,
    ItemProven,
    LimitWarning,
    PausedDegraded,
    PrivilegedVerbRefused,
    RunIteration,
    SessionEnded,
    SessionResumed,
    SignOffRequested,
    TokensAccounted,
    TurnFailed,
    VerificationFailed,
    VerificationPassed,
    WindDownEnded,
    WindDownStarted,
}

/// A line of the event log, before the store adds who, when and the versions.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub kind: EventKind,
    pub tokens_delta: Option<i64>,
    pub decision: Option<&'static str>,
    pub payload: Value,
}

impl Event {
    pub fn new(kind: EventKind, payload: Value) -> Self {
        Self { kind, tokens_delta: None, decision: None, payload }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use strum::IntoEnumIterator as _;

    use super::*;

    /// The kinds that the guide documents; stored logs contain them.
    const DOCUMENTED: [&str; 41] = [
        "goal_created",
        "goal_replaced",
        "goal_paused",
        "goal_queued",
        "goal_stalled",
        "goal_handed_over",
        "goal_resumed",
        "goal_abandoned",
        "goal_blocked",
        "goal_extended",
        "goal_objective_updated",
        "goal_adopted",
        "goal_orphaned",
        "goal_reconciled",
        "goal_waiting",
        "goal_woken",
        "goal_completed_by_self_update",
        "goal_completed_by_evaluator",
        "goal_completed_by_user",
        "item_proven",
        "sign_off_requested",
        "evaluator_verdict",
        "verification_passed",
        "verification_failed",
        "tokens_accounted",
        "final_turn_accounted",
        "invalid_usage_field",
        "accounting_uncertain_set",
        "limit_warning",
        "budget_limit_reported",
        "wind_down_started",
        "wind_down_ended",
        "cap_reached",
        "continuation_injected",
        "block_cap_reached",
        "turn_failed",
        "paused_degraded",
        "session_resumed",
        "session_ended",
        "privileged_verb_refused",
        "clock_adjusted",
    ];
    /// Kinds of goals that a run pursues.
    const OF_RUNS: [&str; 2] = ["run_iteration", "budget_limited"];

    #[test]
    fn every_kind_is_read_back_from_its_text() {
        for kind in EventKind::iter() {
            let text = kind.to_string();
            assert_eq!(text.parse(), Ok(kind), "{text}");
            assert_eq!(<&str>::from(kind), text);
        }
        for text in ["", "GoalCreated", "goal_created ", "goal-created"] {
            assert!(text.parse::<EventKind>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn the_kinds_are_the_documented_ones_and_those_of_runs() {
        let kinds: BTreeSet<&str> = EventKind::iter().map(<&str>::from).collect();
        let expected: BTreeSet<&str> = DOCUMENTED.into_iter().chain(OF_RUNS).collect();
        assert_eq!(kinds, expected);
    }
}
