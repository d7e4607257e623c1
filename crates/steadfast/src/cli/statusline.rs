//! Flags of `steadfast statusline`.

use clap::Args;
use steadfast_system::config::Segment;

#[derive(Debug, Default, Args)]
#[command(
    after_help = "Segments: goal (status, tokens, turns, time), bar (the limit that comes first), plan (quota of both windows), \
context (of the model), today (money of the day and its cap). `[statusline] segments` in config.toml sets the default.
Examples:
  steadfast statusline --segments goal,bar,plan
  steadfast statusline --segments bar,today --segment
  steadfast statusline --wrap ~/.claude/my-line.sh     Your own line first, then the segments"
)]
pub(crate) struct StatuslineArgs {
    /// Print a segment for another status line, without a line break
    #[arg(long)]
    pub(crate) segment: bool,
    /// Parts to print, in this order [default: the goal]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = Segment::parse)]
    pub(crate) segments: Vec<Segment>,
    /// Run your own status line with the same input, and print it first
    #[arg(long, value_name = "COMMAND", conflicts_with = "segment")]
    pub(crate) wrap: Option<String>,
}
