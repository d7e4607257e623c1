//! The processes above this one: the client that started a hook, the agent or the run in whose shell a command runs, and
//! whether a command has a terminal of its own.

use super::{ProcessId, Stat, stat};
use crate::env_vars;
use steadfast_model::host::Host;

const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "fish", "ksh", "ash", "busybox"];
/// Programs that take in the processes of others whose parent ended. To be below one of them says nothing. The system
/// cuts names after 15 characters.
const REAPERS: &[&str] = &[
    "systemd",
    "init",
    "tini",
    "dumb-init",
    "docker-init",
    "catatonit",
    "conmon",
    "containerd-shim",
    "runc",
    "crun",
    "s6-svscan",
    "runsvdir",
    "supervisord",
    "bwrap",
    "launchd",
];
/// The hidden command that supervises one attempt of a run.
const SUPERVISOR: &[u8] = b"__exec";
/// More processes than any real chain has.
const DEPTH: usize = 32;

/// A process above another one.
#[derive(Debug, Clone)]
pub struct Ancestor {
    pub id: ProcessId,
    name: String,
    parent: i64,
}

impl Ancestor {
    pub(super) fn of(pid: i64) -> Option<Self> {
        let Stat { name, parent, started, .. } = stat(pid)?;
        Some(Self { id: ProcessId { pid, started }, name, parent })
    }

    pub(super) fn parent(&self) -> Option<Self> {
        Self::of(self.parent)
    }

    pub(super) fn is_shell(&self) -> bool {
        SHELLS.contains(&self.name.as_str())
    }

    /// The host whose client this is, by its name.
    pub fn host(&self) -> Option<Host> {
        self.name.parse().ok()
    }

    /// Whether this is `steadfast __exec DIR`. The agent of a run may be any command, so its supervisor identifies it.
    fn is_supervisor(&self) -> bool {
        let line = fs_err::read(format!("/proc/{}/cmdline", self.id.pid)).unwrap_or_default();
        line.split(|byte| *byte == 0).nth(1) == Some(SUPERVISOR)
    }

    fn is_agent(&self) -> bool {
        self.host().is_some() || self.is_supervisor()
    }

    /// Whether this process runs the same program as this one. The demo and `doctor` are clients of their own, not agents.
    pub fn is_own_program(&self) -> bool {
        let program = |pid: &str| fs_err::read_link(format!("/proc/{pid}/exe")).ok();
        program(&self.id.pid.to_string()).is_some_and(|path| Some(path) == program("self")) && !self.is_supervisor()
    }

    fn is_reaper(&self) -> bool {
        self.id.pid == 1 || REAPERS.contains(&self.name.as_str())
    }
}

/// Whether a process runs the same program as this one, and not as the supervisor of an agent.
pub fn is_own_program(process: ProcessId) -> bool {
    Ancestor::of(process.pid).is_some_and(|found| found.id == process && found.is_own_program())
}

/// The processes above this one, the nearest first.
pub fn ancestors() -> impl Iterator<Item = Ancestor> {
    let parent = rustix::process::getppid().map_or(0, |parent| i64::from(parent.as_raw_nonzero().get()));
    chain(Ancestor::of(parent))
}

/// The processes above another one, the nearest first.
pub fn above(process: ProcessId) -> impl Iterator<Item = Ancestor> {
    chain(Ancestor::of(process.pid).and_then(|process| process.parent()))
}

fn chain(first: Option<Ancestor>) -> impl Iterator<Item = Ancestor> {
    std::iter::successors(first, Ancestor::parent).take(DEPTH)
}

/// The client that started this hook: the nearest ancestor that is not a shell.
pub fn client_of_hook() -> Option<ProcessId> {
    ancestors().take(4).find(|ancestor| !ancestor.is_shell()).map(|client| client.id)
}

/// Whether an agent's shell started this command: its environment says so, or one of its ancestors is an agent or the
/// supervisor of one. A person's own terminal has neither.
pub fn is_inside_agent() -> bool {
    let mut markers = Host::ALL.iter().flat_map(|host| host.capabilities().shell_markers).chain([&env_vars::ATTEMPT]);
    markers.any(|name| env_vars::text(name).is_some()) || ancestors().any(|ancestor| ancestor.is_agent())
}

/// Whether an agent runs above a client: then it is not the user's. A client that starts itself again is still the same.
pub(super) fn is_client_inside_agent(client: ProcessId) -> bool {
    let name = Ancestor::of(client.pid).map(|client| client.name);
    let others = above(client).skip_while(|above| name.as_ref() == Some(&above.name));
    others.into_iter().any(|above| above.is_agent())
}

/// Whether a process of ours started the client of this hook, so that no person types its prompts.
pub fn is_client_automated() -> bool {
    ancestors().any(|ancestor| ancestor.name == "steadfast")
}

/// Whether the agent of a run started this. Hooks and tools then do nothing: the run drives that agent and counts its
/// tokens. The variable alone proves nothing: a repository's settings can set it.
pub fn is_inside_run() -> bool {
    let is_marked = env_vars::text(env_vars::ATTEMPT).is_some();
    is_marked && (!cfg!(target_os = "linux") || ancestors().any(|ancestor| ancestor.is_supervisor()))
}

/// Whether this process has a controlling terminal, and the process that opened it still runs above it. A background
/// process may keep the terminal of an agent's shell that ended.
pub fn has_own_terminal() -> bool {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    has_terminal(i64::from(own))
}

fn has_terminal(pid: i64) -> bool {
    let Some(stat) = stat(pid).filter(|stat| stat.terminal != 0) else { return false };
    let leader = i64::from(stat.session);
    leader == pid || chain(Ancestor::of(stat.parent)).any(|ancestor| ancestor.id.pid == leader)
}

/// Whether a client has a terminal of its own, or comes from the same place as another one.
pub(super) fn is_beside(client: ProcessId, other: ProcessId) -> bool {
    has_terminal(client.pid) || have_common_ancestor(above(client), other)
}

/// Whether this process and another one come from the same terminal, script or service: a process above both, other than
/// those that take in everything.
pub fn shares_ancestor(other: ProcessId) -> bool {
    have_common_ancestor(ancestors(), other)
}

fn have_common_ancestor(mut own: impl Iterator<Item = Ancestor>, other: ProcessId) -> bool {
    let others: Vec<ProcessId> = above(other).map(|ancestor| ancestor.id).collect();
    own.any(|ancestor| !ancestor.is_reaper() && others.contains(&ancestor.id))
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
        && let Some(nearest) = ancestors().find_map(|ancestor| ancestor.host())
        && let Some(at) = sessions.iter().position(|(host, _)| *host == nearest)
    {
        return Some(sessions.swap_remove(at));
    }
    sessions.into_iter().next()
}
