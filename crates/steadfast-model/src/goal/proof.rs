//! Proof that an objective is met. A goal is completed with a [`Proof`] only, and each kind of proof has one
//! constructor that looks at the facts: evidence of all verification commands, the evaluator's newest verdict, a
//! person's command, a run whose rule held, or the worker's own word where the goal asks for nothing else.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr};

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
        let newest = |command: &String| evidence.iter().rfind(|run| run.command == *command);
        let passed = |command: &String| newest(command).is_some_and(Evidence::passed);
        match goal.verify.iter().find(|command| !passed(command)) {
            None if !goal.verify.is_empty() => Ok(Self::of(goal, CompletedBy::Verification)),
            None => Err(not_proven("the goal has no verification commands", "start a goal with --verify")),
            Some(command) => Err(not_proven(
                &format!("`{command}` has not passed"),
                "fix what its output shows; `/goal-verify` runs the checks again",
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
        if !goal.verify.is_empty()
            && !verified.is_some_and(|proof| proof.by == CompletedBy::Verification && proof.is_for(goal))
        {
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
        Err(not_proven("the verification commands of the goal must pass", "`/goal-verify` runs them"))
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
        self.goal_id == goal.goal_id && self.objective_hash == text::fingerprint(&goal.objective)
    }
}

fn not_proven(message: &str, hint: &str) -> Refusal {
    Refusal::NotProven { message: message.to_owned(), hint: hint.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goal::change::{complete, edit};
    use crate::testing::{START, goal};

    const CHECKS: [&str; 2] = ["cargo test", "cargo clippy"];

    fn checked_goal() -> Goal {
        Goal { verify: CHECKS.map(str::to_owned).to_vec(), ..goal() }
    }

    fn ended(command: &str, exit_code: Option<i32>) -> Evidence {
        Evidence {
            command: command.to_owned(),
            exit_code,
            timed_out: exit_code.is_none(),
            duration_ms: 1,
            output_sha256: String::new(),
            output_tail: String::new(),
            git_commit: None,
            git_dirty: None,
            created_at_ms: START,
        }
    }

    fn all_passed() -> [Evidence; 2] {
        CHECKS.map(|command| ended(command, Some(0)))
    }

    fn verdict(goal: &Goal, verdict: &str) -> Verdict {
        Verdict { verdict: verdict.to_owned(), objective_hash: text::fingerprint(&goal.objective) }
    }

    /// The message and the hint of a refused proof.
    fn refusal(result: Result<Proof, Refusal>) -> (String, String) {
        match result {
            Err(Refusal::NotProven { message, hint }) => (message, hint),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn evidence_proves_a_goal_only_if_every_command_passed() {
        let goal = checked_goal();
        assert_eq!(Proof::from_evidence(&goal, &all_passed()).unwrap().by(), CompletedBy::Verification);
        let [first, second] = all_passed();
        for (evidence, named) in [
            (vec![], CHECKS[0]),
            (vec![first.clone()], CHECKS[1]),
            (vec![second.clone()], CHECKS[0]),
            (vec![first.clone(), ended(CHECKS[1], Some(1))], CHECKS[1]),
            (vec![first.clone(), ended(CHECKS[1], None)], CHECKS[1]),
            (vec![first.clone(), ended("cargo clippy --fix", Some(0))], CHECKS[1]),
            (vec![first.clone(), first], CHECKS[1]),
        ] {
            let (message, hint) = refusal(Proof::from_evidence(&goal, &evidence));
            assert_eq!(message, format!("`{named}` has not passed"), "{evidence:?}");
            assert!(hint.contains("`/goal-verify`"), "{hint}");
        }
    }

    #[test]
    fn evidence_proves_nothing_for_a_goal_without_commands() {
        for evidence in [&[][..], &all_passed()[..]] {
            let (message, _) = refusal(Proof::from_evidence(&goal(), evidence));
            assert_eq!(message, "the goal has no verification commands");
        }
    }

    #[test]
    fn a_verdict_must_exist_say_complete_and_be_about_this_text() {
        let goal = goal();
        let complete = verdict(&goal, "complete");
        assert_eq!(Proof::from_verdict(&goal, Some(&complete), None).unwrap().by(), CompletedBy::Evaluator);
        let edited = edit(&goal, "Other".into(), START).unwrap().goal;
        for (goal, newest, expected) in [
            (&goal, None, "the evaluator has given no verdict on this goal"),
            (&goal, Some(verdict(&goal, "incomplete")), "the newest verdict is 'incomplete'"),
            (&goal, Some(verdict(&goal, "")), "the newest verdict is ''"),
            (&goal, Some(verdict(&goal, "Complete")), "the newest verdict is 'Complete'"),
            (&edited, Some(complete), "the newest verdict is about an earlier text of the objective"),
        ] {
            let (message, hint) = refusal(Proof::from_verdict(goal, newest.as_ref(), None));
            assert_eq!(message, expected);
            assert!(hint.contains("goal-evaluator"), "{hint}");
        }
    }

    #[test]
    fn a_verdict_on_a_goal_with_commands_needs_their_proof() {
        let goal = checked_goal();
        let newest = verdict(&goal, "complete");
        let verified = Proof::from_evidence(&goal, &all_passed()).unwrap();
        assert_eq!(Proof::from_verdict(&goal, Some(&newest), Some(&verified)).unwrap().by(), CompletedBy::Evaluator);
        let of_other = Proof::from_evidence(&checked_goal(), &all_passed()).unwrap();
        for verified in [None, Some(&of_other)] {
            let (message, _) = refusal(Proof::from_verdict(&goal, Some(&newest), verified));
            assert_eq!(message, "the verification commands of the goal must pass");
        }
        // Passed commands do not replace the verdict.
        let incomplete = verdict(&goal, "incomplete");
        refusal(Proof::from_verdict(&goal, Some(&incomplete), Some(&verified)));
        refusal(Proof::from_verdict(&goal, None, Some(&verified)));
    }

    #[test]
    fn only_the_user_completes_a_goal_without_proof() {
        for goal in [goal(), checked_goal()] {
            assert_eq!(Proof::from_user(&goal, Actor::User).unwrap().by(), CompletedBy::User);
            for actor in [Actor::Worker, Actor::Evaluator, Actor::Steadfast] {
                let (message, hint) = refusal(Proof::from_user(&goal, actor));
                assert_eq!(message, "only the user can complete a goal without proof", "{actor}");
                assert_eq!(hint, "ask the user", "{actor}");
            }
        }
    }

    #[test]
    fn the_worker_cannot_complete_a_goal_with_commands_by_its_word() {
        assert_eq!(Proof::from_worker(&goal()).unwrap().by(), CompletedBy::SelfUpdate);
        let (message, hint) = refusal(Proof::from_worker(&checked_goal()));
        assert_eq!(message, "the verification commands of the goal must pass");
        assert!(hint.contains("`/goal-verify`"), "{hint}");
    }

    #[test]
    fn a_run_proves_a_goal_with_commands_by_them() {
        assert_eq!(Proof::from_run(&goal()).by(), CompletedBy::SelfUpdate);
        assert_eq!(Proof::from_run(&checked_goal()).by(), CompletedBy::Verification);
    }

    #[test]
    fn a_proof_completes_only_its_own_goal_and_text() {
        let (plain, checked) = (goal(), checked_goal());
        let verified = Proof::from_evidence(&checked, &all_passed()).unwrap();
        let judged = Proof::from_verdict(&checked, Some(&verdict(&checked, "complete")), Some(&verified)).unwrap();
        let cases = [
            (&plain, Proof::from_worker(&plain).unwrap()),
            (&plain, Proof::from_user(&plain, Actor::User).unwrap()),
            (&plain, Proof::from_run(&plain)),
            (&checked, verified),
            (&checked, judged),
        ];
        for (goal, proof) in cases {
            assert!(complete(goal, &proof, START).is_ok(), "{proof:?}");
            let edited = edit(goal, "Other".into(), START).unwrap().goal;
            // The same objective and session, started again.
            let other = Goal { goal_id: "other".into(), ..goal.clone() };
            for unproven in [edited, other] {
                let refused = complete(&unproven, &proof, START).unwrap_err();
                let expected = "the proof is for another goal, or for an earlier text of the objective";
                assert_eq!(refused.to_string(), expected, "{proof:?}");
                assert_eq!(refused.hint(), "prove the goal again");
            }
        }
    }

    #[test]
    fn a_proof_stays_good_while_the_text_is_the_same() {
        let goal = goal();
        let proof = Proof::from_worker(&goal).unwrap();
        let edited = edit(&goal, "Other".into(), START).unwrap().goal;
        let restored = edit(&edited, goal.objective, START).unwrap().goal;
        assert!(complete(&restored, &proof, START).is_ok());
    }
}
