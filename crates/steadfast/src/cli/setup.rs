//! The command line of `setup` and `db`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::setup_names;

#[derive(Debug, Default, Args)]
#[command(after_help = "Examples:
  steadfast setup                Set up the clients that are on this machine
  steadfast setup --dry-run      Show what that would change
  steadfast setup claude --yes
  steadfast setup codex
  steadfast setup watch --yes    Start `steadfast watch` at login
  steadfast setup --uninstall")]
pub(crate) struct SetupArgs {
    /// Client to set up, or `watch` to start `steadfast watch` at login [default: the clients found on this machine; with
    /// --uninstall, everything]
    #[arg(value_name = "WHAT", value_parser = setup_names())]
    pub(crate) what: Option<String>,
    /// Remove everything and restore your files as they were
    #[arg(long)]
    pub(crate) uninstall: bool,
    /// Show the changes without making them
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask: accept the status line and block cap changes, or enable the service
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Show the goal in the status line
    #[arg(long, overrides_with = "no_statusline")]
    pub(crate) statusline: bool,
    /// Do not change the status line
    #[arg(long)]
    pub(crate) no_statusline: bool,
    /// Let Claude Code accept N Stop blocks in a row without a tool call (its default is 8; 0 removes the cap)
    #[arg(long, value_name = "N", overrides_with = "no_block_cap")]
    pub(crate) block_cap: Option<u32>,
    /// Do not change the block cap
    #[arg(long)]
    pub(crate) no_block_cap: bool,
    /// Skip Claude Code's dialog about a used-up plan, so that goals wake at the reset without you
    #[arg(long, overrides_with = "keep_limit_dialog")]
    pub(crate) skip_limit_dialog: bool,
    /// Keep that dialog
    #[arg(long)]
    pub(crate) keep_limit_dialog: bool,
    /// The choices of the last setup hold, and nothing is asked (`doctor --fix`)
    #[arg(skip)]
    pub(crate) keeps_choices: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DbVerb {
    /// Print the path of the store
    Path,
    /// Copy the store, even while it is in use, and check the copy
    Backup {
        /// Path of the copy [default: in the directory `backups` beside the store, with the date]
        target: Option<PathBuf>,
    },
    /// List the backups of the store
    #[command(alias = "list")]
    Backups,
    /// Rebuild a damaged store from its newest backup and what can still be read
    #[command(after_help = "The damaged file is kept beside the store, as `goals.db.corrupt-DATE`.")]
    Recover {
        /// Use this backup instead of the newest one that passes the check
        #[arg(long, value_name = "BACKUP")]
        from: Option<PathBuf>,
        /// Show what would be recovered without changing anything
        #[arg(long)]
        dry_run: bool,
        /// Begin with an empty store in the place of one that is damaged or missing
        #[arg(long, conflicts_with = "from")]
        empty: bool,
    },
    /// Check the store for corruption
    Check,
    /// Give free space of the store back; the file of an earlier version is rewritten once
    #[command(after_help = "A rewrite is one long step: it is refused while a client session, goal or run is live.")]
    Compact {
        /// Rewrite such a file even while a session, goal or run is live; everything else waits for it
        #[arg(long)]
        force: bool,
    },
    /// Import goals from another store, such as the claude-goal plugin's (read-only)
    Import {
        /// Path of the other goals.db
        path: PathBuf,
    },
}
