//! Hooks in the middle of a turn: a batch of tool calls, and a permission dialog.

use minijinja::context;

use super::turn::{GOAL_VANISHED, limited, pause_notice, readings_of_running_goal, repeated};
use super::{Call, HookError, caps, overtime, quota, restore, session};
use crate::wake;
use steadfast_model::goal::Goal;
use steadfast_model::goal::change;
use steadfast_model::goal::turn::{self, BatchDecision};
use steadfast_model::hook::HookReply;
use steadfast_model::prompt;
use steadfast_store::{Store, StoreError};

/// Between two rounds of tool calls: charge, warn, and hold a long turn to its limits.
pub(super) fn batch(call: &Call<'_>, store: &mut Store) -> Result<HookReply, HookError> {
    let Some(readings) = readings_of_running_goal(call, store)? else {
        return caps::worked(call, store, None);
    };
    let (goal, decision, warnings, notice, waits, ends_turn) = store.write(|db| {
        let recorded = call.record(db, &readings)?;
        let (mut goal, seen) = recorded.ok_or_else(|| StoreError::Value(GOAL_VANISHED.into()))?;
        session::seen(call, db)?;
        db.begin_turn(call.session_id(), call.input.turn_id.as_deref(), call.now)?;
        if let Some(change) = change::turn_began(&goal, false, call.now) {
            goal = db.save(&goal, change, call.origin)?;
        }
        db.remember(call.session_id(), &call.found, call.now)?;
        let shared = call.shared(db)?;
        let mut warnings = Vec::new();
        if let Some((change, limits)) = turn::warn(&goal, shared, call.now) {
            goal = db.save(&goal, change, call.origin)?;
            warnings = limits;
        }
        let limit = call.paths.config.goal.repeated_calls_limit;
        let repeats = turn::at_repeats(&goal, limit, call.now).map(|(change, decision)| (Some(change), decision));
        let (change, decision) = repeats.unwrap_or_else(|| turn::at_batch(&goal, shared, call.now));
        if let Some(mut change) = change {
            call.name_cap(&mut change);
            goal = db.save(&goal, change, call.origin)?;
        }
        let waits = quota::pause(call, db, &goal)?;
        // No Stop follows where this hook ends the turn.
        if (is_end(decision) || waits.is_some()) && call.host().capabilities().batch_ends_turn {
            db.end_turn(call.session_id(), false, call.now)?;
        }
        Ok::<_, StoreError>((
            goal,
            decision,
            warnings,
            pause_notice(call.host(), &seen),
            waits,
            seen.unpriced.is_some(),
        ))
    })?;
    if notice.is_some() {
        let block = notice.clone().filter(|_| ends_turn);
        return Ok(HookReply { message: notice, block, ..HookReply::default() });
    }
    if let Some((goal, message)) = waits {
        return Ok(HookReply { wake_at_ms: wake::moment(&goal), ..ended(call, &goal, message)? });
    }
    Ok(match decision {
        BatchDecision::Proceed if warnings.is_empty() => HookReply::default(),
        BatchDecision::Proceed => {
            let phrases: Vec<String> = warnings.iter().map(|limit| call.describe_near(&goal, *limit)).collect();
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
            message: Some(format!("◎ limit reached ({}); the turn winds down.", call.describe_reached(&goal, limit))),
            ..HookReply::default()
        },
        BatchDecision::Nudge(count) => {
            let text = prompt::render(include_str!("../../prompts/repeated_calls.md"), context! { count })?;
            HookReply { context: Some(text), ..HookReply::default() }
        }
        BatchDecision::OtherApproach(count) => {
            let text = prompt::render(include_str!("../../prompts/another_approach.md"), context! { count })?;
            HookReply { context: Some(text), ..HookReply::default() }
        }
        BatchDecision::Repeats(count) => ended(call, &goal, repeated(call, count))?,
        BatchDecision::EndTurn(limit) => ended(call, &goal, limited(&goal, limit, call))?,
        BatchDecision::Overtime => HookReply { context: Some(overtime::end_turn(&goal)?), ..HookReply::default() },
        BatchDecision::EndOvertime => ended(call, &goal, format!("◎ the turn is ended: {}.", overtime::why(&goal)))?,
        BatchDecision::OvertimeIgnored => {
            HookReply { end_turn: Some(overtime::ignored(&goal)), ..HookReply::default() }
        }
    })
}

fn is_end(decision: BatchDecision) -> bool {
    matches!(decision, BatchDecision::EndTurn(_) | BatchDecision::EndOvertime | BatchDecision::Repeats(_))
}

/// The reply that ends the turn. Where the client cannot do that, the model is asked to.
fn ended(call: &Call<'_>, goal: &Goal, message: String) -> Result<HookReply, HookError> {
    let ends = call.host().capabilities().batch_ends_turn;
    let context = if ends { None } else { Some(overtime::end_turn(goal)?) };
    Ok(HookReply { block: ends.then(|| message.clone()), context, message: Some(message), ..HookReply::default() })
}

/// A dialog is open in the client, and nothing moves the goal until the user answers it.
pub(super) fn permission_asked(call: &Call<'_>, store: &mut Store) -> Result<HookReply, HookError> {
    if store.read().goal(call.session_id())?.is_some_and(|goal| goal.status.is_live()) {
        store.write(|db| db.set_asked(call.session_id(), Some(call.now)))?;
    }
    Ok(HookReply::default())
}
