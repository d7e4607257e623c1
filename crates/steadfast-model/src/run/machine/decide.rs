//! Commits, and what they decide: the rule holds after the minimum, the maximum is reached, the agent says `stop`, nothing
//! has changed for too long, or the next iteration starts after a delay. Rules that only count ignore the minimum and `no_progress`. A
//! parallel stage ends when all its iterations are committed, whatever its rule.

use super::{Machine, RunReason};
use crate::run::rule::{self, Holding, Known};
use crate::run::{AttemptId, Check, Checked, Phase, Record, Rule, StagePlan, StageStatus, Success};

impl Machine<'_> {
    pub(super) fn checks_before(&self, stage: u32) -> Vec<Check> {
        let Some(plan) = self.plan.stage(stage) else { return Vec::new() };
        match plan.completion.holds(&self.known_before(stage, None)) {
            Holding::Unknown(checks) => checks,
            Holding::Yes(_) | Holding::No => Vec::new(),
        }
    }

    /// Before an iteration votes do not count, because no agent has worked since the last test.
    fn known_before<'f>(&self, stage: u32, facts: Option<&'f [Checked]>) -> Known<'f> {
        Known { agreeing: Some(0), ..self.known_so_far(stage, facts) }
    }

    /// What the state alone shows: votes, but no promises.
    fn known_so_far<'f>(&self, stage: u32, facts: Option<&'f [Checked]>) -> Known<'f> {
        let current = self.run.stage_state(stage);
        Known {
            iterations: current.map_or(0, |current| current.iterations),
            max: self.run.max_iterations(self.plan, stage),
            items: self.plan.stage(stage).map_or(0, |plan| plan.items.len()),
            agreeing: Some(current.map_or(0, |current| current.agreeing)),
            promises: &[],
            facts,
        }
    }

    /// The checks after an agent succeeded, before its iteration is committed.
    pub(super) fn checks_after(&self, stage: u32, success: &Success) -> Vec<Check> {
        let Some(plan) = self.plan.stage(stage).filter(|plan| !plan.parallel) else { return Vec::new() };
        let so_far = self.known_so_far(stage, None);
        let is_judged = plan.completion.is_judged(plan.judge.as_ref());
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
        let may_end = self.is_past_minimum(stage, plan, known.iterations);
        let mut checks = match plan.completion.holds(&known) {
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

    fn is_past_minimum(&self, stage: u32, plan: &StagePlan, iterations: u32) -> bool {
        let max = self.run.max_iterations(self.plan, stage);
        plan.completion.only_counts() || iterations >= plan.min_iterations.min(max)
    }

    pub(super) fn checked(&mut self, id: AttemptId, facts: &[Checked]) {
        let Some(attempt) = self.run.active.iter().find(|attempt| attempt.id == id) else { return };
        match &attempt.phase {
            Phase::Checking(success) => {
                let success = success.clone();
                for usage in facts.iter().filter_map(|fact| fact.usage.as_ref()) {
                    self.charge(id.stage, usage);
                }
                self.commit(id, success, facts);
            }
            Phase::CheckingBefore => {
                let Some(plan) = self.plan.stage(id.stage) else { return };
                self.run.active.retain(|attempt| attempt.id != id);
                match plan.completion.holds(&self.known_before(id.stage, Some(facts))) {
                    Holding::Yes(names) => self.end_stage(id.stage, StageStatus::Completed, names.join("+")),
                    Holding::No | Holding::Unknown(_) => self.start_checked(id),
                }
            }
            Phase::Running | Phase::Resting => return,
        }
        self.advance();
    }

    /// Commits the iteration in the same step as its decision, so a crash cannot separate them.
    pub(super) fn commit(&mut self, id: AttemptId, success: Box<Success>, facts: &[Checked]) {
        let Some(plan) = self.plan.stage(id.stage) else { return };
        self.run.active.retain(|attempt| attempt.id != id);
        let is_judge_missing = facts.is_empty() && plan.completion.is_judged(plan.judge.as_ref());
        let agrees = !is_judge_missing && rule::vote(&success, facts) == Some(true);
        let Some(stage) = self.state_mut(id.stage) else { return };
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
        let (promises, says_stop) = (success.promises.clone(), success.says_stop());
        self.records.push(Record::Committed { id, success, facts: facts.to_owned() });
        if self.run.cut_short || self.end_if_settled(id.stage, plan, &promises, facts) || plan.parallel {
            return;
        }
        // A goal is over when it is proven, not when an agent says so.
        let may_stop = !plan.stop_is_promise && !self.plan.pursues_goal();
        if says_stop && may_stop && self.is_past_minimum(id.stage, plan, self.iterations(id.stage)) {
            self.end_unheld(id.stage, RunReason::Stopped);
        } else {
            self.go_on(id.stage, plan);
        }
    }

    fn iterations(&self, stage: u32) -> u32 {
        self.run.stage_state(stage).map_or(0, |current| current.iterations)
    }

    /// Another iteration follows after the delay, unless the last ones changed nothing.
    fn go_on(&mut self, stage: u32, plan: &StagePlan) {
        let idle = self.run.stage_state(stage).map_or(0, |current| current.idle);
        let (most_idle, now) = (self.plan.limits.idle, self.now);
        if most_idle > 0 && idle >= most_idle && !plan.completion.only_counts() {
            self.fail_stage(stage, RunReason::NoProgress, "");
        } else if plan.delay_ms > 0
            && let Some(current) = self.state_mut(stage)
        {
            current.delay_until_ms = Some(now.saturating_add(plan.delay_ms));
        }
    }

    /// Ends the stage if its commits are enough. Called without promises and facts for stages with nothing to do, and for
    /// runs that were stopped between their last commit and its decision.
    pub(super) fn end_if_settled(
        &mut self,
        stage: u32,
        plan: &StagePlan,
        promises: &[String],
        facts: &[Checked],
    ) -> bool {
        if plan.parallel {
            return self.end_if_all_done(stage, plan);
        }
        let known = Known { promises, ..self.known_so_far(stage, Some(facts)) };
        match plan.completion.holds(&known) {
            Holding::Yes(names) if self.is_past_minimum(stage, plan, known.iterations) => {
                self.end_stage(stage, StageStatus::Completed, names.join("+"));
            }
            _ if known.iterations >= known.max => self.end_unheld(stage, RunReason::MaxIterations),
            _ => return false,
        }
        true
    }

    /// A parallel stage is over when no iteration is left. It failed only if none of them succeeded.
    fn end_if_all_done(&mut self, stage: u32, plan: &StagePlan) -> bool {
        let Some(current) = self.run.stage_state(stage) else { return false };
        let (done, given_up) = (current.iterations, current.given_up);
        if done.saturating_add(given_up) < self.width(stage, plan) || self.is_active(stage) {
            return false;
        }
        if done == 0 && given_up > 0 {
            let reason = current.reason.clone().unwrap_or_else(|| RunReason::Errors.into());
            self.end_stage(stage, StageStatus::Failed, reason);
        } else {
            let rule = if plan.completion == Rule::AllItems { Rule::AllItems } else { Rule::FixedN };
            self.end_stage(stage, StageStatus::Completed, rule.name().to_owned());
        }
        true
    }

    /// How many iterations a parallel stage has.
    pub(super) fn width(&self, stage: u32, plan: &StagePlan) -> u32 {
        let max = self.run.max_iterations(self.plan, stage);
        match plan.completion {
            Rule::AllItems => u32::try_from(plan.items.len()).map_or(max, |items| items.min(max)),
            _ => max,
        }
    }
}
