//! Why the work of a worker failed, and whether trying again helps.

#[derive(Debug, thiserror::Error)]
pub enum WorkError {
    /// The owner of this worker did not name the repository or the agent: another worker may take it.
    #[error("this worker is not allowed to {0}")]
    NotAllowed(String),
    #[error("the plan has secrets in its texts, which must not leave this machine: {0}")]
    Secrets(String),
    #[error("the working tree has uncommitted changes: {0}")]
    Dirty(String),
    #[error("{0} is not the address of a repository")]
    Address(String),
    #[error("a run with the name {0} is already in the repository")]
    Exists(String),
    #[error("there is no run {0} in the repository")]
    NoRun(String),
    /// Another worker has not pushed it yet, or a push lost a race: try again.
    #[error("the run directory of {name} is at {found}, not yet at {wanted}")]
    Behind { name: String, found: u64, wanted: u64 },
    #[error("git {what} failed: {message}")]
    Git { what: String, message: String },
    #[error("{0} cannot be read: {1}")]
    Damaged(String, String),
    #[error("stopped")]
    Stopped,
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl WorkError {
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotAllowed(_) => "start a worker with `--repo URL` and `--agents NAMES` that allow it",
            Self::Secrets(_) => "name the secret with `env:` in the definition, and set it where the workers run",
            Self::Dirty(_) => "commit the changes, or start it with `--allow-dirty` and without them",
            Self::Address(_) => "use an address that `git fetch` knows, such as ssh://HOST/PATH or https://HOST/PATH",
            Self::Exists(_) => {
                "choose another name, or continue that run with `steadfast fleet resume`; a run that is over makes way"
            }
            Self::NoRun(_) => "list the runs with `steadfast fleet list`",
            Self::Behind { .. } | Self::Stopped => "it is tried again",
            Self::Git { .. } => "check with `git ls-remote` and `git push --dry-run` on this machine",
            Self::Damaged(..) => "look at the branch `steadfast-runs/NAME` of the repository",
            Self::Io(_) => "check the permissions and the room below `$STEADFAST_HOME/fleet`",
        }
    }

    /// Whether another worker should have the task, and this one should not report it as failed.
    pub fn is_busy(&self) -> bool {
        matches!(self, Self::NotAllowed(_))
    }

    /// Whether trying again later may help.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::NotAllowed(_) | Self::Behind { .. } | Self::Git { .. } | Self::Io(_) | Self::Stopped)
    }
}
