//! `validate` and `graph`: what a definition says, without a run. Definitions are those of the project, so both read
//! nothing but files.

use serde_json::{Value, json};
use steadfast_engine::plan::{
    Catalogue, CheckedPlan, Fault, Level, Overrides, Planned, check_project, plan_pipeline, validate_loop,
    validate_pipeline,
};
use steadfast_model::redact::redact;
use steadfast_model::run::{Plan, RunKind, StageGraph, StagePlan};
use steadfast_model::text;

use super::runs;
use crate::error::code;
use crate::output::{self, CommandOutput, CommandResult};

/// Checks one definition, or all of the project.
pub(super) fn validate(catalogue: &Catalogue, kind: RunKind, name: Option<&str>) -> CommandResult {
    let Some(name) = name else { return Ok(validated_all(&check_project(catalogue)?)) };
    let faults = match kind {
        RunKind::Loop => validate_loop(catalogue, name)?,
        RunKind::Pipeline => validate_pipeline(catalogue, name)?,
    };
    let (verdict, code) = verdict(name, &faults);
    let text = if faults.is_empty() { verdict } else { format!("{}\n{verdict}", runs::format_faults(&faults)) };
    Ok(CommandOutput { text, json: json!({"valid": code == 0, "faults": runs::faults_json(&faults)}), code })
}

fn count(faults: &[Fault], level: Level) -> usize {
    faults.iter().filter(|fault| fault.level == level).count()
}

fn verdict(what: &str, faults: &[Fault]) -> (String, u8) {
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    match (count(faults, Level::Error), count(faults, Level::Warning)) {
        (0, 0) => (format!("{what} is valid"), 0),
        (0, warnings) => (format!("{what} is valid, with {warnings} warning{}", plural(warnings)), 0),
        (errors, _) => (format!("{what} is invalid: {errors} error{}", plural(errors)), code::USAGE),
    }
}

fn validated_all(checked: &[CheckedPlan]) -> CommandOutput {
    if checked.is_empty() {
        let text =
            "nothing to check: no definitions in .claude/loops and .claude/pipelines, nor in scripts/stages and \
                    scripts/pipelines"
                .to_owned();
        return CommandOutput { text, json: json!({"valid": true, "definitions": []}), code: 0 };
    }
    // A loop type has its faults once, however many pipelines use it.
    let mut faults: Vec<Fault> = Vec::new();
    for fault in checked.iter().flat_map(|checked| &checked.faults) {
        if !faults.contains(fault) {
            faults.push(fault.clone());
        }
    }
    let verdicts: Vec<(String, u8)> = checked.iter().map(|one| verdict(&one.file, &one.faults)).collect();
    let mut lines: Vec<String> =
        Some(runs::format_faults(&faults)).filter(|text| !text.is_empty()).into_iter().collect();
    lines.extend(verdicts.iter().map(|(text, _)| text.clone()));
    let object = |one: &CheckedPlan| {
        let valid = count(&one.faults, Level::Error) == 0;
        json!({"kind": one.kind, "file": one.file, "valid": valid, "faults": runs::faults_json(&one.faults)})
    };
    let definitions: Value = checked.iter().map(object).collect();
    let code = verdicts.iter().map(|(_, code)| *code).max().unwrap_or(0);
    CommandOutput { text: lines.join("\n"), json: json!({"valid": code == 0, "definitions": definitions}), code }
}

/// Shows which stages wait for which.
pub(super) fn graph(catalogue: &Catalogue, file: &str, mermaid: bool) -> CommandResult {
    let planned = plan_pipeline(catalogue, file, Some("name"), &Overrides::default(), 0);
    let Planned { plan, .. } =
        planned.map_err(|error| super::loops::refused(error, RunKind::Pipeline, "show", file))?;
    let graph = StageGraph::of(&plan);
    let levels = graph.levels();
    let level = |number: u32| levels.iter().position(|level| level.contains(&number)).map_or(0, |level| level + 1);
    let object = |(number, stage): (u32, &StagePlan)| {
        json!({
            "number": number, "name": stage.name, "level": level(number), "needs": needs(&plan, &graph, number),
            "when": stage.when.as_ref().map(ToString::to_string), "approve": stage.approve.as_deref().map(redact),
            "parallel": width(stage), "merge": stage.merge,
        })
    };
    let stages: Value = (1..).zip(&plan.stages).map(object).collect();
    let text = if mermaid { mermaid_text(&plan, &graph) } else { levels_text(&plan, &graph, &levels) };
    Ok(CommandOutput { text, json: json!({"name": plan.title, "stages": stages}), code: 0 })
}

fn needs<'a>(plan: &'a Plan, graph: &StageGraph, number: u32) -> Vec<&'a str> {
    graph.needs(number).iter().filter_map(|need| Some(plan.stage(*need)?.name.as_str())).collect()
}

/// How many agents work at once.
fn width(stage: &StagePlan) -> u32 {
    if stage.parallel { stage.runs } else { 1 }
}

/// What decides about a stage besides its needs.
fn details(stage: &StagePlan) -> Vec<String> {
    let when = stage.when.as_ref().map(|when| format!("when {when}"));
    let approve = stage.approve.as_ref().map(|question| format!("approve: {}", redact(question)));
    let parallel = stage.parallel.then(|| format!("{} at once", stage.runs));
    let merge = stage.merge.as_ref().map(|merge| format!("merges {}", merge.from));
    [when, approve, parallel, merge].into_iter().flatten().map(|part| text::headline(&part, 200)).collect()
}

fn levels_text(plan: &Plan, graph: &StageGraph, levels: &[Vec<u32>]) -> String {
    let mut rows = vec![["LEVEL", "STAGE", "NEEDS", "DETAILS"].map(str::to_owned).to_vec()];
    for (level, numbers) in (1..).zip(levels) {
        for number in numbers {
            let Some(stage) = plan.stage(*number) else { continue };
            let needs = Some(needs(plan, graph, *number).join(", ")).filter(|needs| !needs.is_empty());
            let needs = needs.unwrap_or_else(|| "-".to_owned());
            rows.push(vec![format!("{level}"), stage.name.clone(), needs, details(stage).join("; ")]);
        }
    }
    output::columns(&rows)
}

fn mermaid_text(plan: &Plan, graph: &StageGraph) -> String {
    let mut lines = vec!["flowchart TD".to_owned()];
    for (number, stage) in (1_u32..).zip(&plan.stages) {
        let label: Vec<String> =
            std::iter::once(stage.name.clone()).chain(details(stage)).map(|part| escaped(&part)).collect();
        lines.push(format!("  s{number}[\"{}\"]", label.join("<br/>")));
    }
    for (number, _) in (1_u32..).zip(&plan.stages) {
        lines.extend(graph.needs(number).iter().map(|need| format!("  s{need} --> s{number}")));
    }
    lines.join("\n")
}

/// Text inside a quoted label: everything but plain characters becomes a numbered entity, so that nothing is markup.
fn escaped(text: &str) -> String {
    let is_plain =
        |c: char| c.is_alphanumeric() || matches!(c, ' ' | '.' | ',' | '-' | '_' | ':' | '/' | '?' | '=' | '!');
    text.chars().map(|c| if is_plain(c) { c.to_string() } else { format!("#{};", u32::from(c)) }).collect()
}
