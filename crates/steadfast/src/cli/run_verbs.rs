//! The command line of existing runs: the verbs that loops and pipelines share.

use clap::{Args, Subcommand};

use super::limits::RunLimitArgs;
use super::report::RunReportArgs;
use super::talk::SayArgs;

/// The verbs that act on existing runs.
#[derive(Debug, Subcommand)]
pub(crate) enum RunVerb {
    /// List runs of this project
    #[command(alias = "ls")]
    List {
        /// Include earlier runs of the same name and runs of all projects
        #[arg(long)]
        all: bool,
    },
    /// Show the status of a run and its iterations
    Status {
        /// Name of the run
        name: String,
    },
    /// Show a run with all its iterations, or write a report of it
    #[command(after_help = "Example: steadfast loop report auth --html auth.html")]
    Report(RunReportArgs),
    /// Print the output of a run's agents
    #[command(after_help = "Examples:
  steadfast loop logs auth             Print the end of the last iteration
  steadfast loop logs auth -f          Follow across iterations
  steadfast loop logs auth --iteration 3 --raw")]
    Logs(LogsArgs),
    /// Follow a run until its end; Ctrl-C only detaches
    Attach {
        /// Name of the run
        name: String,
    },
    /// Tell a run something; its next iteration reads it
    #[command(after_help = "Examples:
  steadfast loop say auth \"Leave the database alone\"
  git diff | steadfast loop say auth -     Read the message from stdin
  steadfast loop say auth                  List what was said, and which iteration read it
  steadfast loop say auth --drop           Remove what no iteration has read yet
The first attempt that starts reads all waiting messages; if it fails, its iteration's next attempt reads them again. \
In a parallel stage, one of the agents reads them. A message has at most 4000 characters; at most 20 wait.")]
    Say(SayArgs),
    /// Cancel the appointment of a run, made with `run --at` or `--every`
    Cancel {
        /// Name of the run
        name: String,
    },
    /// Stop a run and its agents
    #[command(alias = "stop")]
    Kill {
        /// Name of the run
        name: String,
    },
    /// Resume a run that was killed, failed, crashed or reached a limit
    #[command(after_help = "Examples:
  steadfast loop resume auth
  steadfast loop resume auth --max 50          After max_iterations
  steadfast loop resume auth --usd 20          After budget_usd
  steadfast loop resume auth --agent codex     With another agent from here on

--agent and --model change the stages that are not over and use the agent of the next one. Stages with an agent of \
their own, and judges, keep theirs.")]
    Resume(ResumeArgs),
    /// Mark crashed runs, stop their processes and delete old output
    Cleanup(RunCleanupArgs),
    /// Import loops and pipelines that older tools left in .claude, to look at and resume
    #[command(
        after_help = "The files of the older tool are only read, and importing twice changes nothing. Loop types are looked for \
in .claude/loops, scripts/stages, your own and the built-in ones.
Example: steadfast loop import, then steadfast loop resume NAME"
    )]
    Import {
        /// Show what would be imported
        #[arg(long)]
        dry_run: bool,
        /// Trust the definitions that the imported runs continue with, until they change
        #[arg(long, conflicts_with = "dry_run")]
        trust: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// Name of the run
    pub(crate) name: String,
    /// Follow the output until the run ends
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Print this iteration instead of the last one
    #[arg(long, value_name = "K")]
    pub(crate) iteration: Option<u32>,
    /// Print this stage of a pipeline, counted from 1
    #[arg(long, value_name = "N")]
    pub(crate) stage: Option<u32>,
    /// Maximum number of lines, counted from the end
    #[arg(long, short = 'n', value_name = "LINES", default_value_t = 200)]
    pub(crate) lines: usize,
    /// Print the agent's raw output, including its JSON events and, in your own terminal, secrets
    #[arg(long)]
    pub(crate) raw: bool,
    /// Print the engine's own log
    #[arg(long, conflicts_with_all = ["follow", "iteration", "stage"])]
    pub(crate) engine: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// Name of the run
    pub(crate) name: String,
    /// New maximum number of iterations of the resumed stage
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max: Option<u32>,
    /// Agent for the rest of the run: claude, codex, or a command that reads the prompt on stdin
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    /// Model of that agent
    #[arg(long, value_name = "M")]
    pub(crate) model: Option<String>,
    #[command(flatten)]
    pub(crate) limits: RunLimitArgs,
    /// Run in the background, even after the terminal closes
    #[arg(long, short)]
    pub(crate) detach: bool,
    /// Trust what this run uses of the repository, until it changes; see `steadfast trust`
    #[arg(long)]
    pub(crate) trust: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunCleanupArgs {
    /// Show what would be done without doing it
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Delete agent output of runs that ended more than this many days ago
    #[arg(long, value_name = "DAYS", default_value_t = 30)]
    pub(crate) older_than: u32,
    /// Delete the branches of runs that ended, if their work is merged into the current branch
    #[arg(long)]
    pub(crate) branches: bool,
}
