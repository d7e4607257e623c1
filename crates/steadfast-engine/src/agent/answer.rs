//! What an agent left behind: its last message, what it used, and its own error message. Clients report these in their
//! event streams; if a stream breaks off, the last printed lines are used.

use std::path::Path;

use steadfast_hosts::stream::{self, AgentStream};
use steadfast_hosts::trouble::{self, Trouble};
use steadfast_model::clock::Millis;
use steadfast_model::host::Host;
use steadfast_model::run::{AgentPlan, AttemptUsage};
use steadfast_model::text;

use super::{EndedAttempt, result, usage};
use crate::attempt::{Attempt, AttemptExit};
use crate::excerpt;

/// The most of an agent's answer that is kept, from its end.
const ANSWER_BYTES: usize = 1 << 20;
/// How much is read of the output of an agent that failed.
pub(super) const ERROR_BYTES: u64 = 4 * 1024;
const LAST_LINES: usize = 4;
/// The exit codes of a shell whose command cannot be run or found.
const SHELL_CANNOT_RUN: [i32; 2] = [126, 127];

/// What an agent left behind, read once.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct AgentAnswer {
    /// Its last message.
    pub(super) text: String,
    /// How many bytes before that were dropped.
    pub(super) left_out: u64,
    pub(super) structured: Option<String>,
    pub(super) usage: AttemptUsage,
    /// Its own error message.
    pub(super) error: Option<(Trouble, String)>,
    /// Whether its final event arrived. True for agents without events.
    pub(super) is_complete: bool,
}

/// Reads the event stream of a client.
pub(super) fn of_stream(host: Host, ended: &EndedAttempt<'_>, began: Millis, ended_at_ms: Millis) -> AgentAnswer {
    let stream = stream::read(host, &ended.attempt.output()).unwrap_or_default();
    let reported = || stream.usage.map(|reported| usage::priced(reported, ended.agent.model.as_deref()));
    let usage = stream::session_usage(host, &stream, began, ended_at_ms).or_else(reported);
    // Without a session it did not ask a model.
    let nothing = || if stream.session_id.is_some() { AttemptUsage::unknown() } else { AttemptUsage::default() };
    let usage = usage.unwrap_or_else(nothing);
    let exact = || stream::session_reset(host, &stream, began, ended_at_ms);
    let error = stream_error(&stream, ended_at_ms, exact).or_else(|| {
        let ended_well = ended.exit.is_some_and(|exit| exit.exit_code == Some(0));
        (!ended_well && !stream.is_complete).then(|| client_error(ended.attempt, ended.exit, ended_at_ms)).flatten()
    });
    let whole = text::printable(&stream.final_text.unwrap_or_default());
    let tail = text::tail(&whole, ANSWER_BYTES);
    let text = if tail.len() < whole.len() { excerpt::after_part_of_word(tail) } else { tail }.to_owned();
    AgentAnswer {
        left_out: (whole.len() - text.len()) as u64,
        text,
        structured: stream.structured,
        usage,
        error,
        is_complete: stream.is_complete,
    }
}

/// Reads what a program left: its answer on stdout, success by exit code.
pub(super) fn of_command(agent: &AgentPlan, attempt: &Attempt, exit: Option<&AttemptExit>, at: Millis) -> AgentAnswer {
    let most = ANSWER_BYTES as u64;
    let tail = result::tail_of(&attempt.output(), most).unwrap_or_default();
    let left_out =
        fs_err::metadata(attempt.output()).map_or(0, |metadata| metadata.len().saturating_sub(tail.len() as u64));
    let text = text::printable(&tail);
    let failed = exit.is_some_and(|exit| exit.exit_code != Some(0));
    let mut error = if failed { program_error(attempt, exit, at) } else { None };
    if let (Some((trouble, _)), Some(code)) = (&mut error, exit.and_then(|exit| exit.exit_code))
        && *trouble == Trouble::Other
        && SHELL_CANNOT_RUN.contains(&code)
    {
        *trouble = Trouble::Hopeless;
    }
    let usage = match exit {
        Some(AttemptExit { cannot_start: Some(_), .. }) => AttemptUsage::default(),
        _ => usage::of_command(attempt, agent.model.as_deref()),
    };
    AgentAnswer { text, left_out, usage, error, is_complete: true, ..AgentAnswer::default() }
}

/// The error of a stream. `exact` returns the reset time of a used-up plan to the second; error messages name only the
/// minute, so they come last.
fn stream_error(stream: &AgentStream, at: Millis, exact: impl FnOnce() -> Option<Millis>) -> Option<(Trouble, String)> {
    let error = stream.error.as_ref()?;
    if error.message.is_empty() {
        // A limit was reported, and then the stream broke off.
        return error.limit.map(|until_ms| (Trouble::UsageLimit { until_ms }, "the usage limit is reached".to_owned()));
    }
    let trouble = match (trouble::judge(&error.message, error.status, at), error.limit) {
        (Trouble::UsageLimit { until_ms }, limit) => {
            Trouble::UsageLimit { until_ms: limit.flatten().or_else(exact).or(until_ms) }
        }
        (_, Some(until_ms)) => Trouble::UsageLimit { until_ms },
        (trouble, None) => trouble,
    };
    Some((trouble, error.message.clone()))
}

/// The error of a program that failed. Its output is its work and may mention anything: on stdout only a last line that
/// is a client's notice of a used-up plan counts, on stderr only the last line or such a notice shortly before it. A
/// failed login inside its work is an error like any other.
fn program_error(attempt: &Attempt, exit: Option<&AttemptExit>, at: Millis) -> Option<(Trouble, String)> {
    let (errors, output) = (last_lines(&attempt.errors()), last_lines(&attempt.output()));
    let notice = |line: &String| Some((trouble::judge_notice(line, at)?, line.clone()));
    let judged = errors
        .last()
        .map(|line| (trouble::judge(line, None, at), line.clone()))
        .filter(|(trouble, _)| !matches!(trouble, Trouble::Hopeless | Trouble::Other))
        .or_else(|| errors.iter().rev().find_map(notice))
        .or_else(|| output.last().and_then(notice));
    judged.or_else(|| {
        let line = errors.last().or(output.last())?;
        Some((Trouble::Other, with_code(exit, line)))
    })
}

/// The last lines of a file that are no events.
fn last_lines(path: &Path) -> Vec<String> {
    let text = result::tail_of(path, ERROR_BYTES).unwrap_or_default();
    let is_text = |line: &&str| !line.is_empty() && !line.starts_with('{') && !line.ends_with('}');
    let lines: Vec<&str> = text.lines().map(str::trim).filter(is_text).collect();
    lines.iter().skip(lines.len().saturating_sub(LAST_LINES)).map(|line| (*line).to_owned()).collect()
}

fn with_code(exit: Option<&AttemptExit>, line: &str) -> String {
    let code = exit.and_then(|exit| exit.exit_code);
    code.map_or_else(|| line.to_owned(), |code| format!("exit code {code}: {line}"))
}

/// The error of a client that failed: the last lines of stderr, else of stdout. Events do not count: they repeat what
/// the client read.
fn client_error(attempt: &Attempt, exit: Option<&AttemptExit>, at: Millis) -> Option<(Trouble, String)> {
    let printed = |path: &Path| Some(last_lines(path)).filter(|lines| !lines.is_empty()).map(|lines| lines.join("\n"));
    let (errors, output) = (printed(&attempt.errors()), printed(&attempt.output()));
    let judged = [&errors, &output]
        .into_iter()
        .flatten()
        .map(|lines| (trouble::judge(lines, None, at), lines.clone()))
        .find(|(trouble, _)| *trouble != Trouble::Other);
    judged.map(|(trouble, lines)| (trouble, newest_line(&lines))).or_else(|| {
        let line = newest_line(&errors.or(output)?);
        Some((Trouble::Other, with_code(exit, &line)))
    })
}

pub(super) fn newest_line(text: &str) -> String {
    text.lines().next_back().unwrap_or_default().to_owned()
}
