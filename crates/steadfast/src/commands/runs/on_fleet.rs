//! `--fleet`: plans, checks and trusts a run as for this machine, then hands it to `steadfast-fleet submit`. The agents and
//! tools of its stages are looked for by the workers, not here.

use std::path::Path;

use steadfast_engine::submission::Submission;
use steadfast_model::run::{AgentKind, Plan, sealed};
use steadfast_model::text;

use super::starting::{How, NewRun};
use super::{RunContext, preflight, trust};
use crate::cli::FleetArgs;
use crate::commands::{fleet, refuse_agents};
use crate::error::{CliError, code};
use crate::output::CommandResult;

pub(super) fn submit(context: &RunContext, new: &NewRun, mut plan: Plan, flags: &FleetArgs) -> CommandResult {
    refuse_agents(&context.paths, "run --fleet")?;
    if new.how == How::Tmux {
        return Err(senseless("--tmux", "use --detach: the run needs no terminal"));
    }
    if new.worktree {
        return Err(senseless("--worktree", "leave it out: every attempt on the fleet has a worktree of its own"));
    }
    trust::require(context, &new.planned.used, &plan, new.trust)?;
    preflight::require_prices(&plan)?;
    make_relative(&mut plan, &context.project);
    refuse_secrets(&plan)?;
    fleet::submit(&Submission {
        run_id: new.run_id.clone(),
        plan,
        project: context.project.clone(),
        repo: flags.repo.clone().or_else(|| context.paths.config.fleet.repo.clone()),
        labels: flags.label.clone(),
        cron: flags.cron.clone(),
        detach: new.how == How::Detached || flags.cron.is_some(),
        json: context.json,
        allow_dirty: flags.allow_dirty,
        inputs: new.inputs.clone(),
        objective: new.objective.clone(),
        definition: new.planned.definition.clone(),
    })
}

/// The error for a flag that means nothing on the fleet.
pub(in crate::commands) fn senseless(flag: &str, hint: &str) -> CliError {
    CliError::new(code::USAGE, format!("--fleet and {flag} cannot be used together"), hint)
}

/// Names programs of the project by their place in it: workers have it elsewhere.
fn make_relative(plan: &mut Plan, project: &Path) {
    for agent in plan.agents_mut() {
        if let AgentKind::Command(words) = &mut agent.kind
            && let Some(program) = words.first_mut()
            && let Ok(below) = Path::new(program.as_str()).strip_prefix(project)
        {
            *program = format!("./{}", below.display());
        }
    }
}

/// The plan is written into a branch of the repository, so it must have no secrets.
fn refuse_secrets(plan: &Plan) -> Result<(), CliError> {
    let (_, texts) = sealed::seal(plan).map_err(std::io::Error::from)?;
    let Some(place) = texts.keys().next() else { return Ok(()) };
    let message =
        format!("the plan contains a secret ({}), and the fleet stores plans in git", text::headline(place, 80));
    let hint = "name a variable in `env` instead; each worker takes its value from its own environment";
    Err(CliError::new(code::USAGE, message, hint))
}
