//! A store that is busy or full for a while delays a hook's work and nothing more: the goal stays as it is, and the hook
//! ends before the client ends it.

use std::time::Duration;

use super::Call;
use steadfast_model::goal::GoalStatus;
use steadfast_model::hook::{HookEvent, HookReply};
use steadfast_store::{Outage, Store, StoreError};
use steadfast_system::disk::DiskFault;
use steadfast_system::log;

/// How long a hook waits for other processes that write to the store. Clients end the shortest of these hooks after 3
/// seconds, those that only remember after 10, and the others after 30 or more.
pub(super) fn patience(event: &HookEvent) -> Duration {
    Duration::from_secs(match event {
        HookEvent::Seen | HookEvent::ToolAsked { .. } | HookEvent::Interrupt | HookEvent::SessionEnd { .. } => 2,
        _ => 5,
    })
}

/// The reply of a hook that could not use the store. It does not wait a second time, so it changes nothing.
pub(super) fn reply(call: &Call<'_>, outage: Outage, error: &StoreError) -> HookReply {
    let store = &call.paths.store;
    let (what, until) = match outage {
        Outage::Busy => ("the store is busy".to_owned(), "it is free"),
        Outage::Full => {
            let fault = error.disk_fault().unwrap_or(DiskFault::Full);
            (format!("{fault}: {}", store.display()), "there is room")
        }
    };
    log::line(&call.paths.log_file(), &format!("{} {}: {what}", call.input.event_name, call.session_id()));
    // Every call of a tool would repeat the message.
    if matches!(call.input.event, HookEvent::Seen | HookEvent::ToolAsked { .. }) {
        return HookReply::default();
    }
    let goal =
        Store::open_existing_within(store, Duration::ZERO).and_then(|store| store.read().goal(call.session_id()));
    let is_active = goal.is_ok_and(|goal| goal.is_some_and(|goal| goal.status == GoalStatus::Active));
    let then = if is_active { format!("; the goal continues when {until}") } else { String::new() };
    // Where no waker waits, `steadfast watch` finds the turn that could not be recorded.
    let wake_at_ms = is_active.then_some(call.now);
    HookReply { message: Some(format!("steadfast: {what}{then}")), wake_at_ms, ..HookReply::default() }
}
