//! `steadfast demo`: a scripted agent pursues a goal through everything that can go wrong, in a folder of its
//! own. The audience (this process) shows the story, kills the agent, starts it again, and at the end holds
//! what Steadfast has in its store against what really happened.

mod agent;
mod client;
mod narrator;
mod promise;
mod stage;
mod story;
mod tool_server;
mod transcript;

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};
use std::time::Instant;

use anstyle::{AnsiColor, Style};
use anyhow::{Context as _, bail};
use rustix::process::Signal;
use serde_json::{Value, json};
use steadfast_core::text;

use self::narrator::{Narrator, colour};
use self::promise::{Promise, Record, Tally};
use self::stage::{SESSION, Stage};
use self::story::{StoryEvent, Voice};
use crate::cli::DemoArgs;
use crate::error::CliError;
use crate::output::CommandOutput;

/// A broken promise has no exit code of its own.
const FAILED: u8 = 1;

pub(crate) fn run(arguments: &DemoArgs) -> Result<CommandOutput, CliError> {
    if let Some(folder) = &arguments.agent {
        agent::play(Stage::at(folder)?).map_err(|error| failed(format!("the scripted agent: {error:#}")))?;
        return Ok(CommandOutput::default());
    }
    let started = Instant::now();
    // Removed when it goes out of scope, however the story ends.
    let folder = tempfile::Builder::new().prefix("steadfast-demo-").tempdir()?;
    let stage = Stage::at(folder.path())?;
    let mut narrator = Narrator::new(arguments.json, arguments.fast);
    let ending = perform(&stage, &mut narrator).map_err(|error| failed(format!("the story broke off: {error:#}")))?;

    let broken: Vec<&str> = ending.promises.iter().filter(|p| !p.held).map(|p| p.label).collect();
    if !broken.is_empty() && !arguments.json {
        return Err(failed(format!("these promises did not hold: {}", broken.join(", "))));
    }
    let seconds = (started.elapsed().as_secs_f64() * 100.0).round() / 100.0;
    Ok(CommandOutput {
        text: String::new(),
        json: ending.summary(seconds),
        code: if broken.is_empty() { 0 } else { FAILED },
    })
}

fn failed(message: String) -> CliError {
    CliError { kind: "failed", ..CliError::new(FAILED, message, "please report this, with the output above") }
}

/// Everything that is known when the curtain falls.
struct Ending {
    goal: Value,
    events: usize,
    tally: Tally,
    promises: Vec<Promise>,
}

impl Ending {
    fn summary(&self, seconds: f64) -> Value {
        let promises: Vec<Value> = self
            .promises
            .iter()
            .map(|promise| json!({"name": promise.label, "held": promise.held, "text": promise.text}))
            .collect();
        json!({
            "ok": self.promises.iter().all(|promise| promise.held), "goal": self.goal,
            "tokens_expected": self.tally.tokens, "tokens_counted": self.goal["total_tokens"],
            "events": self.events, "kills": self.tally.kills, "compactions": self.tally.compactions,
            "refused_completions": self.tally.refused, "budget_warnings": self.tally.warnings,
            "promises": promises, "seconds": seconds,
        })
    }
}

fn perform(stage: &Stage, narrator: &mut Narrator) -> anyhow::Result<Ending> {
    stage.prepare()?;
    narrator.line("A scripted agent pursues a goal. The model is made up; the store, the hooks,");
    narrator.line("the tool server, the files, the checks and the kill -9 are real.");
    let place = format!("{} (removed at the end)", stage.root().display());
    narrator.labelled("folder", Style::new().dimmed(), &place);
    narrator.rest(3);

    let mut tally = Tally::default();
    let mut status = watch(stage, narrator, &mut tally)?;
    if status.signal() == Some(Signal::KILL.as_raw()) {
        tally.kills += 1;
        look_at_the_wreck(stage, narrator, &mut tally)?;
        status = watch(stage, narrator, &mut tally)?;
    }
    if !status.success() {
        bail!("the agent ended with {status}");
    }
    take_stock(stage, narrator, tally)
}

/// Shows what the agent tells, until it ends or its moment to die has come.
fn watch(stage: &Stage, narrator: &mut Narrator, tally: &mut Tally) -> anyhow::Result<ExitStatus> {
    let mut agent =
        stage.steadfast(&["demo", "--agent"]).arg(stage.root()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut heard = agent.stdin.take().context("the agent has no stdin")?;
    let told = agent.stdout.take().context("the agent has no stdout")?;
    for line in BufReader::new(told).lines() {
        let line = line?;
        let event: StoryEvent = serde_json::from_str(&line).with_context(|| line.clone())?;
        tally.note(&event);
        match &event {
            StoryEvent::Scene(title) => narrator.scene(title),
            StoryEvent::Said(voice, said) => narrator.said(*voice, said),
            StoryEvent::Accounted => {
                let goal = stage.goal()?;
                narrator.budget(number(&goal, "total_tokens"), number(&goal, "token_budget"));
            }
            StoryEvent::InMidTurn => {
                narrator.rest(2);
                agent.kill()?;
                break;
            }
            _ => {}
        }
        if writeln!(heard).is_err() {
            // It is gone; how it ended says the rest.
            break;
        }
    }
    Ok(agent.wait()?)
}

/// Right after the kill: is the store whole, and what does it not know yet?
fn look_at_the_wreck(stage: &Stage, narrator: &Narrator, tally: &mut Tally) -> anyhow::Result<()> {
    narrator.alarm("kill -9", "The agent is gone: slugify.sh half written, no goodbye to any hook.");
    let check = stage.ask_json(&["db", "check", "--json"])?;
    let goal = stage.goal()?;
    let counted = number(&goal, "total_tokens");
    tally.unseen_at_kill = tally.tokens - counted;
    tally.store_survived = check["ok"] == json!(true) && goal["status"] == json!("active");
    let health = if check["ok"] == json!(true) { "intact" } else { "damaged" };
    narrator.said(
        Voice::Steadfast,
        &format!(
            "The store is {health} and the goal {}. {} tokens are counted; the last answer ({}) no hook has seen yet.",
            goal["status"].as_str().unwrap_or("gone"),
            text::thousands(counted),
            text::thousands(tally.unseen_at_kill)
        ),
    );
    narrator.rest(2);
    Ok(())
}

/// The end: the goal as the store has it, its history, and whether all of it is true.
fn take_stock(stage: &Stage, narrator: &Narrator, tally: Tally) -> anyhow::Result<Ending> {
    narrator.heading("steadfast goal status");
    for line in stage.ask(&["goal", "status", "--session", SESSION])?.lines() {
        narrator.line(&format!("  {line}"));
    }
    narrator.rest(4);

    let history = stage.ask_json(&["goal", "history", "--session", SESSION, "--format=json"])?;
    let events = history["events"].as_array().cloned().unwrap_or_default();
    narrator.heading("steadfast goal history --events");
    let first_ms = events.first().map_or(0, |event| number(event, "created_at_ms"));
    for event in &events {
        narrator.line(&format!("  {}", timeline_row(event, first_ms)));
    }
    narrator.rest(4);

    let record = Record { goal: stage.goal()?, events, transcript: fs_err::read_to_string(stage.transcript())? };
    let promises = promise::check(&tally, &record);
    narrator.heading("What was promised, and what happened");
    for promise in &promises {
        let (mark, style) =
            if promise.held { ("✓", colour(AnsiColor::Green)) } else { ("✗", colour(AnsiColor::Red).bold()) };
        narrator.labelled(&format!("{mark} {}", promise.label), style, &promise.text);
        narrator.rest(1);
    }
    if promises.iter().all(|promise| promise.held) {
        narrator.heading("Now with your own agent");
        narrator.line("  steadfast setup claude --dry-run    what would change, and nothing else");
        narrator.line("  steadfast setup claude              hook it into Claude Code");
        narrator.line("  /goal-start \"All tests pass\" --budget standard --verify \"make test\"");
    }
    Ok(Ending { events: record.events.len(), goal: record.goal, tally, promises })
}

fn timeline_row(event: &Value, first_ms: i64) -> String {
    let ms = number(event, "created_at_ms") - first_ms;
    let at = std::time::Duration::from_millis(ms.unsigned_abs()).as_secs_f64();
    let (before, after) = (event["status_before"].as_str(), event["status_after"].as_str());
    let detail = match (before, after, event["tokens_delta"].as_i64()) {
        (Some(before), Some(after), _) if before != after => format!("{before} → {after}"),
        (_, _, Some(tokens)) => format!("+{}", text::thousands(tokens)),
        _ => String::new(),
    };
    let kind = event["kind"].as_str().unwrap_or_default();
    format!("{at:>6.2} s  {kind:<32}{detail}").trim_end().to_owned()
}

fn number(of: &Value, field: &str) -> i64 {
    of[field].as_i64().unwrap_or_default()
}
