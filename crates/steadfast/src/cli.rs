//! The command line as clap types. Each command's file says what its flags do.

mod fleet;
mod frequent;
mod history;
mod limits;
mod metrics;
mod report;
mod run_verbs;
mod runs;
pub(crate) mod session;
mod setup;
mod start;
mod statusline;
mod talk;
mod top;
mod trust;
mod ui;
mod usage;
mod wait;
mod watch;

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, CommandFactory as _, Parser, Subcommand};
use steadfast_model::host::Host;

pub(crate) use fleet::FleetArgs;
pub(crate) use history::{CleanupArgs, HistoryArgs};
pub(crate) use limits::{ExtendArgs, GoalLimitArgs};
pub(crate) use metrics::MetricsArgs;
pub(crate) use report::{HtmlArgs, RunOnceVerb, RunReportArgs};
pub(crate) use run_verbs::{LogsArgs, ResumeArgs, RunCleanupArgs, RunVerb};
pub(crate) use runs::{AgentArgs, LoopVerb, PipelineVerb, RunArgs, RunHow};
pub(crate) use setup::{DbVerb, SetupArgs};
pub(crate) use start::{DoneArgs, StartArgs};
pub(crate) use statusline::StatuslineArgs;
pub(crate) use talk::{AnswerArgs, SayArgs};
pub(crate) use top::TopArgs;
pub(crate) use trust::TrustArgs;
pub(crate) use ui::UiArgs;
pub(crate) use usage::UsageArgs;
pub(crate) use wait::WaitArgs;
pub(crate) use watch::WatchArgs;

const ABOUT: &str = "Keep coding agents on the job: durable goals, enforced budgets, verified completion";

/// The hidden command with which the engine starts the supervisor of an attempt.
const SUPERVISOR: &str = "__exec";
/// The hidden command that delivers messages.
pub(crate) const DELIVERER: &str = "__deliver";
/// The hidden command that backs up the store.
pub(crate) const BACKUP_MAKER: &str = "__backup";

#[derive(Debug, Parser)]
#[command(
    name = "steadfast",
    version,
    about = ABOUT,
    max_term_width = 100,
    after_help = "Examples:
  steadfast demo                 See what it does; needs no account
  steadfast                      See what is set up here, and what to type next
  steadfast setup                Install the hooks; then type /goal-start (Claude Code) or $goal-start (Codex)
  steadfast goal status          Show the goal of the session in this directory
  steadfast run \"All tests pass\" --verify \"cargo test\"
  steadfast loop run idea-wizard --max 2    Start a fresh agent for each iteration
  steadfast doctor               Check the installation"
)]
pub(crate) struct Cli {
    /// Use this store instead of the default one
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) db: Option<PathBuf>,
    /// Print JSON
    #[arg(short = 'j', long, global = true)]
    pub(crate) json: bool,

    #[command(subcommand)]
    pub(crate) command: Option<CliCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Start, show and control the goal of a session
    Goal(GoalArgs),
    /// Show, search, export, import and delete session memory
    #[command(subcommand)]
    Session(session::SessionVerb),
    /// Pursue an objective with headless agents until it is verified or a limit is reached
    Run(RunArgs),
    /// Run an agent repeatedly until a completion rule holds
    #[command(subcommand)]
    Loop(LoopVerb),
    /// Run stages that build on each other
    #[command(subcommand)]
    Pipeline(PipelineVerb),
    /// Run loops and pipelines on many machines: worker, list, status, logs, kill, resume, pull
    #[command(disable_help_flag = true, disable_help_subcommand = true)]
    Fleet {
        /// What `steadfast-fleet` gets; `steadfast fleet --help` lists its commands
        #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<std::ffi::OsString>,
    },
    /// Watch goals and runs in the terminal and act on them
    Top(TopArgs),
    /// Show what this repository makes agents run, and trust it
    Trust(TrustArgs),
    /// Show goals, runs and usage in the browser, and act on them
    Ui(UiArgs),
    /// Show the tokens and cost of all sessions on this machine
    Usage(UsageArgs),
    /// Answer a client's hook, JSON on stdin (clients call this)
    Hook {
        /// Client that calls the hook
        #[arg(value_parser = host_names())]
        host: String,
        /// Wait in the background and wake the client when its goal is due
        #[arg(long)]
        rewake: bool,
        /// Session, event and cause of a panic in this process
        #[arg(long, hide = true, num_args = 3, allow_hyphen_values = true)]
        panicked: Vec<String>,
    },
    /// Serve the goal tools over stdio (clients call this)
    Mcp {
        /// How often a panic has restarted it
        #[arg(long, hide = true, default_value_t = 0)]
        restarts: u32,
        /// Ids of the calls that were under way at the restart, as JSON
        #[arg(long, hide = true, default_value = "[]")]
        unanswered: String,
    },
    /// Print a line for a client's status bar, JSON on stdin
    Statusline(StatuslineArgs),
    /// Print metrics for Prometheus, or send metrics and traces to OpenTelemetry
    Metrics(MetricsArgs),
    /// Wake goals that are due and keep detached runs alive
    Watch(WatchArgs),
    /// Set up the clients, or remove what was set up
    Setup(SetupArgs),
    /// Diagnose the installation and suggest fixes
    Doctor {
        /// Read the whole store, whatever its size
        #[arg(long)]
        full: bool,
        /// Repair what can be repaired safely, and say what cannot
        #[arg(long)]
        fix: bool,
    },
    /// Manage the store: path, backups, check, recovery, compaction, import
    #[command(subcommand)]
    Db(DbVerb),
    /// Show a scripted agent pursue a goal through limits, compaction and crashes
    Demo {
        /// Print without pauses
        #[arg(long)]
        fast: bool,
        /// Run the scripted agent in this demo folder (the demo calls this)
        #[arg(long, hide = true, value_name = "DIR")]
        agent: Option<PathBuf>,
    },
    /// Print what a shell needs to complete this command line
    #[command(after_help = "Where to put it:
  bash   steadfast completions bash > ~/.local/share/bash-completion/completions/steadfast
  zsh    steadfast completions zsh > ~/.zfunc/_steadfast
         with `fpath+=~/.zfunc; autoload -U compinit; compinit` in ~/.zshrc
  fish   steadfast completions fish > ~/.config/fish/completions/steadfast.fish

The Debian package has put it there already. Open a new shell afterwards.")]
    Completions {
        /// Shell that reads it
        #[arg(value_parser = ["bash", "zsh", "fish"])]
        shell: String,
    },
    /// Supervise one attempt of a run (the engine calls this)
    #[command(name = SUPERVISOR, hide = true)]
    Exec {
        /// Directory of the attempt
        directory: PathBuf,
    },
    /// Look once at what a goal waits for (the process that wakes it calls this)
    #[command(name = "__look", hide = true)]
    Look {
        /// Session of the goal
        session: String,
        /// The caller has claimed the look
        #[arg(long)]
        claimed: bool,
    },
    /// Drive one run in the background (`--detach` calls this)
    #[command(name = "__engine", hide = true)]
    Engine {
        /// Home directory of steadfast
        home: PathBuf,
        /// Path of the store
        store: PathBuf,
        /// Id of the run
        run_id: String,
    },
    /// Back up the store (hooks call this)
    #[command(name = BACKUP_MAKER, hide = true)]
    MakeBackup {
        /// Home directory of steadfast
        home: PathBuf,
        /// Path of the store
        store: PathBuf,
    },
    /// Deliver messages to the user (hooks call this)
    #[command(name = DELIVERER, hide = true)]
    Deliver {
        /// Home directory of steadfast
        home: PathBuf,
        /// Path of the store
        store: PathBuf,
    },
    /// Write the manual pages (packages call this)
    #[command(name = "__man", hide = true)]
    Manual {
        /// Directory of the pages
        directory: PathBuf,
    },
}

impl Cli {
    /// The command that was called, without its arguments: `steadfast loop run`.
    pub(crate) fn command_of(arguments: &[std::ffi::OsString]) -> String {
        let (mut command, mut name) = (Self::command(), "steadfast".to_owned());
        for word in arguments.iter().skip(1).filter_map(|word| word.to_str()) {
            let Some(found) = command.find_subcommand(word) else { continue };
            name = format!("{name} {}", found.get_name());
            command = found.clone();
        }
        name
    }
}

/// The names of all hosts.
fn host_names() -> PossibleValuesParser {
    PossibleValuesParser::new(Host::ALL.iter().map(|host| host.name()))
}

/// What `setup` can install besides hosts.
pub(crate) const SERVICE: &str = "watch";

fn setup_names() -> PossibleValuesParser {
    PossibleValuesParser::new(Host::ALL.iter().map(|host| host.name()).chain([SERVICE]))
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  steadfast goal start \"All tests pass\" --budget standard --verify \"cargo test\"
  steadfast goal status --json
  steadfast goal extend --add-tokens 5M --add-hours 2")]
pub(crate) struct GoalArgs {
    /// Session of the goal, by its id or the beginning that `session list` prints [default: the agent's own session, or the only live one in this directory]
    #[arg(long, global = true, value_name = "ID")]
    pub(crate) session: Option<String>,

    #[command(subcommand)]
    pub(crate) verb: GoalVerb,
}

/// The parser of slash commands: `/goal-start x` means `goal start x`.
#[derive(Debug, Parser)]
#[command(name = "goal", no_binary_name = true, disable_help_subcommand = true)]
pub(crate) struct SlashCli {
    #[command(flatten)]
    pub(crate) goal: GoalArgs,
    /// Accepted as on the command line; the answer is always text
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GoalVerb {
    /// Start a goal in this session
    Start(StartArgs),
    /// Show the goal's status, spending and limits
    Status {
        /// Output format
        #[arg(long, value_name = "FORMAT", value_parser = ["text", "json"])]
        format: Option<String>,
    },
    /// Pause the goal
    Pause {
        /// Pause every goal and stop every run, in all projects
        #[arg(long)]
        all: bool,
    },
    /// Show or change the goals that wait for this one to end
    Queue {
        #[command(subcommand)]
        verb: Option<QueueVerb>,
    },
    /// Resume a paused or blocked goal
    Resume {
        /// Also continue a closed Codex session now, with `codex exec resume`
        #[arg(long = "continue")]
        continue_session: bool,
    },
    /// Abandon the goal
    #[command(alias = "stop")]
    Abandon,
    /// Replace the objective and keep budget and history
    #[command(alias = "update")]
    Edit {
        /// New objective
        #[arg(required = true, value_name = "OBJECTIVE")]
        objective: Vec<String>,
    },
    /// Mark the goal as blocked until you resume it
    Block {
        /// What the goal needs
        #[arg(long, value_name = "REASON")]
        reason: String,
    },
    /// Mark the goal as complete
    Complete,
    /// Raise limits, and resume the goal if a raised limit had stopped it
    #[command(after_help = "Example: steadfast goal extend --add-tokens 5M --add-hours 2")]
    Extend(ExtendArgs),
    /// Pause the goal without cost until a time or a condition
    Wait(WaitArgs),
    /// Accept a gap in the token accounting and resume
    Reconcile {
        /// Accept that tokens in the gap are not counted
        #[arg(long)]
        accept_reset: bool,
    },
    /// Move an orphaned goal to this session
    Adopt {
        /// Goal id or a unique prefix of it
        #[arg(required_unless_present = "native")]
        goal: Option<String>,
        /// Start a goal with the objective of the agent's own goal feature
        #[arg(long, conflicts_with = "goal")]
        native: bool,
    },
    /// Run the goal's verification commands now and store the evidence
    Verify,
    /// Show the evidence for the whole goal: items, checks, verdicts, pauses, spending
    #[command(after_help = "Examples:
  steadfast goal report --md                    For a pull request
  steadfast goal report --html report.html      One file with charts, to hand to a colleague")]
    Report {
        /// Goal id or a unique prefix of it [default: the newest goal of the session]
        goal: Option<String>,
        /// Print Markdown, for a pull request
        #[arg(long, conflicts_with = "html")]
        md: bool,
        #[command(flatten)]
        html: HtmlArgs,
    },
    /// List goals, including replaced ones, and their events
    History(HistoryArgs),
    /// List or delete goals whose session is gone
    Cleanup(CleanupArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum QueueVerb {
    /// List the queued goals (the default)
    List,
    /// Move a queued goal to another place
    Move {
        /// Number in the list
        number: usize,
        /// New number
        to: usize,
    },
    /// Remove a goal from the queue
    Drop {
        /// Number in the list
        number: usize,
    },
}
