//! What a run needs before anything is made of it: its agents' programs, the tools and files its rules ask, a repository
//! for its worktrees. A run that lacks one of them would only burn its iterations.

use std::path::Path;

use steadfast_core::config::AgentsConfig;
use steadfast_core::run::{AgentKind, AgentPlan, Plan, Rule};
use steadfast_core::store::RunRow;
use steadfast_core::text;
use steadfast_engine::{agent, worktree};

use super::Here;
use crate::failure::{Failure, code};
use crate::programs;

/// Refuses what cannot work here, and names programs so that they are found from worktrees, too.
pub(super) fn prepare(here: &Here, plan: &mut Plan, in_worktree: bool) -> Result<(), Failure> {
    let project = &here.project;
    let agents = plan.stages.iter_mut().flat_map(|stage| std::iter::once(&mut stage.agent).chain(&mut stage.judge));
    for agent in agents {
        make_absolute(agent, project);
        require_program(agent, &here.paths.config.agents, project)?;
    }
    if needs_worktrees(plan, in_worktree) {
        worktree::require_repository(project)
            .map_err(|error| Failure::new(code::ENVIRONMENT, error.to_string(), error.hint()))?;
    }
    for (at, stage) in plan.stages.iter().enumerate() {
        // What a later stage reads may be what an earlier one writes.
        stage.completion.leaves().try_for_each(|leaf| require_rule(leaf, project, at == 0))?;
    }
    Ok(())
}

fn needs_worktrees(plan: &Plan, in_worktree: bool) -> bool {
    in_worktree || plan.stages.iter().any(|stage| stage.parallel)
}

/// What people should know of the project before worktrees are made of it.
pub(super) fn not_in_worktrees(here: &Here, plan: &Plan, in_worktree: bool) -> Option<String> {
    needs_worktrees(plan, in_worktree).then(|| worktree::not_in_worktrees(&here.project))?
}

/// Refuses to go on with a run whose agents or tools are not there: what is left of it needs them.
pub(super) fn check_rest(here: &Here, row: &RunRow) -> Result<(), Failure> {
    let done = usize::try_from(row.run.stage.saturating_sub(1)).unwrap_or(usize::MAX);
    for stage in row.plan.stages.iter().skip(done) {
        for agent in std::iter::once(&stage.agent).chain(&stage.judge) {
            require_program(agent, &here.paths.config.agents, &here.project)?;
        }
        // A file that is gone may come back with the next iteration.
        stage.completion.leaves().try_for_each(|leaf| require_rule(leaf, &here.project, false))?;
    }
    Ok(())
}

/// A script beside the user may be in no commit, and then it is in no worktree either.
fn make_absolute(plan: &mut AgentPlan, project: &Path) {
    if let AgentKind::Command(words) = &mut plan.kind
        && let Some(program) = words.first_mut()
        && let Some(path) = agent::beside(program, project).filter(|path| path.is_file())
    {
        *program = path.display().to_string();
    }
}

fn require_program(agent: &AgentPlan, config: &AgentsConfig, project: &Path) -> Result<(), Failure> {
    let program = match &agent.kind {
        AgentKind::Host(host) => config.program(*host).to_owned(),
        AgentKind::Command(words) => words.first().cloned().unwrap_or_default(),
    };
    if is_there(&program, project) {
        return Ok(());
    }
    let shown = text::headline(&program, 100);
    let hint = match agent.kind {
        AgentKind::Command(_) => "--agent PROGRAM: one on PATH, or a path to a file that may be executed",
        AgentKind::Host(_) => {
            "install it or add its directory to PATH; or use another agent: --agent claude, codex or a command"
        }
    };
    let message = if program.contains('/') {
        format!("the agent's program `{shown}` is not there or not executable")
    } else {
        format!("there is no `{shown}` on PATH, and the agent needs it")
    };
    Err(Failure::new(code::ENVIRONMENT, message, hint))
}

fn is_there(program: &str, project: &Path) -> bool {
    if program.contains('/') {
        return programs::is_executable(&project.join(program));
    }
    programs::on_path(program).is_some()
}

fn require_rule(leaf: &Rule, project: &Path, is_first: bool) -> Result<(), Failure> {
    match leaf {
        Rule::BeadsEmpty(_) if !is_there("bd", project) => Err(Failure::new(
            code::ENVIRONMENT,
            "there is no `bd` on PATH, and the rule `beads-empty` asks it",
            "install beads (https://github.com/steveyegge/beads), or use a loop type with another rule",
        )),
        Rule::Checklist(file) if is_first && !project.join(file).is_file() => Err(Failure::new(
            code::ENVIRONMENT,
            format!("the checklist `{}` is not there", text::headline(file, 100)),
            "write it first, with a line `- [ ] …` for each task; or correct `file` in the rule",
        )),
        _ => Ok(()),
    }
}
