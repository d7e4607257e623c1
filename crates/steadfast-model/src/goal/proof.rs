//! Proof that an objective is met. A goal is completed with a [`Proof`] only, and each kind of proof has one
//! constructor that looks at the facts: evidence of all verification commands, the evaluator's newest verdict, a
//! person's command, a run whose rule held, or the worker's own word where the goal asks for nothing else.

use serde::{Deserialize, Serialize};
use strum::{Display, IntoStaticStr};

use super::change::Refusal;
use super::event::EventKind;
use super::{Actor, Goal};
use crate::clock::Millis;
use crate::text;

/// How one verification command went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    pub command: String,
    /// `None` when a signal or the time limit ended it.
    pub exit_code: Option<i32>,
    pub timed_out: bool,
    pub duration_ms: i64,
    pub output_sha256: String,
    pub output_tail: String,
    pub git_commit: Option<String>,
    pub git_dirty: Option<bool>,
    pub created_at_ms: Millis,
}

impl Evidence {
    pub fn passed(&self) -> bool {
        self.exit_code == Some(0)
    }
}

/// What the evaluator recorded about a goal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// `complete` or `incomplete`.
    pub verdict: String,
    /// The fingerprint of the objective that was judged.
    pub objective_hash: String,
}

/// Who or what says that the objective is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum CompletedBy {
    SelfUpdate,
    Evaluator,
    Verification,
    User,
}

impl CompletedBy {
    pub fn event_kind(self) -> EventKind {
        match self {
            Self::SelfUpdate | Self::Verification => EventKind::GoalCompletedBySelfUpdate,
            Self::Evaluator => EventKind::GoalCompletedByEvaluator,
            Self::User => EventKind::GoalCompletedByUser,
        }
    }
}

/// Proof for one text of one goal's objective. The fields are private: the constructors below are the only way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    by: CompletedBy,
    goal_id: String,
    objective_hash: String,
}

impl Proof {
    fn of(goal: &Goal, by: CompletedBy) -> Self {
        Self { by, goal_id: goal.goal_id.clone(), objective_hash: text::fingerprint(&goal.objective) }
    }

    /// Every verification command of the goal ran and passed.
    pub fn from_evidence(goal: &Goal, evidence: &[Evidence]) -> Result<Self, Refusal> {
        let passed = |command: &String| evidence.iter().any(|run| run.command == *command && run.passed());
        match goal.verify.iter().find(|command| !passed(command)) {
            None if !goal.verify.is_empty() => Ok(Self::of(goal, CompletedBy::Verification)),
            None => Err(not_proven("the goal has no verification commands", "start a goal with --verify")),
            Some(command) => Err(not_proven(
                &format!("`{command}` has not passed"),
                "fix what its output shows; `steadfast goal verify` runs the checks again",
            )),
        }
    }

    /// The newest verdict says `complete`, about this goal and this text of its objective. A goal with commands needs
    /// their proof as well.
    pub fn from_verdict(goal: &Goal, newest: Option<&Verdict>, verified: Option<&Self>) -> Result<Self, Refusal> {
        let hint = "let the goal-evaluator subagent judge the goal and record its verdict";
        let verdict = newest.ok_or_else(|| not_proven("the evaluator has given no verdict on this goal", hint))?;
        if verdict.objective_hash != text::fingerprint(&goal.objective) {
            return Err(not_proven("the newest verdict is about an earlier text of the objective", hint));
        }
        if verdict.verdict != "complete" {
            return Err(not_proven(&format!("the newest verdict is '{}'", verdict.verdict), hint));
        }
        if !goal.verify.is_empty() && !verified.is_some_and(|proof| proof.is_for(goal)) {
            return Self::from_worker(goal);
        }
        Ok(Self::of(goal, CompletedBy::Evaluator))
    }

    /// A person says so; an agent cannot.
    pub fn from_user(goal: &Goal, actor: Actor) -> Result<Self, Refusal> {
        match actor {
            Actor::User => Ok(Self::of(goal, CompletedBy::User)),
            _ => Err(not_proven("only the user can complete a goal without proof", "ask the user")),
        }
    }

    /// The worker's own word. It counts only where the goal has no verification commands.
    pub fn from_worker(goal: &Goal) -> Result<Self, Refusal> {
        if goal.verify.is_empty() {
            return Ok(Self::of(goal, CompletedBy::SelfUpdate));
        }
        Err(not_proven("the verification commands of the goal must pass", "`steadfast goal verify` runs them"))
    }

    /// The run that pursues the goal completed: its rule held. The rule of a goal with commands runs them.
    pub fn from_run(goal: &Goal) -> Self {
        let by = if goal.verify.is_empty() { CompletedBy::SelfUpdate } else { CompletedBy::Verification };
        Self::of(goal, by)
    }

    pub fn by(&self) -> CompletedBy {
        self.by
    }

    /// Whether this is about the goal as it stands.
    pub(super) fn is_for(&self, goal: &Goal) -> bool {
        self.goal_id == goal.goal_id && self.objective_hash == text::fingerprint(&goal.objective)
    }
}

fn not_proven(message: &str, hint: &str) -> Refusal {
    Refusal::NotProven { message: message.to_owned(), hint: hint.to_owned() }
}
