//! The command line of `goal history` and `goal cleanup`.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    /// Include the goals of all sessions
    #[arg(long)]
    pub(crate) all: bool,
    /// Print events too
    #[arg(long)]
    pub(crate) events: bool,
    /// Maximum number of goals; 0 lists all, with all their events in JSON
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) limit: usize,
    /// Output format
    #[arg(long, value_name = "FORMAT", value_parser = ["text", "json"])]
    pub(crate) format: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct CleanupArgs {
    /// List orphaned goals (the default)
    #[arg(long)]
    pub(crate) list: bool,
    /// Delete orphaned goals
    #[arg(long, conflicts_with = "list")]
    pub(crate) delete: bool,
    /// Only goals unchanged for this many hours [default with --delete: 24]
    #[arg(long, value_name = "H")]
    pub(crate) older_than: Option<u32>,
    /// Maximum number of goals to list, oldest first; 0 lists all
    #[arg(long, value_name = "N", default_value_t = 25, conflicts_with = "delete")]
    pub(crate) limit: usize,
}
