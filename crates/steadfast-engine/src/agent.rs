//! The agents of runs: how each kind is called (a program, or by the adapter of a host), and the outcome of an
//! attempt. Only an agent's own error channel counts as an error: its structured errors, or, when it failed, the last
//! lines of its stderr. Error messages inside its work are ignored.

mod answer;
pub(crate) mod result;
mod usage;

use std::path::{Path, PathBuf};
use std::time::Duration;

use steadfast_hosts::adapter;
use steadfast_hosts::headless::HeadlessRequest;
use steadfast_hosts::trouble::Trouble;
use steadfast_model::clock::Millis;
use steadfast_model::prompt::{self, PromptError};
use steadfast_model::run::{AgentKind, AgentPlan, Failure, FailureKind, Outcome, Success};
use steadfast_model::text;
use steadfast_system::config::AgentsConfig;
use steadfast_system::{bounded, env_vars};

use self::answer::{AgentAnswer, ERROR_BYTES, newest_line, of_command, of_stream};
use self::result::ResultSource;
pub(crate) use self::usage::{in_session as used_in_session, of_command as used_by_command};
use crate::attempt::{Attempt, AttemptExit, AttemptSpec};
use crate::excerpt;
use crate::footprint::{self, ProgressTree};

/// Files of an invocation that hold secrets; they are removed when the agent has ended.
pub(crate) use steadfast_hosts::headless::PRIVATE_FILES;
const MESSAGE_CHARS: usize = 500;

/// How an agent is called for one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Invocation {
    pub argv: Vec<String>,
    pub env: Vec<(String, String)>,
    pub env_remove: Vec<String>,
    /// Files for the attempt's directory while the agent runs, by name.
    pub files: Vec<(&'static str, String)>,
    pub prompt: String,
}

/// What holds for the supervisor of an agent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub limit: Duration,
    /// Between TERM and KILL.
    pub grace: Duration,
    /// The most bytes to keep of each output; 0 for all.
    pub output_bytes: u64,
    /// Whether the agent ends with the process that starts its supervisor.
    pub bound: bool,
}

impl Invocation {
    /// Writes what the supervisor of the call's attempt is to run.
    pub(crate) fn prepare(&self, call: &AgentCall<'_>, bounds: Bounds, ordinal: u32) -> std::io::Result<()> {
        let milliseconds = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let spec = AttemptSpec {
            argv: self.argv.clone(),
            directory: call.directory.to_owned(),
            env: self.env.clone(),
            env_remove: self.env_remove.clone(),
            limit_ms: milliseconds(bounds.limit),
            grace_ms: milliseconds(bounds.grace),
            ordinal,
            has_token: false,
            output_bytes: bounds.output_bytes,
            clock: None,
            bound_to_parent: bounds.bound,
        };
        call.attempt.prepare(&spec, &self.prompt, &self.files)
    }
}

/// What an agent is called with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AgentCall<'a> {
    pub agent: &'a AgentPlan,
    pub run: &'a str,
    pub stage: &'a str,
    pub iteration: u32,
    pub prompt: &'a str,
    /// Whether to add to the prompt where the result goes. Our own prompts say it themselves.
    pub asks_for_result: bool,
    /// Whether a prompt of the user's says it, see [`says_result`].
    pub says_result: bool,
    pub wants_vote: bool,
    pub promises: &'a [String],
    /// Where the agent works.
    pub directory: &'a Path,
    pub attempt: &'a Attempt,
    pub config: &'a AgentsConfig,
}

/// How the agent of a call is started.
pub(crate) fn invocation(call: &AgentCall<'_>) -> Result<Invocation, PromptError> {
    let mut prompt = call.prompt.to_owned();
    let (argv, files) = match &call.agent.kind {
        AgentKind::Command(words) => {
            let mut argv = words.clone();
            if let Some(program) = argv.first_mut()
                && let Some(path) = beside(program, call.directory)
            {
                *program = path.display().to_string();
            }
            (argv, Vec::new())
        }
        AgentKind::Host(host) => {
            if call.asks_for_result {
                let file = (!call.says_result).then(|| call.attempt.result().display().to_string());
                add_result(&mut prompt, file.as_deref(), call.wants_vote, call.promises)?;
            }
            let config = call.config.of(*host);
            let command = (adapter(*host).headless_command)(&HeadlessRequest {
                program: call.config.program(*host),
                model: call.agent.model.as_deref(),
                effort: call.agent.effort.as_deref(),
                user_hooks: call.agent.user_hooks,
                sandbox: call.agent.sandbox,
                permission_flags: config.permission_flags.as_deref(),
                flags: &config.flags,
                directory: call.attempt.directory(),
            });
            (command.argv, command.files)
        }
    };
    let env = [
        (env_vars::RUN, call.run.to_owned()),
        (env_vars::STAGE, call.stage.to_owned()),
        (env_vars::ITERATION, call.iteration.to_string()),
        (env_vars::RESULT, call.attempt.result().display().to_string()),
    ];
    let foreign = env_vars::OF_OUTER_AGENT.iter().chain(&env_vars::OF_ONE_REPOSITORY);
    Ok(Invocation {
        argv,
        env: env.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        env_remove: foreign.map(|name| (*name).to_owned()).collect(),
        files,
        prompt,
    })
}

/// Resolves the relative path of a program; `None` for an absolute path and for a name to be found on PATH.
pub fn beside(program: &str, directory: &Path) -> Option<PathBuf> {
    let is_relative_path = program.contains('/') && Path::new(program).is_relative();
    is_relative_path.then(|| directory.join(program))
}

/// Whether a template says which result to write, in the words of other tools. A second request would contradict it.
pub(crate) fn says_result(template: &str) -> bool {
    template.contains("${STATUS}") || template.contains("plateau_suspected")
}

/// Adds to a prompt how to write the result; without a file only what it may promise.
pub(crate) fn add_result(
    prompt: &mut String,
    file: Option<&str>,
    wants_vote: bool,
    promises: &[String],
) -> Result<(), PromptError> {
    let result = prompt::iteration_result(file, wants_vote, promises)?;
    *prompt = format!("{}\n\n{result}\n", prompt.trim_end());
    Ok(())
}

/// The outcome of an attempt, and the agent's last message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AttemptReport {
    pub outcome: Outcome,
    pub text: String,
    /// How many bytes before the text were dropped.
    pub left_out: u64,
}

impl AttemptReport {
    /// The last message as it is kept, with a note about the bytes that were dropped.
    pub(crate) fn to_keep(&self, attempt: &Attempt) -> String {
        if self.left_out == 0 {
            return self.text.clone();
        }
        let bytes = text::thousands(i64::try_from(self.left_out).unwrap_or(i64::MAX));
        let (file, text) = (attempt.output(), &self.text);
        let has_hole = bounded::open(&file).is_ok_and(|file| bounded::hole_of(&file).is_some());
        let part = if has_hole { "beginning and end of the output are" } else { "the whole output is" };
        format!("[cut: the first {bytes} bytes are left out; {part} in {}]\n\n{text}", file.display())
    }
}

/// An attempt that has ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EndedAttempt<'a> {
    pub agent: &'a AgentPlan,
    /// Whether iterations of its stage vote.
    pub votes: bool,
    /// Marker lines to read: name of the field, marker.
    pub markers: &'a [(String, String)],
    pub attempt: &'a Attempt,
    /// What its supervisor recorded, if it did.
    pub exit: Option<&'a AttemptExit>,
    /// Whether the run is being stopped, so that a stopped agent did not fail.
    pub stopping: bool,
    /// Whether the engine ended it because its supervisor did not enforce the time limit.
    pub overdue: bool,
    /// The files to take a fingerprint of, if progress is watched.
    pub tree: Option<&'a ProgressTree<'a>>,
    /// The attempt did not start before.
    pub since: Millis,
    pub now: Millis,
}

/// Reads the outcome of an attempt.
pub(crate) fn report(ended: &EndedAttempt<'_>) -> AttemptReport {
    let supervisor = ended.attempt.supervisor().ok().flatten();
    let started_at_ms = ended.exit.map(|exit| exit.started_at_ms).or(supervisor.map(|record| record.started_at_ms));
    // The records are files that the agent can reach, and clocks are set back.
    let since = ended.since.min(ended.now);
    let started_at_ms = started_at_ms.map(|started| started.clamp(since, ended.now));
    let ended_at_ms = ended.exit.map_or(ended.now, |exit| exit.ended_at_ms);
    let ended_at_ms = ended_at_ms.clamp(started_at_ms.unwrap_or(since), ended.now);
    let began = started_at_ms.unwrap_or(ended_at_ms);
    let answer = match &ended.agent.kind {
        AgentKind::Command(_) => of_command(ended.agent, ended.attempt, ended.exit, ended_at_ms),
        AgentKind::Host(host) => of_stream(*host, ended, began, ended_at_ms),
    };
    let outcome = succeeded(ended, &answer, began, ended_at_ms).unwrap_or_else(|(kind, message)| {
        Outcome::Failed(Failure {
            kind,
            message: excerpt::head(&message, MESSAGE_CHARS),
            exit_code: ended.exit.and_then(|exit| exit.exit_code),
            usage: answer.usage,
            started_at_ms,
            ended_at_ms,
        })
    });
    AttemptReport { outcome, text: answer.text, left_out: answer.left_out }
}

/// Why an attempt failed.
type Why = (FailureKind, String);

fn succeeded(
    ended: &EndedAttempt<'_>,
    answer: &AgentAnswer,
    started_at_ms: Millis,
    ended_at_ms: Millis,
) -> Result<Outcome, Why> {
    let text = answer.text.as_str();
    if let Some(why) = failure(ended, answer) {
        return Err(why);
    }
    let is_command = matches!(ended.agent.kind, AgentKind::Command(_));
    let (file, status) = (ended.attempt.result(), ended.attempt.status());
    // A result file that cannot be read may have reported a failure.
    if is_command && [&file, &status].into_iter().any(|file| result::is_broken(file)) {
        return Err((FailureKind::NoResult, "the agent's result file is not a JSON object".to_owned()));
    }
    let source = ResultSource { file: &file, status: &status, votes: ended.votes, markers: ended.markers };
    let result = result::read(&source, answer.structured.as_deref(), text);
    // A client that prints nothing at all has not done its work.
    if result.is_none() && !is_command {
        return Err((FailureKind::NoResult, "the agent ended without a result".to_owned()));
    }
    let result = result.unwrap_or_default();
    let prompt = text::printable(&ended.attempt.read_prompt().unwrap_or_default());
    let tree = ended.tree.map(footprint::of_tree);
    let footprint = tree.as_deref().map(|tree| footprint::of(text, result.summary.as_deref(), tree));
    Ok(Outcome::Succeeded(Box::new(Success {
        footprint: footprint.unwrap_or_default(),
        untouched: tree.is_some() && tree.as_deref() == ended.tree.and_then(|tree| tree.before),
        promises: result::promises(&result::without_echo(text, &prompt)),
        result,
        usage: answer.usage,
        exit_code: 0,
        started_at_ms,
        ended_at_ms,
    })))
}

/// Why the attempt failed, if it did.
fn failure(ended: &EndedAttempt<'_>, answer: &AgentAnswer) -> Option<Why> {
    let Some(exit) = ended.exit else {
        return Some(if ended.stopping {
            (FailureKind::Stopped, "stopped".to_owned())
        } else if ended.overdue {
            (FailureKind::TimedOut, "time limit reached, and the supervisor did not respond".to_owned())
        } else {
            let log = result::tail_of(&ended.attempt.supervisor_log(), ERROR_BYTES).unwrap_or_default();
            (FailureKind::Lost, format!("its supervisor recorded no exit {}", newest_line(&log)))
        });
    };
    if let Some(reason) = &exit.cannot_start {
        return Some((FailureKind::CannotStart, reason.clone()));
    }
    if exit.stopped {
        let kind = if ended.stopping { FailureKind::Stopped } else { FailureKind::Lost };
        return Some((kind, "stopped by a signal to its supervisor".to_owned()));
    }
    if exit.timed_out {
        return Some((FailureKind::TimedOut, "time limit reached".to_owned()));
    }
    if let Some((trouble, message)) = &answer.error {
        let kind = match trouble {
            Trouble::UsageLimit { until_ms } => FailureKind::UsageLimit { until_ms: *until_ms },
            Trouble::Transient => FailureKind::Transient,
            Trouble::Hopeless => FailureKind::CannotStart,
            Trouble::Other => FailureKind::Exit,
        };
        return Some((kind, message.clone()));
    }
    match (exit.exit_code, exit.signal) {
        (Some(0), _) if answer.is_complete => None,
        (Some(0), _) => Some((FailureKind::NoResult, "the agent's output ends without its final event".to_owned())),
        (Some(code), _) => Some((FailureKind::Exit, format!("the agent ended with exit code {code}"))),
        (None, signal) => {
            let by = signal.map_or_else(|| "a signal".to_owned(), |signal| format!("signal {signal}"));
            Some((FailureKind::Exit, format!("the agent was killed by {by}")))
        }
    }
}

#[cfg(test)]
mod tests;
