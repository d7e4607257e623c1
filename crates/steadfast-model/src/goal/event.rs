//! The event log of a goal: one list of kinds, the same words in Rust, SQL and JSON.

use serde_json::Value;
use strum::{Display, EnumIter, EnumMessage, EnumString, IntoStaticStr};

/// The first sentence of each kind is in the reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumIter, EnumMessage, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum EventKind {
    /// Bytes of a session file vanished before they were counted.
    AccountingUncertainSet,
    /// The client's cap on Stop blocks was near; the goal continues in another way.
    BlockCapReached,
    /// The model got the message that the budget is used up.
    BudgetLimitReported,
    /// The run of the goal reached a budget.
    BudgetLimited,
    /// A cap of `[limits]` stopped the goal.
    CapReached,
    /// The machine slept or its clock jumped; that time is not active time.
    ClockAdjusted,
    /// Steadfast began the next turn.
    ContinuationInjected,
    /// The evaluator judged the objective.
    EvaluatorVerdict,
    /// The turn that ended the goal was counted to its end.
    FinalTurnAccounted,
    /// The goal was given up.
    GoalAbandoned,
    /// Another session took the goal over.
    GoalAdopted,
    /// The goal needs something that only a person can do.
    GoalBlocked,
    /// The evaluator's verdict completed the goal.
    GoalCompletedByEvaluator,
    /// The worker completed the goal: after its checks passed, or unverified.
    GoalCompletedBySelfUpdate,
    /// A person completed the goal by hand.
    GoalCompletedByUser,
    /// The goal started.
    GoalCreated,
    /// A person raised limits.
    GoalExtended,
    /// The other agent works on the goal until the plan's reset.
    GoalHandedOver,
    /// The objective changed; the payload has both texts.
    GoalObjectiveUpdated,
    /// The session of the goal is gone, as after `/clear`.
    GoalOrphaned,
    /// The goal stopped; the payload has the reason.
    GoalPaused,
    /// The goal was lined up behind the live one.
    GoalQueued,
    /// A person accepted a gap in the accounting.
    GoalReconciled,
    /// A new goal took the place of one that was over, whose row is in `goal_history`.
    GoalReplaced,
    /// The goal continues.
    GoalResumed,
    /// Nothing moves the goal, and the user was notified.
    GoalStalled,
    /// A wait began; the payload says for what.
    GoalWaiting,
    /// The goal was woken once, at its moment.
    GoalWoken,
    /// A response had a malformed number of tokens.
    InvalidUsageField,
    /// An item of the goal got its proof.
    ItemProven,
    /// 80 % of a limit is used: one warning to the model and the user.
    LimitWarning,
    /// Something of Steadfast failed, and the goal paused rather than run unwatched.
    PausedDegraded,
    /// An agent tried what only a person may do.
    PrivilegedVerbRefused,
    /// An iteration of `steadfast run` was committed.
    RunIteration,
    /// The client ended the session.
    SessionEnded,
    /// The client opened the session again.
    SessionResumed,
    /// The worker says done, and a person must agree.
    SignOffRequested,
    /// New responses were charged to the goal.
    TokensAccounted,
    /// A turn ended with an API error.
    TurnFailed,
    /// A verification command did not exit with 0.
    VerificationFailed,
    /// All verification commands exited with 0.
    VerificationPassed,
    /// The one turn after a limit is over.
    WindDownEnded,
    /// A limit was reached, and the model got its one last turn.
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
