//! What a plan would do, without doing it: its settings, its files, and the first prompt of each stage as the agent
//! would get it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use steadfast_core::clock::Millis;
use steadfast_core::run::template::{self, Variables};
use steadfast_core::run::{AgentKind, AgentPlan, Plan, Rule, StagePlan};
use steadfast_core::text;

use crate::files;

/// The plan as text for people.
pub fn dry_run(plan: &Plan) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{} {} ({})", plan.kind, plan.name, plan.title);
    row(&mut out, "limits", &limits(plan));
    for (number, stage) in (1_u32..).zip(&plan.stages) {
        let _ = writeln!(out, "\nstage {number}: {}", stage.name);
        row(&mut out, "loop type", stage.loop_type.as_deref().unwrap_or("-"));
        row(&mut out, "agent", &agent(&stage.agent));
        row(&mut out, "at most", &format!("{}{}", stage.runs, if stage.parallel { ", all at once" } else { "" }));
        row(&mut out, "over when", &rule(&stage.completion, stage));
        row(&mut out, "timing", &timing(stage));
        if let Some(judge) = &stage.judge {
            row(&mut out, "judge", &agent(judge));
        }
        let (progress, output) = files::first_files(plan, number, stage);
        row(&mut out, "progress", &progress);
        row(&mut out, "output", output.as_deref().unwrap_or("-"));
        prompt(&mut out, plan, number, stage, progress, output.unwrap_or_default());
    }
    out
}

fn row(out: &mut String, name: &str, value: &str) {
    let _ = writeln!(out, "  {name:<10} {}", text::headline(value, 300));
}

fn limits(plan: &Plan) -> String {
    let limits = &plan.limits;
    let mut parts = Vec::new();
    parts.extend(limits.tokens.map(|tokens| format!("{} tokens", text::short_number(tokens))));
    parts.extend(limits.cost_micros.map(text::usd));
    parts.extend(limits.wall_ms.map(|ms| text::duration(ms / 1_000)));
    parts.push(format!("{} errors in a row", limits.errors));
    match limits.idle {
        0 => parts.push("no progress allowed for ever".into()),
        idle => parts.push(format!("{idle} iterations without progress")),
    }
    parts.join(", ")
}

fn agent(agent: &AgentPlan) -> String {
    let mut words = match &agent.kind {
        AgentKind::Claude => "claude".to_owned(),
        AgentKind::Codex => "codex".to_owned(),
        AgentKind::Command(words) => words.join(" "),
    };
    for (name, value) in [("model", &agent.model), ("effort", &agent.effort)] {
        if let Some(value) = value {
            let _ = write!(words, ", {name} {value}");
        }
    }
    words
}

fn rule(rule: &Rule, stage: &StagePlan) -> String {
    match rule {
        Rule::FixedN => format!("{} iterations are done", stage.runs),
        Rule::AllItems => format!("each of {} items had its iteration", stage.items.len()),
        Rule::Plateau(count) => format!("{count} iterations in a row find nothing left to improve"),
        Rule::BeadsEmpty(label) => format!("no bead labelled {label} is left"),
        Rule::Command(command) => format!("`{command}` exits with 0"),
        Rule::Promise(promise) => format!("the answer contains <promise>{promise}</promise>"),
        Rule::Verify(commands) => format!("`{}` exits with 0", commands.join(" && ")),
        Rule::Checklist(file) => format!("no box is left in {file}"),
        Rule::Any(rules) => joined(rules, " or ", stage),
        Rule::All(rules) => joined(rules, " and ", stage),
    }
}

fn joined(rules: &[Rule], between: &str, stage: &StagePlan) -> String {
    rules.iter().map(|part| format!("({})", rule(part, stage))).collect::<Vec<_>>().join(between)
}

fn timing(stage: &StagePlan) -> String {
    let seconds = |ms: Millis| text::duration(ms / 1_000);
    let before = if stage.check_before { ", rule tested before each iteration" } else { "" };
    let (limit, rest) = (seconds(stage.timeout_ms), seconds(stage.delay_ms));
    format!("{limit} for an agent, {rest} between iterations{before}")
}

fn prompt(out: &mut String, plan: &Plan, number: u32, stage: &StagePlan, progress: String, output: String) {
    let earlier = plan.stages.iter().take(number.saturating_sub(1) as usize);
    let named = earlier.map(|stage| (stage.name.clone(), format!("[output of stage {}]", stage.name)));
    let named_inputs: BTreeMap<String, String> = named.collect();
    let before =
        plan.stages.get(number.saturating_sub(2) as usize).filter(|_| number > 1).map(|stage| stage.name.clone());
    let inputs: Vec<String> = if stage.inputs.is_empty() { before.into_iter().collect() } else { stage.inputs.clone() };
    let inputs: Vec<String> = inputs.iter().map(|name| format!("[output of stage {name}]")).collect();
    let variables = Variables {
        session: plan.name.clone(),
        iteration: 1,
        perspective: stage.perspectives.first().cloned().unwrap_or_default(),
        output,
        progress,
        inputs: inputs.join("\n\n"),
        named_inputs,
        item: stage.items.first().cloned().unwrap_or_default(),
        result: "[result file]".into(),
        objective: "[objective]".into(),
    };
    let rendered = template::render(&stage.prompt, &variables);
    if !rendered.unknown.is_empty() {
        let unknown: Vec<String> = rendered.unknown.iter().map(|name| format!("${{{name}}}")).collect();
        row(out, "unknown", &unknown.join(" "));
    }
    let _ = writeln!(out, "  first prompt:");
    for line in text::printable(&rendered.text).trim_end().lines() {
        let _ = writeln!(out, "    | {line}");
    }
}
