//! The types of `steadfast session`.

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use steadfast_core::overview::session::category_names;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  steadfast session list
  steadfast session show 6dd8620c
  steadfast session search \"parser tabs\" --project .
  steadfast session purge --older-than 90 --dry-run")]
pub(crate) struct SessionArgs {
    #[command(subcommand)]
    pub(crate) verb: SessionVerb,

    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionVerb {
    /// List sessions of this directory's project and its worktrees, the last active first
    #[command(after_help = "Example: steadfast session list --all --limit 10")]
    List {
        /// Sessions of all projects
        #[arg(long)]
        all: bool,
        /// At most this many
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: usize,
    },
    /// Show what is known about a session: goal, tasks, how much of what it did is remembered
    #[command(after_help = "Example: steadfast session show 6dd8620c --json")]
    Show(WhichSession),
    /// List what a session did, oldest first
    #[command(after_help = "Examples:
  steadfast session events 6dd8620c --category error
  steadfast session events 6dd8620c --after 0 --limit 100    from the beginning, page by page")]
    Events(EventsArgs),
    /// Print the text that a model gets when it lost its context
    #[command(after_help = "Example: steadfast session snapshot 6dd8620c --host codex")]
    Snapshot {
        #[command(flatten)]
        session: WhichSession,
        /// For this agent; else the session's own
        #[arg(long, value_parser = super::host_names())]
        host: Option<String>,
        /// After what; else a resume, or a compaction where only that brings the agent's own goal back
        #[arg(long, value_name = "EVENT", value_parser = ["compaction", "resume"])]
        after: Option<String>,
    },
    /// Find events by words in all that is remembered
    #[command(
        after_help = "All words must occur, the last may be a beginning; parts of words count when no word is found.
Examples:
  steadfast session search \"why tabs\"
  steadfast session search lexer.rs --session 6dd8620c --category error"
    )]
    Search(SearchArgs),
    /// Forget sessions; goals and what they counted stay
    #[command(after_help = "Examples:
  steadfast session purge 6dd8620c
  steadfast session purge --older-than 90 --dry-run")]
    Purge(PurgeArgs),
}

#[derive(Debug, Args)]
pub(crate) struct WhichSession {
    /// The session's id, or its beginning; else the agent's own, else the one live session of this directory
    #[arg(value_name = "ID")]
    pub(crate) id: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    #[command(flatten)]
    pub(crate) session: WhichSession,
    /// Only this category
    #[arg(long, value_name = "CATEGORY", value_parser = categories())]
    pub(crate) category: Option<String>,
    /// At most this many: the newest, or with --after the first ones after it
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: usize,
    /// Only events after the one with this id
    #[arg(long, value_name = "ID")]
    pub(crate) after: Option<i64>,
}

#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    /// What to look for
    #[arg(required = true, value_name = "WORDS")]
    pub(crate) words: Vec<String>,
    /// Only this session and those it was forked from
    #[arg(long, value_name = "ID", conflicts_with = "project")]
    pub(crate) session: Option<String>,
    /// Only this project: a directory of it, or its name
    #[arg(long, value_name = "P")]
    pub(crate) project: Option<String>,
    /// Only this category
    #[arg(long, value_name = "CATEGORY", value_parser = categories())]
    pub(crate) category: Option<String>,
    /// At most this many
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,
}

#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("what").required(true).args(["id", "older_than", "all"])))]
pub(crate) struct PurgeArgs {
    /// The session's id, or its beginning
    #[arg(value_name = "ID")]
    pub(crate) id: Option<String>,
    /// Sessions without activity for this many days; those that run or have a goal that is not over stay
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) older_than: Option<u32>,
    /// All sessions, whatever their state
    #[arg(long)]
    pub(crate) all: bool,
    /// Only show what would go
    #[arg(long)]
    pub(crate) dry_run: bool,
}

fn categories() -> PossibleValuesParser {
    PossibleValuesParser::new(category_names())
}
