//! Processes: which exist, which one is which. `ancestry` shows what runs above this one, to tell an agent's shell from a
//! person's terminal; `caller` shows whether a client started this process and gave it its input.

mod ancestry;
mod caller;
mod holders;

pub use ancestry::{
    Ancestor, above, ancestors, client_of_hook, has_own_terminal, is_client_automated, is_inside_agent, is_inside_run,
    is_own_program, session_of_shell, shares_ancestor,
};
pub use caller::{Caller, Need};
pub use holders::{FileHolder, holders, works_in};

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock;

/// A process in a row of the store. Its start time distinguishes it from a later process with the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessId {
    pub pid: i64,
    pub started: i64,
}

/// A process in a file that may outlive the machine's uptime: number, start time and boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessIdentity {
    pub pid: i32,
    /// In the system's own unit, only good for comparing.
    pub started: String,
    /// Changes with every boot; empty where the system does not report it.
    pub boot: String,
}

/// One entry of the process table. Zombies are not listed: they have ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveProcess {
    pub pid: i32,
    pub session: i32,
    pub started: String,
}

/// What `/proc/PID/stat` says about a process.
#[derive(Debug)]
struct Stat {
    name: String,
    parent: i64,
    session: i32,
    /// The number of its controlling terminal; 0 without one.
    terminal: i32,
    has_ended: bool,
    started: i64,
}

/// Reads `/proc/PID/stat`; `None` on systems without `/proc`.
fn stat(pid: i64) -> Option<Stat> {
    let bytes = fs_err::read(format!("/proc/{pid}/stat")).ok()?;
    // The name may be no text. It is in parentheses and may itself contain some.
    let text = String::from_utf8_lossy(&bytes);
    let (before, after) = text.rsplit_once(") ")?;
    let name = before.split_once(" (")?.1.to_owned();
    let fields: Vec<&str> = after.split(' ').collect();
    Some(Stat {
        name,
        has_ended: matches!(*fields.first()?, "Z" | "X"),
        parent: fields.get(1)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        terminal: fields.get(4)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
    })
}

/// How long ago this process was started: on a busy machine its code may begin much later. Zero on systems without `/proc`.
pub fn own_age() -> Duration {
    // What Linux counts the start times of processes in, on every machine.
    const TICKS_A_SECOND: i64 = 100;
    let Some(stat) = stat(i64::from(std::process::id())) else { return Duration::ZERO };
    let since_boot = clock::look().boot_ms;
    let age = since_boot.saturating_sub(stat.started.saturating_mul(1_000 / TICKS_A_SECOND));
    Duration::from_millis(u64::try_from(age).unwrap_or(0))
}

impl ProcessId {
    pub fn own() -> Self {
        let ProcessIdentity { pid, started, .. } = ProcessIdentity::own();
        Self { pid: i64::from(pid), started: started.parse().unwrap_or(0) }
    }

    /// Whether this process still runs; `None` on systems where that is unknown.
    pub fn is_alive(self) -> Option<bool> {
        if !cfg!(target_os = "linux") {
            return None;
        }
        Some(stat(self.pid).is_some_and(|stat| !stat.has_ended && stat.started == self.started))
    }
}

impl ProcessIdentity {
    pub fn own() -> Self {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        Self { pid, started: started(pid).unwrap_or_default(), boot: boot() }
    }

    /// A process that runs now.
    pub fn of(pid: i32) -> Option<Self> {
        let started = if pid > 0 { started(pid)? } else { return None };
        Some(Self { pid, started, boot: boot() })
    }

    pub fn is_alive(&self) -> bool {
        self.is_of_this_boot() && started(self.pid).is_some_and(|started| started == self.started)
    }

    pub fn is_of_this_boot(&self) -> bool {
        self.boot == boot()
    }
}

/// Whether a process with this number runs. It may be a later process with the same number.
pub fn exists(pid: i64) -> bool {
    i32::try_from(pid).is_ok_and(|pid| pid > 0 && started(pid).is_some())
}

/// Whether a process runs as the user of this one; `false` if it cannot be found out.
#[cfg(target_os = "linux")]
pub fn is_of_same_user(pid: i32) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let user = rustix::process::getuid().as_raw();
    fs_err::metadata(format!("/proc/{pid}")).is_ok_and(|process| process.uid() == user)
}

/// Whether a process runs as the user of this one; `false` if it cannot be found out.
#[cfg(not(target_os = "linux"))]
pub fn is_of_same_user(pid: i32) -> bool {
    let user = rustix::process::getuid().as_raw().to_string();
    let output = std::process::Command::new("ps").args(["-p", &pid.to_string(), "-o", "uid="]).output();
    output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).trim() == user)
}

#[cfg(target_os = "linux")]
fn boot() -> String {
    fs_err::read_to_string("/proc/sys/kernel/random/boot_id").map(|id| id.trim().to_owned()).unwrap_or_default()
}

#[cfg(not(target_os = "linux"))]
fn boot() -> String {
    String::new()
}

/// The start time of a live process.
#[cfg(target_os = "linux")]
fn started(pid: i32) -> Option<String> {
    live(pid).map(|process| process.started)
}

#[cfg(target_os = "linux")]
fn live(pid: i32) -> Option<LiveProcess> {
    let stat = stat(i64::from(pid)).filter(|stat| !stat.has_ended)?;
    Some(LiveProcess { pid, session: stat.session, started: stat.started.to_string() })
}

/// All live processes.
#[cfg(target_os = "linux")]
pub fn list() -> Vec<LiveProcess> {
    let Ok(entries) = fs_err::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| live(entry.file_name().to_str()?.parse().ok()?)).collect()
}

/// The value of a variable that a process was started with; `None` in `Some` if it had none, `None` if that is hidden.
pub fn variable_of(process: ProcessId, name: &str) -> Option<Option<OsString>> {
    let environment = fs_err::read(format!("/proc/{}/environ", process.pid)).ok()?;
    let mut values = environment.split(|byte| *byte == 0).filter_map(|entry| {
        let value = entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        Some(OsStr::from_bytes(value).to_owned())
    });
    Some(values.next().filter(|value| !value.is_empty()))
}

/// Whether a process was started with this `NAME=value` in its environment; `false` on systems that hide environments.
#[cfg(target_os = "linux")]
pub fn has_environment_entry(pid: i32, entry: &str) -> bool {
    fs_err::read(format!("/proc/{pid}/environ"))
        .is_ok_and(|environment| environment.split(|byte| *byte == 0).any(|found| found == entry.as_bytes()))
}

#[cfg(not(target_os = "linux"))]
fn started(pid: i32) -> Option<String> {
    ps(&["-p", &pid.to_string()]).pop().map(|process| process.started)
}

/// All live processes.
#[cfg(not(target_os = "linux"))]
pub fn list() -> Vec<LiveProcess> {
    ps(&["-A"])
}

/// Asks `ps`, which every Unix has. Sessions come from the kernel, because not every `ps` prints them.
#[cfg(not(target_os = "linux"))]
fn ps(which: &[&str]) -> Vec<LiveProcess> {
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
            let session = rustix::process::getsid(rustix::process::Pid::from_raw(pid)).ok()?.as_raw_nonzero().get();
            Some(LiveProcess { pid, session, started: words.collect::<Vec<_>>().join(" ") })
        })
        .collect()
}

/// Whether a process was started with this `NAME=value` in its environment; `false` on systems that hide environments.
#[cfg(not(target_os = "linux"))]
pub fn has_environment_entry(_pid: i32, _entry: &str) -> bool {
    false
}
