//! `steadfast demo`: a scripted client pursues a goal in a temp folder, with a budget warning, a compaction, a refused
//! completion, a kill and a resume. At the end the store is compared with what really happened.

mod client;
mod folder;
mod printer;
mod promise;
mod steps;
mod transcript;

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus};
use std::time::Instant;

use anyhow::bail;
use rustix::process::Signal;
use serde_json::{Value, json};
use steadfast_model::text;

use self::folder::{DemoFolder, SESSION};
use self::printer::{DIM, GREEN, Printer, RED};
use self::promise::{DemoFacts, FinalState};
use crate::cli::DemoArgs;
use crate::error::CliError;
use crate::output::CommandOutput;

/// The contract has no exit code for a broken promise.
const FAILED: u8 = 1;

pub(crate) fn run(arguments: &DemoArgs) -> Result<CommandOutput, CliError> {
    if let Some(root) = &arguments.agent {
        let printer = Printer { to_stderr: false, fast: arguments.fast };
        client::play(&DemoFolder::at(root)?, &printer).map_err(|error| failed(format!("scripted agent: {error:#}")))?;
        return Ok(CommandOutput::default());
    }
    let started = Instant::now();
    let temp = tempfile::Builder::new().prefix("steadfast-demo-").tempdir()?;
    let demo = Demo {
        folder: DemoFolder::at(temp.path())?,
        printer: Printer { to_stderr: arguments.json, fast: arguments.fast },
    };
    let mut summary = demo.play().map_err(|error| failed(format!("the demo stopped: {error:#}")))?;
    summary["seconds"] = json!((started.elapsed().as_secs_f64() * 100.0).round() / 100.0);
    let is_ok = summary["ok"] == json!(true);
    if !is_ok && !arguments.json {
        let promises = summary["promises"].as_array().into_iter().flatten();
        let broken = promises.filter(|promise| promise["held"] == json!(false)).filter_map(|it| it["name"].as_str());
        return Err(failed(format!("these promises did not hold: {}", broken.collect::<Vec<_>>().join(", "))));
    }
    Ok(CommandOutput { text: String::new(), json: summary, code: if is_ok { 0 } else { FAILED } })
}

fn failed(message: String) -> CliError {
    CliError { kind: "failed", ..CliError::new(FAILED, message, "report this as a bug, with the output above") }
}

struct Demo {
    folder: DemoFolder,
    printer: Printer,
}

impl Demo {
    /// Plays the demo and returns its summary.
    fn play(&self) -> anyhow::Result<Value> {
        self.folder.prepare()?;
        self.printer.line("A scripted agent pursues a goal. The model is made up; the store, the hooks,");
        self.printer.line("the tool server, the files, the checks and the kill -9 are real.");
        let place = format!("{} (removed at the end)", self.folder.root.display());
        self.printer.labelled("folder", DIM, &place);
        self.printer.pause(2);

        let mut status = self.run_client()?;
        if status.signal() == Some(Signal::KILL.as_raw()) {
            self.inspect_after_kill()?;
            status = self.run_client()?;
        }
        if !status.success() {
            bail!("the scripted agent ended with {status}");
        }
        self.report(&self.folder.facts()?)
    }

    fn run_client(&self) -> anyhow::Result<ExitStatus> {
        let mut client = Command::new(&self.folder.program);
        client.args(["demo", "--agent"]).arg(&self.folder.root);
        if self.printer.fast {
            client.arg("--fast");
        }
        if self.printer.to_stderr {
            client.stdout(std::io::stderr());
        }
        Ok(client.status()?)
    }

    /// Checks the store right after the kill and adds the result to the facts.
    fn inspect_after_kill(&self) -> anyhow::Result<()> {
        self.printer.labelled(
            "kill -9",
            RED.bold(),
            "The agent is dead: slugify.sh is half written, no hook was called.",
        );
        let is_intact = self.folder.json(&["db", "check", "--json"])?["ok"] == json!(true);
        let goal = self.folder.goal()?;
        let counted = number(&goal, "total_tokens");
        let mut facts = self.folder.facts()?;
        facts.kills += 1;
        facts.unseen_at_kill = facts.tokens - counted;
        facts.store_survived = is_intact && goal["status"] == json!("active");
        self.folder.save_facts(&facts)?;
        let text = format!(
            "The store is {} and the goal is {}. {} tokens are counted; no hook has seen the last answer ({}) yet.",
            if is_intact { "intact" } else { "damaged" },
            goal["status"].as_str().unwrap_or("missing"),
            text::thousands(counted),
            text::thousands(facts.unseen_at_kill)
        );
        self.printer.labelled("steadfast", GREEN, &text);
        self.printer.pause(2);
        Ok(())
    }

    /// Prints the goal, its events and the promises, and returns the summary.
    fn report(&self, facts: &DemoFacts) -> anyhow::Result<Value> {
        for view in [&["goal", "status"][..], &["goal", "history", "--events"]] {
            self.printer.heading(&format!("steadfast {}", view.join(" ")));
            for line in self.folder.run(&[view, &["--session", SESSION]].concat(), "")?.lines() {
                // The payload of an event is too long for the screen.
                let row = line.split("  {").next().unwrap_or_default();
                self.printer.line(&format!("  {row}"));
            }
            self.printer.pause(3);
        }
        let mut history = self.folder.json(&["goal", "history", "--session", SESSION, "--format=json"])?;
        let end = FinalState {
            goal: self.folder.goal()?,
            events: serde_json::from_value(history["events"].take())?,
            transcript: fs_err::read_to_string(self.folder.transcript())?,
        };
        let promises = promise::check(facts, &end);
        self.printer.heading("Promises");
        for promise in &promises {
            let (mark, style) = if promise.held { ("✓", GREEN) } else { ("✗", RED.bold()) };
            self.printer.labelled(&format!("{mark} {}", promise.name), style, &promise.text);
        }
        let is_ok = promises.iter().all(|promise| promise.held);
        if is_ok {
            self.printer.heading("Now with your own agent");
            self.printer.line("  steadfast setup claude --dry-run    Show what would change");
            self.printer.line("  steadfast setup claude              Install the Claude Code hooks");
            self.printer.line("  /goal-start \"All tests pass\" --budget standard --verify \"make test\"");
        }
        Ok(json!({
            "ok": is_ok, "goal": end.goal, "tokens_expected": facts.tokens, "tokens_counted": end.goal["total_tokens"],
            "events": end.events.len(), "kills": facts.kills, "compactions": facts.compactions,
            "refused_completions": facts.refused, "budget_warnings": facts.warnings, "promises": promises,
        }))
    }
}

fn number(object: &Value, field: &str) -> i64 {
    object[field].as_i64().unwrap_or_default()
}
