//! Ctrl-C for commands that only watch a run: it sets a flag instead of ending the process in the middle of a line.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::SIGINT;

/// Set once the user pressed Ctrl-C.
#[derive(Debug, Clone)]
pub struct Interrupted(Arc<AtomicBool>);

impl Interrupted {
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Catches Ctrl-C from now on.
pub fn flag() -> std::io::Result<Interrupted> {
    let flag = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGINT, flag.clone())?;
    Ok(Interrupted(flag))
}
