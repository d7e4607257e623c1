//! Delivers the messages that wait in the outbox. A process that changed something delivers what it wrote; messages of a
//! process that died are delivered by the next session start or terminal command.

use steadfast_engine::notify;
use steadfast_model::clock;
use steadfast_model::outbox::{Message, MessageKind};
use steadfast_store::Store;
use steadfast_system::paths::Paths;

/// Whether the user probably watches the terminal that a run prints to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    Watching,
    Away,
}

/// Takes and delivers all waiting messages. Failing to notify is not an error.
pub(crate) fn deliver(paths: &Paths, store: &mut Store, audience: Audience) {
    for message in store.take_messages(clock::now()).unwrap_or_default() {
        if is_wanted(paths, &message, audience) {
            notify::desktop(&message.title, &message.body);
        }
    }
}

/// Starts the delivery of what a hook took, without waiting: the client waits for the hook.
pub(crate) fn deliver_in_background(paths: &Paths, messages: &[Message]) {
    for message in messages.iter().filter(|message| is_wanted(paths, message, Audience::Away)) {
        notify::desktop_in_background(&message.title, &message.body);
    }
}

fn is_wanted(paths: &Paths, message: &Message, audience: Audience) -> bool {
    let by_default = message.kind != MessageKind::RunEnded || audience == Audience::Away;
    paths.config.notify.desktop.unwrap_or(by_default)
}
