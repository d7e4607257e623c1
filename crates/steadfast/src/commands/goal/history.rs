//! `goal history` and `goal cleanup`.

use serde_json::json;
use steadfast_app::{action, overview};
use steadfast_model::goal::{Actor, Goal};
use steadfast_model::{clock, text};
use steadfast_store::{EventFilter, Store};

use super::{CommandContext, GoalOutput, GoalResult, find_place};
use crate::cli::{CleanupArgs, HistoryArgs};
use crate::commands::person::{self, Sight};
use crate::output::CommandOutput;

/// The default age of orphans to delete; a goal paused yesterday may still be wanted.
const DELETE_AFTER_HOURS: u32 = 24;
const DELETE: &str = "cleanup --delete";
/// Events printed as text; JSON has all of them.
const EVENTS_SHOWN: usize = 50;

pub(super) fn history(context: &CommandContext<'_>, flag: Option<&str>, arguments: &HistoryArgs) -> GoalResult {
    let Some(store) = Store::open_if_there(&context.paths.store)? else {
        let json = json!({"goals": [], "events": []});
        return Ok(GoalOutput { output: CommandOutput { text: "no goals yet".into(), json, code: 0 }, goal: None });
    };
    let db = store.read();
    let sight = Sight::of(context.origin.actor, db)?;
    let session = if arguments.all { None } else { Some(find_place(context, &store, flag)?.session_id) };
    if let Some(session) = &session {
        person::refuse_foreign_session(context.origin.actor, db, session)?;
    }
    let mut goals = match &session {
        Some(session) => db.goal(session)?.into_iter().collect(),
        None => db.goals()?,
    };
    goals.extend(db.replaced_goals(session.as_deref())?);
    goals.retain(|goal| sight.has(&goal.session_id));
    goals.sort_by_key(|goal: &Goal| std::cmp::Reverse(goal.created_at_ms));
    let views = goals.iter().map(|goal| context.view(db, goal, context.now)).collect::<Result<Vec<_>, _>>()?;
    let filter = session.as_deref().map_or(EventFilter::All, EventFilter::Session);
    let mut events = db.events(filter, usize::MAX)?;
    events.retain(|event| sight.has(&event.session_id));

    let mut lines: Vec<String> = views
        .iter()
        .map(|view| {
            format!(
                "{}  {:<21}  {:>9} tokens  {:>8}  {}\n    {}",
                view.goal_id.get(..8).unwrap_or(&view.goal_id),
                view.state(),
                text::short_number(view.total_tokens),
                text::duration(view.active_seconds),
                clock::to_local(view.created_at_ms),
                text::headline(&view.objective, 90),
            )
        })
        .collect();
    if lines.is_empty() {
        lines.push("no goals yet".into());
    }
    if arguments.events {
        lines.push(String::new());
        for event in events.iter().skip(events.len().saturating_sub(EVENTS_SHOWN)) {
            let change = match (&event.status_before, &event.status_after) {
                (Some(before), Some(after)) if before != after => format!("  {before} → {after}"),
                _ => String::new(),
            };
            let payload = text::headline(&event.payload.to_string(), 80);
            lines.push(format!("{}  {}{change}  {payload}", clock::to_rfc3339(event.created_at_ms), event.kind));
        }
    }
    let events: Vec<_> = events.iter().map(overview::event_view).collect();
    let output = CommandOutput { text: lines.join("\n"), json: json!({"goals": views, "events": events}), code: 0 };
    Ok(GoalOutput { output, goal: None })
}

pub(super) fn cleanup(context: &CommandContext<'_>, arguments: &CleanupArgs) -> GoalResult {
    let mut store = super::open_existing(context)?;
    let hours = arguments.older_than.unwrap_or(if arguments.delete { DELETE_AFTER_HOURS } else { 0 });
    let older_than = i64::from(hours) * clock::HOUR;
    let (goals, said) = if arguments.delete {
        if context.origin.actor != Actor::User {
            // Log the refusal on the agent's own goal, if it has one.
            if let Ok(own) = find_place(context, &store, None) {
                action::refuse_agent(&mut store, &own.session_id, DELETE, context.origin, context.now)?;
            }
            return Err(action::ActionError::NotForAgents(DELETE).into());
        }
        (action::delete_orphans(&mut store, older_than, context.now)?, "deleted")
    } else {
        let sight = Sight::of(context.origin.actor, store.read())?;
        let mut orphans = action::orphans(store.read(), older_than, context.now)?;
        orphans.retain(|goal| sight.has(&goal.session_id));
        (orphans, "orphaned")
    };
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
        lines.push(context.screen().spell(ways));
    }
    let views =
        goals.iter().map(|goal| context.view(store.read(), goal, context.now)).collect::<Result<Vec<_>, _>>()?;
    let output =
        CommandOutput { text: lines.join("\n"), json: json!({"deleted": arguments.delete, "goals": views}), code: 0 };
    Ok(GoalOutput { output, goal: None })
}
