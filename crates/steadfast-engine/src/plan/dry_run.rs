//! Dry runs: the settings and files of a plan, and the first prompt of each stage, or one for each perspective, as the
//! agent would get it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use steadfast_model::clock::Millis;
use steadfast_model::prompt::PromptError;
use steadfast_model::redact::redact;
use steadfast_model::run::inputs::{names_inputs, with_inputs_appended};
use steadfast_model::run::template::{self, Variables};
use steadfast_model::run::{AgentKind, AgentPlan, EnvVariable, Plan, StageGraph, StagePlan, Then};
use steadfast_model::text;

use crate::{agent, files};

/// Stands for a file that exists only while an agent works.
const RESULT: &str = "[result file]";
const STATUS: &str = "[status file]";
const CONTEXT: &str = "[context file]";
const OUTPUT: &str = "[output file]";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filled {
    /// From 1.
    pub stage: u32,
    pub iteration: u32,
    pub perspective: Option<String>,
    pub prompt: String,
    /// Names of unknown variables.
    pub unknown: Vec<String>,
}

/// The prompts of a plan: of each stage the first one, or one for each perspective. `inputs` is what the first stage is
/// given from outside; what earlier stages will put out is named in brackets.
pub fn prompts(plan: &Plan, inputs: &str) -> Result<Vec<Filled>, PromptError> {
    let mut filled = Vec::new();
    for (number, stage) in (1_u32..).zip(&plan.stages) {
        let shown = u32::try_from(stage.perspectives.len()).unwrap_or(u32::MAX).min(stage.runs).max(1);
        for iteration in 1..=shown {
            filled.push(fill(plan, number, stage, iteration, inputs)?);
        }
    }
    Ok(filled)
}

/// The plan as text for people.
pub fn dry_run(plan: &Plan, inputs: &str) -> Result<String, PromptError> {
    let prompts = prompts(plan, inputs)?;
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{} {} ({})", plan.kind, plan.name, plan.title);
    row(&mut out, "limits", &limits(plan));
    if let Some(note) = budget_note(plan) {
        row(&mut out, "note", note);
    }
    for (number, stage) in (1_u32..).zip(&plan.stages) {
        let _ = writeln!(out, "\nstage {number}: {}", stage.name);
        row(&mut out, "loop type", stage.loop_type.as_deref().unwrap_or("-"));
        show_order(&mut out, plan, number, stage);
        if stage.agents.is_empty() {
            row(&mut out, "agent", &program(&stage.agent));
        } else {
            row(&mut out, "agents", &join(stage.agents.iter().map(program)));
        }
        row(&mut out, "at most", &format!("{}{}", stage.runs, if stage.parallel { ", all at once" } else { "" }));
        row(&mut out, "over when", &stage.completion.describe(stage.runs, stage.items.len()));
        row(&mut out, "timing", &timing(stage));
        if let Some(judge) = &stage.judge {
            row(&mut out, "judge", &program(judge));
        }
        show_settings(&mut out, stage);
        if plan.has_inputs(number, inputs) && !names_inputs(&stage.prompt) {
            row(&mut out, "inputs", "the prompt does not name them: they are added at its end");
        }
        let (progress, output) = files::first_files(plan, number, stage);
        row(&mut out, "progress", &progress);
        row(&mut out, "output", output.as_deref().unwrap_or("-"));
        for filled in prompts.iter().filter(|filled| filled.stage == number) {
            show(&mut out, filled);
        }
    }
    Ok(out)
}

/// When the stage runs, and what follows.
fn show_order(out: &mut String, plan: &Plan, number: u32, stage: &StagePlan) {
    if stage.needs.is_some() {
        let names = plan.needs_of(number).into_iter().filter_map(|need| plan.stage(need)).map(|need| need.name.clone());
        let names: Vec<String> = names.collect();
        let names = if names.is_empty() { "no other stage".to_owned() } else { names.join(", ") };
        row(out, "needs", &names);
    }
    if let Some(when) = &stage.when {
        row(out, "when", &when.to_string());
    }
    if let Some(question) = &stage.approve {
        row(out, "approval", question);
    }
    if let Some(then) = stage.on_max {
        row(out, "at maximum", &then.to_string());
    }
    if stage.on_fail != Then::default() {
        row(out, "on failure", &stage.on_fail.to_string());
    }
}

/// What an iteration gets and leaves.
fn show_settings(out: &mut String, stage: &StagePlan) {
    let limits = stage.limits.iter().map(|(axis, amount)| axis.format(amount));
    let retries = stage.retries.map(|retries| format!("{retries} for an iteration that failed"));
    let env = stage.env.iter().map(|variable| match variable {
        EnvVariable { name, from } if name == from => name.clone(),
        EnvVariable { name, from } => format!("{name} from ${from}"),
    });
    let cells = stage.matrix.iter().map(|cell| {
        let values = cell.iter().map(|(axis, value)| format!("{axis}={value}"));
        values.collect::<Vec<_>>().join(" ")
    });
    let merge = stage.merge.as_ref().map(|merge| match &merge.chosen_by {
        Some(judge) => format!("the branches of {} that {judge} chose", merge.from),
        None => format!("all branches of {}", merge.from),
    });
    let artifacts = stage.artifacts.iter().map(|(name, path)| format!("{name}: {path}"));
    for (name, value) in [
        ("merges", merge.unwrap_or_default()),
        ("matrix", join(cells)),
        ("retries", retries.unwrap_or_default()),
        ("limits", limits.collect::<Vec<_>>().join(", ")),
        ("env", env.collect::<Vec<_>>().join(", ")),
        ("artifacts", artifacts.collect::<Vec<_>>().join(", ")),
    ] {
        if !value.is_empty() {
            row(out, name, &value);
        }
    }
}

fn join(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join("; ")
}

/// A note about a limit on money or tokens that depends on what a command reports.
pub fn budget_note(plan: &Plan) -> Option<&'static str> {
    let is_command = |agent: &AgentPlan| matches!(agent.kind, AgentKind::Command(_));
    let has_command = |stage: &StagePlan| {
        let workers = (1..=u32::try_from(stage.agents.len()).unwrap_or(1).max(1)).map(|number| stage.agent_of(number));
        workers.chain(&stage.judge).any(is_command)
    };
    let is_limited = |stage: &&StagePlan| plan.limits.limits.has_budget() || stage.limits.has_budget();
    plan.stages.iter().filter(is_limited).any(has_command).then_some(
        "the limit holds only if the agent reports `usage` in its result file; without it the run ends after the first \
         attempt",
    )
}

fn row(out: &mut String, name: &str, value: &str) {
    let _ = writeln!(out, "  {name:<10} {}", text::headline(&redact(value), 300));
}

fn limits(plan: &Plan) -> String {
    let limits = &plan.limits;
    let mut parts: Vec<String> = limits.limits.iter().map(|(axis, amount)| axis.format(amount)).collect();
    parts.push(format!("{} errors in a row", limits.errors));
    match limits.idle {
        0 => parts.push("no limit for iterations without progress".into()),
        idle => parts.push(format!("{idle} iterations without progress")),
    }
    parts.join(", ")
}

fn program(agent: &AgentPlan) -> String {
    let mut words = match &agent.kind {
        AgentKind::Host(host) => host.to_string(),
        AgentKind::Command(words) => words.join(" "),
    };
    for (name, value) in [("model", &agent.model), ("effort", &agent.effort)] {
        if let Some(value) = value {
            let _ = write!(words, ", {name} {value}");
        }
    }
    words
}

fn timing(stage: &StagePlan) -> String {
    let seconds = |ms: Millis| text::duration(ms / 1_000);
    let before = if stage.check_before { ", rule tested before each iteration" } else { "" };
    let (limit, rest) = (seconds(stage.timeout_ms), seconds(stage.delay_ms));
    format!("{limit} for an agent, {rest} between iterations{before}")
}

fn fill(plan: &Plan, number: u32, stage: &StagePlan, iteration: u32, given: &str) -> Result<Filled, PromptError> {
    let before = StageGraph::of(plan).before(number);
    let named = before
        .iter()
        .filter_map(|before| plan.stage(*before))
        .map(|stage| (stage.name.clone(), format!("[output of stage {}]", stage.name)));
    let named_inputs: BTreeMap<String, String> = named.collect();
    let (progress, output) = files::first_files(plan, number, stage);
    let at = iteration.saturating_sub(1) as usize;
    let perspective = stage.perspectives.get(at).cloned();
    let output = output.unwrap_or_else(|| OUTPUT.to_owned());
    let variables = Variables {
        output_path: stage.output_path.clone().unwrap_or_else(|| output.clone()),
        status: STATUS.into(),
        context_file: CONTEXT.into(),
        context: stage.context.clone(),
        commands: stage.commands.clone(),
        session: plan.name.clone(),
        iteration,
        perspective: perspective.clone().unwrap_or_default(),
        output,
        progress,
        inputs: inputs(plan, number, stage, given),
        named_inputs,
        item: stage.items.get(at).cloned().unwrap_or_default(),
        result: RESULT.into(),
        objective: "[objective]".into(),
        more: more(plan, stage, iteration),
    };
    let prompt = with_inputs_appended(&stage.prompt, plan.has_inputs(number, given));
    let rendered = template::render(&prompt, &variables);
    let mut prompt = rendered.text;
    if !matches!(stage.agent_of(iteration).kind, AgentKind::Command(_)) {
        let promises: Vec<String> = stage.completion.promises().map(str::to_owned).collect();
        let file = (!agent::says_result(&stage.prompt)).then_some(RESULT);
        agent::add_result(&mut prompt, file, stage.completion.needs_vote(), &promises)?;
    }
    let prompt = redact(&prompt).into_owned();
    Ok(Filled { stage: number, iteration, perspective, prompt, unknown: rendered.unknown })
}

fn more(plan: &Plan, stage: &StagePlan, iteration: u32) -> BTreeMap<String, String> {
    let cell = stage.matrix_of(iteration).map(|(name, value)| (format!("MATRIX.{name}"), value.clone()));
    let names = plan.stages.iter().flat_map(|stage| stage.artifacts.keys());
    let artifacts = names.map(|name| (format!("ARTIFACTS.{name}"), format!("[artifact {name}]")));
    let merge = [("MERGE_BRANCH", "[branch]"), ("MERGE_CONFLICTS", "[files with conflicts]")];
    let merge = merge.into_iter().filter(|_| stage.merge.is_some());
    cell.chain(artifacts).chain(merge.map(|(name, value)| (name.to_owned(), value.to_owned()))).collect()
}

fn inputs(plan: &Plan, number: u32, stage: &StagePlan, given: &str) -> String {
    let which = if stage.latest_inputs { "last output" } else { "output" };
    let initial = Some(given.trim_end().to_owned()).filter(|_| plan.shows_initial_inputs(number));
    let outputs = plan.inputs_of(number).into_iter().map(|name| format!("[{which} of stage {name}]"));
    initial.into_iter().filter(|given| !given.is_empty()).chain(outputs).collect::<Vec<_>>().join("\n\n")
}

fn show(out: &mut String, filled: &Filled) {
    if !filled.unknown.is_empty() {
        let unknown: Vec<String> = filled.unknown.iter().map(|name| format!("${{{name}}}")).collect();
        row(out, "unknown", &unknown.join(" "));
    }
    let _ = match &filled.perspective {
        Some(name) => writeln!(out, "  prompt {} ({}):", filled.iteration, text::headline(name, 100)),
        None => writeln!(out, "  first prompt:"),
    };
    for line in text::printable(&filled.prompt).trim_end().lines() {
        let _ = writeln!(out, "    | {line}");
    }
}
