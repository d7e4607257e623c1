//! The live processes that a supervisor or a check started, found by session and by a mark in their environment, and
//! how they are ended. This also works after the process that started them was killed.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use steadfast_system::process::{self, ProcessIdentity};

/// Between two looks at processes that were asked to end.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// A process may start another one between listing and signalling, so KILL is repeated.
const KILL_ROUNDS: u32 = 20;
const KILL_PAUSE: Duration = Duration::from_millis(10);

/// The live processes of an attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Descendants {
    /// Those in the session that the supervisor began, the supervisor included.
    pub session: Vec<i32>,
    /// Those that began a session of their own, as the shells of some agents do. Known only where the system shows
    /// environments.
    pub escaped: Vec<i32>,
}

impl Descendants {
    /// What lives of everything that `leader` started; `mark` is an entry in the environment of all of it.
    pub(crate) fn of(leader: &ProcessIdentity, mark: &str) -> Self {
        let mut found = Self::default();
        if !leader.is_of_this_boot() {
            return found;
        }
        let own = own_pid();
        let all = process::list();
        // A session keeps its number while it has members. If a process with the leader's number started at another
        // time, our session had ended before.
        let is_reused = all.iter().any(|process| process.pid == leader.pid && process.started != leader.started);
        for process in all.iter().filter(|process| process.pid != own) {
            if process.session == leader.pid && !is_reused {
                found.session.push(process.pid);
            } else if process::has_environment_entry(process.pid, mark) {
                found.escaped.push(process.pid);
            }
        }
        found
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.session.is_empty() && self.escaped.is_empty()
    }

    pub(crate) fn all(&self) -> Vec<i32> {
        [&self.session[..], &self.escaped].concat()
    }
}

/// The live processes with this entry in their environment, without this process. None where the system does not show
/// environments.
pub(crate) fn marked(mark: &str) -> Vec<i32> {
    let own = own_pid();
    let all = process::list().into_iter().map(|process| process.pid);
    all.filter(|pid| *pid != own && process::has_environment_entry(*pid, mark)).collect()
}

/// Ends the listed processes: TERM, and after the grace KILL.
pub(crate) fn end(grace: Duration, list: impl Fn() -> Vec<i32>) {
    let found = list();
    if !found.is_empty() {
        signal_all(&found, Signal::TERM);
        end_at(Instant::now().checked_add(grace), list);
    }
}

/// Waits for the end of the listed processes, and kills them at the deadline; without one, at once.
pub(crate) fn end_at(deadline: Option<Instant>, list: impl Fn() -> Vec<i32>) {
    while deadline.is_some_and(|deadline| Instant::now() < deadline) && !list().is_empty() {
        std::thread::sleep(LOOK_EVERY);
    }
    for _ in 0..KILL_ROUNDS {
        let left = list();
        if left.is_empty() {
            break;
        }
        signal_all(&left, Signal::KILL);
        std::thread::sleep(KILL_PAUSE);
    }
}

/// Sends a signal to each of these. Those that are gone need none.
pub(crate) fn signal_all(pids: &[i32], signal: Signal) {
    for pid in pids.iter().filter_map(|pid| Pid::from_raw(*pid)) {
        let _ = kill_process(pid, signal);
    }
}

fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}
