//! Starting an attempt: rendering its prompt, entering its workplace, and starting its supervisor.

use std::process::Child;
use std::time::{Duration, Instant};

use steadfast_model::clock;
use steadfast_model::prompt;
use steadfast_model::run::{AttemptId, FailureKind, Outcome, StagePlan, machine, template};
use steadfast_system::env_vars;

use super::context::ContextFile;
use super::merging::Placeholders;
use super::{AttemptWork, RunRecords, RunView, cannot_start, without_agent};
use crate::agent::{self, AgentCall};
use crate::attempt::{self, Attempt};
use crate::crash;
use crate::environment::StageEnvironment;
use crate::worktree::WorktreeError;

/// What an attempt is started with once its workplace exists.
#[derive(Debug)]
pub(crate) struct Launch {
    prompt: String,
    context: Option<ContextFile>,
    /// What stands in the prompt for the conflicts of a merge.
    placeholders: Option<Placeholders>,
    environment: StageEnvironment,
    /// When the run's time is over.
    deadline: Option<Instant>,
    ordinal: u32,
}

/// The environment of a stage's agents and checks.
pub(super) fn environment(stage: &StagePlan, iteration: u32) -> Result<StageEnvironment, String> {
    StageEnvironment::of(stage, iteration, env_vars::all()).map_err(|error| error.to_string())
}

/// Renders the prompt of an attempt. `create_directory` creates the directory of the attempt.
pub(crate) fn prepare<R: RunRecords>(
    view: &RunView<'_>,
    id: AttemptId,
    attempt: &Attempt,
    records: &mut R,
    create_directory: impl FnOnce(&mut R) -> std::io::Result<()>,
) -> Result<Launch, String> {
    let stage = view.plan.stage(id.stage).ok_or("the plan has no such stage")?;
    let environment = environment(stage, id.iteration)?;
    let template = view.template(stage, id, records);
    let mut variables = view.variables(stage, id, &template, attempt, records);
    let placeholders = stage.merge.is_some().then(|| Placeholders::new(&mut variables));
    let rendered = template::render(&template, &variables);
    if !rendered.unknown.is_empty() {
        records.note(&format!("stage {}: unknown variables: {}", stage.name, rendered.unknown.join(", ")));
    }
    // Before counting: attempts that start at the same time are counted by their directories.
    create_directory(records).map_err(|error| error.to_string())?;
    let left = machine::attempt_time_left(view.plan, view.run, id.stage, clock::now())
        .and_then(|left| u64::try_from(left).ok());
    Ok(Launch {
        prompt: with_notes(rendered.text, id, records)?,
        context: view.context_file(stage, id, attempt, &variables, records),
        placeholders,
        environment,
        deadline: left.and_then(|left| Instant::now().checked_add(Duration::from_millis(left))),
        ordinal: crash::ordinal(attempt.directory()),
    })
}

/// The prompt of an attempt with what people said to the run, which its iteration took.
fn with_notes(prompt: String, id: AttemptId, records: &mut impl RunRecords) -> Result<String, String> {
    let notes = records.notes_for(id).map_err(|error| error.to_string())?;
    if notes.is_empty() {
        return Ok(prompt);
    }
    let said = prompt::user_notes(&notes).map_err(|error| error.to_string())?;
    Ok(format!("{}\n\n{said}\n", prompt.trim_end()))
}

impl AttemptWork {
    /// Starts the supervisor of the attempt; otherwise returns the outcome.
    pub(super) fn start(&self, launch: Launch) -> Result<Child, Box<Outcome>> {
        let failed = |error: std::io::Error| Box::new(cannot_start(format!("cannot start the attempt: {error}")));
        let directory = match self.workplace.enter(&self.stopping) {
            Ok(directory) if !self.stopping.is_cancelled() => directory,
            Ok(_) | Err(WorktreeError::Ending) => {
                return Err(Box::new(stopped()));
            }
            Err(error) => return Err(Box::new(cannot_start(error.to_string()))),
        };
        self.save_tree_before(&directory);
        let prompt = self.merge(&directory, &launch.prompt, launch.placeholders.as_ref())?;
        if self.stopping.is_cancelled() {
            return Err(Box::new(stopped()));
        }
        let promises: Vec<String> = self.stage.completion.promises().map(str::to_owned).collect();
        let call = AgentCall {
            agent: self.stage.agent_of(self.id.iteration),
            run: &self.run,
            stage: &self.stage.name,
            iteration: self.id.iteration,
            prompt: &prompt,
            asks_for_result: true,
            says_result: agent::says_result(&self.stage.prompt),
            wants_vote: self.stage.completion.needs_vote(),
            promises: &promises,
            directory: &directory,
            attempt: &self.attempt,
            config: &self.engine.config.agents,
        };
        let mut invoked = agent::invocation(&call).map_err(|error| Box::new(cannot_start(error.to_string())))?;
        let context = launch.context.map(|context| context.text_for(self.workplace.project(), &directory));
        invoked.files.extend(context.map(|text| (attempt::CONTEXT, text)));
        let left = launch.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let bounds = agent::Bounds {
            limit: left.unwrap_or(Duration::MAX).min(limit_of(&self.stage)),
            grace: self.engine.grace,
            output_bytes: self.engine.config.runs.output_bytes(),
            bound: self.bound,
        };
        self.wait_for_room(|| invoked.prepare(&call, bounds, launch.ordinal)).map_err(failed)?;
        crash::point(crash::CrashPoint::Prepared);
        let start = || self.attempt.start_in(&self.engine.program, &launch.environment, self.bound);
        let supervisor = self.wait_for_room(start).map_err(failed)?;
        crash::point(crash::CrashPoint::Started);
        Ok(supervisor)
    }
}

fn stopped() -> Outcome {
    without_agent(FailureKind::Stopped, "stopped before it started".to_owned())
}

/// The time limit of an attempt; 0 means none.
pub(crate) fn limit_of(stage: &StagePlan) -> Duration {
    match u64::try_from(stage.timeout_ms) {
        Ok(0) | Err(_) => Duration::MAX,
        Ok(limit) => Duration::from_millis(limit),
    }
}
