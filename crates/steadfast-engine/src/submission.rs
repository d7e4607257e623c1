//! What `--fleet` hands to `steadfast-fleet submit`: a run that was planned, checked and trusted here, and how to start it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use steadfast_model::run::Plan;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Submission {
    pub run_id: String,
    pub plan: Plan,
    /// The root of the repository or a directory below it.
    pub project: PathBuf,
    /// Where workers fetch the code [default: the remote `origin`].
    #[serde(default)]
    pub repo: Option<String>,
    /// What a worker must offer.
    #[serde(default)]
    pub labels: Vec<String>,
    /// Start a run at each of these times instead of now.
    #[serde(default)]
    pub cron: Option<String>,
    #[serde(default)]
    pub detach: bool,
    #[serde(default)]
    pub json: bool,
    /// Start although the working tree has changes that are not committed.
    #[serde(default)]
    pub allow_dirty: bool,
    /// The text of the input files, if a prompt shows it.
    #[serde(default)]
    pub inputs: Option<String>,
    /// The objective of `steadfast run`.
    #[serde(default)]
    pub objective: Option<String>,
    /// The definition as the user wrote it.
    #[serde(default)]
    pub definition: Option<String>,
}
