//! Checks what a run needs before it is created: its agents' programs, the tools and files of its rules, a repository for
//! its worktrees. Without them every iteration would fail.

use std::path::Path;

use steadfast_engine::{agent, worktree};
use steadfast_model::limit::Axis;
use steadfast_model::price;
use steadfast_model::run::{AgentKind, AgentPlan, Plan, Rule, StagePlan, machine};
use steadfast_model::text;
use steadfast_store::RunRow;
use steadfast_system::config::AgentsConfig;

use super::RunContext;
use crate::error::{CliError, code};
use crate::programs;

/// Fails if something is missing, and makes paths of programs absolute so that worktrees find them too.
pub(super) fn prepare(context: &RunContext, plan: &mut Plan, in_worktree: bool) -> Result<(), CliError> {
    for stage in &mut plan.stages {
        for agent in std::iter::once(&mut stage.agent).chain(&mut stage.agents).chain(&mut stage.judge) {
            make_absolute(agent, &context.project);
        }
    }
    require_prices(plan)?;
    if needs_worktrees(plan, in_worktree) {
        worktree::require_repository(&context.project)
            .map_err(|error| CliError::new(code::ENVIRONMENT, error.to_string(), error.hint()))?;
    }
    // An earlier stage may write the file that a later one reads.
    plan.stages.iter().enumerate().try_for_each(|(at, stage)| check_stage(context, stage, at == 0))
}

/// Fails if the plan limits money and an agent's model has no price. A command may report what it cost, and an agent
/// without a model may use any: the run ends after the first attempt of unknown cost.
pub(super) fn require_prices(plan: &Plan) -> Result<(), CliError> {
    if plan.limits.limits.get(Axis::Usd).is_none() {
        return Ok(());
    }
    let agents = plan.stages.iter().flat_map(StagePlan::all_agents);
    let mut models =
        agents.filter(|agent| matches!(agent.kind, AgentKind::Host(_))).filter_map(|agent| agent.model.as_deref());
    match models.find(|model| price::is_unknown(model)) {
        Some(model) => {
            let message =
                format!("a limit on money cannot hold: model `{}` has no known price", text::headline(model, 60));
            let hint = "limit tokens or hours instead: --budget N, --max-hours H; or use another --model";
            Err(CliError::new(code::USAGE, message, hint))
        }
        None => Ok(()),
    }
}

/// Fails if the remaining stages of a run that is resumed lack an agent or a tool. A missing file is no error here: the
/// next iteration may create it.
pub(super) fn check_rest(context: &RunContext, row: &RunRow) -> Result<(), CliError> {
    require_prices(&row.plan)?;
    let mut rest = machine::stages_left(&row.run).into_iter().filter_map(|stage| row.plan.stage(stage));
    rest.try_for_each(|stage| check_stage(context, stage, false))
}

fn check_stage(context: &RunContext, stage: &StagePlan, needs_files: bool) -> Result<(), CliError> {
    for agent in stage.all_agents() {
        require_program(agent, &context.paths.config.agents, &context.project)?;
    }
    stage.completion.leaves().try_for_each(|leaf| require_rule(leaf, &context.project, needs_files))
}

fn needs_worktrees(plan: &Plan, in_worktree: bool) -> bool {
    in_worktree || plan.stages.iter().any(|stage| stage.parallel || stage.lane.is_some() || stage.merge.is_some())
}

/// A warning about files of the project that its worktrees will not have.
pub(super) fn not_in_worktrees(context: &RunContext, plan: &Plan, in_worktree: bool) -> Option<String> {
    needs_worktrees(plan, in_worktree).then(|| worktree::not_in_worktrees(&context.project))?
}

/// A script of the project may not be committed, and then no worktree has it.
pub(super) fn make_absolute(plan: &mut AgentPlan, project: &Path) {
    if let AgentKind::Command(words) = &mut plan.kind
        && let Some(program) = words.first_mut()
        && let Some(path) = agent::beside(program, project).filter(|path| path.is_file())
    {
        *program = path.display().to_string();
    }
}

fn require_program(agent: &AgentPlan, config: &AgentsConfig, project: &Path) -> Result<(), CliError> {
    let program = match &agent.kind {
        AgentKind::Host(host) => config.program(*host).to_owned(),
        AgentKind::Command(words) => words.first().cloned().unwrap_or_default(),
    };
    if exists(&program, project) {
        return Ok(());
    }
    let shown = text::headline(&program, 100);
    let hint = match agent.kind {
        AgentKind::Command(_) => "--agent takes a program on PATH or the path of an executable file",
        AgentKind::Host(_) => {
            "install it or add its directory to PATH; or use another agent: --agent claude, codex or a command"
        }
    };
    let message = if program.contains('/') {
        format!("agent program `{shown}` does not exist or is not executable")
    } else {
        format!("no `{shown}` on PATH, which the agent needs")
    };
    Err(CliError::new(code::ENVIRONMENT, message, hint))
}

fn exists(program: &str, project: &Path) -> bool {
    if program.contains('/') {
        return programs::is_executable(&project.join(program));
    }
    programs::on_path(program).is_some()
}

fn require_rule(leaf: &Rule, project: &Path, needs_files: bool) -> Result<(), CliError> {
    let needs = leaf.needs();
    if let Some(program) = needs.programs.into_iter().find(|program| !exists(program, project)) {
        let message = format!("no `{program}` on PATH, which the rule `{}` needs", leaf.name());
        let hint = "install beads (https://github.com/steveyegge/beads), or use a loop type with another rule";
        return Err(CliError::new(code::ENVIRONMENT, message, hint));
    }
    if let Some(file) = needs.files.into_iter().find(|file| needs_files && !project.join(file).is_file()) {
        let message = format!("checklist `{}` does not exist", text::headline(file, 100));
        let hint = "create it with a line `- [ ] …` for each task, or correct `file` in the rule";
        return Err(CliError::new(code::ENVIRONMENT, message, hint));
    }
    Ok(())
}
