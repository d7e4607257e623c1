//! What a hook observed, independent of the host: prompts, commands, files, tasks, answers, subagents. `steadfast-hosts`
//! creates these from each host's JSON; `steadfast-memory` turns them into findings. The text is neither cleaned nor
//! redacted yet.

use strum::IntoStaticStr;

use super::TaskStatus;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Observation {
    /// What the user typed, whole.
    Prompt(String),
    Shell(Shell),
    /// A file was read or changed. `to` is where it went.
    File {
        action: FileAction,
        path: String,
        to: Option<String>,
    },
    /// A search for files by name or by content; `path` may be empty.
    Search {
        pattern: String,
        path: String,
    },
    /// The client is about to change a task, or reports a change that may have failed.
    TaskAnnounced {
        id: String,
        subject: Option<String>,
        status: TaskStatus,
    },
    /// A task of the client's list appeared or changed. `status` is `None` if it did not change.
    TaskChanged {
        id: String,
        subject: Option<String>,
        status: Option<TaskStatus>,
    },
    /// The client replaced its whole list.
    TaskList(Vec<(String, TaskStatus)>),
    /// The user answered a question of the agent.
    Answer {
        question: String,
        answer: String,
    },
    /// The user accepted or declined a plan; `said` is their comment.
    Plan {
        approved: bool,
        plan: String,
        said: String,
    },
    /// The agent read a file with instructions.
    Instructions {
        path: String,
    },
    Skill {
        name: String,
    },
    SubagentStarted {
        id: String,
        kind: String,
    },
    /// The task of a subagent; `id` may be empty.
    SubagentTasked {
        id: String,
        kind: String,
        task: String,
    },
    SubagentFinished {
        id: String,
        kind: String,
        message: String,
    },
    /// Something failed; see [`attempt`].
    Failed {
        attempt: String,
        output: String,
    },
    /// The same thing worked.
    Worked {
        attempt: String,
    },
}

/// A command in a shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shell {
    pub command: String,
    /// What it printed, or the end of that.
    pub output: String,
    pub outcome: ShellOutcome,
    pub directory: ShellDirectory,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShellOutcome {
    Worked,
    Failed,
    /// The host does not report how the command ended.
    Unknown,
    /// The user stopped it, or it still runs in the background.
    Unfinished,
}

/// The directory that a host reports with a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShellDirectory {
    /// Before the command.
    Before(String),
    /// After the command, including its `cd`.
    After(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum FileAction {
    Read,
    Write,
    Edit,
    Delete,
    Move,
}

impl FileAction {
    pub fn word(self) -> &'static str {
        self.into()
    }
}

/// A stable name of something that can fail and later work: `edit: src/a.rs`, `shell: cargo test`.
pub fn attempt(what: &str, about: &str) -> String {
    format!("{what}: {about}")
}
