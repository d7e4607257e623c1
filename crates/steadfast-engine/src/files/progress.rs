//! Progress files: what one agent leaves for the next. The head is written once; from then on the file belongs to the
//! agents.

use steadfast_model::run::{Plan, Rule, StagePlan};

pub(super) const DIRECTORY: &str = "loop-progress";
pub(super) const STAGE_FILE: &str = "progress.md";

pub(super) fn file(name: &str) -> String {
    format!("progress-{name}.txt")
}

/// The head of a loop's progress file.
pub(super) fn of_loop(plan: &Plan) -> String {
    let verify = plan.stages.first().map(verify_line).unwrap_or_default();
    head(&plan.name, &verify)
}

/// The head of a stage's progress file.
pub(super) fn of_stage(plan: &Plan, stage: &StagePlan) -> String {
    head(&format!("{} / {}", plan.name, stage.name), &verify_line(stage))
}

fn head(name: &str, verify: &str) -> String {
    let verify = if verify.is_empty() { "(none)" } else { verify };
    format!(
        "# Progress: {name}\n\nVerify: {verify}\n\n## Codebase Patterns\n(Patterns discovered during implementation)\n\n---\n"
    )
}

/// The user's verification commands on one line.
fn verify_line(stage: &StagePlan) -> String {
    let commands = stage.completion.leaves().filter_map(|leaf| match leaf {
        Rule::Verify(commands) => Some(commands),
        _ => None,
    });
    let lines: Vec<String> =
        commands.flatten().map(|command| command.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    lines.join(" && ")
}
