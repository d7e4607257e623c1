//! The agents of runs: how each kind is called (`agent/command.rs`, the adapters of the hosts), and what came out of an
//! attempt. Only an agent's own error channel says what went wrong: its structured errors, or, when it ended badly, the
//! last words of its complaints. Words it repeats in its work mean nothing.

mod answer;
mod command;
pub mod result;

pub use command::beside;

use std::borrow::Cow;
use std::path::Path;

use steadfast_core::clock::Millis;
use steadfast_core::config::AgentsConfig;
use steadfast_core::host::adapter;
use steadfast_core::host::headless::HeadlessRequest;
use steadfast_core::host::trouble::Trouble;
use steadfast_core::prompt::{self, PromptError};
use steadfast_core::run::{AgentKind, AgentPlan, Failure, FailureKind, Outcome, Success};
use steadfast_core::{env_vars, text};

use self::answer::{Answer, ERROR_BYTES, newest_line, of_stream};
use crate::attempt::Attempt;
use crate::footprint::{self, Tree};
use crate::shim::Exit;

/// Files of an invocation that hold what should not lie around once the agent has ended.
pub(crate) use steadfast_core::host::headless::PRIVATE_FILES;
const LONGEST_MESSAGE: usize = 500;

/// How an agent is called for one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    pub argv: Vec<String>,
    pub env: Vec<(String, String)>,
    pub env_remove: Vec<String>,
    /// Files that the agent needs, by name; they are in the attempt's directory while it runs.
    pub files: Vec<(&'static str, String)>,
    pub prompt: String,
}

/// What an agent is called for.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    pub agent: &'a AgentPlan,
    pub run: &'a str,
    pub stage: &'a str,
    pub iteration: u32,
    pub prompt: &'a str,
    /// Whether the agent is told where its result goes; a prompt may say that itself.
    pub asks_for_result: bool,
    pub wants_vote: bool,
    pub promises: &'a [String],
    /// Where it works.
    pub directory: &'a Path,
    pub attempt: &'a Attempt,
    pub config: &'a AgentsConfig,
}

/// Says how the agent of a call is started.
pub fn invocation(call: &Call<'_>) -> Result<Invocation, PromptError> {
    let mut prompt = call.prompt.to_owned();
    let (argv, files) = match &call.agent.kind {
        AgentKind::Command(words) => (command::argv(words, call.directory), Vec::new()),
        AgentKind::Host(host) => {
            append_result(&mut prompt, call)?;
            let config = call.config.of(*host);
            let command = (adapter(*host).headless_command)(&HeadlessRequest {
                program: call.config.program(*host),
                model: call.agent.model.as_deref(),
                effort: call.agent.effort.as_deref(),
                user_hooks: call.agent.user_hooks,
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

fn append_result(prompt: &mut String, call: &Call<'_>) -> Result<(), PromptError> {
    if !call.asks_for_result {
        return Ok(());
    }
    let file = call.attempt.result().display().to_string();
    add_result(prompt, &file, call.wants_vote, call.promises)
}

/// Says after a prompt how the result is given.
pub(crate) fn add_result(
    prompt: &mut String,
    file: &str,
    wants_vote: bool,
    promises: &[String],
) -> Result<(), PromptError> {
    let result = prompt::iteration_result(file, wants_vote, promises)?;
    prompt.truncate(prompt.trim_end().len());
    prompt.push_str("\n\n");
    prompt.push_str(&result);
    prompt.push('\n');
    Ok(())
}

/// What came of an attempt, and the agent's last words.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    pub outcome: Outcome,
    pub text: String,
    /// How many bytes before the text were left out.
    pub left_out: u64,
}

impl Report {
    /// The last words as they are kept, with a word about what is missing and where it is.
    pub fn to_keep(&self, attempt: &Attempt) -> Cow<'_, str> {
        if self.left_out == 0 {
            return Cow::Borrowed(&self.text);
        }
        let bytes = text::thousands(i64::try_from(self.left_out).unwrap_or(i64::MAX));
        let whole = attempt.output();
        Cow::Owned(format!(
            "[cut: the first {bytes} bytes are left out; the whole output is in {}]\n\n{}",
            whole.display(),
            self.text
        ))
    }
}

/// What an attempt is judged by.
#[derive(Debug, Clone, Copy)]
pub struct Ended<'a> {
    pub agent: &'a AgentPlan,
    /// Marker lines to read: name of the field, marker.
    pub markers: &'a [(String, String)],
    pub attempt: &'a Attempt,
    /// How its keeper saw it end; `None` if nobody did.
    pub exit: Option<&'a Exit>,
    /// Whether the run is being stopped, so that an end by our hand is none of the agent's doing.
    pub stopping: bool,
    /// Whether it had to be ended because its keeper let it run past its time limit.
    pub overdue: bool,
    /// What to take a fingerprint of, if anybody wants to know whether it moves.
    pub tree: Option<&'a Tree<'a>>,
    pub now: Millis,
}

/// Reads what came of an attempt.
pub fn report(ended: &Ended<'_>) -> Report {
    let keeper = ended.attempt.keeper().ok().flatten();
    let started_at_ms = ended.exit.map(|exit| exit.started_at_ms).or(keeper.map(|keeper| keeper.started_at_ms));
    let ended_at_ms = ended.exit.map_or(ended.now, |exit| exit.ended_at_ms);
    let began = started_at_ms.unwrap_or(ended_at_ms);
    let answer = match &ended.agent.kind {
        AgentKind::Command(_) => command::answer(ended.attempt, ended.exit, ended_at_ms),
        AgentKind::Host(host) => of_stream(*host, ended, began, ended_at_ms),
    };
    let text = answer.text.clone().unwrap_or_default();
    let outcome = succeeded(ended, &answer, &text, began, ended_at_ms).unwrap_or_else(|(kind, message)| {
        Outcome::Failed(Failure {
            kind,
            message: text::cut(text::printable(&message).trim(), LONGEST_MESSAGE),
            exit_code: ended.exit.and_then(|exit| exit.exit_code),
            usage: answer.usage,
            started_at_ms,
            ended_at_ms,
        })
    });
    Report { outcome, text, left_out: answer.left_out }
}

/// Why an attempt failed.
type Why = (FailureKind, String);

fn succeeded(
    ended: &Ended<'_>,
    answer: &Answer,
    text: &str,
    started_at_ms: Millis,
    ended_at_ms: Millis,
) -> Result<Outcome, Why> {
    if let Some(why) = failure(ended, answer) {
        return Err(why);
    }
    let is_command = matches!(ended.agent.kind, AgentKind::Command(_));
    // A program's word about itself is its result file; what is in it may have been that it failed.
    if is_command && result::is_broken(&ended.attempt.result()) {
        return Err((FailureKind::NoResult, "the agent's result file cannot be understood".to_owned()));
    }
    let result = result::read(&ended.attempt.result(), answer.structured.as_deref(), text, ended.markers);
    // A client that says nothing at all has not done what it was asked.
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
fn failure(ended: &Ended<'_>, answer: &Answer) -> Option<Why> {
    let Some(exit) = ended.exit else {
        return Some(if ended.stopping {
            (FailureKind::Stopped, "stopped".to_owned())
        } else if ended.overdue {
            (FailureKind::TimedOut, "the time limit was reached, and its keeper did not answer".to_owned())
        } else {
            let why = result::tail_of(&ended.attempt.keeper_log(), ERROR_BYTES).unwrap_or_default();
            (FailureKind::Lost, format!("nobody saw how it ended {}", newest_line(&why)))
        });
    };
    if let Some(reason) = &exit.cannot_start {
        return Some((FailureKind::CannotStart, reason.clone()));
    }
    if exit.stopped {
        let kind = if ended.stopping { FailureKind::Stopped } else { FailureKind::Lost };
        return Some((kind, "stopped from outside".to_owned()));
    }
    if exit.timed_out {
        return Some((FailureKind::TimedOut, "the time limit of the attempt was reached".to_owned()));
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
            Some((FailureKind::Exit, format!("the agent was ended by {by}")))
        }
    }
}

#[cfg(test)]
mod tests;
