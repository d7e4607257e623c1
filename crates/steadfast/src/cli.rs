//! The command line, as clap types. What a flag means is in the command's own file.

mod frequent;
mod runs;
pub(crate) mod session;

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand};
use steadfast_core::host::Host;

pub(crate) use runs::{
    AgentArgs, LimitArgs, LogsArgs, LoopArgs, LoopRunArgs, LoopVerb, PipelineArgs, PipelineRunArgs, PipelineVerb,
    ResumeArgs, RunArgs, RunCleanupArgs, RunHow, RunVerb,
};

const ABOUT: &str = "Keeps coding agents on the job: durable goals, budgets that hold, completion that is checked";

/// How the engine calls us to keep an attempt.
const KEEPER: &str = "__exec";

#[derive(Debug, Parser)]
#[command(
    name = "steadfast",
    version,
    about = ABOUT,
    max_term_width = 100,
    arg_required_else_help = true,
    after_help = "Examples:
  steadfast demo                 see what it does, with nothing else installed
  steadfast setup claude         hook it into Claude Code; then type /goal-start there
  steadfast setup codex          hook it into Codex; then type $goal-start there
  steadfast goal status          the goal of the session in this directory
  steadfast run \"All tests pass\" --verify \"cargo test\"
  steadfast loop run work        a fresh agent for each task until none is left
  steadfast doctor               everything in order?"
)]
pub(crate) struct Cli {
    /// Use this store instead of the usual one
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) db: Option<PathBuf>,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start, watch and steer the goal of a session
    Goal(GoalArgs),
    /// Look at, search and forget what is remembered of sessions
    Session(session::SessionArgs),
    /// Pursue an objective with fresh agents, headless, until it is verified or a limit is reached
    Run(RunArgs),
    /// Run an agent again and again until a rule holds: start, watch, kill, resume
    Loop(LoopArgs),
    /// Run several loops one after the other, each with what the last one put out
    Pipeline(PipelineArgs),
    /// Show what all sessions on this machine used: tokens and money, by day, month, session, block, model or run
    Usage(UsageArgs),
    /// Answer a hook of an agent (JSON on stdin); agents call this
    Hook(HookArgs),
    /// Serve the goal tools to an agent over stdio; agents call this
    Mcp,
    /// Print a short line for an agent's status bar (JSON on stdin)
    Statusline(StatuslineArgs),
    /// Hook steadfast into an agent, or out again
    Setup(SetupArgs),
    /// Check that everything is in order, and say how to mend what is not
    Doctor(JsonArgs),
    /// Look after the store: path, backup, check, import
    Db(DbArgs),
    /// Watch a scripted agent pursue a goal through everything that can go wrong
    Demo(DemoArgs),
    /// Keep one attempt of a run; the engine calls this
    #[command(name = KEEPER, hide = true)]
    Exec {
        /// The directory of the attempt
        directory: PathBuf,
    },
    /// Drive one run in the background; `--detach` starts this
    #[command(name = "__engine", hide = true)]
    Engine {
        /// Steadfast's home
        home: PathBuf,
        /// The store
        store: PathBuf,
        /// The run
        run_id: String,
    },
}

/// The names of all hosts.
fn host_names() -> PossibleValuesParser {
    PossibleValuesParser::new(Host::ALL.iter().map(|host| host.name()))
}

#[derive(Debug, Args)]
pub(crate) struct JsonArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  steadfast goal start \"All tests pass\" --budget standard --verify \"cargo test\"
  steadfast goal status --json
  steadfast goal extend --add-tokens 5M --add-hours 2")]
pub(crate) struct GoalArgs {
    /// The session whose goal is meant; else the agent's own, else the one live session of this directory
    #[arg(long, global = true, value_name = "ID")]
    pub(crate) session: Option<String>,

    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,

    #[command(subcommand)]
    pub(crate) verb: GoalVerb,
}

/// What slash commands are parsed with: `/goal-start x` is `goal start x`.
#[derive(Debug, Parser)]
#[command(name = "goal", no_binary_name = true, disable_help_subcommand = true)]
pub(crate) struct SlashCli {
    #[command(flatten)]
    pub(crate) goal: GoalArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GoalVerb {
    /// Start a goal in this session
    Start(StartArgs),
    #[command(flatten)]
    OnGoal(OnGoalVerb),
    /// List goals, replaced ones too, and their events
    History(HistoryArgs),
    /// List or delete goals whose session is gone
    Cleanup(CleanupArgs),
}

/// What can be done with the goal of a session.
#[derive(Debug, Subcommand)]
pub(crate) enum OnGoalVerb {
    /// Show where the goal stands
    Status {
        /// `json` prints JSON
        #[arg(long, value_name = "FORMAT", value_parser = ["text", "json"])]
        format: Option<String>,
    },
    /// Stop driving the goal until it is resumed
    Pause,
    /// Take up a paused or blocked goal
    Resume {
        /// Codex: also go on with its closed session now, by `codex exec resume`, until that turn ends
        #[arg(long = "continue")]
        go_on: bool,
    },
    /// Give the goal up
    #[command(alias = "stop")]
    Abandon,
    /// Replace the objective, keeping budget and history
    #[command(alias = "update")]
    Edit {
        /// The new objective
        #[arg(required = true, value_name = "OBJECTIVE")]
        objective: Vec<String>,
    },
    /// Mark the goal as waiting for you or the outside world
    Block {
        /// What it waits for
        #[arg(long, value_name = "REASON")]
        reason: String,
    },
    /// Declare the goal met, by hand
    Complete,
    /// Raise limits; resumes the goal if a limit had stopped it
    #[command(after_help = "Example: steadfast goal extend --add-tokens 5M --add-hours 2")]
    Extend(ExtendArgs),
    /// Accept a gap in the token accounting and go on
    Reconcile {
        /// Yes: tokens in the gap are lost to accounting
        #[arg(long)]
        accept_reset: bool,
    },
    /// Move an orphaned goal to this session
    Adopt {
        /// The goal's id, or its beginning
        #[arg(required_unless_present = "native")]
        goal: Option<String>,
        /// Make a goal of the one that the agent's own goal feature pursues in this session
        #[arg(long, conflicts_with = "goal")]
        native: bool,
    },
    /// Run the goal's verification commands now and keep the evidence
    Verify,
}

#[derive(Debug, Default, Args)]
#[command(
    after_help = "Budgets (tokens / turns / hours): quick 2M/50/2, standard 10M/200/8, deep 100M/1000/24, overnight 1B/5000/72
Example: steadfast goal start \"Port the parser\" --budget 10M --max-hours 4 --verify \"make test\""
)]
pub(crate) struct StartArgs {
    /// What must be true at the end, in 1 to 4000 characters
    #[arg(required = true, value_name = "OBJECTIVE")]
    pub(crate) objective: Vec<String>,
    /// quick, standard, deep, overnight, auto, or tokens such as 500k, 10M, 1B
    #[arg(long, value_name = "BUDGET", allow_hyphen_values = true)]
    pub(crate) budget: Option<String>,
    /// Most money to spend, in US dollars
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    pub(crate) usd: Option<String>,
    /// Most turns to continue
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) max_turns: Option<String>,
    /// Most hours of active time
    #[arg(long, value_name = "H", allow_hyphen_values = true)]
    pub(crate) max_hours: Option<String>,
    /// Stop at this time: 17:30, 2026-11-15T17:30, or in 3h
    #[arg(long, value_name = "TIME")]
    pub(crate) deadline: Option<String>,
    /// Command that must exit 0 before the goal counts as complete; may be repeated
    #[arg(long, value_name = "CMD")]
    pub(crate) verify: Vec<String>,
}

#[derive(Debug, Args)]
#[expect(clippy::struct_field_names, reason = "the fields are the flags")]
pub(crate) struct ExtendArgs {
    /// More turns
    #[arg(long, visible_alias = "add-continuations", value_name = "N", allow_hyphen_values = true)]
    pub(crate) add_turns: Option<String>,
    /// More hours; also moves a deadline
    #[arg(long, value_name = "H", allow_hyphen_values = true)]
    pub(crate) add_hours: Option<String>,
    /// More tokens, such as 500k or 2M
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) add_tokens: Option<String>,
    /// More money, in US dollars
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    pub(crate) add_usd: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    /// Goals of all sessions
    #[arg(long)]
    pub(crate) all: bool,
    /// Events too
    #[arg(long)]
    pub(crate) events: bool,
    /// `json` prints JSON
    #[arg(long, value_name = "FORMAT", value_parser = ["text", "json"])]
    pub(crate) format: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct CleanupArgs {
    /// Show orphaned goals
    #[arg(long)]
    pub(crate) list: bool,
    /// Delete orphaned goals
    #[arg(long, conflicts_with = "list")]
    pub(crate) delete: bool,
    /// Only goals not touched for this many hours
    #[arg(long, value_name = "H")]
    pub(crate) older_than: Option<u32>,
}

#[derive(Debug, Args)]
#[command(after_help = "Views: daily (the default), monthly, session, blocks (windows of five hours), models,
runs (each iteration of every loop and pipeline, from the store: also of agents that leave no transcript)
Examples:
  steadfast usage
  steadfast usage models --since 30d
  steadfast usage session --project . --json
  steadfast usage runs --since today")]
pub(crate) struct UsageArgs {
    /// What a row stands for
    #[arg(value_parser = ["daily", "monthly", "session", "blocks", "models", "runs"], hide_possible_values = true)]
    pub(crate) view: Option<String>,
    /// Only from this day on: 2026-11-01, today, yesterday, or 7d
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    pub(crate) since: Option<String>,
    /// Only this project: a directory and all below it, or the name of one
    #[arg(long, value_name = "P")]
    pub(crate) project: Option<String>,
    /// Only this agent's sessions
    #[arg(long, value_parser = host_names())]
    pub(crate) host: Option<String>,
    /// Prices to use instead of the built-in ones (TOML, the form of prices.toml)
    #[arg(long, value_name = "FILE")]
    pub(crate) prices: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct HookArgs {
    /// Whose hook it is
    #[arg(value_parser = host_names())]
    pub(crate) host: String,
    /// Run in the background and wake the agent when its goal asks for it
    #[arg(long)]
    pub(crate) rewake: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StatuslineArgs {
    /// Print a segment for another status line: no line break
    #[arg(long)]
    pub(crate) segment: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  steadfast setup claude --dry-run
  steadfast setup claude --yes
  steadfast setup codex
  steadfast setup --uninstall")]
pub(crate) struct SetupArgs {
    /// The agent to set up; with --uninstall, none means all
    #[arg(value_parser = host_names(), required_unless_present = "uninstall")]
    pub(crate) host: Option<String>,
    /// Take everything out again; your files are as they were before
    #[arg(long)]
    pub(crate) uninstall: bool,
    /// Show what would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Say yes to the status line and the block cap of Claude Code
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Show the goal in the status line
    #[arg(long, overrides_with = "no_statusline")]
    pub(crate) statusline: bool,
    /// Leave the status line alone
    #[arg(long)]
    pub(crate) no_statusline: bool,
    /// Let Claude Code accept N Stop blocks in a row without a tool call (its own default is 8, 0 lifts the cap)
    #[arg(long, value_name = "N", overrides_with = "no_block_cap")]
    pub(crate) block_cap: Option<u32>,
    /// Leave the block cap alone
    #[arg(long)]
    pub(crate) no_block_cap: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DbArgs {
    #[command(subcommand)]
    pub(crate) verb: DbVerb,
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DbVerb {
    /// Print where the store is
    Path,
    /// Copy the store, also while it is in use
    Backup {
        /// Where to; else beside the store, with the date
        target: Option<PathBuf>,
    },
    /// Look for faults in the store
    Check,
    /// Bring in the goals of another store, such as the claude-goal plugin's; it is only read
    Import {
        /// The other goals.db
        path: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Do not pause for the reader
    #[arg(long)]
    pub(crate) fast: bool,
    /// Play the scripted agent (the demo starts this itself)
    #[arg(long, hide = true, value_name = "DIR")]
    pub(crate) agent: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
