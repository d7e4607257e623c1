//! The command line of `steadfast fleet`, as clap types. The words, exit codes and JSON are those of runs on one machine.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

const AFTER_HELP: &str = "Start a run with --fleet on `steadfast run`, `loop run` or `pipeline run`.
Examples:
  steadfast fleet doctor                              Check server, keys, workers and git
  steadfast fleet worker --drive --repo URL           Take part with this machine
  steadfast loop run work auth --fleet --detach       Start a run on the fleet
  steadfast fleet status auth --watch                 Look at it; also logs -f, attach, kill, resume
  steadfast fleet pull auth                           Bring its branch and its state files here
Where the server is: TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE and the other variables and profiles of
Temporal's own tools, or `[fleet]` in config.toml.";

#[derive(Debug, Parser)]
#[command(
    name = "steadfast-fleet",
    bin_name = "steadfast fleet",
    version,
    about = "Run loops and pipelines on many machines",
    max_term_width = 100,
    arg_required_else_help = true,
    after_help = AFTER_HELP
)]
pub(crate) struct FleetCli {
    /// Print JSON
    #[arg(short = 'j', long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) verb: FleetVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FleetVerb {
    /// Run agents of the fleet on this machine until Ctrl-C or `drain`
    Worker(WorkerArgs),
    /// List the runs of the fleet
    #[command(alias = "ls")]
    List {
        /// Only runs that are not over
        #[arg(long)]
        running: bool,
        /// Include earlier runs of the same name
        #[arg(long)]
        all: bool,
    },
    /// Show the status of a run and its iterations
    Status {
        #[command(flatten)]
        run: NamedRunArgs,
        /// Show it again whenever it changes, until the run ends
        #[arg(long, short)]
        watch: bool,
    },
    /// Print what the agents of a run answered
    Logs(FleetLogsArgs),
    /// Follow a run until its end; Ctrl-C only detaches
    Attach(NamedRunArgs),
    /// Stop a run and its agents, now or as soon as a worker is up
    #[command(alias = "stop")]
    Kill {
        /// Name of the run
        name: String,
        /// Return once the server has the request
        #[arg(long)]
        no_wait: bool,
        /// End it on the server at once, without its last records; for a run that cannot end by itself
        #[arg(long)]
        force: bool,
    },
    /// Resume a run that was killed, failed or reached its maximum
    Resume {
        #[command(flatten)]
        run: NamedRunArgs,
        #[command(flatten)]
        changes: FleetResumeArgs,
        /// Do not follow it
        #[arg(long, short)]
        detach: bool,
    },
    /// Bring the branch and the state files of a run into this repository
    Pull(NamedRunArgs),
    /// Stop the workers of this machine; other workers continue their runs
    Drain {
        /// Return at once
        #[arg(long)]
        no_wait: bool,
    },
    /// Let a stage start that waits for your yes
    Approve(FleetAnswerArgs),
    /// Refuse a stage that waits for your yes; the run ends
    Reject(FleetAnswerArgs),
    /// Tell a run something; its next iteration reads it
    Say {
        /// Name of the run
        name: String,
        /// What to say
        #[arg(required = true, value_name = "TEXT")]
        text: Vec<String>,
    },
    /// Show or set the caps of a day over all runs of the fleet
    Caps(CapsArgs),
    /// Check server, namespace, keys, workers, clocks and git
    Doctor {
        /// Repository to push to [default: the remote `origin`]
        #[arg(long, value_name = "URL")]
        repo: Option<String>,
    },
    /// List or delete what `--cron` starts
    Schedules {
        #[command(subcommand)]
        verb: Option<SchedulesVerb>,
    },
    /// Print a new key for the file of `STEADFAST_FLEET_KEY_FILE`
    Key,
    /// Write the history of a run as the server stores it
    History {
        /// Name of the run
        name: String,
    },
    /// Start a run that `--fleet` planned, JSON on stdin (`steadfast` calls this)
    #[command(hide = true)]
    Submit,
    /// Supervise one attempt of a run (a worker calls this)
    #[command(name = "__exec", hide = true)]
    Exec {
        /// Directory of the attempt
        directory: PathBuf,
    },
}

#[derive(Debug, Clone, Args)]
pub(crate) struct NamedRunArgs {
    /// Name of the run
    pub(crate) name: String,
    /// Repository of the run, if the server no longer knows it [default: the remote `origin`]
    #[arg(long, value_name = "URL")]
    pub(crate) repo: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  steadfast fleet worker --slots 2 --agents claude --repo git@host:team/app.git
  steadfast fleet worker --agents command --repo git@host:team/app.git
  steadfast fleet worker --drive --slots 0
The second one runs agents that are commands; the last one only decides, for workers on laptops.
At least one worker of the fleet needs --drive; give it to machines that are always on.")]
pub(crate) struct WorkerArgs {
    /// How many agents run at once [default: `[fleet] slots`, else 2]
    #[arg(long, value_name = "N")]
    pub(crate) slots: Option<u32>,
    /// Agents that may run here: claude, codex, command [default: `[fleet] agents`, else claude and codex if installed]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) agents: Vec<String>,
    /// Label of this machine; runs started with --label want it (repeatable, at most 3)
    #[arg(long, value_name = "LABEL")]
    pub(crate) label: Vec<String>,
    /// Repository that may run here (repeatable) [default: `[fleet] repos`]
    #[arg(long, value_name = "URL")]
    pub(crate) repo: Vec<String>,
    /// Run any repository: everyone who may start runs decides what this machine executes
    #[arg(long, conflicts_with = "repo")]
    pub(crate) any_repo: bool,
    /// Also drive runs: decide, record and publish. For machines that are always on
    #[arg(long)]
    pub(crate) drive: bool,
    /// Wait for a server that is not up yet
    #[arg(long)]
    pub(crate) wait: bool,
}

/// What `loop resume` changes too; agents are chosen when a run starts.
#[derive(Debug, Args)]
pub(crate) struct FleetResumeArgs {
    /// New maximum number of iterations of the resumed stage
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max: Option<u32>,
    /// Budget profile (quick, standard, deep, overnight) or tokens (500k, 10M, 1B)
    #[arg(long, value_name = "BUDGET", allow_hyphen_values = true)]
    pub(crate) budget: Option<String>,
    /// Maximum spend in US dollars
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    pub(crate) usd: Option<String>,
    /// Maximum hours, including waiting time
    #[arg(long, value_name = "H", allow_hyphen_values = true)]
    pub(crate) max_hours: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct FleetLogsArgs {
    #[command(flatten)]
    pub(crate) run: NamedRunArgs,
    /// Follow until the run ends
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
}

#[derive(Debug, Args)]
pub(crate) struct FleetAnswerArgs {
    #[command(flatten)]
    pub(crate) run: NamedRunArgs,
    /// Stage, by name or number [default: the one that waits]
    pub(crate) stage: Option<String>,
    /// What to remember about the answer
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  steadfast fleet caps                          Show the caps and what today cost
  steadfast fleet caps --usd 50 --tokens 200M   Set both
  steadfast fleet caps --none                   Remove both
A day is a day in UTC. At a cap every run ends with the reason cost_cap; `resume` continues it the
next day.")]
pub(crate) struct CapsArgs {
    /// Maximum spend of a day in US dollars
    #[arg(long, value_name = "X")]
    pub(crate) usd: Option<f64>,
    /// Maximum tokens of a day, such as 200M
    #[arg(long, value_name = "N")]
    pub(crate) tokens: Option<String>,
    /// Remove both caps
    #[arg(long, conflicts_with_all = ["usd", "tokens"])]
    pub(crate) none: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SchedulesVerb {
    /// List the schedules (the default)
    List,
    /// Delete a schedule; runs that it started stay
    Delete {
        /// Name of the schedule
        name: String,
    },
}
