//! Which processes there are, by session: to find everything an attempt started, also when its keeper was killed, and
//! to end it. A process is told from a later one of the same number by its start time, and zombies are dead.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

/// A process for certain: its number, when it started, and in which run of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub pid: i32,
    /// In the system's own unit; only good for comparing.
    pub started: String,
    /// Changes with every start of the machine; empty where that is not told.
    pub boot: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Process {
    pid: i32,
    session: i32,
    started: String,
}

impl Identity {
    /// This very process.
    pub(crate) fn own() -> Self {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        Self { pid, started: started(pid).unwrap_or_default(), boot: boot() }
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.boot == boot() && started(self.pid).is_some_and(|started| started == self.started)
    }

    /// What lives of everything that this process started; `mark` is an entry in the environment of all of it.
    pub(crate) fn family(&self, mark: &str) -> Family {
        if self.boot != boot() {
            return Family::default();
        }
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let all = list();
        // The number of a session stays taken while it has members. A leader that started at another time began a
        // session of its own after ours had ended.
        let reused = all.iter().any(|process| process.pid == self.pid && process.started != self.started);
        let mut family = Family::default();
        for process in all.iter().filter(|process| process.pid != own) {
            if process.session == self.pid && !reused {
                family.session.push(process.pid);
            } else if carries(process.pid, mark) {
                family.strays.push(process.pid);
            }
        }
        family
    }

    /// Ends all of that at once.
    pub(crate) fn kill_family(&self, mark: &str) {
        // A process may start another one while we look.
        for _ in 0..20 {
            let family = self.family(mark);
            if family.is_empty() {
                break;
            }
            family.signal(Signal::KILL);
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The living processes of an attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Family {
    /// Those of the session that the keeper began, itself included.
    pub session: Vec<i32>,
    /// Those that left for a session of their own, as the shells of some agents do; known only where the system shows
    /// environments.
    pub strays: Vec<i32>,
}

impl Family {
    pub(crate) fn is_empty(&self) -> bool {
        self.session.is_empty() && self.strays.is_empty()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        signal_all(&self.session, signal);
        signal_all(&self.strays, signal);
    }
}

/// Whether a process of that number is there. It may be another one than whoever wrote the number down meant.
pub fn is_there(pid: i64) -> bool {
    i32::try_from(pid).is_ok_and(|pid| pid > 0 && started(pid).is_some())
}

/// The living processes with this entry in their environment, without ourselves; none where the system does not show
/// environments.
pub(crate) fn carrying(mark: &str) -> Vec<i32> {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let all = list().into_iter().map(|process| process.pid);
    all.filter(|pid| *pid != own && carries(*pid, mark)).collect()
}

/// Ends them: TERM, and after the grace KILL.
pub(crate) fn end_carrying(mark: &str, grace: Duration) {
    let found = carrying(mark);
    if found.is_empty() {
        return;
    }
    signal_all(&found, Signal::TERM);
    let patience = Instant::now() + grace;
    while Instant::now() < patience && !carrying(mark).is_empty() {
        std::thread::sleep(Duration::from_millis(50));
    }
    for _ in 0..20 {
        let left = carrying(mark);
        if left.is_empty() {
            break;
        }
        signal_all(&left, Signal::KILL);
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Sends a signal to each of these; those that are gone already are what we want.
pub(crate) fn signal_all(pids: &[i32], signal: Signal) {
    for pid in pids.iter().filter_map(|pid| Pid::from_raw(*pid)) {
        let _ = kill_process(pid, signal);
    }
}

#[cfg(target_os = "linux")]
fn boot() -> String {
    fs_err::read_to_string("/proc/sys/kernel/random/boot_id").map(|id| id.trim().to_owned()).unwrap_or_default()
}

#[cfg(not(target_os = "linux"))]
fn boot() -> String {
    String::new()
}

/// The start time of a living process.
#[cfg(target_os = "linux")]
fn started(pid: i32) -> Option<String> {
    stat(pid).map(|process| process.started)
}

#[cfg(target_os = "linux")]
fn stat(pid: i32) -> Option<Process> {
    let text = fs_err::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may itself contain some.
    let (_, after) = text.rsplit_once(") ")?;
    let fields: Vec<&str> = after.split(' ').collect();
    if matches!(*fields.first()?, "Z" | "X") {
        return None;
    }
    Some(Process { pid, session: fields.get(3)?.parse().ok()?, started: (*fields.get(19)?).to_owned() })
}

#[cfg(target_os = "linux")]
fn list() -> Vec<Process> {
    let Ok(entries) = fs_err::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| stat(entry.file_name().to_str()?.parse().ok()?)).collect()
}

#[cfg(target_os = "linux")]
fn carries(pid: i32, mark: &str) -> bool {
    fs_err::read(format!("/proc/{pid}/environ"))
        .is_ok_and(|environment| environment.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes()))
}

#[cfg(not(target_os = "linux"))]
fn started(pid: i32) -> Option<String> {
    ps(&["-p", &pid.to_string()]).pop().map(|process| process.started)
}

#[cfg(not(target_os = "linux"))]
fn list() -> Vec<Process> {
    ps(&["-A"])
}

/// Asks `ps`, which every Unix has; sessions are asked of the kernel, since `ps` does not tell them everywhere.
#[cfg(not(target_os = "linux"))]
fn ps(which: &[&str]) -> Vec<Process> {
    let mut command = std::process::Command::new("ps");
    let Ok(output) = command.env("LC_ALL", "C").args(which).args(["-o", "pid=,stat=,lstart="]).output() else {
        return Vec::new();
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let pid: i32 = words.next()?.parse().ok()?;
            if words.next()?.starts_with('Z') {
                return None;
            }
            let session = rustix::process::getsid(Pid::from_raw(pid)).ok()?.as_raw_nonzero().get();
            Some(Process { pid, session, started: words.collect::<Vec<_>>().join(" ") })
        })
        .collect()
}

#[cfg(not(target_os = "linux"))]
fn carries(_pid: i32, _mark: &str) -> bool {
    false
}

/// Begins a session of its own, which no terminal can hang up on. A process that leads one already keeps it: the kernel
/// refuses it another. Which session it is in now is not asked; in a container that has no number.
pub fn begin_session() {
    // Refused to leaders of process groups only; one who leads no session goes on in its old one.
    let _ = rustix::process::setsid();
}
