//! Before a tool runs: refuses it if the turn goes on although its goal no longer runs. All but the refusal is one look at
//! the row of the goal, since every call of every tool waits for it.

use minijinja::context;

use super::turn::{GOAL_VANISHED, readings_of_running_goal};
use super::{Call, HookError};
use steadfast_hosts::adapter;
use steadfast_model::goal::turn::{self, CallingAgent, ToolRefusal};
use steadfast_model::goal::{Goal, GoalStatus, PausedReason};
use steadfast_model::hook::{HookReply, TurnEnding};
use steadfast_model::limit::Axis;
use steadfast_model::prompt::{self, PromptError};
use steadfast_store::{Store, StoreError};

pub(super) fn tool_asked(call: &Call<'_>, store: &mut Store, agent_type: Option<&str>) -> Result<HookReply, HookError> {
    let caller = match agent_type {
        None => CallingAgent::Worker,
        Some(agent_type) if (adapter(call.host()).is_evaluator)(agent_type) => CallingAgent::Evaluator,
        Some(_) => CallingAgent::Subagent,
    };
    let Some(goal) = store.read().goal(call.session_id())? else {
        return Ok(HookReply::default());
    };
    let Some(refusal) = turn::before_tool(&goal, caller, call.now) else {
        return Ok(HookReply::default());
    };
    // No hook follows a refused call, so what it cost is charged here.
    let goal = if caller == CallingAgent::Worker { count(call, store)? } else { goal };
    let subagent = caller != CallingAgent::Worker;
    let text = prompt::render(include_str!("../../prompts/tool_refused.md"), context! { subagent, why => why(&goal) })?;
    let is_ignored = refusal == ToolRefusal::Overtime { is_ignored: true };
    let end_turn = is_ignored.then(|| ignored(&goal));
    Ok(HookReply { refuse_tool: Some(text), end_turn, ..HookReply::default() })
}

fn count(call: &Call<'_>, store: &mut Store) -> Result<Goal, HookError> {
    let readings = readings_of_running_goal(call, store)?.unwrap_or_default();
    store.write(|db| {
        let recorded = call.record(db, &readings)?;
        let (goal, _) = recorded.ok_or_else(|| StoreError::Value(GOAL_VANISHED.into()))?;
        match turn::count_refusal(&goal, call.now) {
            Some(change) => Ok(db.save(&goal, change, call.origin)?),
            None => Ok(goal),
        }
    })
}

/// Asks the model to end its turn.
pub(super) fn end_turn(goal: &Goal) -> Result<String, PromptError> {
    prompt::render(include_str!("../../prompts/end_turn.md"), context! { why => why(goal) })
}

/// What the user is told when the model does not end its turn.
pub(super) fn ignored(goal: &Goal) -> TurnEnding {
    let why = why(goal);
    TurnEnding {
        ended: format!("◎ the agent ignored that {why}, so its turn is ended."),
        runs_on: format!("◎ the agent ignores that {why}. Its tool calls are refused; Esc ends its turn."),
    }
}

/// Why the turn of the goal must end.
pub(super) fn why(goal: &Goal) -> String {
    match (goal.status, goal.paused_reason) {
        (GoalStatus::BudgetLimited | GoalStatus::Complete, _) => "the goal's limit is reached".to_owned(),
        (_, Some(reason)) if Axis::of_pause(reason).is_some() => "the goal's limit is reached".to_owned(),
        (_, Some(PausedReason::User)) => "the user has paused the goal".to_owned(),
        (_, Some(PausedReason::Waiting)) => "the goal waits and is woken by itself".to_owned(),
        (_, Some(PausedReason::NoProgress)) => "the goal is paused because its tool calls bring nothing new".to_owned(),
        _ => format!("the goal is {}", goal.state()),
    }
}
