//! The checks of an attempt: where and how they are made.

use std::time::Duration;

use steadfast_model::run::{AgentPlan, AttemptId, Check, Checked, StagePlan};

use super::merging::{Branches, branches_to_merge};
use super::starting::{environment, limit_of};
use super::{Engine, RunRecords, RunView, Workplace};
use crate::attempt::Attempt;
use crate::checks::judge::JudgeRequest;
use crate::checks::{self, CheckContext};
use crate::environment::StageEnvironment;
use crate::process::Cancel;

/// The time limit of a judge, unless that of its stage is shorter.
const JUDGE_LIMIT: Duration = Duration::from_mins(15);
/// How many earlier iterations a judge sees.
const EARLIER: usize = 5;

/// What is checked.
pub(crate) struct Checking<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) stage: &'a StagePlan,
    pub(crate) id: AttemptId,
    pub(crate) attempt: Attempt,
    pub(crate) workplace: Workplace,
    /// Whether a judge ends with this process.
    pub(crate) bound: bool,
}

/// Checks with all they depend on.
pub(crate) struct CheckWork {
    wanted: Vec<Check>,
    attempt: Attempt,
    workplace: Workplace,
    environment: Result<StageEnvironment, String>,
    branches: Option<Branches>,
    judge: Option<JudgeRequest>,
    limit: Duration,
    grace: Duration,
}

impl CheckWork {
    pub(crate) fn of<R: RunRecords>(
        view: &RunView<'_>,
        checking: Checking<'_>,
        wanted: Vec<Check>,
        records: &mut R,
    ) -> Result<Self, R::Error> {
        let (stage, engine) = (checking.stage, checking.engine);
        let judge = match &stage.judge {
            Some(agent) if wanted.contains(&Check::Judge) => Some(judge(view, &checking, agent, records)?),
            _ => None,
        };
        Ok(Self {
            wanted,
            environment: environment(stage, checking.id.iteration),
            branches: branches_to_merge(view.plan, stage, records),
            judge,
            limit: Duration::from_secs(engine.config.goal.verify_timeout_seconds),
            grace: engine.grace,
            attempt: checking.attempt,
            workplace: checking.workplace,
        })
    }

    /// Makes the checks; `note` gets messages for the user.
    pub(crate) fn carry_out(self, cancel: &Cancel, note: impl Fn(String)) -> Vec<Checked> {
        // A killed engine may have left the same check running.
        checks::end_commands(&self.attempt, self.grace);
        let entered = self.environment.map_err(|why| (why.clone(), why)).and_then(|environment| {
            let entered = self.workplace.enter(cancel).map(|directory| (directory, environment));
            entered
                .map_err(|error| (format!("cannot enter the worktree: {error}"), format!("{error} ({})", error.hint())))
        });
        match entered {
            Ok((directory, environment)) => {
                let context = CheckContext {
                    directory,
                    limit: self.limit,
                    cancel: cancel.clone(),
                    mark: Some(checks::mark_of(&self.attempt)),
                    judge: self.judge,
                    environment,
                    branches: self.branches,
                    evidence: self.attempt.evidence(),
                };
                self.wanted.iter().map(|check| checks::carry_out(check, &context)).collect()
            }
            // The result in another directory or environment would be wrong for this one.
            Err((why, message)) => {
                note(format!("cannot check the rule: {message}"));
                self.wanted.iter().map(|check| checks::checked(check, None, &why)).collect()
            }
        }
    }
}

fn judge<R: RunRecords>(
    view: &RunView<'_>,
    checking: &Checking<'_>,
    agent: &AgentPlan,
    records: &mut R,
) -> Result<JudgeRequest, R::Error> {
    let (engine, id) = (checking.engine, checking.id);
    let earlier: Vec<String> = records
        .last_iterations(EARLIER)?
        .iter()
        .filter(|row| row.id.stage == id.stage)
        .map(|row| format!("Iteration {}: {}", row.id.iteration, row.summary.as_deref().unwrap_or("(no summary)")))
        .collect();
    Ok(JudgeRequest {
        agent: agent.clone(),
        config: engine.config.agents.clone(),
        run: view.plan.name.clone(),
        stage: checking.stage.name.clone(),
        iteration: id.iteration,
        earlier: earlier.join("\n"),
        judged: checking.attempt.clone(),
        program: engine.program.clone(),
        limit: limit_of(checking.stage).min(JUDGE_LIMIT),
        grace: engine.grace,
        output_bytes: engine.config.runs.output_bytes(),
        bound: checking.bound,
    })
}
