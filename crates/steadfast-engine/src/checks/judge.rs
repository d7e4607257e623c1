//! Asking another agent whether the work has levelled off. It is an attempt like any other, so that it outlives the
//! engine and is never asked twice at the same time; what it said is collected after a crash.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use steadfast_model::clock;
use steadfast_model::prompt;
use steadfast_model::run::{AgentPlan, Outcome};
use steadfast_system::config::AgentsConfig;

use super::{Finding, Surroundings};
use crate::agent::{self, Call, Ended, result};
use crate::attempt::{Attempt, Sighting, patience};
use crate::shim::Spec;

/// Judges that are lost until nobody is asked any more.
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

/// The judge of this number of an attempt; they are asked one after the other.
pub(super) fn beside(judged: &Path, number: u32) -> Attempt {
    let mut directory = judged.as_os_str().to_owned();
    directory.push(format!("-judge-{number}"));
    Attempt::in_directory(directory.into())
}

/// What came of one judge.
enum Told {
    Finding(Finding),
    /// It was lost under our eyes, so another one may be asked.
    Lost,
    /// An earlier engine lost or stopped it. That is over and says nothing about the next one.
    Earlier,
}

pub(super) fn ask(request: &Request, here: &Surroundings) -> Finding {
    let mut tries = 0;
    for number in 1.. {
        match try_once(request, here, &beside(&request.judged, number)) {
            Ok(Told::Finding(finding)) => return finding,
            Ok(Told::Lost) => tries += 1,
            Ok(Told::Earlier) => {}
            Err(error) => return (None, format!("the judge cannot be asked: {error}")),
        }
        if tries >= MOST_TRIES || here.watch.cancel.is_cancelled() {
            break;
        }
    }
    (None, "the judge did not come to a verdict".to_owned())
}

fn try_once(request: &Request, here: &Surroundings, attempt: &Attempt) -> std::io::Result<Told> {
    let is_new = attempt.keeper()?.is_none();
    if is_new {
        if attempt.directory().join(crate::shim::ABANDONED).exists() {
            return Ok(Told::Earlier);
        }
        start(request, here, attempt)?;
    }
    let without_verdict = || if is_new { Told::Lost } else { Told::Earlier };
    let patience = patience(request.limit, request.grace);
    let exit = loop {
        match attempt.look()? {
            Sighting::Ended(exit) if exit.stopped => return Ok(without_verdict()),
            Sighting::Ended(exit) => break exit,
            Sighting::Gone | Sighting::NeverBegan => return Ok(without_verdict()),
            Sighting::Kept | Sighting::Orphaned { .. } if here.watch.cancel.is_cancelled() => {
                attempt.stop(request.grace)?;
                return Ok(Told::Finding((None, "the judge was stopped".to_owned())));
            }
            Sighting::Orphaned { .. } => {
                attempt.stop(request.grace)?;
                return Ok(without_verdict());
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
    Ok(Told::Finding(match report.outcome {
        Outcome::Failed(failure) => (None, format!("the judge failed: {}", failure.message)),
        Outcome::Succeeded(success) => {
            let verdict = result::verdict(&attempt.result(), &report.text);
            let (stop, reason) = verdict.unwrap_or_default();
            let why = success.result.reasoning.or(reason).or(success.result.summary).unwrap_or_default();
            (success.result.plateau.or(stop), why)
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
