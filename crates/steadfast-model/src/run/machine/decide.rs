//! Commits, and what they decide: the rule holds after the minimum, the maximum is reached, nothing has changed for too
//! long, or the next iteration starts after a delay. Rules that only count ignore the minimum and `no_progress`. A
//! parallel stage ends when all its iterations are committed, whatever its rule.

use super::{Machine, RunReason, RunStatus};
use crate::run::rule::{self, Holding, Known};
use crate::run::{
    Act, AttemptId, Check, Checked, Phase, Record, Rule, RunKind, StagePlan, StageStatus, Success, Wait, WaitReason,
};

impl Machine<'_> {
    pub(super) fn checks_before(&self) -> Vec<Check> {
        let Some(stage) = self.stage_plan() else { return Vec::new() };
        match stage.completion.holds(&self.known_before(None)) {
            Holding::Unknown(checks) => checks,
            Holding::Yes(_) | Holding::No => Vec::new(),
        }
    }

    /// Before an iteration votes do not count, because no agent has worked since the last test.
    fn known_before<'f>(&self, facts: Option<&'f [Checked]>) -> Known<'f> {
        Known { agreeing: Some(0), ..self.known_so_far(facts) }
    }

    /// What the state alone shows: votes, but no promises.
    fn known_so_far<'f>(&self, facts: Option<&'f [Checked]>) -> Known<'f> {
        let stage = self.run.stage_state(self.run.stage);
        Known {
            iterations: stage.map_or(0, |stage| stage.iterations),
            max: self.run.max_iterations(self.plan, self.run.stage),
            items: self.stage_plan().map_or(0, |plan| plan.items.len()),
            agreeing: Some(stage.map_or(0, |stage| stage.agreeing)),
            promises: &[],
            facts,
        }
    }

    /// The checks after an agent succeeded, before its iteration is committed.
    pub(super) fn checks_after(&self, success: &Success) -> Vec<Check> {
        let Some(stage) = self.stage_plan().filter(|stage| !stage.parallel) else { return Vec::new() };
        let so_far = self.known_so_far(None);
        let is_judged = stage.completion.is_judged(stage.judge.as_ref());
        let agrees = success.result.vote() == Some(true);
        let known = Known {
            iterations: so_far.iterations.saturating_add(1),
            agreeing: match so_far.agreeing {
                _ if is_judged => None,
                Some(agreeing) if agrees => Some(agreeing.saturating_add(1)),
                _ => Some(0),
            },
            promises: &success.promises,
            ..so_far
        };
        let may_end = self.is_past_minimum(stage, known.iterations);
        let mut checks = match stage.completion.holds(&known) {
            Holding::Yes(_) if may_end => return Vec::new(),
            Holding::Unknown(checks) if may_end => checks,
            _ => Vec::new(),
        };
        // Ask the judge even if it decides nothing yet: a plateau counts verdicts of iterations in a row.
        if is_judged && !checks.contains(&Check::Judge) {
            checks.push(Check::Judge);
        }
        checks
    }

    fn is_past_minimum(&self, stage: &StagePlan, iterations: u32) -> bool {
        let max = self.run.max_iterations(self.plan, self.run.stage);
        stage.completion.only_counts() || iterations >= stage.min_iterations.min(max)
    }

    pub(super) fn checked(&mut self, id: AttemptId, facts: &[Checked]) {
        let Some(attempt) = self.run.active.iter().find(|attempt| attempt.id == id) else { return };
        match &attempt.phase {
            Phase::Checking(success) => {
                let success = success.clone();
                self.commit(id, success, facts);
            }
            Phase::CheckingBefore => {
                let Some(stage) = self.stage_plan() else { return };
                self.run.active.retain(|attempt| attempt.id != id);
                match stage.completion.holds(&self.known_before(Some(facts))) {
                    Holding::Yes(names) => self.end_stage(StageStatus::Completed, names.join("+")),
                    Holding::No | Holding::Unknown(_) => self.start_checked(id),
                }
            }
            Phase::Running | Phase::Resting => return,
        }
        self.advance();
    }

    /// Commits the iteration in the same step as its decision, so a crash cannot separate them.
    pub(super) fn commit(&mut self, id: AttemptId, success: Box<Success>, facts: &[Checked]) {
        let Some(plan) = self.stage_plan() else { return };
        self.run.active.retain(|attempt| attempt.id != id);
        let is_judge_missing = facts.is_empty() && plan.completion.is_judged(plan.judge.as_ref());
        let agrees = !is_judge_missing && rule::vote(&success, facts) == Some(true);
        let Some(stage) = self.stage_state_mut() else { return };
        stage.iterations = stage.iterations.saturating_add(1);
        if !plan.parallel {
            stage.agreeing = if agrees { stage.agreeing.saturating_add(1) } else { 0 };
            // The first iteration has no footprint to compare with. An empty footprint could not be taken.
            let is_same = match &stage.footprint {
                Some(before) => !before.is_empty() && *before == success.footprint,
                None => success.untouched,
            };
            stage.idle = if is_same { stage.idle.saturating_add(1) } else { 0 };
            stage.footprint = Some(success.footprint.clone());
        }
        let promises = success.promises.clone();
        self.records.push(Record::Committed { id, success, facts: facts.to_owned() });
        if !self.run.cut_short {
            self.decide(plan, &promises, facts);
        }
    }

    fn decide(&mut self, plan: &StagePlan, promises: &[String], facts: &[Checked]) {
        if self.end_if_settled(plan, promises, facts) || plan.parallel {
            return;
        }
        let idle = self.run.stage_state(self.run.stage).map_or(0, |stage| stage.idle);
        let most_idle = self.plan.limits.idle;
        if most_idle > 0 && idle >= most_idle && !plan.completion.only_counts() {
            self.wind_down(RunStatus::Failed, RunReason::NoProgress);
        } else if plan.delay_ms > 0 {
            let until_ms = self.now.saturating_add(plan.delay_ms);
            self.run.wait = Some(Wait { until_ms, why: WaitReason::Delay });
        }
    }

    /// Ends the stage if its commits are enough. Called without promises and facts for stages with nothing to do, and for
    /// runs that were stopped between their last commit and its decision.
    pub(super) fn end_if_settled(&mut self, plan: &StagePlan, promises: &[String], facts: &[Checked]) -> bool {
        let known = Known { promises, ..self.known_so_far(Some(facts)) };
        if plan.parallel {
            let is_done = known.iterations >= self.width(plan) && self.run.active.is_empty();
            if is_done {
                let rule = if plan.completion == Rule::AllItems { Rule::AllItems } else { Rule::FixedN };
                self.end_stage(StageStatus::Completed, rule.name().to_owned());
            }
            return is_done;
        }
        match plan.completion.holds(&known) {
            Holding::Yes(names) if self.is_past_minimum(plan, known.iterations) => {
                self.end_stage(StageStatus::Completed, names.join("+"));
            }
            _ if known.iterations >= known.max => {
                self.end_stage(StageStatus::Completed, RunReason::MaxIterations.into());
            }
            _ => return false,
        }
        true
    }

    /// How many iterations a parallel stage has.
    pub(super) fn width(&self, plan: &StagePlan) -> u32 {
        let max = self.run.max_iterations(self.plan, self.run.stage);
        match plan.completion {
            Rule::AllItems => u32::try_from(plan.items.len()).map_or(max, |items| items.min(max)),
            _ => max,
        }
    }

    /// Ends the current stage and moves to the next one. After the last stage the run is over: a loop ends with the
    /// reason of its stage, a pipeline with `completed`, or `max_iterations` if the rule of its last stage did not hold.
    pub(super) fn end_stage(&mut self, status: StageStatus, reason: String) {
        self.close_stage(status, reason.clone());
        let next = self.run.stage.saturating_add(1);
        if self.plan.stage(next).is_some() {
            self.run.stage = next;
            return;
        }
        let reason = match self.plan.kind {
            RunKind::Pipeline if reason != RunReason::MaxIterations.to_string() => RunReason::Completed.into(),
            RunKind::Loop | RunKind::Pipeline => reason,
        };
        self.finish(RunStatus::Completed, reason);
    }

    pub(super) fn close_stage(&mut self, status: StageStatus, reason: String) {
        let (stage, now) = (self.run.stage, self.now);
        if let Some(state) = self.stage_state_mut() {
            state.status = status;
            state.reason = Some(reason.clone());
            state.completed_at_ms = Some(now);
            self.records.push(Record::StageEnded { stage, status, reason });
        }
    }

    pub(super) fn finish(&mut self, status: RunStatus, reason: String) {
        self.run.status = status;
        self.run.reason = Some(reason.clone());
        self.run.completed_at_ms = Some(self.now);
        self.run.stopping = None;
        self.run.cut_short = false;
        self.records.push(Record::Finished { status, reason });
        self.acts.push(Act::Finish);
    }
}
