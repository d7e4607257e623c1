//! Restarts a server after a panic. Packages are built without unwinding, which makes the program a quarter smaller, so a
//! panic cannot end one call alone. The process starts its program anew: it keeps its id, its terminal and its pipes, and
//! what the failed call had locked is free.

use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use steadfast_system::env_vars;

use crate::programs;

/// A server that fails so often, each time within [`STABLE`], ends.
const MOST_RESTARTS: u32 = 20;
/// A server that worked for so long counts its restarts from the beginning.
const STABLE: Duration = Duration::from_mins(1);
/// Before a restart, for one that fails at once.
const PAUSE: Duration = Duration::from_millis(100);
/// The first argument that a restart adds: how many there were.
const RESTARTS: &str = "--restarts";

struct Server {
    restarts: u32,
    since: Instant,
    hand_over: Box<dyn Fn(&mut Command) + Send + Sync>,
}

static SERVER: OnceLock<Server> = OnceLock::new();

/// From here on, a panic restarts this server. `hand_over` adds the arguments that say what the new one must know.
pub(crate) fn enable(restarts: u32, hand_over: impl Fn(&mut Command) + Send + Sync + 'static) {
    SERVER.get_or_init(|| Server { restarts, since: Instant::now(), hand_over: Box::new(hand_over) });
}

/// Starts the server anew in this process. Returns if it cannot.
pub(crate) fn restart() {
    static IS_RESTARTING: AtomicBool = AtomicBool::new(false);
    let Some(server) = SERVER.get() else { return };
    if IS_RESTARTING.swap(true, Ordering::Relaxed) {
        // Another thread restarts it or ends the process, and this one with it.
        loop {
            std::thread::park();
        }
    }
    let restarts = if server.since.elapsed() < STABLE { server.restarts } else { 0 };
    if restarts >= MOST_RESTARTS {
        return;
    }
    let Some(program) = programs::own() else { return };
    std::thread::sleep(PAUSE);
    let mut command = Command::new(program);
    command.args(std::env::args_os().skip(1).take_while(|argument| argument != RESTARTS));
    command.args([RESTARTS, &(restarts + 1).to_string()]);
    // A test that asked for a panic got it.
    command.env_remove(env_vars::CRASH_AT);
    (server.hand_over)(&mut command);
    // Returns only if it failed; the caller ends the process.
    let _ = command.exec();
}
