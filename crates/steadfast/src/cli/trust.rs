//! The command line of `trust`.

use clap::Args;

#[derive(Debug, Args)]
#[command(
    after_help = "Runs refuse what a repository brings until you trust it: loop types and pipelines with their prompts
and the scripts they name, and the settings, hooks, MCP servers, agents, commands and skills that an
agent loads from the project by itself. A change of one of these files needs a new yes.
Examples:
  steadfast trust                List it all, then ask
  steadfast trust fix-lints      Only one loop type or pipeline
  steadfast trust --list         List what is trusted, changed and new
  steadfast trust --revoke       Forget the yes"
)]
pub(crate) struct TrustArgs {
    /// Loop type or pipeline [default: everything of this project]
    pub(crate) name: Option<String>,
    /// Trust without being asked
    #[arg(long)]
    pub(crate) yes: bool,
    /// List what is trusted, changed and new
    #[arg(long, conflicts_with = "yes")]
    pub(crate) list: bool,
    /// Trust no longer
    #[arg(long, conflicts_with_all = ["yes", "list"])]
    pub(crate) revoke: bool,
}
