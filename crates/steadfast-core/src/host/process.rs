//! The processes above this one: which client started a hook, whether a session's client is alive, and whether an agent
//! or a person started a command.

use super::Host;
use crate::env_vars;

/// A process. The start time distinguishes it from a later one with the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessId {
    pub pid: i64,
    pub started: i64,
}

/// The name and parent of a process. On systems without `/proc` nothing is known.
struct Stat {
    name: String,
    parent: i64,
    is_zombie: bool,
    started: i64,
}

fn stat(pid: i64) -> Option<Stat> {
    let text = fs_err::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may itself contain some.
    let (before, after) = text.rsplit_once(") ")?;
    let name = before.split_once(" (")?.1.to_owned();
    let fields: Vec<&str> = after.split(' ').collect();
    Some(Stat {
        name,
        is_zombie: *fields.first()? == "Z",
        parent: fields.get(1)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
    })
}

impl ProcessId {
    /// Whether this process still runs; `None` if the system does not show it.
    pub fn is_alive(self) -> Option<bool> {
        if !cfg!(target_os = "linux") {
            return None;
        }
        Some(stat(self.pid).is_some_and(|stat| !stat.is_zombie && stat.started == self.started))
    }
}

const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "fish", "ksh", "ash", "busybox"];

/// The word by which this program is called to keep one attempt of a run.
const KEEPER: &[u8] = b"__exec";

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
/// forged event into it: between us and the client stands at most one shell, and that runs the hook and nothing
/// else. If the system does not show it, the answer is yes.
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

/// Whether this command was started by an agent's shell: its environment says so, or one of its ancestors is
/// an agent, or keeps the agent of a run. A person in a terminal of their own has neither.
pub fn is_inside_agent() -> bool {
    let mut markers = Host::ALL.iter().flat_map(|host| host.capabilities().shell_markers).chain([&env_vars::ATTEMPT]);
    if markers.any(|name| env_vars::text(name).is_some()) {
        return true;
    }
    ancestors().any(|(pid, stat)| stat.name.parse::<Host>().is_ok() || is_keeper(pid))
}

/// Whether a process is `steadfast __exec DIR`: an agent of a run may be any command, and is known by who keeps it.
fn is_keeper(pid: i64) -> bool {
    let line = fs_err::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).nth(1) == Some(KEEPER)
}

/// The processes above this one, the nearest first, with their numbers.
fn ancestors() -> impl Iterator<Item = (i64, Stat)> {
    let parent = rustix::process::getppid().map_or(0, |parent| i64::from(parent.as_raw_nonzero().get()));
    let first = stat(parent).map(|found| (parent, found));
    std::iter::successors(first, |(_, child)| stat(child.parent).map(|found| (child.parent, found))).take(32)
}

/// Whether a run's agent started this: hooks and tools are then the run's to leave alone, since it drives that agent,
/// counts its tokens and knows its end.
pub fn is_inside_run() -> bool {
    env_vars::text(env_vars::ATTEMPT).is_some()
}

/// The nearest ancestor that is an agent.
fn nearest_agent() -> Option<Host> {
    ancestors().find_map(|(_, stat)| stat.name.parse().ok())
}

/// The session whose agent's shell we run in, according to the environment. An agent that runs another one leaves its
/// own variables there too; then the nearest ancestor decides.
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
