//! Signals as messages. Signals that the parent set to be ignored (`nohup`, a background job) stay ignored.

use std::sync::mpsc;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

use super::EngineMessage;

pub(super) fn listen(sender: mpsc::Sender<EngineMessage>) -> std::io::Result<Handle> {
    let ignored = ignored();
    let wanted = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| ignored & (1 << (signal - 1)) == 0);
    let mut signals = Signals::new(wanted)?;
    let handle = signals.handle();
    std::thread::spawn(move || {
        for _ in signals.forever() {
            if sender.send(EngineMessage::Signal).is_err() {
                break;
            }
        }
    });
    Ok(handle)
}

/// The signals that this process ignores, as a bit mask; 0 where the system does not report them.
fn ignored() -> u64 {
    let status = fs_err::read_to_string("/proc/self/status").unwrap_or_default();
    let bits = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    bits.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0)
}
