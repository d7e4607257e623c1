//! A turn that ended in an API error. Usage limits pause the goal until their reset; transient errors are retried with
//! growing gaps; errors that only a person can fix pause it at once.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{Call, HookError};
use crate::wake;
use steadfast_hosts::trouble;
use steadfast_model::clock::{self, Millis};
use steadfast_model::goal::change::{Change, Span, pause_for};
use steadfast_model::goal::event::{Event, EventKind};
use steadfast_model::goal::turn::{MOST_FAILURES, retry_delay};
use steadfast_model::goal::{Goal, GoalStatus, PausedReason, liveness};
use steadfast_model::hook::HookReply;
use steadfast_model::text;
use steadfast_store::Store;

/// How long the answer to the limit dialog waits for the pause of the goal.
const PAUSE_WAIT: Duration = Duration::from_secs(2);
const PAUSE_STEP: Duration = Duration::from_millis(50);

pub(super) fn turn_failed(
    call: &Call<'_>,
    store: &mut Store,
    error: &str,
    message: &str,
) -> Result<HookReply, HookError> {
    let wake_at_ms = store.write(|db| {
        db.touch_session(call.session_id(), call.now)?;
        db.end_turn(call.session_id(), false, call.now)?;
        let Some(goal) = db.goal(call.session_id())?.filter(|goal| goal.status == GoalStatus::Active) else {
            return Ok(None);
        };
        let turn_id = call.input.turn_id.as_deref();
        // A client that retries by itself reports every attempt; a turn fails once.
        let known = match turn_id {
            Some(_) => db.last_event(&goal.goal_id, EventKind::TurnFailed)?,
            None => None,
        };
        if goal.failures_in_row > 0 && known.is_some_and(|event| event.payload["turn_id"].as_str() == turn_id) {
            return Ok(None);
        }
        let mut change = after_failure(&goal, error, message, call.now);
        if let (Some(turn_id), Some(event)) = (turn_id, change.events.first_mut()) {
            event.payload["turn_id"] = json!(turn_id);
        }
        Ok::<_, HookError>(wake::moment(&db.save(&goal, change, call.origin)?))
    })?;
    Ok(HookReply { wake_at_ms, ..HookReply::default() })
}

/// Answers the client's dialog about a used-up plan, which would keep the client from being woken.
pub(super) fn limit_dialog(call: &Call<'_>, store: &Store) -> Result<HookReply, HookError> {
    // The hook of the failure runs beside this one, and its pause says when the plan is reset.
    let deadline = Instant::now() + PAUSE_WAIT;
    let mut goal = store.read().goal(call.session_id())?;
    while goal.as_ref().is_some_and(|goal| goal.status == GoalStatus::Active) && Instant::now() < deadline {
        std::thread::sleep(PAUSE_STEP);
        goal = store.read().goal(call.session_id())?;
    }
    let wake_at =
        goal.filter(|goal| goal.paused_reason == Some(PausedReason::UsageLimit)).and_then(|goal| goal.wake_at_ms);
    let text = match wake_at {
        Some(at) => format!("◎ the plan is used up; the goal continues by itself at {}.", clock::to_local(at)),
        None => "◎ the plan is used up; /usage shows when it is reset.".to_owned(),
    };
    Ok(HookReply { block: Some(text), ..HookReply::default() })
}

/// A request went through after one that failed: the client's own retry worked.
pub(super) fn model_answered(call: &Call<'_>, store: &mut Store) -> Result<HookReply, HookError> {
    let recovers = |goal: &Goal| goal.status == GoalStatus::Active && goal.failures_in_row > 0;
    if !store.read().goal(call.session_id())?.is_some_and(|goal| recovers(&goal)) {
        return Ok(HookReply::default());
    }
    store.write(|db| {
        let Some(goal) = db.goal(call.session_id())?.filter(recovers) else {
            return Ok(());
        };
        let mut after = Goal { updated_at_ms: call.now, failures_in_row: 0, ..goal.clone() };
        db.begin_turn(call.session_id(), call.input.turn_id.as_deref(), call.now)?;
        liveness::settle(&mut after, true, call.now, call.now);
        db.save(&goal, Change { goal: after, events: Vec::new(), span: Span::Keep }, call.origin)?;
        Ok::<(), HookError>(())
    })?;
    Ok(HookReply::default())
}

fn after_failure(goal: &Goal, error: &str, message: &str, now: Millis) -> Change {
    let said = text::cut(&text::printable(message), 300);
    if let Some(reset) = usage_limit_reset(error, message, now) {
        let event = Event::new(
            EventKind::GoalPaused,
            json!({"reason": PausedReason::UsageLimit, "until_ms": reset, "message": said}),
        );
        let mut change = pause_for(goal, PausedReason::UsageLimit, event, now);
        change.goal.wake_at_ms = Some(reset);
        return change;
    }
    let failures = goal.failures_in_row + 1;
    let hopeless = matches!(error, "authentication_failed" | "invalid_request" | "billing_error");
    if hopeless || failures > MOST_FAILURES {
        let event =
            Event::new(EventKind::PausedDegraded, json!({"error": error, "message": said, "failures": failures}));
        return pause_for(goal, PausedReason::Degraded, event, now);
    }
    // The turn that failed may be one whose beginning no hook recorded: the wake-up has reached the client.
    let mut after =
        Goal { updated_at_ms: now, failures_in_row: failures, wake_at_ms: None, woken_at_ms: None, ..goal.clone() };
    liveness::settle(&mut after, false, now + retry_delay(failures), now);
    let payload = json!({"error": error, "message": said, "failures": failures, "retry_at_ms": after.wake_at_ms});
    Change { goal: after, events: vec![Event::new(EventKind::TurnFailed, payload)], span: Span::Keep }
}

/// When a usage limit is reset, as the message says; `None` for another error.
fn usage_limit_reset(error: &str, message: &str, now: Millis) -> Option<Millis> {
    const UNKNOWN_RESET: Millis = 30 * 60_000;
    if error != "rate_limit" || !trouble::speaks_of_usage_limit(message) {
        return None;
    }
    let reset = trouble::reset_at(message, now).filter(|at| *at > now);
    Some(reset.unwrap_or(now + UNKNOWN_RESET))
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast_model::goal::NewGoal;
    use steadfast_model::host::Host;

    const NOON: Millis = 1_794_744_000_000; // 2026-11-15T12:00:00Z

    #[test]
    fn resets_as_the_client_words_them() {
        let reset = |message: &str| usage_limit_reset("rate_limit", message, NOON).map(clock::to_rfc3339);
        assert_eq!(reset("Claude AI usage limit reached|1794751200"), Some("2026-11-15T14:00:00Z".into()));
        assert_eq!(reset("You've hit your limit · resets 3pm (UTC)"), Some("2026-11-15T15:00:00Z".into()));
        assert_eq!(reset("5-hour limit reached ∙ resets 11:30am (UTC)"), Some("2026-11-16T11:30:00Z".into()));
        assert_eq!(reset("5-hour limit reached"), Some("2026-11-15T12:30:00Z".into()));
        assert_eq!(reset("API Error: Request rejected (429) · scripted 429"), None);
        // Codex uses local time.
        let codex =
            "You’ve hit your usage limit. Visit https://x to purchase more or try again at Nov 16th, 2026 3:33 AM.";
        let local = jiff::civil::date(2026, 11, 16).at(3, 33, 0, 0).to_zoned(jiff::tz::TimeZone::system()).unwrap();
        assert_eq!(usage_limit_reset("rate_limit", codex, NOON), Some(local.timestamp().as_millisecond()));
        assert_eq!(usage_limit_reset("server_error", "limit reached|1794751200", NOON), None);
    }

    #[test]
    fn errors_are_tried_again_ever_later_and_then_no_more() {
        let new = NewGoal { objective: "x".into(), ..NewGoal::default() };
        let mut goal = Goal::start(new, "s", Host::Claude, None, NOON);
        let mut gaps = Vec::new();
        for _ in 0..MOST_FAILURES {
            goal = after_failure(&goal, "server_error", "529", NOON).goal;
            gaps.push((goal.wake_at_ms.unwrap() - NOON) / 1000);
        }
        assert_eq!(gaps, [5, 10, 20, 40, 80, 160, 320, 600]);
        let last = after_failure(&goal, "server_error", "529", NOON).goal;
        assert_eq!((last.status, last.paused_reason), (GoalStatus::Paused, Some(PausedReason::Degraded)));
    }

    /// Otherwise `steadfast watch` would take the goal for one whose wake-up never reached the client.
    #[test]
    fn a_failed_turn_ends_the_wake_up_that_began_it() {
        let goal = Goal::start(NewGoal::default(), "s", Host::Claude, None, NOON);
        let woken = Goal { resume_at_ms: None, woken_at_ms: Some(NOON), ..goal };
        let after = after_failure(&woken, "server_error", "API Error: 529", NOON + 7).goal;
        assert_eq!((after.wake_at_ms, after.woken_at_ms), (Some(NOON + 7 + retry_delay(1)), None));
    }
}
