//! The command line of `watch`.

use clap::Args;

#[derive(Debug, Args)]
#[command(
    after_help = "It starts by itself when a goal, a detached run or an appointment needs it, and ends when nothing does.
After a reboot, the next session or command that needs it starts it; `steadfast setup watch --yes` starts it at login.
Examples:
  steadfast watch                Work in this terminal and print what it does
  steadfast watch --detach       Work in the background
  steadfast watch --once         Look once, for cron
  steadfast watch --stop         End the one that is running
Exit codes: 0 stopped or done, 3 already running (or, with --stop, not running), 130 interrupted"
)]
pub(crate) struct WatchArgs {
    /// Work in the background until nothing is left to wait for
    #[arg(long, group = "how")]
    pub(crate) detach: bool,
    /// Do what is due now and exit; does nothing if another one is running
    #[arg(long, group = "how")]
    pub(crate) once: bool,
    /// End the one that is running
    #[arg(long, group = "how")]
    pub(crate) stop: bool,
    /// Be the one in the background (`--detach` calls this)
    #[arg(long, group = "how", hide = true)]
    pub(crate) background: bool,
}
