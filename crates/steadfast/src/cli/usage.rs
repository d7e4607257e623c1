//! Flags of `steadfast usage`.

use std::path::PathBuf;

use clap::Args;

use super::host_names;

#[derive(Debug, Args)]
#[command(
    after_help = "Views: daily (default), weekly (from Monday), monthly, session, blocks (5-hour windows), models, \
projects, agents (by kind of subagent), tools (by skill or MCP server, where the transcript says so), \
runs (one row per iteration of a loop or pipeline, including agents without transcripts)
Examples:
  steadfast usage
  steadfast usage weekly --last 4 --breakdown
  steadfast usage models --since 30d
  steadfast usage daily --since 2026-11-01 --until 2026-11-07 --timezone UTC
  steadfast usage blocks --active
  steadfast usage weekly --chart
  steadfast usage session --project . --json
  steadfast usage session --id 6dd8620c --breakdown
  steadfast usage runs --since today
  steadfast usage --check                      Exit code 5 if a cap of [limits] is reached"
)]
pub(crate) struct UsageArgs {
    /// How to group rows
    #[arg(
        value_parser = [
            "daily", "weekly", "monthly", "session", "blocks", "models", "projects", "agents", "tools", "runs",
        ],
        hide_possible_values = true
    )]
    pub(crate) view: Option<String>,
    /// Start on this day: 2026-11-01, today, yesterday, or 7d
    #[arg(short = 's', long, value_name = "D", allow_hyphen_values = true)]
    pub(crate) since: Option<String>,
    /// End after this day
    #[arg(short = 'u', long, value_name = "D", allow_hyphen_values = true)]
    pub(crate) until: Option<String>,
    /// Only the last rows: the newest, or the most expensive
    #[arg(long, value_name = "N")]
    pub(crate) last: Option<usize>,
    /// Only this project: a directory with everything below it, or a name
    #[arg(long, value_name = "P")]
    pub(crate) project: Option<String>,
    /// Only this session, by its id or the beginning of it (view session)
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,
    /// Split each row by model
    #[arg(short = 'b', long)]
    pub(crate) breakdown: bool,
    /// Time zone of days, weeks, months and the times of blocks: Europe/Berlin, UTC, +02:00 [default: the machine's]
    #[arg(short = 'z', long, value_name = "Z", allow_hyphen_values = true)]
    pub(crate) timezone: Option<String>,
    /// Oldest or cheapest row first (asc), or last (desc)
    #[arg(short = 'o', long, value_parser = ["asc", "desc"])]
    pub(crate) order: Option<String>,
    /// Only blocks that run now, with their burn rate and projection (view blocks)
    #[arg(long)]
    pub(crate) active: bool,
    /// Draw the rows as bars, as wide as the terminal; ignored with --json (not for the view runs)
    #[arg(long)]
    pub(crate) chart: bool,
    /// Compare the whole machine with the caps of `[limits]`; exit code 5 if one is reached
    #[arg(long, conflicts_with_all = [
        "view", "since", "until", "last", "project", "id", "breakdown", "timezone", "order", "active", "chart", "host",
    ])]
    pub(crate) check: bool,
    /// Only this client's sessions
    #[arg(long, value_parser = host_names())]
    pub(crate) host: Option<String>,
    /// Use this price table (TOML) instead of the built-in one
    #[arg(long, value_name = "FILE")]
    pub(crate) prices: Option<PathBuf>,
}
