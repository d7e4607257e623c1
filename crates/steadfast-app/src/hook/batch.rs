//! Hooks in the middle of a turn: a batch of tool calls, and a permission dialog.

use minijinja::context;

use super::turn::{GOAL_VANISHED, limited, pause_notice, readings_of_running_goal};
use super::{Call, HookError, remember, restore, session};
use steadfast_model::goal::change;
use steadfast_model::goal::turn::{self, BatchDecision};
use steadfast_model::hook::HookReply;
use steadfast_model::prompt;
use steadfast_store::{Store, StoreError, spend};

/// Between two rounds of tool calls: charge, warn, and hold a long turn to its limits.
pub(super) fn batch(call: &Call<'_>, store: &mut Store) -> Result<HookReply, HookError> {
    let Some(readings) = readings_of_running_goal(call, store)? else {
        return remember::seen(call, store);
    };
    let (goal, decision, warnings, notice) = store.write(|db| {
        let recorded = call.record(db, &readings)?;
        let (mut goal, seen) = recorded.ok_or_else(|| StoreError::Value(GOAL_VANISHED.into()))?;
        session::seen(call, db)?;
        db.begin_turn(call.session_id(), call.input.turn_id.as_deref(), call.now)?;
        if let Some(change) = change::turn_began(&goal, false, call.now) {
            goal = db.save(&goal, change, call.origin)?;
        }
        db.remember(call.session_id(), &call.found, call.now)?;
        let shared = spend::shared(db, &call.paths.config.limits.0, call.now)?;
        let mut warnings = Vec::new();
        if let Some((change, limits)) = turn::warn(&goal, shared, call.now) {
            goal = db.save(&goal, change, call.origin)?;
            warnings = limits;
        }
        let limit = call.paths.config.goal.repeated_calls_limit;
        let repeats = turn::at_repeats(&goal, seen.same_calls_before, limit, call.now);
        let (change, decision) = repeats.unwrap_or_else(|| turn::at_batch(&goal, shared, call.now));
        if let Some(change) = change {
            goal = db.save(&goal, change, call.origin)?;
        }
        Ok::<_, StoreError>((goal, decision, warnings, pause_notice(call.host(), &seen)))
    })?;
    if notice.is_some() {
        return Ok(HookReply { message: notice, ..HookReply::default() });
    }
    Ok(match decision {
        BatchDecision::Proceed if warnings.is_empty() => HookReply::default(),
        BatchDecision::Proceed => {
            let phrases: Vec<String> =
                warnings.iter().map(|limit| goal.standing(*limit, call.now).describe_near()).collect();
            let limits = phrases.join("; ");
            HookReply {
                context: Some(prompt::render(
                    include_str!("../../prompts/near_limit.md"),
                    context! { limits => limits.as_str() },
                )?),
                message: Some(format!("◎ {limits}")),
                ..HookReply::default()
            }
        }
        BatchDecision::WindDown(limit) => HookReply {
            context: Some(prompt::wind_down(&goal, restore::wording(call, store.read(), &goal)?, limit, call.now)?),
            message: Some(format!(
                "◎ limit reached ({}); the turn winds down.",
                goal.standing(limit, call.now).describe_reached()
            )),
            ..HookReply::default()
        },
        BatchDecision::Nudge(count) => {
            let text = prompt::render(include_str!("../../prompts/repeated_calls.md"), context! { count })?;
            HookReply { context: Some(text), ..HookReply::default() }
        }
        BatchDecision::Repeats(count) => {
            let message = format!(
                "◎ the same tool call gave the same result {count} times, so the goal is paused (no_progress). \
                 /goal-resume continues."
            );
            HookReply { block: Some(call.host().spell(&message)), ..HookReply::default() }
        }
        BatchDecision::EndTurn(limit) => {
            let message = limited(&goal, limit, call);
            HookReply { block: Some(message.clone()), message: Some(message), ..HookReply::default() }
        }
    })
}

/// A dialog is open in the client, and nothing moves the goal until the user answers it.
pub(super) fn permission_asked(call: &Call<'_>, store: &mut Store) -> Result<HookReply, HookError> {
    if store.read().goal(call.session_id())?.is_some_and(|goal| goal.status.is_live()) {
        store.write(|db| db.set_asked(call.session_id(), Some(call.now)))?;
    }
    Ok(HookReply::default())
}
