//! What happens next to a goal, in words: who moves it and when, or what the user can type. Commands are spelled
//! `/goal-…`; the view that shows a sentence spells them for its readers.

use steadfast_model::clock::{self, Millis};
use steadfast_model::goal::liveness::{Next, Stall};
use steadfast_model::goal::{Goal, GoalStatus, PausedReason};
use steadfast_model::limit::Axis;

/// What a person can do about a goal that the agent calls done.
pub(crate) const SIGN_OFF: &str = "/goal-complete signs off, /goal-resume sends it back to work";

/// What happens next to the goal of a run.
pub(super) fn of_run(goal: &Goal) -> String {
    let name = &goal.session_id;
    match (goal.status, goal.paused_reason) {
        (GoalStatus::Active, _) => format!("its run continues: `steadfast loop attach {name}`"),
        (GoalStatus::Complete | GoalStatus::Abandoned, _) => "over; `steadfast run` begins another".into(),
        (GoalStatus::BudgetLimited, _) => format!("`steadfast loop resume {name} --budget N` (or --usd X) continues"),
        (GoalStatus::Paused, Some(PausedReason::SignOff)) => {
            format!("`steadfast goal complete --session {name}` signs off, `steadfast goal abandon` gives it up")
        }
        (GoalStatus::Paused, Some(PausedReason::ContinuationCap)) => {
            format!("`steadfast loop resume {name} --max N` continues")
        }
        (GoalStatus::Paused, Some(PausedReason::WallClockCap)) => {
            format!("`steadfast loop resume {name} --max-hours H` continues")
        }
        (GoalStatus::Paused, Some(PausedReason::CostCap)) => {
            format!("`steadfast loop resume {name}` continues, once the daily or weekly cap allows")
        }
        (GoalStatus::Paused | GoalStatus::Blocked, _) => format!("`steadfast loop resume {name}` continues"),
    }
}

/// What happens next to the goal of a client's session.
pub(super) fn in_session(goal: &Goal, next: Next, queued: i64, now: Millis) -> String {
    match next {
        Next::Over if queued > 0 => "over; the next goal of the queue starts when the turn ends".into(),
        Next::TurnEnds if goal.reached_limit(now).is_some() => "one turn to wind down at the end of this turn".into(),
        Next::TurnEnds => "continues when the turn ends".into(),
        Next::WindsDown => "one turn to wind down, then it stops".into(),
        Next::NativeGoalEnds => "continues when the client's own goal ends; `/goal clear` ends that".into(),
        Next::Wakes { at, .. } if at <= now => "continues now".into(),
        Next::Wakes { at, .. } => match goal.status {
            GoalStatus::Paused if goal.next_check().is_some() => {
                let at = clock::to_local(at);
                format!("wakes when its wait ends, at the latest at {at}; /goal-resume continues at once")
            }
            GoalStatus::Paused => format!("wakes at {}; /goal-resume continues at once", clock::to_local(at)),
            _ => format!("tries again at {}", clock::to_local(at)),
        },
        Next::BackgroundEnds { at } => {
            format!("waits for background tasks, at most until {}", clock::to_local(at))
        }
        Next::Stalled(stall) => stalled(goal, stall, now),
        Next::NeedsUser => needs_user(goal),
        Next::Over if goal.status == GoalStatus::Abandoned => "abandoned; /goal-start begins another".into(),
        Next::Over => "over; /goal-start begins another".into(),
    }
}

fn stalled(goal: &Goal, stall: Stall, now: Millis) -> String {
    let product = goal.host.capabilities().product;
    match stall {
        Stall::Interrupted => interrupted(),
        Stall::Permission => format!("{product} asks for a permission: answer it there"),
        Stall::Dialog => format!("a dialog is open in {product}: press Enter there to close it"),
        Stall::SessionClosed => {
            let resume = goal.host.resume_command(&goal.session_id);
            let headless = if goal.host.capabilities().continues_closed_sessions {
                format!(", `steadfast goal resume --continue --session {}` does so headless", goal.session_id)
            } else {
                String::new()
            };
            let adopt = format!(
                "/goal-adopt {} takes it over in another session",
                goal.goal_id.get(..8).unwrap_or(&goal.goal_id)
            );
            format!("its session is closed: `{resume}` continues it{headless}, or {adopt}")
        }
        Stall::NoWaker if let Some(at) = goal.wake_at_ms.filter(|at| *at > now) => {
            format!("waits until {}; nothing wakes {product} then: type a prompt there", clock::to_local(at))
        }
        Stall::NoWaker => format!("nothing wakes {product} now: type a prompt there to continue"),
    }
}

fn interrupted() -> String {
    "you interrupted it: your next prompt continues it, /goal-pause stops it".into()
}

fn needs_user(goal: &Goal) -> String {
    match (goal.status, goal.paused_reason) {
        (GoalStatus::BudgetLimited, _) => "/goal-extend --add-tokens N (or --add-usd X) continues".into(),
        (GoalStatus::Blocked, _) => "waits for you; /goal-resume continues".into(),
        (_, Some(PausedReason::Interrupted)) => interrupted(),
        (_, Some(PausedReason::SignOff)) => SIGN_OFF.into(),
        (_, Some(PausedReason::AccountingError | PausedReason::AccountingUncertain)) => {
            "/goal-reconcile --accept-reset resumes".into()
        }
        (_, Some(reason)) if let Some(flag) = Axis::of_pause(reason).and_then(Axis::extend_flag) => {
            format!("/goal-extend {flag} continues")
        }
        _ => "/goal-resume continues".into(),
    }
}
