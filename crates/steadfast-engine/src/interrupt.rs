//! Signals as flags and messages instead of an end in the middle of a line.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::{Handle, Signals};

/// Set once the user pressed Ctrl-C.
pub struct Interrupted(Arc<AtomicBool>);

impl Interrupted {
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Catches Ctrl-C from now on, for commands that only watch a run.
pub fn flag() -> std::io::Result<Interrupted> {
    let flag = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGINT, flag.clone())?;
    Ok(Interrupted(flag))
}

/// A write beyond the limit of `ulimit -f` is an error from now on, and no longer the end of the process. Processes that
/// it starts are not changed.
pub fn survive_size_limit() {
    // If it cannot be caught, only that end is as before.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
}

/// Requests to end from now on, as they come, for a command that works until it is stopped.
pub fn requests() -> std::io::Result<mpsc::Receiver<EndRequest>> {
    let (sender, receiver) = mpsc::channel();
    listen(requests_to_end(), move |signal| {
        sender.send(if signal == SIGINT { EndRequest::Interrupt } else { EndRequest::Terminate }).is_ok()
    })?;
    Ok(receiver)
}

/// How a command was asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndRequest {
    /// Ctrl-C.
    Interrupt,
    /// `kill`, or the terminal closed.
    Terminate,
}

/// Calls `on_signal` for each signal on a thread of its own, until it returns false.
pub(crate) fn listen(
    wanted: impl IntoIterator<Item = i32>,
    on_signal: impl FnMut(i32) -> bool + Send + 'static,
) -> std::io::Result<Handle> {
    let mut signals = Signals::new(wanted)?;
    let handle = signals.handle();
    std::thread::spawn(move || signals.forever().all(on_signal));
    Ok(handle)
}

/// The signals that end a run. Those that the parent set to be ignored (`nohup`, a background job) stay ignored.
pub(crate) fn requests_to_end() -> impl Iterator<Item = i32> {
    let status = fs_err::read_to_string("/proc/self/status").unwrap_or_default();
    let bits = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = bits.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0);
    [SIGINT, SIGTERM, SIGHUP].into_iter().filter(move |signal| ignored & (1 << (signal - 1)) == 0)
}
