//! The command line of loops, pipelines and headless goals. Both kinds of runs share all verbs but those that make them.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
#[command(after_help = "A loop runs a fresh agent again and again until its rule holds.
Examples:
  steadfast loop types                              what can be run
  steadfast loop run work auth --max 20             until no bead is left
  steadfast loop run improve-plan --agent codex     until two iterations find nothing to improve
  steadfast loop run work auth --detach             goes on after the terminal closes
  steadfast loop list                               and status, logs -f, attach, kill, resume NAME")]
pub(crate) struct LoopArgs {
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,

    #[command(subcommand)]
    pub(crate) verb: LoopVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LoopVerb {
    /// Run a loop type until its rule holds
    #[command(after_help = "Examples:
  steadfast loop run work auth --max 20 --verify \"cargo test\"
  steadfast loop run improve-plan --agent ./my-agent.sh --timeout 20m
  steadfast loop run refine-beads --budget quick --usd 5 --detach
Exit codes: 0 the rule holds, 5 a limit was reached, 1 failed, 3 one of that name is running, 130 interrupted")]
    Run(LoopRunArgs),
    #[command(flatten)]
    OnRun(RunVerb),
    /// List the loop types: built in, yours, and the project's
    Types,
    /// Make a loop type to begin from, in .claude/loops
    #[command(after_help = "Example: steadfast loop new fix-lints, then edit .claude/loops/fix-lints/")]
    New {
        /// Its name
        name: String,
        /// For all projects, in your home, instead of in this one
        #[arg(long)]
        user: bool,
    },
    /// Check a loop type: every fault with its line and a fix
    Validate {
        /// Its name, or the path of its folder
        #[arg(value_name = "TYPE")]
        name: String,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "A pipeline is several loops, one after the other; what a stage put out is given to the next.
Examples:
  steadfast pipeline types                          what can be run
  steadfast pipeline validate .claude/pipelines/ship.yaml
  steadfast pipeline run full-refine auth
  steadfast pipeline status auth --json")]
pub(crate) struct PipelineArgs {
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,

    #[command(subcommand)]
    pub(crate) verb: PipelineVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PipelineVerb {
    /// Run the stages of a pipeline
    #[command(after_help = "Examples:
  steadfast pipeline run full-refine auth
  steadfast pipeline run ./ship.yaml --agent codex --usd 20 --detach
Exit codes: 0 done, 5 a limit was reached, 1 failed, 3 one of that name is running, 130 interrupted")]
    Run(PipelineRunArgs),
    #[command(flatten)]
    OnRun(RunVerb),
    /// List the pipelines: built in, yours, and the project's
    Types,
    /// Write a pipeline to begin from, in .claude/pipelines
    #[command(after_help = "Example: steadfast pipeline new ship, then edit .claude/pipelines/ship.yaml")]
    New {
        /// Its name
        name: String,
        /// For all projects, in your home, instead of in this one
        #[arg(long)]
        user: bool,
    },
    /// Check a pipeline: every fault with its line and a fix
    Validate {
        /// A file, or the name of a pipeline
        #[arg(value_name = "FILE")]
        file: String,
    },
}

/// What can be done with a run that exists.
#[derive(Debug, Subcommand)]
pub(crate) enum RunVerb {
    /// List runs of this project
    #[command(alias = "ls")]
    List {
        /// Earlier runs of the same name and runs of all projects, too
        #[arg(long)]
        all: bool,
    },
    /// Show where a run stands, with its iterations
    Status {
        /// The run's name
        name: String,
    },
    /// Print what an agent of a run printed
    #[command(after_help = "Examples:
  steadfast loop logs auth             the end of the last one
  steadfast loop logs auth -f          follow, across iterations
  steadfast loop logs auth --iteration 3 --raw")]
    Logs(LogsArgs),
    /// Follow a run until its end; Ctrl-C only detaches
    Attach {
        /// The run's name
        name: String,
    },
    /// End a run and its agents
    #[command(alias = "stop")]
    Kill {
        /// The run's name
        name: String,
    },
    /// Go on with a run that was killed, failed, crashed or came to a limit
    #[command(after_help = "Examples:
  steadfast loop resume auth
  steadfast loop resume auth --max 50          after max_iterations
  steadfast loop resume auth --usd 20          after budget_usd")]
    Resume(ResumeArgs),
    /// Mark runs that died unseen, stop what they left running, forget what is old
    Cleanup(RunCleanupArgs),
}

#[derive(Debug, Args)]
pub(crate) struct LoopRunArgs {
    /// The loop type
    #[arg(value_name = "TYPE")]
    pub(crate) loop_type: String,
    /// The run's name; else its type's
    pub(crate) name: Option<String>,
    /// Most iterations (25 if neither this, the type nor a budget profile says so)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max: Option<u32>,
    /// One iteration for each of these: comma-separated, may be repeated
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub(crate) items: Vec<String>,
    #[command(flatten)]
    pub(crate) how: RunHow,
}

#[derive(Debug, Args)]
pub(crate) struct PipelineRunArgs {
    /// A file, or the name of a pipeline
    pub(crate) file: String,
    /// The run's name; else the pipeline's with date and time
    pub(crate) name: Option<String>,
    /// Most iterations of any stage
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max: Option<u32>,
    #[command(flatten)]
    pub(crate) how: RunHow,
}

/// What loops and pipelines have in common.
#[derive(Debug, Args)]
pub(crate) struct RunHow {
    #[command(flatten)]
    pub(crate) agent: AgentArgs,
    /// A command that must exit 0 before the run is over; may be repeated
    #[arg(long, value_name = "CMD")]
    pub(crate) verify: Vec<String>,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    /// A file whose text the first stage gets as ${INPUTS}; may be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) input: Vec<PathBuf>,
    /// Work in a git worktree on a branch of its own
    #[arg(long)]
    pub(crate) worktree: bool,
    /// Start it in a tmux session, loop-NAME or pipeline-NAME
    #[arg(long, conflicts_with = "detach")]
    pub(crate) tmux: bool,
    /// Show what would be run, and run nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Allow the commands of a definition of this project that takes the place of another, as long as it does not change
    #[arg(long)]
    pub(crate) trust: bool,
}

/// Who works.
#[derive(Debug, Args)]
pub(crate) struct AgentArgs {
    /// claude, codex, or a command that reads the prompt on stdin
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    /// The model of --agent's program, or of the usual one; stages with another program keep theirs
    #[arg(long, value_name = "M")]
    pub(crate) model: Option<String>,
    /// Longest time of one iteration, such as 20m or 2h
    #[arg(long, value_name = "D")]
    pub(crate) timeout: Option<String>,
    /// Let your own hooks and plugins run inside the agent
    #[arg(long)]
    pub(crate) user_hooks: bool,
    /// Run in the background; goes on after the terminal closes
    #[arg(long, short)]
    pub(crate) detach: bool,
}

/// How much may be spent.
#[derive(Debug, Default, Args)]
pub(crate) struct LimitArgs {
    /// quick, standard, deep, overnight, or tokens such as 500k, 10M, 1B
    #[arg(long, value_name = "BUDGET", allow_hyphen_values = true)]
    pub(crate) budget: Option<String>,
    /// Most money to spend, in US dollars
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    pub(crate) usd: Option<String>,
    /// Most hours, waiting included
    #[arg(long, value_name = "H", allow_hyphen_values = true)]
    pub(crate) max_hours: Option<String>,
}

impl LimitArgs {
    /// Whether any limit is named.
    pub(crate) fn is_given(&self) -> bool {
        self.budget.is_some() || self.usd.is_some() || self.max_hours.is_some()
    }
}

#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// The run's name
    pub(crate) name: String,
    /// Go on as long as the run does
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Of this iteration instead of the last one
    #[arg(long, value_name = "K")]
    pub(crate) iteration: Option<u32>,
    /// Of this stage of a pipeline, from 1
    #[arg(long, value_name = "N")]
    pub(crate) stage: Option<u32>,
    /// Most lines from the end
    #[arg(long, short = 'n', value_name = "LINES", default_value_t = 200)]
    pub(crate) lines: usize,
    /// As the agent printed it, events included
    #[arg(long)]
    pub(crate) raw: bool,
    /// What the engine itself noted
    #[arg(long, conflicts_with_all = ["follow", "iteration", "stage"])]
    pub(crate) engine: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// The run's name
    pub(crate) name: String,
    /// The new maximum of iterations of the stage it goes on with
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max: Option<u32>,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    /// Run in the background; goes on after the terminal closes
    #[arg(long, short)]
    pub(crate) detach: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunCleanupArgs {
    /// Show what would be done, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Remove what agents printed in runs that ended more than so many days ago
    #[arg(long, value_name = "DAYS", default_value_t = 30)]
    pub(crate) older_than: u32,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Fresh agents pursue the objective, one after the other, until your --verify commands pass; without any,
until an agent promises that it is done or decides `stop` in its result. It is a loop named run-ID: `steadfast loop list`, `attach`, `kill`, `resume`.
Budgets (tokens / iterations / hours): quick 2M/50/2, standard 10M/200/8, deep 100M/1000/24, overnight 1B/5000/72
Examples:
  steadfast run \"All tests pass\" --verify \"cargo test\" --budget standard
  steadfast run \"Port the parser to Rust\" --agent codex --usd 10 --detach
Exit codes: 0 verified, 5 a limit was reached (--max too), 6 stuck with
verification failing, 1 failed, 130 interrupted"
)]
pub(crate) struct RunArgs {
    /// What must be true at the end, in 1 to 4000 characters
    #[arg(required = true, value_name = "OBJECTIVE")]
    pub(crate) objective: Vec<String>,
    /// A command that must exit 0 at the end; may be repeated
    #[arg(long, value_name = "CMD")]
    pub(crate) verify: Vec<String>,
    /// Most iterations (25 if neither this nor a budget profile says so)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max: Option<u32>,
    #[command(flatten)]
    pub(crate) agent: AgentArgs,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    /// Work in a git worktree on a branch of its own
    #[arg(long)]
    pub(crate) worktree: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
