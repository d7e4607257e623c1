//! `goal pause --all`: stops every goal and run of the user, from any directory.

use serde_json::{Value, json};
use steadfast_app::action::{self, ActionError, StoppedAll};
use steadfast_app::overview::GoalView;
use steadfast_model::goal::{Actor, Goal};
use steadfast_model::text;
use steadfast_store::{RunLine, Store};

use super::{CommandContext, GoalOutput, GoalResult, Named, find_place};
use crate::output::CommandOutput;

pub(super) fn pause_all(context: &CommandContext<'_>) -> GoalResult {
    let is_agent = context.origin.actor != Actor::User;
    let store = Store::open_if_there(&context.paths.store)?;
    let done = match store {
        Some(mut store) => {
            if is_agent && let Ok(own) = find_place(context, &store, None, Named::Known) {
                // Logs the attempt on the agent's own goal, if it has one.
                action::refuse_agent(&mut store, &own.session_id, "pause --all", context.origin, context.now)?;
            }
            let done = action::pause_all(&mut store, context.origin, context.now)?;
            let views = done.paused.iter().map(|goal| context.view(store.read(), goal, context.now));
            let paused = views.collect::<Result<Vec<_>, _>>()?;
            report(&done, &paused)
        }
        None if is_agent => return Err(ActionError::NotForAgents("pause --all").into()),
        None => report(&StoppedAll::default(), &[]),
    };
    Ok(GoalOutput { output: done, goal: None })
}

fn report(done: &StoppedAll, paused: &[GoalView]) -> CommandOutput {
    let mut lines: Vec<String> = done.paused.iter().map(describe_goal).collect();
    lines.extend(done.stopped.iter().map(describe_run));
    if lines.is_empty() {
        lines.push("nothing was running".to_owned());
    } else {
        lines.push(
            "only you can continue them: `steadfast goal resume --session ID`, `steadfast loop resume NAME`".into(),
        );
    }
    let run = |run: &RunLine| json!({"run_id": run.run_id, "kind": run.kind, "name": run.name, "project_dir": run.project_dir});
    let stopped: Vec<Value> = done.stopped.iter().map(run).collect();
    CommandOutput { text: lines.join("\n"), json: json!({"paused": paused, "stopped": stopped}), code: 0 }
}

fn describe_run(run: &RunLine) -> String {
    format!("stopping: {} {} in {}", run.kind, run.name, text::one_line(&run.project_dir))
}

fn describe_goal(goal: &Goal) -> String {
    let place = goal.project_dir.as_ref().map(|project| format!(", {}", text::one_line(project))).unwrap_or_default();
    format!("paused: {} (session {}{place})", text::headline(&goal.objective, 70), goal.session_id)
}
