//! A store that is busy or full for a while delays a hook's work and nothing more: the goal stays as it is, and the hook
//! ends before the client ends it.

use std::time::Duration;

use super::Call;
use steadfast_model::goal::GoalStatus;
use steadfast_model::hook::{HookEvent, HookReply};
use steadfast_store::{Outage, Store, StoreError};
use steadfast_system::disk::DiskFault;
use steadfast_system::log;

/// The longest [`patience`].
pub(super) const LONGEST: Duration = Duration::from_secs(14);

/// How long a hook works on the migration of a large store before it leaves the rest to others.
pub(super) const LONGEST_MIGRATION: Duration = Duration::from_secs(5);

/// How long a hook waits for other processes that write to the store: what is decided as long as the client's own limit
/// allows, what is only remembered a second. Codex ends `Interrupt` and `SessionEnd` after 3 seconds.
pub(super) fn patience(event: &HookEvent) -> Duration {
    match event {
        HookEvent::Seen => Duration::from_secs(1),
        // Reads only, unless a cap was reached; the user's tool waits for it.
        HookEvent::ToolAsked { .. } | HookEvent::Interrupt | HookEvent::SessionEnd { .. } => Duration::from_secs(2),
        HookEvent::OwnToolDone(_) | HookEvent::PermissionAsked => Duration::from_secs(5),
        _ => LONGEST,
    }
}

/// The reply of a hook that could not use the store. It does not wait a second time, so it changes nothing.
pub(super) fn reply(call: &Call<'_>, outage: Outage, error: &StoreError) -> HookReply {
    let store = &call.paths.store;
    let (what, until) = match outage {
        Outage::Busy if matches!(error, StoreError::Migrating(_)) => {
            ("the store of an earlier version is being migrated".to_owned(), "that is done")
        }
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
    // The goal cannot be read before the migration is done. `steadfast watch` does the rest of it, and finds the turn.
    if matches!(error, StoreError::Migrating(_)) {
        let ends_turn = matches!(
            call.input.event,
            HookEvent::Stop { .. } | HookEvent::StopFailure { .. } | HookEvent::SessionEnd { .. }
        );
        // Once or twice in a turn, also without a goal: whether there is one cannot be seen.
        let begins_turn = matches!(
            call.input.event,
            HookEvent::SessionStart(_)
                | HookEvent::Prompt { .. }
                | HookEvent::Command { .. }
                | HookEvent::Commands { .. }
                | HookEvent::Directive { .. }
        );
        let message =
            (begins_turn || ends_turn).then(|| format!("steadfast: {what}; a live goal continues when {until}"));
        return HookReply { message, wake_at_ms: ends_turn.then_some(call.now), ..HookReply::default() };
    }
    let goal =
        Store::open_migrated_within(store, Duration::ZERO).and_then(|store| store.read().goal(call.session_id()));
    let is_active = goal.is_ok_and(|goal| goal.is_some_and(|goal| goal.status == GoalStatus::Active));
    let then = if is_active { format!("; the goal continues when {until}") } else { String::new() };
    // Where no waker waits, `steadfast watch` finds the turn that could not be recorded.
    let wake_at_ms = is_active.then_some(call.now);
    HookReply { message: Some(format!("steadfast: {what}{then}")), wake_at_ms, ..HookReply::default() }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use serde_json::Value;
    use steadfast_hosts::adapter;
    use steadfast_model::host::Host;

    use super::*;

    fn json(path: &str) -> Value {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
        serde_json::from_slice(&fs_err::read(path).unwrap()).unwrap()
    }

    /// Also if the hook waits a second time: a command does, in the code of the command line.
    #[test]
    fn every_hook_gives_up_before_its_client_ends_it() {
        let hooks = json("plugin/hooks/hooks.json");
        let limits: BTreeMap<&String, Duration> = hooks["hooks"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(event, groups)| (event, Duration::from_secs(groups[0]["hooks"][0]["timeout"].as_u64().unwrap())))
            .collect();
        let mut checked = 0;
        for (event, limit) in limits {
            let samples = json(&format!("crates/steadfast-hosts/samples/claude/hooks/{event}.json"));
            for sample in samples.as_array().unwrap() {
                let read = (adapter(Host::Claude).read_hook)(sample["stdin"].to_string().as_bytes()).unwrap();
                let Some(input) = read else { continue };
                assert!(patience(&input.event) * 2 <= limit, "{event}: {:?}", input.event);
                checked += 1;
            }
        }
        assert!(checked > 30, "{checked}");
        for event in [HookEvent::Interrupt, HookEvent::SessionEnd { reason: String::new() }] {
            assert!(patience(&event) < Duration::from_secs(3), "{event:?}");
        }
    }
}
