//! Asking another agent, the judge, whether the work has reached a plateau. A judge is an attempt like any other: it
//! outlives the engine, never runs twice at the same time, and its verdict is collected after a crash.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use steadfast_model::run::{AgentPlan, AttemptUsage, Outcome};
use steadfast_model::{clock, prompt};
use steadfast_system::config::AgentsConfig;

use super::{CheckContext, CheckResult};
use crate::agent::{self, AgentCall, EndedAttempt, result};
use crate::attempt::{ABANDONED, Attempt, AttemptExit, AttemptState, supervisor_deadline};

/// How many judges may be lost before the check fails.
const MOST_LOST: u32 = 3;
/// How many judges may end without a verdict: a model that answers something else is asked once more.
const MOST_UNCLEAR: u32 = 2;

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
    pub(crate) output_bytes: u64,
    /// Whether the judge ends with this process.
    pub(crate) bound: bool,
}

/// The attempt of the nth judge; judges are asked one after the other.
pub(super) fn beside(judged: &Attempt, number: u32) -> Attempt {
    judged.beside(&format!("-judge-{number}"))
}

/// Asks until a judge gives a verdict, and adds up what all of them used.
pub(super) fn ask(request: &JudgeRequest, context: &CheckContext) -> (CheckResult, Option<AttemptUsage>) {
    let (mut lost, mut unclear) = (0, 0);
    let mut usage: Option<AttemptUsage> = None;
    let mut said = String::new();
    for attempt in (1..).map(|number| beside(&request.judged, number)) {
        let is_new = !attempt.directory().exists();
        let end = match end_of(request, context, &attempt) {
            Ok(end) => end,
            Err(error) => return ((None, format!("cannot ask the judge: {error}")), usage),
        };
        if !matches!(end, JudgeEnd::NeverStarted) {
            let (verdict, used) = collect(request, &attempt, &end);
            *usage.get_or_insert_default() += used;
            match (&end, verdict) {
                (JudgeEnd::Stopped, _) => return ((None, "the judge was stopped".to_owned()), usage),
                (JudgeEnd::Exit(_), (Some(holds), why)) => return ((Some(holds), why), usage),
                (JudgeEnd::Exit(_), (None, why)) => (unclear, said) = (unclear + 1, why),
                (JudgeEnd::Lost | JudgeEnd::NeverStarted, _) => {}
            }
        }
        // A judge of an earlier engine that was lost does not count against the maximum.
        lost += u32::from(is_new && !matches!(end, JudgeEnd::Exit(_)));
        if lost >= MOST_LOST || unclear >= MOST_UNCLEAR || context.cancel.is_cancelled() {
            break;
        }
    }
    let detail = if said.is_empty() { String::new() } else { format!(": {said}") };
    ((None, format!("the judge gave no verdict{detail}")), usage)
}

/// How a judge ended.
enum JudgeEnd {
    Exit(AttemptExit),
    Lost,
    NeverStarted,
    /// By this engine.
    Stopped,
}

/// Asks a judge, or waits for one of an earlier engine.
fn end_of(request: &JudgeRequest, context: &CheckContext, attempt: &Attempt) -> std::io::Result<JudgeEnd> {
    if attempt.supervisor()?.is_none() {
        if attempt.directory().join(ABANDONED).exists() {
            return Ok(JudgeEnd::NeverStarted);
        }
        start(request, context, attempt)?;
    }
    let deadline = supervisor_deadline(request.limit, request.grace);
    loop {
        match attempt.inspect()? {
            AttemptState::Ended(exit) if exit.stopped => return Ok(JudgeEnd::Lost),
            AttemptState::Ended(exit) => return Ok(JudgeEnd::Exit(exit)),
            AttemptState::Gone => return Ok(JudgeEnd::Lost),
            AttemptState::NeverStarted => return Ok(JudgeEnd::NeverStarted),
            AttemptState::Supervised | AttemptState::Orphaned { .. } if context.cancel.is_cancelled() => {
                attempt.stop(request.grace)?;
                return Ok(JudgeEnd::Stopped);
            }
            AttemptState::Orphaned { .. } => {
                attempt.stop(request.grace)?;
                return Ok(JudgeEnd::Lost);
            }
            AttemptState::Supervised if deadline.is_some_and(|deadline| Instant::now() >= deadline) => {
                attempt.kill()?;
            }
            AttemptState::Supervised => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

/// The verdict of a judge that ended, and what it used.
fn collect(request: &JudgeRequest, attempt: &Attempt, end: &JudgeEnd) -> (CheckResult, AttemptUsage) {
    let exit = if let JudgeEnd::Exit(exit) = end { Some(exit) } else { None };
    let report = agent::report(&EndedAttempt {
        agent: &request.agent,
        votes: false,
        markers: &[],
        attempt,
        exit,
        stopping: false,
        overdue: false,
        tree: None,
        since: 0,
        now: clock::now(),
    });
    attempt.remove_files(&agent::PRIVATE_FILES);
    let usage = *report.outcome.usage();
    let verdict = match report.outcome {
        Outcome::Failed(failure) => (None, format!("the judge failed: {}", failure.message)),
        Outcome::Succeeded(success) => {
            let (stop, reason) = result::verdict(&attempt.result(), &report.text).unwrap_or_default();
            let why = success.result.reasoning.or(reason).or(success.result.summary).unwrap_or_default();
            (success.result.plateau.or(stop), why)
        }
    };
    (verdict, usage)
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
        says_result: true,
        wants_vote: false,
        promises: &[],
        directory: &context.directory,
        attempt,
        config: &request.config,
    };
    let invoked = agent::invocation(&call).map_err(std::io::Error::other)?;
    let JudgeRequest { limit, grace, output_bytes, bound, .. } = *request;
    invoked.prepare(&call, agent::Bounds { limit, grace, output_bytes, bound }, 0)?;
    let mut supervisor = attempt.start_in(&request.program, &context.environment, bound)?;
    // A supervisor that is bound to this process ends its agent once this is closed.
    let life = supervisor.stdin.take();
    // To inspect the attempt before its supervisor holds the lock would abandon it.
    while attempt.supervisor()?.is_none() {
        if supervisor.try_wait()?.is_some() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::spawn(move || {
        let _life = life;
        supervisor.wait()
    });
    Ok(())
}
