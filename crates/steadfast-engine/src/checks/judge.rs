//! Asking another agent whether the work has levelled off. It is an attempt like any other, so that it outlives the
//! engine and is never asked twice at the same time; what it said is collected after a crash.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use steadfast_core::clock;
use steadfast_core::config::AgentsConfig;
use steadfast_core::prompt;
use steadfast_core::run::{AgentPlan, Outcome};

use super::{Finding, Surroundings};
use crate::agent::{self, Call, Ended};
use crate::attempt::{Attempt, Sighting, patience};
use crate::shim::Spec;

/// A judge that was lost is asked again this often.
const MOST_TRIES: u32 = 3;

/// Everything that a judge is asked with.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) agent: AgentPlan,
    pub(crate) config: AgentsConfig,
    pub(crate) run: String,
    pub(crate) stage: String,
    pub(crate) iteration: u32,
    /// What the worker was asked, what it answered, and what earlier iterations said.
    pub(crate) asked: String,
    pub(crate) answer: String,
    pub(crate) earlier: String,
    /// The directory of the attempt that is judged; the judge's is beside it.
    pub(crate) judged: PathBuf,
    pub(crate) program: PathBuf,
    pub(crate) limit: Duration,
    pub(crate) grace: Duration,
}

pub(super) fn ask(request: &Request, here: &Surroundings) -> Finding {
    for number in 1..=MOST_TRIES {
        let mut directory = request.judged.clone().into_os_string();
        directory.push(format!("-judge-{number}"));
        let attempt = Attempt::in_directory(directory.into());
        match try_once(request, here, &attempt) {
            Ok(Some(finding)) => return finding,
            Ok(None) => {}
            Err(error) => return (None, format!("the judge cannot be asked: {error}")),
        }
        if here.cancel.is_cancelled() {
            break;
        }
    }
    (None, "the judge did not come to a verdict".to_owned())
}

/// `None` when this judge was lost, so that another one may be asked.
fn try_once(request: &Request, here: &Surroundings, attempt: &Attempt) -> std::io::Result<Option<Finding>> {
    if attempt.keeper()?.is_none() {
        if attempt.directory().join(crate::shim::ABANDONED).exists() {
            return Ok(None);
        }
        start(request, here, attempt)?;
    }
    let patience = patience(request.limit, request.grace);
    let exit = loop {
        match attempt.look()? {
            Sighting::Ended(exit) => break exit,
            Sighting::Gone | Sighting::NeverBegan => return Ok(None),
            Sighting::Kept | Sighting::Orphaned { .. } if here.cancel.is_cancelled() => {
                attempt.stop(request.grace)?;
                return Ok(Some((None, "the judge was stopped".to_owned())));
            }
            Sighting::Orphaned { .. } => {
                attempt.stop(request.grace)?;
                return Ok(None);
            }
            Sighting::Kept if patience.is_some_and(|until| Instant::now() >= until) => attempt.kill()?,
            Sighting::Kept => std::thread::sleep(Duration::from_millis(50)),
        }
    };
    let report = agent::report(&Ended {
        agent: &request.agent,
        markers: &[],
        attempt,
        exit: Some(&exit),
        stopping: false,
        overdue: false,
        tree: None,
        now: clock::now(),
    });
    attempt.tidy(&agent::PRIVATE_FILES);
    Ok(Some(match report.outcome {
        Outcome::Failed(failure) => (None, format!("the judge failed: {}", failure.message)),
        Outcome::Succeeded(success) => {
            let why = success.result.reasoning.or(success.result.summary).unwrap_or_default();
            (success.result.plateau, why)
        }
    }))
}

fn start(request: &Request, here: &Surroundings, attempt: &Attempt) -> std::io::Result<()> {
    let file = attempt.result().display().to_string();
    let text =
        prompt::judge(&request.asked, &request.answer, &request.earlier, &file).map_err(std::io::Error::other)?;
    let call = Call {
        agent: &request.agent,
        run: &request.run,
        stage: &request.stage,
        iteration: request.iteration,
        prompt: &text,
        asks_for_result: false,
        wants_vote: false,
        promises: &[],
        directory: &here.directory,
        attempt,
        config: &request.config,
    };
    let invoked = agent::invocation(&call).map_err(std::io::Error::other)?;
    let spec = Spec::of(&invoked, &here.directory, request.limit, request.grace, 0);
    attempt.prepare(&spec, &invoked.prompt, &invoked.files)?;
    let mut keeper = attempt.start(&request.program)?;
    // It holds its lock before it writes who it is; only then it is safe to look.
    loop {
        if attempt.keeper()?.is_some() {
            break;
        }
        if keeper.try_wait()?.is_some() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::spawn(move || keeper.wait());
    Ok(())
}
