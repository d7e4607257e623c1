//! A plugin without `setup` keeps its goals in the client's own directory, where a terminal does not look. A user with
//! goals in both places reads so when a client starts.

use steadfast_model::hook::{HookEvent, HookInput, HookReply, StartSource};
use steadfast_store::goals_missing;
use steadfast_system::paths::{PLUGIN_DATA, Paths};

pub(super) fn with_note(input: &HookInput, paths: &Paths, reply: HookReply) -> HookReply {
    let is_start = matches!(input.event, HookEvent::SessionStart(StartSource::Startup | StartSource::Resume));
    let home_store = paths.home.join("goals.db");
    if !is_start || paths.store_from != PLUGIN_DATA || !home_store.exists() {
        return reply;
    }
    // The command that the line names reports a store that cannot be read.
    if goals_missing(&paths.store, &home_store).is_ok_and(|missing| missing == 0) {
        return reply;
    }
    let host = input.host.name();
    reply.with_line_before(format!(
        "steadfast: goals of this session are not in the store of your terminal. To share one, type in a terminal: \
         steadfast setup {host}"
    ))
}
