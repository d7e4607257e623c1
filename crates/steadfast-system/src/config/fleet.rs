//! `[fleet]`: how this machine takes part in a fleet. Temporal's own variables and profiles say where the server is;
//! `address` and `namespace` are for users who have none of them.

use std::path::PathBuf;

use serde::Deserialize;

#[derive(Debug, Clone, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub struct FleetConfig {
    /// `host:port` of the Temporal server, unless `TEMPORAL_ADDRESS` or a profile names one.
    pub address: Option<String>,
    pub namespace: Option<String>,
    /// The file with the keys that encrypt what the server stores.
    pub key_file: Option<PathBuf>,
    /// A command that prints that file.
    pub key_command: Option<String>,
    /// The repository of runs that are started here [default: the remote `origin`].
    pub repo: Option<String>,
    /// The repositories that a worker on this machine takes.
    pub repos: Vec<String>,
    /// The agents that a worker on this machine runs.
    pub agents: Vec<String>,
    pub labels: Vec<String>,
    /// How many agents a worker runs at once.
    pub slots: Option<u32>,
    /// Seconds without a sign of life after which a worker's agent counts as lost, for runs that are started here.
    pub heartbeat_seconds: Option<u32>,
    /// Steps of a run after which its history on the server is cut.
    pub cut_after: Option<u32>,
    /// Days without use until a worker deletes its copy of a repository; 0: never.
    pub mirrors_days: Option<u32>,
}

impl FleetConfig {
    /// Whether the file says anything about a fleet.
    pub fn is_set(&self) -> bool {
        *self != Self::default()
    }
}
