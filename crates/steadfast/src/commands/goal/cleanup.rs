//! `goal cleanup`.

use serde_json::json;
use steadfast_app::action;
use steadfast_model::goal::Actor;
use steadfast_model::{clock, text};

use super::{CommandContext, GoalOutput, GoalResult, Named, find_place};
use crate::cli::CleanupArgs;
use crate::commands::person::Sight;
use crate::output::CommandOutput;

/// The default age of orphans to delete; a goal paused yesterday may still be wanted.
const DELETE_AFTER_HOURS: u32 = 24;
const DELETE: &str = "cleanup --delete";

pub(super) fn cleanup(context: &CommandContext<'_>, arguments: &CleanupArgs) -> GoalResult {
    let mut store = super::open_existing(context)?;
    let hours = arguments.older_than.unwrap_or(if arguments.delete { DELETE_AFTER_HOURS } else { 0 });
    let older_than = i64::from(hours) * clock::HOUR;
    let (mut goals, said) = if arguments.delete {
        if context.origin.actor != Actor::User {
            // Log the refusal on the agent's own goal, if it has one.
            if let Ok(own) = find_place(context, &store, None, Named::Known) {
                action::refuse_agent(&mut store, &own.session_id, DELETE, context.origin, context.now)?;
            }
            return Err(action::ActionError::NotForAgents(DELETE).into());
        }
        (action::delete_orphans(&mut store, older_than, context.now)?, "deleted")
    } else {
        let sight = Sight::of(context.origin.actor, store.read())?;
        // One more tells whether there are more.
        let most = if arguments.limit == 0 { usize::MAX } else { arguments.limit.saturating_add(1) };
        let mut orphans = action::orphans(store.read(), older_than, most, context.now)?;
        orphans.retain(|goal| sight.has(&goal.session_id));
        (orphans, "orphaned")
    };
    let has_more = !arguments.delete && arguments.limit > 0 && goals.len() > arguments.limit;
    if has_more {
        goals.truncate(arguments.limit);
    }
    let mut lines: Vec<String> = goals
        .iter()
        .map(|goal| {
            let age = text::duration((context.now - goal.updated_at_ms).max(0) / 1000);
            let id = goal.goal_id.get(..8).unwrap_or(&goal.goal_id);
            format!("{said} {id}  {:<22} {age} ago  {}", goal.state(), text::headline(&goal.objective, 70))
        })
        .collect();
    if lines.is_empty() {
        lines.push("no orphaned goals".into());
    } else if !arguments.delete {
        let ways = "`/goal-adopt ID` takes one over, `/goal-cleanup --delete` deletes those older than 24 hours";
        if has_more {
            lines.push("there are more; `--limit 0` lists all".into());
        }
        lines.push(context.screen().spell(ways));
    }
    let views =
        goals.iter().map(|goal| context.view(store.read(), goal, context.now)).collect::<Result<Vec<_>, _>>()?;
    let output = CommandOutput {
        text: lines.join("\n"),
        json: json!({"deleted": arguments.delete, "goals": views, "more": has_more}),
        code: 0,
    };
    Ok(GoalOutput { output, goal: None })
}
