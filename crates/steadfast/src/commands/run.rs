//! `steadfast run "OBJECTIVE"`: fresh headless agents pursue a durable goal until it is verified or a limit is reached. It
//! is a loop without a type, and its goal has its own session.

use std::path::Path;

use steadfast_app::action::{self, Place};
use steadfast_engine::goal_link;
use steadfast_engine::plan::{LOOP_RUNS, Overrides, Planned};
use steadfast_model::goal::budget::Budget;
use steadfast_model::goal::{self, NewGoal};
use steadfast_model::limit::Axis;
use steadfast_model::prompt;
use steadfast_model::run::{AgentPlan, Plan, Rule, RunKind, RunLimits, RunPurpose, StagePlan, name};
use steadfast_store::Origin;
use steadfast_system::config::Completion;

use super::runs::{self, How, NewRun, RunContext};
use crate::cli::{RunArgs, RunOnceVerb};
use crate::error::{CliError, code};
use crate::output::CommandResult;

/// What an agent prints when it is done, if there are no `--verify` commands.
const PROMISE: &str = "OBJECTIVE MET";

pub(crate) fn run(db: Option<&Path>, mut arguments: RunArgs, json: bool) -> CommandResult {
    match arguments.verb.take() {
        Some(RunOnceVerb::Report(report)) => runs::report_of_any_kind(db, report, json),
        None => pursue(db, &arguments, json),
    }
}

fn pursue(db: Option<&Path>, arguments: &RunArgs, json: bool) -> CommandResult {
    let context = RunContext::new(db, RunKind::Loop, json)?;
    let objective = goal::objective(&arguments.objective.join(" "))?;
    runs::check_commands(&arguments.verify)?;
    let actor = super::person::caller(&context.paths);
    super::goal::refuse_agents_checks(actor, &arguments.verify, "the user can start it in their own terminal")?;
    let needs_judge = context.paths.config.goal.completion == Completion::Evaluator;
    if needs_judge && arguments.verify.is_empty() && !arguments.sign_off {
        let message = "config.toml asks for the evaluator ([goal] completion), and a run has none";
        return Err(CliError::new(code::USAGE, message, "add --verify CMD or --sign-off"));
    }
    if arguments.agent.fleet.fleet && arguments.sign_off {
        return Err(runs::senseless_on_fleet("--sign-off", "a stage of a pipeline can have `approve`"));
    }
    let mut budget = arguments.limits.budget(&objective, context.now)?;
    let overrides =
        Overrides { max: arguments.max, limits: budget.limits, ..runs::agent_overrides(&context, &arguments.agent)? };
    let run_id = uuid::Uuid::new_v4().to_string();
    let plan = plan(&run_id, &arguments.verify, &overrides)?;
    budget.limits.set(Axis::Turns, plan.stages.first().map(|stage| i64::from(stage.runs)));
    let host = plan.stages.first().map(|stage| goal_link::host_of(&stage.agent.kind)).unwrap_or_default();
    let place =
        Place { session_id: name::of_goal(&run_id), host, project_dir: Some(context.project_dir()), transcript: None };
    let new_goal = NewGoal {
        objective,
        budget,
        verify: arguments.verify.clone(),
        sign_off: arguments.sign_off,
        ..NewGoal::default()
    };
    let new = NewRun {
        run_id,
        planned: Planned {
            plan,
            warnings: Vec::new(),
            file: "<built in>".into(),
            used: Vec::new(),
            definition: None,
            inputs: Vec::new(),
        },
        inputs: None,
        input_files: Vec::new(),
        worktree: arguments.worktree,
        trust: arguments.agent.trust,
        sandbox: arguments.agent.sandbox,
        how: if arguments.agent.detach { How::Detached } else { How::Foreground },
        dry_run: false,
        fleet: arguments.agent.fleet.fleet.then(|| arguments.agent.fleet.clone()),
        objective: Some(new_goal.objective.clone()),
    };
    runs::start(&context, &new, |db, plan| {
        // An agent gets no more than what is left above it.
        let limits = new_goal.budget.limits.smaller(plan.limits.limits);
        let new_goal = NewGoal { budget: Budget { limits, ..new_goal.budget }, ..new_goal };
        action::start_with(db, &place, new_goal, &[], Origin { actor, place: "run" }, context.now)?;
        Ok(())
    })
}

fn plan(run_id: &str, verify: &[String], overrides: &Overrides) -> Result<Plan, CliError> {
    let completion = match verify {
        [] => Rule::Promise(PROMISE.to_owned()),
        commands => Rule::Verify(commands.to_vec()),
    };
    // The turns of a profile limit the iterations of the only stage.
    let mut limits = overrides.limits;
    let turns = limits.get(Axis::Turns).and_then(|turns| u32::try_from(turns).ok());
    limits.set(Axis::Turns, None);
    let stage = StagePlan {
        prompt: prompt::headless_goal(verify, PROMISE)?,
        agent: AgentPlan {
            model: overrides.model.clone(),
            user_hooks: overrides.user_hooks.unwrap_or(false),
            ..AgentPlan::new(overrides.agent.clone().unwrap_or_default())
        },
        // The user's checks decide if there are any.
        stop_is_promise: verify.is_empty(),
        timeout_ms: overrides.timeout_ms.unwrap_or(StagePlan::TIMEOUT_MS),
        ..StagePlan::new(Plan::GOAL_TITLE, completion, overrides.max.or(turns).unwrap_or(LOOP_RUNS))
    };
    Ok(Plan {
        name: name::of_goal(run_id),
        kind: RunKind::Loop,
        title: Plan::GOAL_TITLE.to_owned(),
        pipeline_file: None,
        stages: vec![stage],
        limits: RunLimits { limits, ..RunLimits::default() },
        purpose: RunPurpose::Goal,
    })
}
