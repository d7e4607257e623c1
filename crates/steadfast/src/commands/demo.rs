//! `steadfast demo`: a scripted client pursues a goal in a temp folder, with a budget warning, a compaction, a refused
//! completion, a kill and a resume. At the end the store is compared with what really happened.

mod client;
mod promise;
mod stage;

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::Instant;

use anyhow::bail;
use rustix::process::Signal;
use serde_json::{Value, json};
use steadfast_model::text;
use steadfast_system::paths::create_private_dir;

use self::promise::{DemoFacts, FinalState};
use self::stage::{DIM, GREEN, RED, SESSION, Stage, number};
use crate::error::{CliError, code};
use crate::output::{CommandOutput, CommandResult};

pub(crate) fn run(fast: bool, agent: Option<&Path>, is_json: bool) -> CommandResult {
    if let Some(root) = agent {
        client::play(&Stage::new(root, fast, is_json)?)
            .map_err(|error| failed(format!("scripted agent: {error:#}")))?;
        return Ok(CommandOutput::default());
    }
    let started = Instant::now();
    let temp = tempfile::Builder::new().prefix("steadfast-demo-").tempdir()?;
    let stage = Stage::new(temp.path(), fast, is_json)?;
    let mut summary = play(&stage).map_err(|error| failed(format!("the demo stopped: {error:#}")))?;
    summary["seconds"] = json!((started.elapsed().as_secs_f64() * 100.0).round() / 100.0);
    let is_ok = summary["ok"] == json!(true);
    if !is_ok && !is_json {
        return Err(failed("not all promises held".to_owned()));
    }
    Ok(CommandOutput { text: String::new(), json: summary, code: if is_ok { 0 } else { code::USAGE } })
}

/// The contract has no exit code for a broken promise.
fn failed(message: String) -> CliError {
    CliError { kind: "failed", ..CliError::new(code::USAGE, message, "report this as a bug, with the output above") }
}

fn play(stage: &Stage) -> anyhow::Result<Value> {
    for name in ["home", "steadfast", "slugify"] {
        create_private_dir(&stage.root.join(name))?;
    }
    fs_err::write(stage.project().join("check.sh"), include_str!("demo/project/check.sh"))?;
    stage.save_facts(&DemoFacts::default())?;
    stage.line("A scripted agent pursues a goal. The model is made up; the store, the hooks,");
    stage.line("the tool server, the files, the checks and the kill -9 are real.");
    stage.labelled("folder", DIM, &format!("{} (removed at the end)", stage.root.display()));
    stage.pause(2);

    let mut status = run_client(stage)?;
    if status.signal() == Some(Signal::KILL.as_raw()) {
        inspect_after_kill(stage)?;
        status = run_client(stage)?;
    }
    if !status.success() {
        bail!("the scripted agent ended with {status}");
    }
    report(stage)
}

fn run_client(stage: &Stage) -> anyhow::Result<ExitStatus> {
    let mut client = Command::new(&stage.program);
    client.args(["demo", "--agent"]).arg(&stage.root);
    if stage.fast {
        client.arg("--fast");
    }
    if stage.to_stderr {
        client.stdout(std::io::stderr());
    }
    Ok(client.status()?)
}

/// Checks the store right after the kill and adds the result to the facts.
fn inspect_after_kill(stage: &Stage) -> anyhow::Result<()> {
    stage.labelled("kill -9", RED, "The agent is dead: slugify.sh is half written, no hook was called.");
    let is_intact = stage.json(&["db", "check", "--json"])?["ok"] == json!(true);
    let goal = stage.goal()?;
    let counted = number(&goal, "total_tokens");
    let mut facts = stage.facts()?;
    facts.kills += 1;
    facts.unseen_at_kill = facts.tokens - counted;
    facts.store_survived = is_intact && goal["status"] == json!("active");
    stage.save_facts(&facts)?;
    let text = format!(
        "The store is {} and the goal is {}. {} tokens are counted; no hook has seen the last answer ({}) yet.",
        if is_intact { "intact" } else { "damaged" },
        goal["status"].as_str().unwrap_or("missing"),
        text::thousands(counted),
        text::thousands(facts.unseen_at_kill)
    );
    stage.labelled("steadfast", GREEN, &text);
    stage.pause(2);
    Ok(())
}

fn report(stage: &Stage) -> anyhow::Result<Value> {
    for view in [&["goal", "status"][..], &["goal", "history", "--events"]] {
        stage.heading(&format!("steadfast {}", view.join(" ")));
        for line in stage.run(&[view, &["--session", SESSION]].concat(), "")?.lines() {
            // The payload of an event is too long for the screen.
            let row = line.split("  {").next().unwrap_or_default();
            stage.line(&format!("  {row}"));
        }
        stage.pause(3);
    }
    let facts = stage.facts()?;
    let mut history = stage.json(&["goal", "history", "--session", SESSION, "--format=json"])?;
    let end = FinalState { goal: stage.goal()?, events: serde_json::from_value(history["events"].take())? };
    let promises = promise::check(&facts, &end);
    stage.heading("Promises");
    for promise in &promises {
        let (mark, style) = if promise.held { ("✓", GREEN) } else { ("✗", RED) };
        stage.labelled(&format!("{mark} {}", promise.name), style, &promise.text);
    }
    let is_ok = promises.iter().all(|promise| promise.held);
    if is_ok {
        stage.heading("Now with your own agent");
        stage.line("  steadfast setup claude --dry-run    Show what would change");
        stage.line("  steadfast setup claude              Install the Claude Code hooks");
        stage.line("  /goal-start \"All tests pass\" --budget standard --verify \"make test\"");
    }
    Ok(json!({
        "ok": is_ok, "goal": end.goal, "tokens_expected": facts.tokens, "tokens_counted": end.goal["total_tokens"],
        "events": end.events.len(), "kills": facts.kills, "compactions": facts.compactions,
        "refused_completions": facts.refused, "budget_warnings": facts.warnings, "promises": promises,
    }))
}
