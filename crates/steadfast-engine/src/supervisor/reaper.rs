//! Waiting for everything that ends below the supervisor. On Linux it adopts what the agent's processes leave behind, so
//! it has to take their exit statuses too. Without any child left, nothing that the agent started is left.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ExitStatus};
use std::sync::mpsc;

use rustix::io::Errno;
use rustix::process::{WaitOptions, wait};

use super::watching::SupervisorMessage;

/// Makes this process the parent of every orphan below it.
#[cfg(target_os = "linux")]
pub(super) fn adopt_orphans() {
    // Kernels before 3.4 cannot; the agent is then contained by session and environment only.
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

#[cfg(not(target_os = "linux"))]
pub(super) fn adopt_orphans() {}

/// Takes the exit statuses of all children on a thread of its own, and reports that of the agent and the last one.
pub(super) fn report_ends(agent: &Child, sender: mpsc::Sender<SupervisorMessage>) {
    let agent = i32::try_from(agent.id()).unwrap_or(0);
    std::thread::spawn(move || {
        let mut has_ended = false;
        loop {
            let message = match wait(WaitOptions::empty()) {
                // Once its status is taken, another process may get the agent's number.
                Ok(Some((pid, status))) if pid.as_raw_nonzero().get() == agent && !has_ended => {
                    has_ended = true;
                    SupervisorMessage::Ended(Ok(ExitStatus::from_raw(status.as_raw())))
                }
                Ok(_) | Err(Errno::INTR) => continue,
                Err(Errno::CHILD) => SupervisorMessage::AllEnded,
                Err(error) => SupervisorMessage::Ended(Err(error.into())),
            };
            let is_last = !matches!(message, SupervisorMessage::Ended(Ok(_)));
            if sender.send(message).is_err() || is_last {
                return;
            }
        }
    });
}
