//! Plans, outcomes and a driver of the run machine that writes down what each step did in a few words.

use crate::clock::Millis;
use crate::reading::Tokens;
use crate::run::machine::{begin, reopen, step};
use crate::run::{
    Act, AgentDecision, AgentKind, AgentPlan, AgentResult, AttemptId, AttemptUsage, Check, Checked, Failure,
    FailureKind, Outcome, Plan, Record, Rule, Run, RunEvent, RunKind, RunLimits, RunPurpose, RunStatus, StagePlan,
    Step, Stopping, Success,
};
use crate::testing::START;

pub fn agent() -> AgentPlan {
    AgentPlan::new(AgentKind::default())
}

pub fn stage(completion: Rule, runs: u32) -> StagePlan {
    StagePlan {
        loop_type: Some("work".into()),
        prompt: "Go on with ${SESSION}.".into(),
        min_iterations: 0,
        timeout_ms: 60_000,
        ..StagePlan::new("work", completion, runs)
    }
}

/// A loop of one stage.
pub fn loop_of(stage: StagePlan) -> Plan {
    let limits = RunLimits::default();
    Plan {
        name: "auth".into(),
        kind: RunKind::Loop,
        title: "work".into(),
        pipeline_file: None,
        stages: vec![stage],
        limits,
        purpose: RunPurpose::Definition,
    }
}

pub fn pipeline_of(stages: Vec<StagePlan>) -> Plan {
    Plan {
        name: "refine".into(),
        kind: RunKind::Pipeline,
        title: "full-refine".into(),
        pipeline_file: Some("full-refine.yaml".into()),
        stages,
        limits: RunLimits::default(),
        purpose: RunPurpose::Definition,
    }
}

/// `"1.2.3"`: stage, iteration, attempt.
pub fn id(text: &str) -> AttemptId {
    let numbers: Vec<u32> = text.split('.').map(|number| number.parse().unwrap()).collect();
    AttemptId { stage: numbers[0], iteration: numbers[1], attempt: numbers[2] }
}

/// An agent that did something new and says nothing about it.
pub fn success(footprint: &str) -> Success {
    Success {
        usage: AttemptUsage {
            tokens: Tokens { input: 60, output: 30, cache_creation: 10, cache_creation_1h: 0, cache_read: 500 },
            cost_micros: 2_000,
            ..AttemptUsage::default()
        },
        footprint: footprint.into(),
        started_at_ms: START,
        ended_at_ms: START,
        ..Success::default()
    }
}

pub fn failure(kind: FailureKind) -> Outcome {
    Outcome::Failed(Failure {
        kind,
        message: format!("it was {}", kind.name()),
        exit_code: Some(1),
        usage: AttemptUsage {
            tokens: Tokens { input: 5, ..Tokens::default() },
            cost_micros: 100,
            ..AttemptUsage::default()
        },
        started_at_ms: Some(START),
        ended_at_ms: START,
    })
}

pub fn killed() -> Stopping {
    Stopping { status: RunStatus::Killed, reason: "killed by user".into() }
}

/// Drives a run step by step.
pub struct Drive {
    pub plan: Plan,
    pub run: Run,
    pub now: Millis,
    successes: u32,
}

impl Drive {
    pub fn new(plan: Plan) -> Self {
        let run = begin(&plan, START);
        Self { plan, run, now: START, successes: 0 }
    }

    /// A run that is under way.
    pub fn started(plan: Plan) -> Self {
        let mut drive = Self::new(plan);
        drive.send(RunEvent::Started);
        drive
    }

    /// One step, as words. The state goes through JSON, as it does in the store.
    pub fn send(&mut self, event: RunEvent) -> Vec<String> {
        let step = step(&self.plan, self.run.clone(), event, self.now);
        self.take(&step)
    }

    /// Opens a run that is over, as words; nothing if it stays as it is.
    pub fn reopen(&mut self, max: Option<u32>) -> Vec<String> {
        reopen(&self.plan, &self.run, max, self.now).map(|step| self.take(&step)).unwrap_or_default()
    }

    /// How often the iteration under way that failed most has failed in a row.
    pub fn errors(&self) -> u32 {
        self.run.active.iter().map(|attempt| attempt.errors).max().unwrap_or(0)
    }

    fn take(&mut self, step: &Step) -> Vec<String> {
        let json = serde_json::to_string(&step.run).unwrap();
        self.run = serde_json::from_str(&json).unwrap();
        assert_eq!(self.run, step.run, "the state survives being saved");
        self.words(step)
    }

    pub fn words(&self, step: &Step) -> Vec<String> {
        let records = step.records.iter().map(describe_record);
        records.chain(step.acts.iter().map(|act| self.describe_act(act))).collect()
    }

    fn describe_act(&self, act: &Act) -> String {
        match act {
            Act::Start(id) => format!("start {}", dotted(*id)),
            Act::Check { id, checks } => {
                let checks: Vec<String> = checks.iter().map(describe_check).collect();
                format!("check {} {}", dotted(*id), checks.join(","))
            }
            Act::Stop(ids) => format!("stop {}", ids.iter().map(|id| dotted(*id)).collect::<Vec<_>>().join(",")),
            Act::Decide(stage) => format!("decide {stage}"),
            Act::WakeAt(at) => format!("wake in {}", at - self.now),
            Act::Finish => "finish".into(),
        }
    }

    pub fn ended(&mut self, attempt: &str, outcome: Outcome) -> Vec<String> {
        self.send(RunEvent::Ended { id: id(attempt), outcome })
    }

    /// Came through, with a footprint of its own.
    pub fn ok(&mut self, attempt: &str) -> Vec<String> {
        self.successes += 1;
        let success = success(&format!("footprint {}", self.successes));
        self.ended(attempt, Outcome::Succeeded(Box::new(success)))
    }

    pub fn votes(&mut self, attempt: &str, plateau: bool) -> Vec<String> {
        self.successes += 1;
        let result = AgentResult { plateau: Some(plateau), ..AgentResult::default() };
        let success = Success { result, ..success(&format!("footprint {}", self.successes)) };
        self.ended(attempt, Outcome::Succeeded(Box::new(success)))
    }

    /// Came through and says that nothing is left to do.
    pub fn stops(&mut self, attempt: &str) -> Vec<String> {
        let result = AgentResult { decision: Some(AgentDecision::Stop), ..AgentResult::default() };
        self.ended(attempt, Outcome::Succeeded(Box::new(Success { result, ..success("stop") })))
    }

    pub fn fails(&mut self, attempt: &str, kind: FailureKind) -> Vec<String> {
        self.ended(attempt, failure(kind))
    }

    pub fn checked(&mut self, attempt: &str, facts: &[(Check, Option<bool>)]) -> Vec<String> {
        let facts = facts.iter().map(|(check, holds)| Checked {
            check: check.clone(),
            holds: *holds,
            usage: None,
            detail: String::new(),
        });
        self.send(RunEvent::Checked { id: id(attempt), facts: facts.collect() })
    }

    pub fn wakes_after(&mut self, ms: Millis) -> Vec<String> {
        self.now += ms;
        self.send(RunEvent::Woke)
    }

    pub fn end(&self) -> (RunStatus, Option<&str>) {
        (self.run.status, self.run.reason.as_deref())
    }
}

fn dotted(id: AttemptId) -> String {
    format!("{}.{}.{}", id.stage, id.iteration, id.attempt)
}

fn describe_check(check: &Check) -> String {
    match check {
        Check::BeadsEmpty(label) => format!("beads {label}"),
        Check::Command(command) => format!("command {command}"),
        Check::Verify(commands) => format!("verify {}", commands.join(" && ")),
        Check::Checklist(file) => format!("checklist {file}"),
        Check::Merged => "merged".into(),
        Check::Judge => "judge".into(),
    }
}

fn describe_record(record: &Record) -> String {
    match record {
        Record::ApprovalAsked { stage } => format!("ask for stage {stage}"),
        Record::StageStarted { stage } => format!("stage {stage} begins"),
        Record::AttemptStarted { id } => format!("attempt {}", dotted(*id)),
        Record::AttemptEnded { id, outcome: Outcome::Succeeded(_) } => format!("{} came through", dotted(*id)),
        Record::AttemptEnded { id, outcome: Outcome::Failed(failed) } => {
            format!("{} failed: {}", dotted(*id), failed.kind.name())
        }
        Record::Committed { id, .. } => format!("commit {}", dotted(*id)),
        Record::StageEnded { stage, status, reason } => format!("stage {stage} {status}: {reason}"),
        Record::Finished { status, reason } => format!("run {status}: {reason}"),
        Record::Reopened => "reopened".into(),
    }
}
