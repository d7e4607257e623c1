//! Signals as news. What whoever started us wants to be ignored (`nohup`, a shell's background job) stays ignored.

use std::sync::mpsc;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

use super::News;

pub(super) fn listen(sender: mpsc::Sender<News>) -> std::io::Result<Handle> {
    let ignored = ignored();
    let wanted = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| ignored & (1 << (signal - 1)) == 0);
    let mut signals = Signals::new(wanted)?;
    let handle = signals.handle();
    std::thread::spawn(move || {
        for _ in signals.forever() {
            if sender.send(News::Signal).is_err() {
                break;
            }
        }
    });
    Ok(handle)
}

/// The signals that this process ignores, as the kernel's bits; where it does not tell, none.
fn ignored() -> u64 {
    let status = fs_err::read_to_string("/proc/self/status").unwrap_or_default();
    let bits = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    bits.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0)
}
