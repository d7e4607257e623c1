//! The simulated environment of the machine: agents, commands, a clock, an engine that may die, and the saved tables.
//! It checks the invariants after each step.

use std::collections::{BTreeMap, BTreeSet};

use super::super::*;
use crate::run::{Checked, Failure, Then};

/// How often each failure may happen.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Disturbance {
    pub(super) crashes: u32,
    pub(super) stops: u32,
    pub(super) orphans: u32,
    pub(super) reopenings: u32,
    /// Whether a run that ended by itself is not reopened.
    pub(super) only_cut_short: bool,
}

/// A reproducible random number generator.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        usize::try_from(mix(self.0) % sides.max(1) as u64).unwrap()
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

pub(super) struct World {
    plan: Plan,
    pub(super) run: Run,
    now: Millis,
    script: u64,
    fate: Dice,
    disturbance: Disturbance,
    /// Agents that run, or whose end was not read yet.
    agents: BTreeSet<AttemptId>,
    /// The number of ended attempts that the machine got, by iteration.
    reported: BTreeMap<(u32, u32), u64>,
    /// The memory of the current engine; lost when it dies.
    checks: Vec<(AttemptId, Vec<Check>)>,
    /// Stages whose condition is being tested.
    deciding: BTreeSet<u32>,
    wake_at: Option<Millis>,
    /// The tables.
    attempts: BTreeSet<AttemptId>,
    commits: Vec<(u32, u32)>,
}

enum Turn {
    AgentEnds(AttemptId),
    AgentVanishes(AttemptId),
    ChecksEnd(usize),
    Decides(u32),
    Answers(u32),
    Wakes,
    Crashes,
    IsStopped,
    IsOrphaned,
}

impl World {
    pub(super) fn new(plan: Plan, script: u64, fate: u64, disturbance: Disturbance) -> Self {
        let run = begin(&plan, START);
        Self {
            plan,
            run,
            now: START,
            script,
            fate: Dice(fate),
            disturbance,
            agents: BTreeSet::new(),
            reported: BTreeMap::new(),
            checks: Vec::new(),
            deciding: BTreeSet::new(),
            wake_at: None,
            attempts: BTreeSet::new(),
            commits: Vec::new(),
        }
    }

    /// What was committed, in the order of stages and iterations.
    pub(super) fn committed(&self) -> Vec<(u32, u32)> {
        let mut all = self.commits.clone();
        all.sort_unstable();
        all
    }

    /// How the run ended, and after that each stage.
    pub(super) fn ends(&self) -> Vec<String> {
        let run = format!("{} {:?}", self.run.status, self.run.reason);
        let stages = self.run.stages.iter();
        let stages = stages.map(|stage| format!("{} {:?} {}", stage.status, stage.reason, stage.iterations));
        std::iter::once(run).chain(stages).collect()
    }

    /// From the start to the last end.
    pub(super) fn live(&mut self) {
        self.engine_starts();
        for _ in 0..20_000 {
            if self.run.status == RunStatus::Running {
                self.live_on();
            } else if !self.reopened() {
                return;
            }
        }
        panic!("the run does not end: {:?}", self.run);
    }

    fn live_on(&mut self) {
        let mut turns: Vec<Turn> = self.agents.iter().map(|id| Turn::AgentEnds(*id)).collect();
        turns.extend((0..self.checks.len()).map(Turn::ChecksEnd));
        turns.extend(self.deciding.iter().map(|stage| Turn::Decides(*stage)));
        turns.extend(stages_in(&self.run, StageStatus::AwaitingApproval).into_iter().map(Turn::Answers));
        turns.extend(self.wake_at.map(|_| Turn::Wakes));
        assert!(!turns.is_empty(), "nothing will ever happen: {:?}", self.run);
        let Disturbance { crashes, stops, orphans, .. } = self.disturbance;
        turns.extend((crashes > 0).then_some(Turn::Crashes));
        turns.extend((stops > 0).then_some(Turn::IsStopped));
        turns.extend((orphans > 0).then_some(Turn::IsOrphaned));
        if crashes > 0 {
            turns.extend(self.agents.iter().map(|id| Turn::AgentVanishes(*id)));
        }
        let chosen = self.fate.roll(turns.len());
        match turns.swap_remove(chosen) {
            Turn::AgentEnds(id) => self.agent_ends(id),
            Turn::AgentVanishes(id) => {
                self.disturbance.crashes -= 1;
                self.agents.remove(&id);
                self.take_step(RunEvent::Ended { id, outcome: lost() });
            }
            Turn::ChecksEnd(number) => {
                let (id, checks) = self.checks.remove(number);
                let facts = checks.into_iter().map(|check| self.looks_up(id, check)).collect();
                self.take_step(RunEvent::Checked { id, facts });
            }
            Turn::Decides(stage) => {
                self.deciding.remove(&stage);
                let holds = Some(!self.chance(AttemptId { stage, ..AttemptId::default() }, 30).is_multiple_of(3));
                self.take_step(RunEvent::Decided { stage, holds, detail: String::new() });
            }
            Turn::Answers(stage) => {
                let approved = !self.chance(AttemptId { stage, ..AttemptId::default() }, 31).is_multiple_of(3);
                self.take_step(RunEvent::Answered { stage, approved, note: None });
            }
            Turn::Wakes => {
                self.now = self.now.max(self.wake_at.take().unwrap_or(self.now));
                self.take_step(RunEvent::Woke);
            }
            Turn::Crashes => {
                self.disturbance.crashes -= 1;
                self.engine_starts();
            }
            Turn::IsStopped => {
                self.disturbance.stops -= 1;
                self.take_step(RunEvent::StopRequested(killed()));
            }
            Turn::IsOrphaned => {
                self.disturbance.orphans -= 1;
                self.checks.clear();
                self.deciding.clear();
                self.wake_at = None;
                let step = orphaned(&self.plan, self.run.clone(), self.now);
                self.save(&step);
            }
        }
    }

    /// Reopens the run after an end, if wanted; returns whether it did.
    fn reopened(&mut self) -> bool {
        let is_cut_short = matches!(self.run.status, RunStatus::Killed | RunStatus::UnknownTermination);
        if self.disturbance.reopenings == 0 || (self.disturbance.only_cut_short && !is_cut_short) {
            return false;
        }
        self.disturbance.reopenings -= 1;
        let max = match self.run.end_reason() {
            Some(RunReason::MaxIterations) => Some(self.run.max_iterations(&self.plan, self.run.stage) + 1),
            _ => None,
        };
        match reopen(&self.plan, &self.run, max, self.now) {
            Ok(step) => {
                self.save(&step);
                self.engine_starts();
                true
            }
            Err(_) => false,
        }
    }

    /// A new engine: it remembers nothing, and reports missing agents to the machine.
    fn engine_starts(&mut self) {
        self.checks.clear();
        self.deciding.clear();
        self.wake_at = None;
        self.take_step(RunEvent::Started);
        let running =
            self.run.active.iter().filter(|attempt| attempt.phase == Phase::Running).map(|attempt| attempt.id);
        let missing: Vec<AttemptId> = running.filter(|id| !self.agents.contains(id)).collect();
        for id in missing {
            self.take_step(RunEvent::Ended { id, outcome: lost() });
        }
    }

    fn agent_ends(&mut self, id: AttemptId) {
        let so_far = self.reported.get(&(id.stage, id.iteration)).copied().unwrap_or(0);
        let outcome = self.outcome(id, so_far);
        self.take_step(RunEvent::Ended { id, outcome });
        // An engine that died before it saved leaves the exit behind, and the next one reads it.
        if !self.run.active.iter().any(|attempt| attempt.id == id && attempt.phase == Phase::Running) {
            self.agents.remove(&id);
            self.reported.insert((id.stage, id.iteration), so_far + 1);
        }
    }

    /// One step of the engine: compute, save, act; it may die in between.
    fn take_step(&mut self, event: RunEvent) {
        self.now += 7;
        let step = step(&self.plan, self.run.clone(), event, self.now);
        let acts = step.acts.clone();
        let dies_at = if self.disturbance.crashes > 0 && self.fate.roll(4) == 0 {
            self.disturbance.crashes -= 1;
            Some(self.fate.roll(acts.len() + 2))
        } else {
            None
        };
        if dies_at == Some(0) {
            self.engine_starts();
            return;
        }
        self.save(&step);
        for (act, number) in acts.into_iter().zip(1..) {
            if dies_at == Some(number) {
                self.engine_starts();
                return;
            }
            self.act(act);
        }
        if dies_at.is_some() {
            self.engine_starts();
        }
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Start(id) => {
                let is_twin = |other: &AttemptId| (other.stage, other.iteration) == (id.stage, id.iteration);
                assert!(!self.agents.iter().any(is_twin), "two agents for {id:?}");
                assert!(self.attempts.contains(&id), "{id:?} starts before it is written down");
                self.agents.insert(id);
            }
            Act::Check { id, checks } => {
                assert!(!checks.is_empty());
                self.checks.retain(|(other, _)| *other != id);
                self.checks.push((id, checks));
            }
            Act::Stop(ids) => {
                for id in ids {
                    if self.agents.remove(&id) {
                        self.take_step(RunEvent::Ended { id, outcome: failure(FailureKind::Stopped) });
                    }
                }
            }
            Act::Decide(stage) => {
                self.deciding.insert(stage);
            }
            Act::WakeAt(at) => self.wake_at = Some(at),
            Act::Finish => assert_ne!(self.run.status, RunStatus::Running),
        }
    }

    fn save(&mut self, step: &Step) {
        for record in &step.records {
            match record {
                Record::AttemptStarted { id } => assert!(self.attempts.insert(*id), "{id:?} twice"),
                Record::AttemptEnded { id, .. } => assert!(self.attempts.contains(id), "{id:?} never started"),
                Record::Committed { id, .. } => self.check_commit(*id),
                Record::StageEnded { stage, reason, .. } => self.check_stage_end(*stage, reason),
                _ => {}
            }
        }
        let json = serde_json::to_string(&step.run).unwrap();
        self.run = serde_json::from_str(&json).unwrap();
        assert_eq!(self.run, step.run);
        self.check_state();
    }

    fn check_commit(&mut self, id: AttemptId) {
        let iteration = (id.stage, id.iteration);
        assert!(!self.commits.contains(&iteration), "{iteration:?} is committed twice");
        let before = self.commits.iter().filter(|(stage, _)| *stage == id.stage).count();
        if !self.plan.stage(id.stage).unwrap().parallel {
            assert_eq!(usize::try_from(id.iteration).unwrap(), before + 1, "{iteration:?} skips one");
        }
        self.commits.push(iteration);
    }

    fn check_stage_end(&self, stage: u32, reason: &str) {
        let plan = self.plan.stage(stage).unwrap();
        // Iterations that failed for good leave gaps where the others go on.
        let is_whole = plan.parallel && plan.on_fail == Then::Stop;
        if is_whole && ["fixed-n", "all-items"].contains(&reason) {
            let of_stage: Vec<u32> = self.committed().into_iter().filter(|id| id.0 == stage).map(|id| id.1).collect();
            let expected: Vec<u32> = (1..).take(of_stage.len()).collect();
            assert_eq!(of_stage, expected, "stage {stage} has gaps");
        }
    }

    fn check_state(&self) {
        let run = &self.run;
        let room = self.plan.limits.parallel.max(1);
        let is_agent = |attempt: &&ActiveAttempt| matches!(attempt.phase, Phase::Running | Phase::Resting);
        let agents = run.active.iter().filter(is_agent).count();
        assert!(agents <= usize::try_from(room).unwrap(), "too many at once: {run:?}");
        for (stage, number) in self.plan.stages.iter().zip(1..).filter(|(stage, _)| !stage.parallel) {
            let active = run.active.iter().filter(|attempt| attempt.id.stage == number).count();
            assert!(active <= 1, "two at once in {}: {run:?}", stage.name);
        }
        let iterations: BTreeSet<(u32, u32)> =
            run.active.iter().map(|attempt| (attempt.id.stage, attempt.id.iteration)).collect();
        assert_eq!(iterations.len(), run.active.len(), "two active attempts of one iteration: {run:?}");
        for attempt in &run.active {
            let iteration = (attempt.id.stage, attempt.id.iteration);
            assert!(!self.commits.contains(&iteration), "{iteration:?} again");
        }
        for (state, stage) in run.stages.iter().zip(1..) {
            let commits = self.commits.iter().filter(|commit| commit.0 == stage).count();
            assert_eq!(usize::try_from(state.iterations).unwrap(), commits, "stage {stage}");
        }
        if !matches!(run.status, RunStatus::Running | RunStatus::UnknownTermination) {
            assert!(run.active.is_empty() && self.running_agents() == 0, "something runs after the end: {run:?}");
            assert!(run.reason.is_some() && run.completed_at_ms.is_some() && run.wait.is_none());
        }
    }

    /// Agents whose end is not in the saved state.
    fn running_agents(&self) -> usize {
        let is_running = |id: &&AttemptId| {
            self.run.active.iter().any(|attempt| attempt.id == **id && attempt.phase == Phase::Running)
        };
        self.agents.iter().filter(is_running).count()
    }

    fn chance(&self, id: AttemptId, salt: u64) -> u64 {
        let place = (u64::from(id.stage) << 32) | u64::from(id.iteration);
        mix(self.script ^ mix(place) ^ salt.wrapping_mul(0x2545_f491_4f6c_dd1d))
    }

    /// An iteration's agents fail up to three times and then succeed, the same way each time.
    fn outcome(&self, id: AttemptId, so_far: u64) -> Outcome {
        if so_far < self.chance(id, 1) % 4 {
            let kinds = [
                FailureKind::Transient,
                FailureKind::TimedOut,
                FailureKind::NoResult,
                FailureKind::Exit,
                FailureKind::UsageLimit { until_ms: None },
                FailureKind::UsageLimit { until_ms: Some(self.now + HOUR) },
            ];
            let kind = usize::try_from(self.chance(id, 2 + so_far) % 6).unwrap();
            return failure(kinds[kind]);
        }
        // One in sixteen gives no vote the first time.
        let forgets = so_far == self.chance(id, 1) % 4 && self.chance(id, 10).is_multiple_of(16);
        let result = AgentResult {
            plateau: (!forgets).then_some(self.chance(id, 11).is_multiple_of(2)),
            ..AgentResult::default()
        };
        let promises = if self.chance(id, 12).is_multiple_of(4) { vec!["DONE".to_owned()] } else { Vec::new() };
        let footprint = format!("{}", self.chance(id, 13) % 2);
        Outcome::Succeeded(Box::new(Success { result, promises, ..success(&footprint) }))
    }

    fn looks_up(&self, id: AttemptId, check: Check) -> Checked {
        let kind = match &check {
            Check::BeadsEmpty(_) => 1,
            Check::Command(_) => 2,
            Check::Verify(_) => 3,
            Check::Checklist(_) => 4,
            Check::Judge => 5,
            Check::Merged => 6,
        };
        let is_before =
            self.run.active.iter().any(|attempt| attempt.id == id && attempt.phase == Phase::CheckingBefore);
        let holds = match self.chance(id, 20 + kind + 100 * u64::from(is_before)) % 8 {
            0 | 1 => Some(true),
            2 => None,
            _ => Some(false),
        };
        Checked { check, holds, detail: String::new(), usage: None }
    }
}

fn lost() -> Outcome {
    let Outcome::Failed(failed) = failure(FailureKind::Lost) else { unreachable!() };
    Outcome::Failed(Failure { usage: crate::run::AttemptUsage::default(), ..failed })
}
