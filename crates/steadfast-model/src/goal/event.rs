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
    GoalObjectiveUpdated,
    GoalOrphaned,
    GoalPaused,
    GoalReconciled,
    GoalReplaced,
    GoalResumed,
    GoalWaiting,
    GoalWoken,
    InvalidUsageField,
    LimitWarning,
    PausedDegraded,
    PrivilegedVerbRefused,
    RunIteration,
    SessionEnded,
    SessionResumed,
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
