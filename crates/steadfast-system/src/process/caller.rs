//! Whether a client itself started this process and gave it its input. An agent can start a hook or a tool server in its
//! shell, with any parent and any text on stdin, so a parent alone proves nothing. What an agent cannot make:
//!
//! - a socket whose other end was opened by the client (Claude Code's hooks and servers), or
//! - a pipe that the client opened just before the pipe of this process's stdout (Codex's hooks). Such a pipe has a lower
//!   number in the same block of numbers, because the system counts pipes up per CPU, or
//! - a pipe that the client still writes to (every tool server).

use std::os::fd::AsFd;

use super::ancestry::{self, Ancestor};
use super::{ProcessId, exists};

/// The system numbers pipes in blocks of this size, one block per CPU at a time.
const BLOCK: u64 = 1024;

/// What this process needs from its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// An event that is only recorded. Nothing depends on it, so a hook that the system moved to another CPU while its
    /// pipes were opened is believed too.
    Event,
    /// An event that grants something. Costs a look at the client's files where its input comes by a pipe.
    Grant,
    /// A connection that stays open.
    Connection,
}

/// The process that started this one, and what it gave as input, as far as the system shows it.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The parent; above it, if the parent is a shell that runs only this command.
    client: Option<ProcessId>,
    stdin: Stdin,
    stdout_pipe: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stdin {
    /// Connected to a socket that this process opened.
    Socket(i64),
    /// A pipe without a name, by its number.
    Pipe(u64),
    /// A file, a terminal, a named pipe, nothing.
    Other,
}

/// What decides about a pipe.
#[derive(Debug, Clone, Copy, Default)]
struct PipeFacts {
    stdin: u64,
    stdout: Option<u64>,
    /// The client can write to stdin's pipe, or read from stdout's.
    client_writes_stdin: bool,
    client_reads_stdout: bool,
    /// Another child of the client reads the same pipe: this one has taken it away.
    is_of_another: bool,
    has_children: bool,
}

impl Caller {
    /// Looks at this process; `None` on systems that do not show it.
    pub fn look() -> Option<Self> {
        if !cfg!(target_os = "linux") {
            return None;
        }
        let stdout_pipe = pipe_number(&std::io::stdout());
        Some(Self { client: direct_client(), stdin: stdin(), stdout_pipe })
    }

    /// The client that started this process, proven or not; `None` for a process of our own, such as the demo.
    pub fn foreign_client(&self) -> Option<Ancestor> {
        let client = self.client.and_then(|client| Ancestor::of(client.pid));
        client.filter(|client| !client.is_own_program())
    }

    /// The client that started this process and gives it its input; otherwise what speaks against it.
    pub fn proven_client(&self, need: Need) -> Result<ProcessId, &'static str> {
        let client = self.client.ok_or("its parent is no client")?;
        let is_given = match self.stdin {
            Stdin::Socket(peer) => peer == client.pid,
            Stdin::Pipe(number) => is_given_by_pipe(need, &self.pipe_facts(need, number, client)),
            Stdin::Other => false,
        };
        if is_given { Ok(client) } else { Err("its input does not come from the client") }
    }

    /// Whether this client may be recorded for a session: no agent runs above it.
    pub fn is_users_client(client: ProcessId) -> bool {
        !ancestry::is_client_inside_agent(client)
    }

    /// Whether a client may act for the session of another one that still runs: the user opened it twice.
    pub fn is_beside(client: ProcessId, other: ProcessId) -> bool {
        ancestry::is_beside(client, other)
    }

    fn pipe_facts(&self, need: Need, stdin: u64, client: ProcessId) -> PipeFacts {
        let mut facts =
            PipeFacts { stdin, stdout: self.stdout_pipe, has_children: has_children(), ..PipeFacts::default() };
        if need != Need::Event {
            for (pipe, writes) in pipes_of(client.pid) {
                facts.client_writes_stdin |= writes && pipe == stdin;
                facts.client_reads_stdout |= !writes && Some(pipe) == self.stdout_pipe;
            }
            facts.is_of_another = is_stdin_of_another_child(client.pid, stdin);
        }
        facts
    }
}

fn is_given_by_pipe(need: Need, facts: &PipeFacts) -> bool {
    let opened_together =
        facts.stdout.is_some_and(|stdout| is_opened_before(facts.stdin, stdout)) && !facts.has_children;
    match need {
        Need::Event => !facts.has_children,
        Need::Grant => {
            !facts.is_of_another && (facts.client_writes_stdin || opened_together && facts.client_reads_stdout)
        }
        Need::Connection => !facts.is_of_another && facts.client_writes_stdin,
    }
}

/// Whether a pipe was opened before another one on the same CPU, or at the change of blocks.
fn is_opened_before(first: u64, second: u64) -> bool {
    let block = |number: u64| number.saturating_sub(1) / BLOCK;
    let at_change = first.is_multiple_of(BLOCK) && second % BLOCK == 1;
    at_change || (first < second && block(first) == block(second))
}

fn direct_client() -> Option<ProcessId> {
    let parent = ancestry::ancestors().next()?;
    if !parent.is_shell() {
        return Some(parent.id);
    }
    let client = parent.parent().filter(|client| !client.is_shell())?;
    runs_only_this(&parent).then_some(client.id)
}

/// Whether a shell runs `… hook HOST` or `… mcp` and nothing else.
fn runs_only_this(shell: &Ancestor) -> bool {
    let line = fs_err::read(format!("/proc/{}/cmdline", shell.id.pid)).unwrap_or_default();
    let last = line.split(|byte| *byte == 0).rfind(|word| !word.is_empty()).unwrap_or_default();
    let last = String::from_utf8_lossy(last);
    let words: Vec<&str> = last.split_whitespace().collect();
    matches!(words.as_slice(), [.., "hook", _] | [.., "hook", _, "--rewake"] | [.., "mcp"])
        && !last.contains(['|', '<', ';', '&', '$', '`', '\n'])
}

fn stdin() -> Stdin {
    let stdin = std::io::stdin();
    #[cfg(target_os = "linux")]
    if let Ok(peer) = rustix::net::sockopt::socket_peercred(stdin.as_fd()) {
        return Stdin::Socket(i64::from(peer.pid.as_raw_nonzero().get()));
    }
    pipe_number(&stdin).map_or(Stdin::Other, Stdin::Pipe)
}

/// The number of the pipe without a name behind a file descriptor. Named pipes are on a disk.
fn pipe_number(file: &impl AsFd) -> Option<u64> {
    let number = std::os::fd::AsRawFd::as_raw_fd(&file.as_fd());
    pipe_of(&format!("/proc/self/fd/{number}"))
}

fn pipe_of(link: &str) -> Option<u64> {
    let target = fs_err::read_link(link).ok()?;
    target.to_str()?.strip_prefix("pipe:[")?.strip_suffix(']')?.parse().ok()
}

/// The pipes that a process holds, and whether it can write to them.
fn pipes_of(pid: i64) -> Vec<(u64, bool)> {
    let Ok(entries) = fs_err::read_dir(format!("/proc/{pid}/fd")) else { return Vec::new() };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    numbers
        .filter_map(|number| {
            let pipe = pipe_of(&format!("/proc/{pid}/fd/{number}"))?;
            let info = fs_err::read_to_string(format!("/proc/{pid}/fdinfo/{number}")).ok()?;
            let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
            Some((pipe, u64::from_str_radix(flags.trim(), 8).ok()? & 1 == 1))
        })
        .collect()
}

fn children_of(pid: i64) -> Vec<i64> {
    let Ok(tasks) = fs_err::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let lists = tasks.flatten().filter_map(|task| fs_err::read_to_string(task.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()).collect()
}

fn has_children() -> bool {
    !children_of(ProcessId::own().pid).is_empty()
}

fn is_stdin_of_another_child(client: i64, pipe: u64) -> bool {
    let own = ProcessId::own().pid;
    let others = children_of(client).into_iter().filter(|child| *child != own && exists(*child));
    // A shell around this process has the same stdin.
    let shell = ancestry::ancestors().next().map_or(0, |parent| parent.id.pid);
    others.filter(|child| *child != shell).any(|child| pipe_of(&format!("/proc/{child}/fd/0")) == Some(pipe))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOOK: PipeFacts = PipeFacts {
        stdin: 2_050,
        stdout: Some(2_051),
        client_writes_stdin: false,
        client_reads_stdout: true,
        is_of_another: false,
        has_children: false,
    };
    const SERVER: PipeFacts = PipeFacts { client_writes_stdin: true, ..HOOK };

    #[test]
    fn what_a_pipe_proves() {
        let table: [(&str, PipeFacts, [bool; 3]); 9] = [
            ("a hook whose input was written and closed", HOOK, [true, true, false]),
            ("a hook while the client still writes", SERVER, [true, true, true]),
            ("a pipe that the agent's shell made", PipeFacts { stdin: 2_060, ..HOOK }, [true, false, false]),
            ("with a child that wrote it", PipeFacts { has_children: true, ..HOOK }, [false, false, false]),
            ("both pipes made by the agent", PipeFacts { client_reads_stdout: false, ..HOOK }, [true, false, false]),
            ("stdout is a file", PipeFacts { stdout: None, ..HOOK }, [true, false, false]),
            ("the pipe of another server", PipeFacts { is_of_another: true, ..SERVER }, [true, false, false]),
            ("at the change of blocks", PipeFacts { stdin: 2_048, stdout: Some(9_217), ..HOOK }, [true, true, false]),
            ("from another CPU's block", PipeFacts { stdin: 2_047, stdout: Some(2_049), ..HOOK }, [true, false, false]),
        ];
        for (what, facts, expected) in table {
            let given = [Need::Event, Need::Grant, Need::Connection].map(|need| is_given_by_pipe(need, &facts));
            assert_eq!(given, expected, "{what}");
        }
    }

    #[test]
    fn a_caller_needs_a_client_and_its_input() {
        let client = ProcessId { pid: 7, started: 1 };
        let caller = |client, stdin| Caller { client, stdin, stdout_pipe: None };
        let proven = |caller: Caller| caller.proven_client(Need::Event).ok();
        assert_eq!(proven(caller(Some(client), Stdin::Socket(7))), Some(client));
        assert_eq!(proven(caller(Some(client), Stdin::Socket(8))), None);
        assert_eq!(proven(caller(None, Stdin::Socket(7))), None);
        assert_eq!(proven(caller(Some(client), Stdin::Other)), None);
    }
}
