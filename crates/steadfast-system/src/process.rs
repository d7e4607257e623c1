//! Processes: which exist, which one is which, and which ones run above this one. Used to find the client that started
//! a hook, to see whether a session or an engine is alive, and to notice that an agent typed a command, not a person.

use serde::{Deserialize, Serialize};

use crate::env_vars;
use steadfast_model::host::Host;

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
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux lists processes from `/proc`"))]
    session: i32,
    has_ended: bool,
    started: i64,
}

/// Reads `/proc/PID/stat`; `None` on systems without `/proc`.
fn stat(pid: i64) -> Option<Stat> {
    let text = fs_err::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may itself contain some.
    let (before, after) = text.rsplit_once(") ")?;
    let name = before.split_once(" (")?.1.to_owned();
    let fields: Vec<&str> = after.split(' ').collect();
    Some(Stat {
        name,
        has_ended: matches!(*fields.first()?, "Z" | "X"),
        parent: fields.get(1)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
    })
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

const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "fish", "ksh", "ash", "busybox"];

/// The hidden command that supervises one attempt of a run.
const SUPERVISOR: &[u8] = b"__exec";

/// The client that started this hook: the nearest ancestor that is not a shell.
pub fn client_of_hook() -> Option<ProcessId> {
    let mut pid = i64::from(rustix::process::getppid()?.as_raw_nonzero().get());
    for _ in 0..4 {
        let stat = stat(pid)?;
        if !SHELLS.contains(&stat.name.as_str()) {
            return Some(ProcessId { pid, started: stat.started });
        }
        pid = stat.parent;
    }
    None
}

/// Whether a hook inside an agent was started by its client and not by the agent's own shell, which could pipe a
/// forged event into it: at most one shell is between this process and the client, and it runs only the hook. Returns
/// `true` where the system does not show this.
pub fn is_started_by_client() -> bool {
    if !cfg!(target_os = "linux") {
        return true;
    }
    let Some(parent) = rustix::process::getppid().map(|parent| i64::from(parent.as_raw_nonzero().get())) else {
        return true;
    };
    let Some(shell) = stat(parent).filter(|stat| SHELLS.contains(&stat.name.as_str())) else { return true };
    let runs_the_hook = fs_err::read(format!("/proc/{parent}/cmdline")).is_ok_and(|line| {
        let last = line.split(|byte| *byte == 0).rfind(|word| !word.is_empty()).unwrap_or_default();
        let last = String::from_utf8_lossy(last);
        let words: Vec<&str> = last.split_whitespace().collect();
        matches!(words.as_slice(), [.., "hook", _] | [.., "hook", _, "--rewake"])
            && !last.contains(['|', '<', ';', '&'])
    });
    let client_above = stat(shell.parent).is_some_and(|stat| !SHELLS.contains(&stat.name.as_str()));
    runs_the_hook && client_above
}

/// Whether an agent's shell started this command: its environment says so, or one of its ancestors is an agent or the
/// supervisor of one. A person's own terminal has neither.
pub fn is_inside_agent() -> bool {
    let mut markers = Host::ALL.iter().flat_map(|host| host.capabilities().shell_markers).chain([&env_vars::ATTEMPT]);
    if markers.any(|name| env_vars::text(name).is_some()) {
        return true;
    }
    ancestors().any(|(pid, stat)| stat.name.parse::<Host>().is_ok() || is_supervisor(pid))
}

/// Whether an agent made up the event of this hook.
pub fn is_forged_hook() -> bool {
    !is_started_by_client() && is_inside_agent()
}

/// Whether no person types the prompts of the client that started this: it runs in the shell of another agent, or a
/// process of ours started it.
pub fn is_client_automated() -> bool {
    let above: Vec<Stat> = ancestors().map(|(_, stat)| stat).skip_while(|stat| !is_agent(stat)).skip(1).collect();
    // A client may itself consist of two processes; between a client and an agent around it is a shell.
    let around = above.iter().skip_while(|stat| !SHELLS.contains(&stat.name.as_str()));
    above.iter().any(|stat| stat.name == "steadfast") || around.into_iter().any(is_agent)
}

fn is_agent(stat: &Stat) -> bool {
    stat.name.parse::<Host>().is_ok()
}

/// The processes above this one, the nearest first.
pub fn above() -> Vec<ProcessId> {
    ancestors().map(|(pid, stat)| ProcessId { pid, started: stat.started }).collect()
}

/// Whether a process is `steadfast __exec DIR`. The agent of a run may be any command, so its supervisor identifies it.
fn is_supervisor(pid: i64) -> bool {
    let line = fs_err::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).nth(1) == Some(SUPERVISOR)
}

/// The processes above this one, the nearest first, with their numbers.
fn ancestors() -> impl Iterator<Item = (i64, Stat)> {
    let parent = rustix::process::getppid().map_or(0, |parent| i64::from(parent.as_raw_nonzero().get()));
    let first = stat(parent).map(|found| (parent, found));
    std::iter::successors(first, |(_, child)| stat(child.parent).map(|found| (child.parent, found))).take(32)
}

/// Whether the agent of a run started this. Hooks and tools then do nothing: the run drives that agent and counts its
/// tokens.
pub fn is_inside_run() -> bool {
    env_vars::text(env_vars::ATTEMPT).is_some()
}

/// The nearest ancestor that is an agent.
fn nearest_agent() -> Option<Host> {
    ancestors().find_map(|(_, stat)| stat.name.parse().ok())
}

/// The session of the agent whose shell this runs in, from the environment. When one agent runs another, the variables
/// of both are set, and the nearest ancestor decides.
pub fn session_of_shell() -> Option<(Host, String)> {
    let session = |host: &Host| {
        let mut ids = host.capabilities().session_variables.iter().filter_map(|name| env_vars::text(name));
        Some((*host, ids.next()?))
    };
    let mut sessions: Vec<(Host, String)> = Host::ALL.iter().filter_map(session).collect();
    if sessions.len() > 1
        && let Some(nearest) = nearest_agent()
        && let Some(at) = sessions.iter().position(|(host, _)| *host == nearest)
    {
        return Some(sessions.swap_remove(at));
    }
    sessions.into_iter().next()
}
