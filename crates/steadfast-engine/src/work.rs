//! One attempt, one check or one condition as a call, without a store. The dispatcher and the workers of a fleet make the
//! same calls. They differ in where the records of the run come from ([`RunRecords`]), and in where an iteration works
//! ([`Workplace`]). Prompts are rendered where the agent runs.

mod artifacts;
mod attempt;
mod call;
mod checking;
mod conditions;
mod context;
mod inputs;
mod merging;
mod starting;
mod workplace;

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Duration;

use steadfast_model::clock;
use steadfast_model::run::{AttemptId, AttemptUsage, Failure, FailureKind, Outcome, Plan, Run, StagePlan, Success};
use steadfast_store::IterationReport;
use steadfast_system::config::Config;

use crate::observer::{KeptOutput, PromptValues};

pub(crate) use self::attempt::{AttemptNews, AttemptWork};
pub use self::call::{AgentEnded, WorkCall, attempt, check, decide};
pub(crate) use self::checking::{CheckWork, Checking};
pub(crate) use self::conditions::Deciding;
pub(crate) use self::merging::Merging;
pub(crate) use self::starting::{Launch, limit_of, prepare};
pub use self::workplace::Workplace;
pub use steadfast_store::IterationRow;

/// The installation that an engine works for.
#[derive(Debug, Clone)]
pub struct Engine {
    /// `$STEADFAST_HOME`.
    pub home: PathBuf,
    /// This program, to be started as the supervisor of attempts.
    pub program: PathBuf,
    pub config: Config,
    /// Between TERM and KILL.
    pub grace: Duration,
}

/// A run as the work on it sees it.
#[derive(Debug, Clone, Copy)]
pub struct RunView<'a> {
    pub plan: &'a Plan,
    pub run: &'a Run,
    pub run_id: &'a str,
    /// Where the folder of the run is, with its attempts.
    pub home: &'a Path,
    /// Where the public files of the run are.
    pub project: &'a Path,
}

/// What is known of a run so far.
pub trait RunRecords {
    type Error: Display;

    /// The newest committed iterations of a stage, at most so many, in order.
    fn end_of_stage(&mut self, stage: u32, most: usize) -> Result<Vec<IterationRow>, Self::Error>;

    /// The last committed iterations of the run, in order.
    fn last_iterations(&mut self, most: usize) -> Result<Vec<IterationRow>, Self::Error>;

    /// What people said to the iteration of an attempt.
    fn notes_for(&mut self, id: AttemptId) -> Result<Vec<String>, Self::Error>;

    /// What prompts are filled in with.
    fn prompt_values(&self, id: AttemptId) -> PromptValues;

    /// The output of a committed iteration, if it is kept besides the files of its attempt.
    fn output(&self, id: AttemptId) -> Option<KeptOutput>;

    /// The file of that output, whether or not it exists.
    fn output_file(&self, id: AttemptId) -> Option<PathBuf>;

    /// The branch with the work of an iteration.
    fn branch_of(&self, stage: &StagePlan, id: AttemptId) -> Option<String>;

    /// The directory in which an iteration worked, whether or not it exists.
    fn directory_of(&self, stage: &StagePlan, id: AttemptId) -> Option<PathBuf>;

    /// A message for the user.
    fn note(&mut self, message: &str);
}

/// A committed iteration as the store has it, from its record. What all its attempts used is not in it.
pub fn row_of(id: AttemptId, success: &Success) -> IterationRow {
    let result = &success.result;
    IterationRow {
        id,
        plateau: result.plateau,
        decision: result.decision,
        summary: result.summary.clone(),
        reasoning: result.reasoning.clone(),
        fields: result.fields.clone(),
        report: IterationReport {
            files: result.files.clone(),
            items: result.items.clone(),
            errors: result.errors.clone(),
            branches: result.branches.clone(),
        },
        exit_code: success.exit_code,
        started_at_ms: success.started_at_ms,
        committed_at_ms: success.ended_at_ms,
        ..IterationRow::default()
    }
}

pub(crate) fn cannot_start(message: String) -> Outcome {
    without_agent(FailureKind::CannotStart, message)
}

/// The outcome of an attempt whose agent did not start.
pub(crate) fn without_agent(kind: FailureKind, message: String) -> Outcome {
    Outcome::Failed(Failure {
        kind,
        message,
        exit_code: None,
        usage: AttemptUsage::default(),
        started_at_ms: None,
        ended_at_ms: clock::now(),
    })
}

/// The number of a stage and its plan, by its name.
pub(crate) fn stage_named<'p>(plan: &'p Plan, name: &str) -> Option<(u32, &'p StagePlan)> {
    (1..).zip(&plan.stages).find(|(_, stage)| stage.name == name)
}
