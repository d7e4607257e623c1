//! The command line of the fleet: the flags that send a run there. `steadfast fleet` has a program of its own.

use clap::Args;

/// The flags that start a run on the fleet.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct FleetArgs {
    /// Run on the fleet: workers fetch the last commit and push their own; see docs/fleet.md
    #[arg(long)]
    pub(crate) fleet: bool,
    /// Repository that workers fetch from and push to [default: the remote `origin`]
    #[arg(long, value_name = "URL", requires = "fleet")]
    pub(crate) repo: Option<String>,
    /// Run only on workers with this label (repeatable)
    #[arg(long, value_name = "LABEL", requires = "fleet")]
    pub(crate) label: Vec<String>,
    /// Start a run on the fleet at these times, such as "0 3 * * *" (UTC)
    #[arg(long, value_name = "CRON", requires = "fleet")]
    pub(crate) cron: Option<String>,
    /// Start although changes are not committed; workers do not see them
    #[arg(long, requires = "fleet")]
    pub(crate) allow_dirty: bool,
}
