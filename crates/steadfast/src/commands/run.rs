//! `steadfast run "OBJECTIVE"`: a durable goal, pursued headless by fresh agents until it is verified or limited. It is
//! a loop of no type, and a goal under a session of its own.

use std::path::Path;

use steadfast_core::action::{self, Place};
use steadfast_core::goal::{self, NewGoal};
use steadfast_core::prompt;
use steadfast_core::run::name;
use steadfast_core::run::{AgentPlan, Plan, Rule, RunKind, RunLimits, StagePlan};
use steadfast_core::store::Origin;
use steadfast_engine::plan::{LOOP_RUNS, Overrides, Planned};
use steadfast_engine::pursuit;

use super::runs::{self, Here, How, NewRun};
use crate::cli::RunArgs;
use crate::failure::Failure;
use crate::output::Done;

/// What an agent says when it is done and nothing else can tell.
const PROMISE: &str = "OBJECTIVE MET";

pub(crate) fn run(db: Option<&Path>, arguments: &RunArgs) -> Result<Done, Failure> {
    let here = Here::new(db, RunKind::Loop, arguments.json)?;
    let objective = goal::objective(&arguments.objective.join(" "))?;
    runs::check_commands(&arguments.verify)?;
    let actor = super::caller();
    super::goal::refuse_agents_checks(actor, &arguments.verify, "the user can start it, in a terminal of their own")?;
    let overrides = Overrides { max: arguments.max, ..runs::agent_overrides(&arguments.agent)? };
    let mut budget = runs::budget_of(&arguments.limits, &objective)?;
    let overrides = runs::within(overrides, &budget);
    let run_id = uuid::Uuid::new_v4().to_string();
    let plan = plan(&run_id, &arguments.verify, &overrides)?;
    budget.turns = plan.stages.first().map(|stage| i64::from(stage.runs));
    let host = plan.stages.first().map(|stage| pursuit::host_of(&stage.agent.kind)).unwrap_or_default();
    let place =
        Place { session_id: name::of_goal(&run_id), host, project_dir: Some(here.project_dir()), transcript: None };
    let new_goal = NewGoal { objective, budget, verify: arguments.verify.clone() };
    let new = NewRun {
        run_id,
        planned: Planned { plan, warnings: Vec::new(), file: "<built in>".into(), used: Vec::new(), definition: None },
        inputs: None,
        worktree: arguments.worktree,
        how: if arguments.agent.detach { How::Detached } else { How::Here },
        dry_run: false,
    };
    runs::start(&here, &new, |db| {
        action::start_with(db, &place, new_goal, Origin { actor, place: "run" }, here.now)?;
        Ok(())
    })
}

fn plan(run_id: &str, verify: &[String], overrides: &Overrides) -> Result<Plan, Failure> {
    let completion = match verify {
        [] => Rule::Promise(PROMISE.to_owned()),
        commands => Rule::Verify(commands.to_vec()),
    };
    let stage = StagePlan {
        prompt: prompt::headless_goal(verify, PROMISE)?,
        agent: AgentPlan {
            model: overrides.model.clone(),
            user_hooks: overrides.user_hooks.unwrap_or(false),
            ..AgentPlan::new(overrides.agent.clone().unwrap_or_default())
        },
        // With checks of the user's, only those decide.
        stop_is_promise: verify.is_empty(),
        timeout_ms: overrides.timeout_ms.unwrap_or(StagePlan::TIMEOUT_MS),
        ..StagePlan::new(pursuit::TITLE, completion, overrides.max.or(overrides.turns).unwrap_or(LOOP_RUNS))
    };
    Ok(Plan {
        name: name::of_goal(run_id),
        kind: RunKind::Loop,
        title: pursuit::TITLE.to_owned(),
        pipeline_file: None,
        stages: vec![stage],
        limits: RunLimits {
            tokens: overrides.tokens,
            cost_micros: overrides.cost_micros,
            wall_ms: overrides.wall_ms,
            ..RunLimits::default()
        },
    })
}
