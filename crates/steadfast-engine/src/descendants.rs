//! The live processes that a supervisor or a check started, and how they are ended. They are found by parents, by
//! session, by a mark in their environment, and by what a supervisor wrote down, so this also works after the process
//! that started them was killed. A signal goes only to a process with the start time that was seen.

mod table;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use steadfast_system::process::ProcessIdentity;

use self::table::Entry;

/// Between two looks at processes that were asked to end.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How often to look for new processes before killing. Each look stops those it finds, so that they start no more.
const FREEZE_ROUNDS: u32 = 50;
/// KILL is repeated for processes that no look before has found.
const KILL_ROUNDS: u32 = 20;
const KILL_PAUSE: Duration = Duration::from_millis(10);
/// More processes than that are not above one another; numbers that are used again could make a circle.
const MOST_ABOVE: usize = 256;

/// A process that was found: its start time distinguishes it from a later one with the same number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FoundProcess {
    pub pid: i32,
    pub started: String,
}

impl From<&Entry> for FoundProcess {
    fn from(entry: &Entry) -> Self {
        Self { pid: entry.pid, started: entry.started.clone() }
    }
}

impl From<&ProcessIdentity> for FoundProcess {
    fn from(identity: &ProcessIdentity) -> Self {
        Self { pid: identity.pid, started: identity.started.clone() }
    }
}

/// The live processes of an attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Descendants {
    /// Those in the session that the supervisor began, the supervisor included.
    pub session: Vec<FoundProcess>,
    /// Those that began a session of their own, as the shells of some agents do. Known only where the system shows
    /// parents or environments.
    pub escaped: Vec<FoundProcess>,
}

impl Descendants {
    /// What lives of everything that `leader` started; `mark` is an entry in the environment of what did not clear it,
    /// and `noted` is what the leader wrote down.
    pub(crate) fn of(leader: &ProcessIdentity, mark: &str, noted: &[FoundProcess]) -> Self {
        let mut found = Self::default();
        if !leader.is_of_this_boot() {
            return found;
        }
        let own = own_pid();
        let all = table::read();
        // A session keeps its number while it has members. If a process with the leader's number started at another
        // time, our session had ended before.
        let is_reused = all.iter().any(|entry| entry.pid == leader.pid && entry.started != leader.started);
        let in_session = |entry: &Entry| entry.session == leader.pid && !is_reused;
        let is_noted = |entry: &Entry| noted.iter().any(|one| one.pid == entry.pid && one.started == entry.started);
        let is_known = |entry: &&Entry| in_session(entry) || is_noted(entry) || table::is_marked(entry, mark);
        let known: BTreeSet<i32> =
            all.iter().filter(is_known).map(|entry| entry.pid).filter(|pid| *pid != own).collect();
        let below = table::below(&all, known.iter().copied());
        for entry in all.iter().filter(|entry| entry.pid != own) {
            if in_session(entry) {
                found.session.push(entry.into());
            } else if known.contains(&entry.pid) || below.contains(&entry.pid) {
                found.escaped.push(entry.into());
            }
        }
        found
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.session.is_empty() && self.escaped.is_empty()
    }

    pub(crate) fn all(&self) -> Vec<FoundProcess> {
        [&self.session[..], &self.escaped].concat()
    }
}

/// The live processes with this entry in their environment, without this process. None where the system does not show
/// environments.
pub(crate) fn marked(mark: &str) -> Vec<FoundProcess> {
    let own = own_pid();
    table::read().iter().filter(|entry| entry.pid != own && table::is_marked(entry, mark)).map(Into::into).collect()
}

/// The processes above this one, the nearest first. None where the system does not show parents.
pub(crate) fn above_this_process() -> Vec<FoundProcess> {
    let all = table::read();
    let parent_of = |pid: i32| {
        let parent = all.iter().find(|entry| entry.pid == pid)?.parent;
        all.iter().find(|entry| entry.pid == parent)
    };
    std::iter::successors(parent_of(own_pid()), |entry| parent_of(entry.pid)).take(MOST_ABOVE).map(Into::into).collect()
}

/// Everything below this process. None where the system does not show parents.
pub(crate) fn below_this_process() -> Vec<FoundProcess> {
    let all = table::read();
    let below = table::below(&all, [own_pid()]);
    all.iter().filter(|entry| below.contains(&entry.pid)).map(Into::into).collect()
}

/// Kills everything below this process.
pub fn kill_descendants() {
    kill_all(below_this_process);
}

/// What is below this process: in that process group, and outside of it.
pub(crate) fn below_by_group(group: i32) -> (Vec<FoundProcess>, Vec<FoundProcess>) {
    let all = table::read();
    let below = table::below(&all, [own_pid()]);
    let (inside, outside): (Vec<&Entry>, Vec<&Entry>) =
        all.iter().filter(|entry| below.contains(&entry.pid)).partition(|entry| entry.group == group);
    (inside.into_iter().map(Into::into).collect(), outside.into_iter().map(Into::into).collect())
}

/// Ends the listed processes: TERM, and after the grace KILL.
pub(crate) fn end(grace: Duration, list: impl Fn() -> Vec<FoundProcess>) {
    let found = list();
    if !found.is_empty() {
        signal_all(&found, Signal::TERM);
        end_at(Instant::now().checked_add(grace), list);
    }
}

/// Waits for the end of the listed processes, and kills them at the deadline; without one, at once.
pub(crate) fn end_at(deadline: Option<Instant>, list: impl Fn() -> Vec<FoundProcess>) {
    while deadline.is_some_and(|deadline| Instant::now() < deadline) && !list().is_empty() {
        std::thread::sleep(LOOK_EVERY);
    }
    for _ in 0..KILL_ROUNDS {
        if !kill_all(&list) {
            break;
        }
        std::thread::sleep(KILL_PAUSE);
    }
}

/// Kills the listed processes and returns whether there were any. All of them are stopped first: killing some while
/// others still fork would leave processes that no longer have a known parent.
pub(crate) fn kill_all(list: impl Fn() -> Vec<FoundProcess>) -> bool {
    let mut stopped = BTreeSet::new();
    for _ in 0..FREEZE_ROUNDS {
        let new: Vec<FoundProcess> = list().into_iter().filter(|found| !stopped.contains(found)).collect();
        if new.is_empty() {
            break;
        }
        signal_all(&new, Signal::STOP);
        stopped.extend(new);
    }
    let stopped: Vec<FoundProcess> = stopped.into_iter().collect();
    signal_all(&stopped, Signal::KILL);
    !stopped.is_empty()
}

/// Sends a signal to each of these. Those that are gone need none.
pub(crate) fn signal_all(processes: &[FoundProcess], signal: Signal) {
    for found in processes {
        // A process of another user cannot be signalled.
        let _ = send(found, signal);
    }
}

/// The descriptor keeps meaning the process that was compared, even if its number is used again meanwhile.
#[cfg(target_os = "linux")]
fn send(found: &FoundProcess, signal: Signal) -> rustix::io::Result<()> {
    use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
    let Some(pid) = Pid::from_raw(found.pid) else { return Ok(()) };
    let process = pidfd_open(pid, PidfdFlags::empty());
    if !table::is_same(found.pid, &found.started) {
        return Ok(());
    }
    match process {
        Ok(process) => pidfd_send_signal(process, signal),
        // Kernels before 5.3 have no such descriptors.
        Err(rustix::io::Errno::NOSYS) => kill_process(pid, signal),
        Err(error) => Err(error),
    }
}

#[cfg(not(target_os = "linux"))]
fn send(found: &FoundProcess, signal: Signal) -> rustix::io::Result<()> {
    match Pid::from_raw(found.pid).filter(|_| table::is_same(found.pid, &found.started)) {
        Some(pid) => kill_process(pid, signal),
        None => Ok(()),
    }
}

fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}
