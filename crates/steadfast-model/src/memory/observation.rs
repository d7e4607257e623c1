//! What a hook saw, in words that fit every host: prompts, commands, files, tasks, answers, subagents. Hosts make these
//! from their own JSON ([`steadfast_hosts`]); [`super::extract`] makes findings of them. The text in here is as it came:
//! neither cleaned nor redacted yet.

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
    /// Files were looked for by name or by content; `place` may be empty.
    Search {
        pattern: String,
        place: String,
    },
    /// The client is about to do this to a task, or says what it did without being certain.
    TaskAnnounced {
        id: String,
        subject: Option<String>,
        status: TaskStatus,
    },
    /// A task of the client's list appeared or changed. `status` is told when that is what changed.
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
    /// The user judged a plan; `said` is what they had to say about it.
    Plan {
        approved: bool,
        plan: String,
        said: String,
    },
    /// A file with instructions for the agent came into its context.
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
    /// What a subagent was sent to do; `id` may be empty.
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
    /// Something was tried in vain; see [`attempt`].
    Failed {
        attempt: String,
        output: String,
    },
    /// The same worked.
    Worked {
        attempt: String,
    },
}

/// A command in a shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shell {
    pub command: String,
    /// What it printed; of much, the end.
    pub output: String,
    pub outcome: Outcome,
    pub place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Worked,
    Failed,
    /// The host does not tell how the command ended.
    Unknown,
    /// The user stopped it, or it runs on in the background.
    Unfinished,
}

/// The directory that a host tells with a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Where the command began.
    Before(String),
    /// Where the shell is now: a `cd` in the command is in it already.
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

/// A stable name for something that can fail and work later: `edit: src/a.rs`, `shell: cargo test`.
pub fn attempt(what: &str, about: &str) -> String {
    format!("{what}: {about}")
}
