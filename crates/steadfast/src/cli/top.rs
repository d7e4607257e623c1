//! Flags of `steadfast top`.

use clap::Args;

#[derive(Debug, Args)]
#[command(
    after_help = "Keys: j k move, enter open, / search, p pause or resume, e extend, v verify, a approve or sign off,
r reject, s say, x kill or abandon, g n now, g r runs, g u usage, ? help, q quit
Examples:
  steadfast top
  steadfast top --once | less
  steadfast top --json | jq '.needs[].title'"
)]
pub(crate) struct TopArgs {
    /// Print the first page once and exit
    #[arg(long)]
    pub(crate) once: bool,
}
