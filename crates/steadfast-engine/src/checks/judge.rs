//! Asking another agent, the judge, whether the work has reached a plateau. A judge is an attempt like any other: it
//! outlives the engine, never runs twice at the same time, and its verdict is collected after a crash.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use steadfast_model::run::{AgentPlan, Outcome};
use steadfast_model::{clock, prompt};
use steadfast_system::config::AgentsConfig;

use super::{CheckContext, CheckResult};
use crate::agent::{self, AgentCall, EndedAttempt, result};
use crate::attempt::{ABANDONED, Attempt, AttemptState, supervisor_deadline};

/// How many judges may be lost before the check fails.
const MOST_LOST: u32 = 3;

/// What a judge is asked with.
#[derive(Debug, Clone)]
pub(crate) struct JudgeRequest {
    pub(crate) agent: AgentPlan,
    pub(crate) config: AgentsConfig,
    pub(crate) run: String,
    pub(crate) stage: String,
    pub(crate) iteration: u32,
    /// The summaries of earlier iterations.
    pub(crate) earlier: String,
    /// The attempt that is judged; the directory of the judge is beside it.
    pub(crate) judged: Attempt,
    pub(crate) program: PathBuf,
    pub(crate) limit: Duration,
    pub(crate) grace: Duration,
}

/// The attempt of the nth judge; judges are asked one after the other.
pub(super) fn beside(judged: &Attempt, number: u32) -> Attempt {
    judged.beside(&format!("-judge-{number}"))
}

pub(super) fn ask(request: &JudgeRequest, context: &CheckContext) -> CheckResult {
    let mut lost = 0;
    for attempt in (1..).map(|number| beside(&request.judged, number)) {
        let is_new = !attempt.directory().exists();
        match ask_one(request, context, &attempt) {
            Ok(Some(verdict)) => return verdict,
            Ok(None) if is_new => lost += 1,
            // A judge of an earlier engine does not count against the maximum.
            Ok(None) => {}
            Err(error) => return (None, format!("cannot ask the judge: {error}")),
        }
        if lost >= MOST_LOST || context.cancel.is_cancelled() {
            break;
        }
    }
    (None, "the judge gave no verdict".to_owned())
}

/// Asks a judge, or waits for one of an earlier engine; `None` if it ended without a verdict.
fn ask_one(request: &JudgeRequest, context: &CheckContext, attempt: &Attempt) -> std::io::Result<Option<CheckResult>> {
    if attempt.supervisor()?.is_none() {
        if attempt.directory().join(ABANDONED).exists() {
            return Ok(None);
        }
        start(request, context, attempt)?;
    }
    let deadline = supervisor_deadline(request.limit, request.grace);
    let exit = loop {
        match attempt.inspect()? {
            AttemptState::Ended(exit) if exit.stopped => return Ok(None),
            AttemptState::Ended(exit) => break exit,
            AttemptState::Gone | AttemptState::NeverStarted => return Ok(None),
            AttemptState::Supervised | AttemptState::Orphaned { .. } if context.cancel.is_cancelled() => {
                attempt.stop(request.grace)?;
                return Ok(Some((None, "the judge was stopped".to_owned())));
            }
            AttemptState::Orphaned { .. } => {
                attempt.stop(request.grace)?;
                return Ok(None);
            }
            AttemptState::Supervised if deadline.is_some_and(|deadline| Instant::now() >= deadline) => {
                attempt.kill()?;
            }
            AttemptState::Supervised => std::thread::sleep(Duration::from_millis(50)),
        }
    };
    let report = agent::report(&EndedAttempt {
        agent: &request.agent,
        markers: &[],
        attempt,
        exit: Some(&exit),
        stopping: false,
        overdue: false,
        tree: None,
        since: 0,
        now: clock::now(),
    });
    attempt.remove_files(&agent::PRIVATE_FILES);
    Ok(Some(match report.outcome {
        Outcome::Failed(failure) => (None, format!("the judge failed: {}", failure.message)),
        Outcome::Succeeded(success) => {
            let verdict = result::verdict(&attempt.result(), &report.text);
            let (stop, reason) = verdict.unwrap_or_default();
            let why = success.result.reasoning.or(reason).or(success.result.summary).unwrap_or_default();
            (success.result.plateau.or(stop), why)
        }
    }))
}

fn start(request: &JudgeRequest, context: &CheckContext, attempt: &Attempt) -> std::io::Result<()> {
    let file = attempt.result().display().to_string();
    let asked = request.judged.read_prompt().unwrap_or_default();
    let answer = request.judged.read_answer().unwrap_or_default();
    let text = prompt::judge(&asked, &answer, &request.earlier, &file).map_err(std::io::Error::other)?;
    let call = AgentCall {
        agent: &request.agent,
        run: &request.run,
        stage: &request.stage,
        iteration: request.iteration,
        prompt: &text,
        asks_for_result: false,
        wants_vote: false,
        promises: &[],
        directory: &context.directory,
        attempt,
        config: &request.config,
    };
    let invoked = agent::invocation(&call).map_err(std::io::Error::other)?;
    invoked.prepare(&call, request.limit, request.grace, 0)?;
    let mut supervisor = attempt.start_in(&request.program, &context.environment)?;
    // To inspect the attempt before its supervisor holds the lock would abandon it.
    while attempt.supervisor()?.is_none() {
        if supervisor.try_wait()?.is_some() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::spawn(move || supervisor.wait());
    Ok(())
}
