//! What an agent left behind: its last words, what it used, and why it failed in its own words. Clients tell it in
//! their event streams, and where these break off, what they printed last is all there is.

use std::path::Path;

use steadfast_core::clock::Millis;
use steadfast_core::host::Host;
use steadfast_core::host::stream::{self, AgentStream};
use steadfast_core::host::trouble::{self, Trouble};
use steadfast_core::price::Table;
use steadfast_core::run::{AgentPlan, AttemptUsage};
use steadfast_core::text;

use super::{Ended, result};
use crate::attempt::Attempt;
use crate::shim::Exit;

/// The most of an agent's answer that is kept, from its end.
pub(super) const ANSWER_BYTES: usize = 1 << 20;
/// The last lines of an agent that ended badly.
pub(super) const ERROR_BYTES: u64 = 4 * 1024;
const LAST_LINES: usize = 4;

/// What an agent left behind, read once.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Answer {
    /// The last thing it said.
    pub(super) text: Option<String>,
    /// How many bytes before that were too many.
    pub(super) left_out: u64,
    pub(super) structured: Option<String>,
    pub(super) usage: AttemptUsage,
    /// Why it failed, in its own words.
    pub(super) error: Option<(Trouble, String)>,
    /// It came to an end that it announced itself. True for agents that announce nothing.
    pub(super) is_complete: bool,
}

/// What a client with an event stream left behind.
pub(super) fn of_stream(host: Host, ended: &Ended<'_>, began: Millis, ended_at_ms: Millis) -> Answer {
    let stream = stream::read(host, &ended.attempt.output()).unwrap_or_default();
    let own = stream::session_usage(host, &stream, began, ended_at_ms);
    let usage = own.or(stream.usage.map(|told| priced(told, ended.agent))).unwrap_or_default();
    let exact = || stream::session_reset(host, &stream, began, ended_at_ms);
    let error = stream_error(&stream, ended_at_ms, exact).or_else(|| {
        let ended_well = ended.exit.is_some_and(|exit| exit.exit_code == Some(0));
        (!ended_well && !stream.is_complete).then(|| last_words(ended.attempt, ended.exit, ended_at_ms)).flatten()
    });
    let said = stream.final_text.map(|text| text::printable(&text));
    let text = said.as_deref().map(|said| text::tail(said, ANSWER_BYTES).to_owned());
    let length = |text: &Option<String>| text.as_ref().map_or(0, |text| text.len() as u64);
    Answer {
        left_out: length(&said) - length(&text),
        text,
        structured: stream.structured,
        usage,
        error,
        is_complete: stream.is_complete,
    }
}

/// Codex tells tokens and no money; with the model's name the table of prices knows it.
fn priced(told: AttemptUsage, agent: &AgentPlan) -> AttemptUsage {
    let Some(model) = agent.model.clone().filter(|_| told.cost_micros == 0) else { return told };
    AttemptUsage { cost_micros: Table::shipped().cost_micros(&model, &told.tokens).unwrap_or(0), ..told }
}

/// `exact` knows the reset of a used-up plan to the second. Messages name the minute it is in, so they come last.
fn stream_error(stream: &AgentStream, at: Millis, exact: impl FnOnce() -> Option<Millis>) -> Option<(Trouble, String)> {
    let error = stream.error.as_ref()?;
    if error.message.is_empty() {
        // A limit that was announced, and then the stream broke off.
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

/// What a program that ended badly said last. What it prints is its work, which may speak of anything: on stdout only a
/// last line that is a client's notice of a used-up plan counts, and of the words on stderr only the last line, or such a
/// notice shortly before it. A login that fails somewhere in its work is an error like any other.
pub(super) fn last_words_of_program(attempt: &Attempt, exit: Option<&Exit>, at: Millis) -> Option<(Trouble, String)> {
    let (errors, output) = (last_lines(&attempt.errors()), last_lines(&attempt.output()));
    let notice = |line: &String| Some((trouble::judge_notice(line, at)?, line.clone()));
    let judged = errors
        .last()
        .map(|line| (trouble::judge(line, None, at), line.clone()))
        .filter(|(trouble, _)| !matches!(trouble, Trouble::Hopeless | Trouble::Other))
        .or_else(|| errors.iter().rev().find_map(notice))
        .or_else(|| output.last().and_then(notice));
    judged.or_else(|| {
        let words = errors.last().or(output.last())?;
        Some((Trouble::Other, with_code(exit, words)))
    })
}

/// The last lines of a file that are words, and no events.
fn last_lines(path: &Path) -> Vec<String> {
    let text = result::tail_of(path, ERROR_BYTES).unwrap_or_default();
    let is_word = |line: &&str| !line.is_empty() && !line.starts_with('{') && !line.ends_with('}');
    let lines: Vec<&str> = text.lines().map(str::trim).filter(is_word).collect();
    lines.iter().skip(lines.len().saturating_sub(LAST_LINES)).map(|line| (*line).to_owned()).collect()
}

fn with_code(exit: Option<&Exit>, words: &str) -> String {
    let code = exit.and_then(|exit| exit.exit_code);
    code.map_or_else(|| words.to_owned(), |code| format!("exit code {code}: {words}"))
}

/// What a client that ended badly said last: on stderr, else on stdout. Events are not what it said: they repeat what
/// it read.
pub(super) fn last_words(attempt: &Attempt, exit: Option<&Exit>, at: Millis) -> Option<(Trouble, String)> {
    let said = |path: &Path| Some(last_lines(path)).filter(|lines| !lines.is_empty()).map(|lines| lines.join("\n"));
    let (errors, output) = (said(&attempt.errors()), said(&attempt.output()));
    let judged = [&errors, &output]
        .into_iter()
        .flatten()
        .map(|words| (trouble::judge(words, None, at), words.clone()))
        .find(|(trouble, _)| *trouble != Trouble::Other);
    judged.map(|(trouble, words)| (trouble, newest_line(&words))).or_else(|| {
        let words = newest_line(&errors.or(output)?);
        Some((Trouble::Other, with_code(exit, &words)))
    })
}

pub(super) fn newest_line(words: &str) -> String {
    words.lines().next_back().unwrap_or_default().to_owned()
}
