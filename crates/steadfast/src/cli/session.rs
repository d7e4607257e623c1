//! The command line of `steadfast session`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use steadfast_app::overview::session::category_names;

#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  steadfast session list
  steadfast session show 6dd8620c
  steadfast session search \"parser tabs\" --project .
  steadfast session export --all --output memory.jsonl
  steadfast session purge --older-than 90 --dry-run")]
pub(crate) enum SessionVerb {
    /// List sessions of this project and its worktrees, last active first
    #[command(after_help = "Example: steadfast session list --all --limit 10")]
    List {
        /// Include sessions of all projects
        #[arg(long)]
        all: bool,
        /// Maximum number of sessions
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: usize,
    },
    /// Show a session: goal, tasks and the number of remembered events
    #[command(after_help = "Example: steadfast session show 6dd8620c --json")]
    Show(WhichSession),
    /// List the events of a session, oldest first
    #[command(after_help = "Examples:
  steadfast session events 6dd8620c --category error
  steadfast session events 6dd8620c --after 0 --limit 100    Print the first page")]
    Events(EventsArgs),
    /// Print the text that a model gets after a compaction or resume
    #[command(after_help = "Example: steadfast session snapshot 6dd8620c --host codex")]
    Snapshot {
        #[command(flatten)]
        session: WhichSession,
        /// Format for this agent [default: the session's own]
        #[arg(long, value_parser = super::host_names())]
        host: Option<String>,
        /// Event after which the text is injected [default: resume, or compaction if an agent's own goal needs it]
        #[arg(long, value_name = "EVENT", value_parser = ["compaction", "resume"])]
        after: Option<String>,
    },
    /// Search remembered events
    #[command(
        after_help = "All words must match; the last word may be a prefix. If nothing matches, parts of words match too.
Examples:
  steadfast session search \"why tabs\"
  steadfast session search lexer.rs --session 6dd8620c --category error"
    )]
    Search(SearchArgs),
    /// Write session memory as JSON Lines, for another machine
    #[command(after_help = "Goals, budgets and session files of the clients are not part of it.
Examples:
  steadfast session export 6dd8620c > session.jsonl
  steadfast session export --all --output memory.jsonl
  steadfast session export --all | ssh desk steadfast session import -")]
    Export(ExportArgs),
    /// Add exported session memory to what is here
    #[command(
        after_help = "What is newer here stays as it is; a second import adds nothing. The file is checked to its end first.
Examples:
  steadfast session import memory.jsonl
  ssh desk steadfast session export --all | steadfast session import -"
    )]
    Import {
        /// File that `session export` wrote, or - for stdin
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Delete session memory; goals and their accounting stay
    #[command(after_help = "Examples:
  steadfast session purge 6dd8620c
  steadfast session purge --older-than 90 --dry-run")]
    Purge(PurgeArgs),
}

#[derive(Debug, Args)]
pub(crate) struct WhichSession {
    /// Session id or a unique prefix [default: the agent's own session, or the only live one in this directory]
    #[arg(value_name = "ID")]
    pub(crate) id: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) session: WhichSession,
    /// Export all sessions of all projects
    #[arg(long, conflicts_with = "id")]
    pub(crate) all: bool,
    /// Write this file, which only its owner can read [default: stdout]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    #[command(flatten)]
    pub(crate) session: WhichSession,
    /// Only this category
    #[arg(long, value_name = "CATEGORY", value_parser = categories())]
    pub(crate) category: Option<String>,
    /// Maximum number of events: the newest, or with --after the first ones after ID
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: usize,
    /// Only events after the event with this id
    #[arg(long, value_name = "ID")]
    pub(crate) after: Option<i64>,
}

#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    /// Words to search for
    #[arg(required = true, value_name = "WORDS")]
    pub(crate) words: Vec<String>,
    /// Only this session and its fork ancestors
    #[arg(long, value_name = "ID", conflicts_with = "project")]
    pub(crate) session: Option<String>,
    /// Only this project: one of its directories, or its name
    #[arg(long, value_name = "P")]
    pub(crate) project: Option<String>,
    /// Only this category
    #[arg(long, value_name = "CATEGORY", value_parser = categories())]
    pub(crate) category: Option<String>,
    /// Maximum number of results
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,
}

#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("what").required(true).args(["id", "older_than", "all"])))]
pub(crate) struct PurgeArgs {
    /// Session id or a unique prefix
    #[arg(value_name = "ID")]
    pub(crate) id: Option<String>,
    /// Delete sessions idle for this many days, except running ones and those with a live goal
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) older_than: Option<u32>,
    /// Delete all sessions, whatever their state
    #[arg(long)]
    pub(crate) all: bool,
    /// Show what would be deleted without deleting it
    #[arg(long)]
    pub(crate) dry_run: bool,
}

fn categories() -> PossibleValuesParser {
    PossibleValuesParser::new(category_names())
}
