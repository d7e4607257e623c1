//! `goal resume --continue`: resumes a goal from outside its session. Hooks cannot wake Codex after an error, an
//! interrupt or its exit, but `codex exec resume` continues a closed session.

use std::path::PathBuf;

use steadfast_app::action;
use steadfast_app::overview;
use steadfast_engine::codex;
use steadfast_hosts::install;
use steadfast_hosts::install::HookTrust;
use steadfast_model::clock;
use steadfast_model::goal::{Actor, Goal, GoalStatus};
use steadfast_model::host::Host;
use steadfast_model::prompt;
use steadfast_store::Store;

use super::{BUDGET_SPENT, GoalOutput, SessionGoal, refuse_above_shared_cap};
use crate::error::{CliError, code};
use crate::plugin;
use crate::programs;

pub(super) fn resume_and_continue(mut session: SessionGoal<'_>) -> Result<GoalOutput, CliError> {
    let context = session.context;
    let (id, now) = (session.place.session_id.clone(), context.now);
    if context.origin.actor != Actor::User {
        action::refuse_agent(&mut session.store, &id, "resume", context.origin, now)?;
    }
    if session.place.host == Host::Claude {
        let hint = format!("run `claude --resume {id}`; the goal continues there");
        return Err(CliError::new(code::WRONG_STATE, "only Codex sessions can be continued from outside", hint));
    }
    let goal = session.goal()?;
    if session.store.read().session(&id)?.is_some_and(|session| session.is_alive()) {
        let hint = "type a prompt there ($goal-resume first, if the goal is paused), or close it";
        return Err(CliError::new(code::WRONG_STATE, "the session is open in Codex", hint));
    }
    let program = find_codex()?;
    refuse_above_shared_cap(context, &session.store, &id)?;
    let goal = match goal.status {
        GoalStatus::Active => goal,
        _ => action::resume(&mut session.store, &id, context.origin, now)?,
    };
    if goal.status != GoalStatus::Active {
        return output(&session.store, goal, BUDGET_SPENT);
    }
    let directory = session.place.project_dir.clone().map_or_else(|| context.directory.clone(), PathBuf::from);
    let text = prompt::continuation(&goal, prompt::Wording::Quoted, &[], now)?;
    let ended = codex::resume(&program, &hook_flags()?, &id, &text, &directory).map_err(|error| {
        let hint = "check that `codex --version` runs; the goal stays active";
        CliError::new(code::ENVIRONMENT, format!("cannot run {}: {error}", program.display()), hint)
    })?;
    let goal = session.store.read().goal(&id)?.unwrap_or(goal);
    if ended.success() {
        return output(&session.store, goal, "Codex continued the goal");
    }
    let mut failed = output(&session.store, goal, "Codex ended with an error")?;
    failed.output.code = code::USAGE;
    Ok(failed)
}

fn output(store: &Store, goal: Goal, message: &str) -> Result<GoalOutput, CliError> {
    let view = overview::goal_view(store.read(), &goal, clock::now())?;
    let text = format!("{message}\nstatus: {}\nnext: {}", goal.state(), view.next);
    Ok(GoalOutput::new(&view, goal, text))
}

/// Flags that install the hooks for this one call, if the user's configuration has none that Codex trusts. Without hooks
/// nothing would continue the turn or count its tokens.
fn hook_flags() -> Result<Vec<String>, CliError> {
    let trusted = match steadfast_hosts::codex::home() {
        Some(home) => install::codex_hooks(&home)?.count(HookTrust::Trusted),
        None => 0,
    };
    if trusted > 0 {
        return Ok(Vec::new());
    }
    let program = std::env::current_exe()?;
    Ok(install::per_run_flags(&format!("{} hook codex", plugin::shell_word(&program.to_string_lossy()))))
}

fn find_codex() -> Result<PathBuf, CliError> {
    programs::on_path("codex").ok_or_else(|| {
        CliError::new(code::ENVIRONMENT, "`codex` is not on PATH", "install Codex, or add its directory to PATH")
    })
}
