//! Proof that an objective is met. A goal is completed with a [`Proof`] only, and each kind of proof has one
//! constructor that looks at the facts: an agent's claim with what it rests on (evidence of all verification commands, a
//! proof of every item, the evaluator's verdicts), a person's command, or a run whose rule held.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr};

use super::change::Refusal;
use super::event::EventKind;
use super::{Actor, Goal};
use crate::clock::Millis;
use crate::text;

/// How much of the evaluator's reason a refusal quotes.
const REASON_SHOWN: usize = 300;
/// How many open items a refusal names.
const OPEN_SHOWN: usize = 10;
const JUDGE_IT: &str = "let the goal-evaluator subagent judge the goal and record its verdict";

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
    /// `complete`, `incomplete`, `impossible` or `unverifiable`.
    pub verdict: String,
    pub reason: Option<String>,
    /// The fingerprint of the objective that was judged.
    pub objective_hash: String,
}

impl Verdict {
    fn says_complete(&self) -> bool {
        self.verdict == "complete"
    }

    /// Whether it says something about the work. The evaluator's tools may have failed.
    fn decides(&self) -> bool {
        self.verdict != "unverifiable"
    }

    fn describe(&self) -> String {
        let reason = self.reason.as_deref().map(|reason| text::cut(&text::one_line(reason), REASON_SHOWN));
        let reason = reason.filter(|reason| !reason.is_empty()).map(|reason| format!(": {reason}")).unwrap_or_default();
        format!("the newest verdict is '{}'{reason}", self.verdict)
    }
}

/// All verification commands of a goal passed, for one text of its objective.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified(ProvenText);

/// What an agent's claim of completion rests on.
#[derive(Debug, Clone, Default)]
pub struct Basis {
    /// The agent says that the evaluator agrees.
    pub judged: bool,
    /// The goal's commands ran and passed.
    pub verified: Option<Verified>,
    /// All verdicts on the goal, the newest first.
    pub verdicts: Vec<Verdict>,
}

/// Who or what says that the objective is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString, IntoStaticStr, Serialize, Deserialize)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
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

/// One text of one goal's objective.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ProvenText {
    goal_id: String,
    objective_hash: String,
}

impl ProvenText {
    fn of(goal: &Goal) -> Self {
        Self { goal_id: goal.goal_id.clone(), objective_hash: text::fingerprint(&goal.objective) }
    }
}

/// Proof for one text of one goal's objective. The fields are private: the constructors below are the only way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    by: CompletedBy,
    subject: ProvenText,
}

impl Verified {
    /// Every verification command of the goal ran and passed.
    pub fn from_evidence(goal: &Goal, evidence: &[Evidence]) -> Result<Self, Refusal> {
        let newest = |command: &String| evidence.iter().rfind(|run| run.command == *command);
        let passed = |command: &String| newest(command).is_some_and(Evidence::passed);
        match goal.verify.iter().find(|command| !passed(command)) {
            None if !goal.verify.is_empty() => Ok(Self(ProvenText::of(goal))),
            None => Err(not_proven("the goal has no verification commands", "start a goal with --verify")),
            Some(command) => Err(not_proven(
                &format!("`{command}` has not passed"),
                "fix what its output shows; `/goal-verify` runs the checks again",
            )),
        }
    }
}

impl Proof {
    fn of(goal: &Goal, by: CompletedBy) -> Self {
        Self { by, subject: ProvenText::of(goal) }
    }

    /// An agent says so. In this order: the commands passed, every item has a proof, and the evaluator agrees where the
    /// goal or the agent says that it does. A verdict against the goal stands until a newer one: the agent's word does
    /// not override it.
    pub fn from_agent(goal: &Goal, basis: &Basis) -> Result<Self, Refusal> {
        let has_passed = basis.verified.as_ref().is_some_and(|verified| verified.0 == ProvenText::of(goal));
        if !goal.verify.is_empty() && !has_passed {
            return Err(not_proven("the verification commands of the goal must pass", "`/goal-verify` runs them"));
        }
        refuse_open_items(goal)?;
        let hash = text::fingerprint(&goal.objective);
        let mut on_this_text = basis.verdicts.iter().filter(|verdict| verdict.objective_hash == hash).peekable();
        let newest = on_this_text.peek().copied();
        if basis.judged || goal.judge {
            return match newest {
                Some(verdict) if verdict.says_complete() => Ok(Self::of(goal, CompletedBy::Evaluator)),
                Some(verdict) => Err(not_proven(&verdict.describe(), JUDGE_IT)),
                None if basis.verdicts.is_empty() => {
                    Err(not_proven("the evaluator has given no verdict on this goal", JUDGE_IT))
                }
                None => Err(not_proven("the newest verdict is about an earlier text of the objective", JUDGE_IT)),
            };
        }
        if let Some(against) = on_this_text.find(|verdict| verdict.decides()).filter(|verdict| !verdict.says_complete())
        {
            let hint = "do what is missing, then let the goal-evaluator subagent judge the goal again";
            return Err(not_proven(&against.describe(), hint));
        }
        let by = match newest {
            _ if !goal.verify.is_empty() => CompletedBy::Verification,
            Some(verdict) if verdict.says_complete() => CompletedBy::Evaluator,
            _ => CompletedBy::SelfUpdate,
        };
        Ok(Self::of(goal, by))
    }

    /// A person says so; an agent cannot.
    pub fn from_user(goal: &Goal, actor: Actor) -> Result<Self, Refusal> {
        match actor {
            Actor::User => Ok(Self::of(goal, CompletedBy::User)),
            _ => Err(not_proven("only the user can complete a goal without proof", "ask the user")),
        }
    }

    /// The run that pursues the goal completed: its rule held. The rule of a goal with commands runs them.
    pub(super) fn from_run(goal: &Goal) -> Self {
        let by = if goal.verify.is_empty() { CompletedBy::SelfUpdate } else { CompletedBy::Verification };
        Self::of(goal, by)
    }

    pub fn by(&self) -> CompletedBy {
        self.by
    }

    /// Whether this is about the goal as it stands.
    pub(super) fn is_for(&self, goal: &Goal) -> bool {
        self.subject == ProvenText::of(goal)
    }
}

/// Refuses a goal with open items, and names them.
fn refuse_open_items(goal: &Goal) -> Result<(), Refusal> {
    let open: Vec<String> =
        goal.open_items().map(|(number, item)| format!("{number}. {}", text::cut(&item.text, 80))).collect();
    if open.is_empty() {
        return Ok(());
    }
    let more = open.len().saturating_sub(OPEN_SHOWN);
    let shown = open.into_iter().take(OPEN_SHOWN).collect::<Vec<_>>().join("; ");
    let more = if more > 0 { format!("; {more} more") } else { String::new() };
    let hint = "prove them: update_goal with items [{\"item\": 1, \"proof\": \"what shows it\"}]";
    Err(not_proven(&format!("items without a proof: {shown}{more}"), hint))
}

fn not_proven(message: &str, hint: &str) -> Refusal {
    Refusal::NotProven { message: message.to_owned(), hint: hint.to_owned() }
}

#[cfg(test)]
mod tests;
