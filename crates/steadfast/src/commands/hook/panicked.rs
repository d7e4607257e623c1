//! A panic in a hook. The process starts its program anew, because what the failed call had locked is free only then, and
//! that one pauses a live goal with a message.

use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use steadfast_app::hook;
use steadfast_model::clock;
use steadfast_model::hook::{HookEvent, HookInput};
use steadfast_model::host::Host;
use steadfast_system::env_vars;
use steadfast_system::paths::Paths;

/// The flag of the new process: session, event and what happened.
const FLAG: &str = "--panicked";

static CALL: OnceLock<[String; 2]> = OnceLock::new();
/// A client reads one reply.
static IS_ANSWERED: AtomicBool = AtomicBool::new(false);

/// From here on, a panic concerns this call.
pub(super) fn remember(input: &HookInput) {
    CALL.get_or_init(|| [input.session_id.clone(), input.event_name.clone()]);
}

/// From here on, a panic concerns no call: its reply is printed.
pub(super) fn forget() {
    IS_ANSWERED.store(true, Ordering::Relaxed);
}

/// Starts the program anew in this process, with the pipes of the client. Returns if it cannot, or if nothing is known of
/// the call or it is answered.
pub(crate) fn report(cause: &str) {
    if IS_ANSWERED.load(Ordering::Relaxed) {
        return;
    }
    let (Some([session, event]), Some(program)) = (CALL.get(), crate::programs::own()) else { return };
    let mut command = Command::new(program);
    command.args(std::env::args_os().skip(1)).args([FLAG, session, event, cause]);
    // A test that asked for a panic got it.
    command.env_remove(env_vars::CRASH_AT);
    // Returns only if it failed; the caller ends the process.
    let _ = command.exec();
}

/// What the new process does. A second panic ends it without a word.
pub(super) fn pause(host: Host, paths: &Paths, words: &[String]) {
    let [session, event, cause] = words else { return };
    let input = HookInput {
        host,
        event_name: event.clone(),
        session_id: session.clone(),
        transcript: None,
        cwd: String::new(),
        project_dir: String::new(),
        turn_id: None,
        event: HookEvent::Seen,
        observations: Vec::new(),
    };
    // Only the session's client may pause its goal like this.
    let Ok(client) = super::client_of(&input) else { return };
    if let Ok(reply) = hook::panicked(&input, paths, client, cause, clock::wall()) {
        super::print_reply(&input, &reply);
        if reply.has_news {
            drop(crate::outbox::start(paths));
        }
    }
}
