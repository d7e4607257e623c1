//! What the user is told about a turn.

use super::background_wait;
use crate::hook::Call;
use steadfast_model::goal::Goal;
use steadfast_model::goal::turn::Decision;
use steadfast_model::limit::Axis;
use steadfast_model::text;

/// What the user is told at the end of a turn.
pub(super) fn message(call: &Call<'_>, goal: &Goal, decision: Decision, warnings: &[Axis]) -> Option<String> {
    let mut messages: Vec<String> =
        warnings.iter().map(|limit| format!("◎ {}", call.describe_near(goal, *limit))).collect();
    match decision {
        Decision::Silent | Decision::UserFirst | Decision::Continue => {}
        Decision::BackgroundFirst => {
            let wait = text::duration(background_wait(call) / 1_000);
            messages.push(format!("◎ goal waits for the background tasks, at most {wait}."));
        }
        Decision::NativeGoalDrives => {
            messages.push("◎ the client's own /goal drives; /goal clear lets this goal continue.".into());
        }
        Decision::WindDown(limit) => {
            messages.push(format!("◎ limit reached ({}); one turn to wind down.", call.describe_reached(goal, limit)));
        }
        Decision::Limited(limit) => messages.push(limited(goal, limit, call)),
        Decision::NoProgress => messages.push(call.host().spell(&format!(
            "◎ no progress in {} turns, so the goal is paused (no_progress). /goal-resume continues.",
            call.paths.config.goal.no_progress_limit
        ))),
        Decision::Repeats(count) => messages.push(repeated(call, count)),
        Decision::AccountingUncertain => messages.push(call.host().spell(
            "⚠ steadfast: token accounting is uncertain, so the goal is paused (accounting_uncertain). \
             Run /goal-reconcile --accept-reset to resume.",
        )),
        Decision::HandOver => messages.push(
            "◎ Claude Code's cap on Stop blocks is reached, so the turn ends; the goal stays active and continues \
             with the next prompt. CLAUDE_CODE_STOP_HOOK_BLOCK_CAP=0 lifts the cap."
                .into(),
        ),
    }
    (!messages.is_empty()).then(|| messages.join("\n"))
}

pub(in crate::hook) fn repeated(call: &Call<'_>, count: i64) -> String {
    call.host().spell(&format!(
        "◎ the same tool calls gave the same results {count} times, so the goal is paused (no_progress). /goal-resume \
         continues."
    ))
}

pub(in crate::hook) fn limited(goal: &Goal, limit: Axis, call: &Call<'_>) -> String {
    let way_on = match limit.extend_flag() {
        Some(flag) => format!("/goal-extend {flag} continues it"),
        None => "/goal-resume continues it when there is room again".to_owned(),
    };
    let reached = call.describe_reached(goal, limit);
    format!("◎ the goal is {}: {reached}. {}.", goal.state(), call.host().spell(&way_on))
}
