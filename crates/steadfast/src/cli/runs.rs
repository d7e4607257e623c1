//! The command line of `loop`, `pipeline` and `run`. Loops and pipelines share all verbs except those that create them.

use std::path::PathBuf;

use clap::{Args, Command, Subcommand};

use super::fleet::FleetArgs;
use super::limits::RunLimitArgs;
use super::report::RunOnceVerb;
use super::run_verbs::RunVerb;
use super::talk::AnswerArgs;

/// The verbs on existing runs have examples of loops.
fn with_examples_of_pipelines(verb: Command) -> Command {
    let Some(help) = verb.get_after_help().map(ToString::to_string) else { return verb };
    verb.after_help(help.replace("steadfast loop ", "steadfast pipeline "))
}

macro_rules! permissions_help {
    () => {
        "
Permissions: agents do not ask. By default claude runs with --dangerously-skip-permissions and codex with \
--dangerously-bypass-approvals-and-sandbox: they may run any command and change any file. With --sandbox they may \
change files of the project and run commands in their own sandbox (claude: --permission-mode acceptEdits and its \
sandbox setting; codex: --sandbox workspace-write); `sandbox = true` under `[agents]` in config.toml makes that the \
default. For other flags, set `permission_flags` under `[agents.claude]` or `[agents.codex]` in config.toml."
    };
}

#[derive(Debug, Subcommand)]
#[command(after_help = "A loop starts a fresh agent for each iteration until its completion rule holds.
Examples:
  steadfast loop types                              List what can be run
  steadfast loop run idea-wizard --max 2            Collect ideas in two iterations
  steadfast loop run work auth --max 20             Run until no bead is left (needs `bd`)
  steadfast loop run improve-plan --agent codex     Run until two iterations find nothing to improve
  steadfast loop run work auth --detach             Keep running after the terminal closes
  steadfast loop list                               List runs
  steadfast loop logs auth -f                       Follow a run; also status, attach, kill, resume")]
pub(crate) enum LoopVerb {
    /// Run a loop type until its completion rule holds
    #[command(after_help = concat!("Examples:
  steadfast loop run idea-wizard --max 2
  steadfast loop run work auth --max 20 --verify \"cargo test\"    Until no bead is left (needs `bd`)
  steadfast loop run improve-plan --agent ./my-agent.sh --timeout 20m
  steadfast loop run refine-beads --budget quick --usd 5 --detach
  steadfast loop run work nightly --at 22:00 --every 1d --usd 5    `loop list` shows it, `loop cancel nightly` ends it
Exit codes: 0 the rule holds, 1 failed, 3 a run of that name is active, 5 a limit was reached, \
130 interrupted", permissions_help!()))]
    Run(Box<LoopRunArgs>),
    #[command(flatten)]
    OnRun(RunVerb),
    /// List loop types: built-in, yours and the project's
    Types,
    /// Create a loop type in .claude/loops
    #[command(after_help = "Example: steadfast loop new fix-lints, then edit .claude/loops/fix-lints/")]
    New {
        /// Name of the loop type
        name: String,
        /// Create it in your home, for all projects
        #[arg(long)]
        user: bool,
    },
    /// Check a loop type and report every error with its line and a fix
    #[command(after_help = "Without TYPE, all loop types and pipelines of the project are checked.")]
    Validate {
        /// Name of the loop type, or path of its folder
        #[arg(value_name = "TYPE")]
        name: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
#[command(
    after_help = "A pipeline runs stages; each gets the outputs of the stages that it needs.
Examples:
  steadfast pipeline types                          List what can be run
  steadfast pipeline validate                       Check all definitions of the project
  steadfast pipeline graph full-refine              Show which stages wait for which
  steadfast pipeline run full-refine auth
  steadfast pipeline status auth --json",
    mut_subcommands(with_examples_of_pipelines)
)]
pub(crate) enum PipelineVerb {
    /// Run the stages of a pipeline
    #[command(after_help = concat!("Examples:
  steadfast pipeline run full-refine auth
  steadfast pipeline run ./ship.yaml --agent codex --usd 20 --detach
  steadfast pipeline run ship nightly --at 22:00 --every 1d    `pipeline list` shows it, `pipeline cancel nightly` ends it
Exit codes: 0 done, 1 failed, 3 a run of that name is active, 5 a limit was reached or a \
gate did not hold, 130 interrupted", permissions_help!()))]
    Run(Box<PipelineRunArgs>),
    #[command(flatten)]
    OnRun(RunVerb),
    /// Let a stage start that waits for your yes
    #[command(after_help = "Examples:
  steadfast pipeline approve ship              If one stage waits
  steadfast pipeline approve ship deploy --note \"after the release notes\"
An answer can be changed until the run has acted on it. If the engine is gone, `resume` reads it.")]
    Approve(AnswerArgs),
    /// Fail a stage that waits for your yes
    #[command(after_help = "Example: steadfast pipeline reject ship deploy --note \"not on a Friday\"
The run fails, unless the stage says `on_fail: continue`. `resume` asks again.")]
    Reject(AnswerArgs),
    /// List pipelines: built-in, yours and the project's
    Types,
    /// Create a pipeline in .claude/pipelines
    #[command(after_help = "Example: steadfast pipeline new ship, then edit .claude/pipelines/ship.yaml")]
    New {
        /// Name of the pipeline
        name: String,
        /// Create it in your home, for all projects
        #[arg(long)]
        user: bool,
    },
    /// Check a pipeline and report every error with its line and a fix
    #[command(after_help = "Without FILE, all loop types and pipelines of the project are checked.")]
    Validate {
        /// Pipeline file or name
        #[arg(value_name = "FILE")]
        file: Option<String>,
    },
    /// Show which stages of a pipeline wait for which
    #[command(after_help = "Example: steadfast pipeline graph ship --mermaid > ship.mmd")]
    Graph {
        /// Pipeline file or name
        #[arg(value_name = "FILE")]
        file: String,
        /// Print a Mermaid flowchart
        #[arg(long)]
        mermaid: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct LoopRunArgs {
    /// Loop type to run
    #[arg(value_name = "TYPE")]
    pub(crate) loop_type: String,
    /// Name of the run [default: the loop type]
    pub(crate) name: Option<String>,
    /// Maximum number of iterations [default: the loop type's or budget profile's, else 25]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max: Option<u32>,
    /// Run one iteration per item (comma-separated, repeatable)
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub(crate) items: Vec<String>,
    #[command(flatten)]
    pub(crate) how: RunHow,
}

#[derive(Debug, Args)]
pub(crate) struct PipelineRunArgs {
    /// Pipeline file or name
    pub(crate) file: String,
    /// Name of the run [default: the pipeline's name with date and time]
    pub(crate) name: Option<String>,
    /// Maximum number of iterations of each stage
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max: Option<u32>,
    #[command(flatten)]
    pub(crate) how: RunHow,
}

/// The flags that loops and pipelines share.
#[derive(Debug, Args)]
pub(crate) struct RunHow {
    #[command(flatten)]
    pub(crate) agent: AgentArgs,
    /// Command that must exit 0 before the run is complete (repeatable)
    #[arg(long, value_name = "CMD")]
    pub(crate) verify: Vec<String>,
    #[command(flatten)]
    pub(crate) limits: RunLimitArgs,
    /// File, directory or pattern that the first stage gets as ${INPUTS}, and all stages in ${CTX} (repeatable)
    #[arg(long, value_name = "FILE")]
    pub(crate) input: Vec<PathBuf>,
    /// Text for ${CONTEXT} in the prompts; replaces that of the definition
    #[arg(long, value_name = "TEXT")]
    pub(crate) context: Option<String>,
    /// Work in a separate git worktree, on the branch steadfast/NAME/run
    #[arg(long)]
    pub(crate) worktree: bool,
    /// Start later: 22:00, "2026-12-01 03:00", or "in 2h"; `steadfast watch` starts it
    #[arg(long, value_name = "TIME", conflicts_with = "tmux")]
    pub(crate) at: Option<String>,
    /// Start again and again, such as every 90m or 1d; whole days keep the time on the clock
    #[arg(long, value_name = "D", conflicts_with = "tmux")]
    pub(crate) every: Option<String>,
    /// Id of the new run (`steadfast watch` gives it)
    #[arg(long, value_name = "ID", hide = true, conflicts_with_all = ["at", "every"])]
    pub(crate) run_id: Option<uuid::Uuid>,
    /// Run in a tmux session named loop-NAME or pipeline-NAME
    #[arg(long, conflicts_with = "detach")]
    pub(crate) tmux: bool,
    /// Show what would run without running it
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// The flags that choose an agent.
#[derive(Debug, Args)]
pub(crate) struct AgentArgs {
    /// Agent to run: claude, codex, or a command that reads the prompt on stdin
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    /// Model of the agent; stages that name another agent keep their own
    #[arg(long, value_name = "M")]
    pub(crate) model: Option<String>,
    /// Time limit of one iteration, such as 20m or 2h
    #[arg(long, value_name = "D")]
    pub(crate) timeout: Option<String>,
    /// Let your own hooks and plugins run inside the agent
    #[arg(long)]
    pub(crate) user_hooks: bool,
    /// Start claude or codex in its own sandbox: it may change files of the project only
    #[arg(long)]
    pub(crate) sandbox: bool,
    /// Trust what this run uses of the repository, until it changes; see `steadfast trust`
    #[arg(long)]
    pub(crate) trust: bool,
    /// Run in the background, even after the terminal closes
    #[arg(long, short)]
    pub(crate) detach: bool,
    #[command(flatten)]
    pub(crate) fleet: FleetArgs,
}

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true,
    after_help = concat!("Starts one fresh agent after another until all --verify commands pass. Without --verify, the run ends \
when an agent promises that it is done or its result says `stop`.
The run is a loop named run-ID; `steadfast loop list`, `attach`, `kill` and `resume` work with it.
Budgets (tokens / iterations / hours):
  quick 2M/50/2, standard 10M/200/8, deep 100M/1000/24, overnight 1B/5000/72
Examples:
  steadfast run \"All tests pass\" --verify \"cargo test\" --budget standard
  steadfast run \"Port the parser to Rust\" --agent codex --usd 10 --detach
Exit codes: 0 verified, 1 failed, 5 a limit was reached (also --max), 6 verification keeps failing, \
130 interrupted", permissions_help!())
)]
pub(crate) struct RunArgs {
    #[command(subcommand)]
    pub(crate) verb: Option<RunOnceVerb>,
    /// What must be true at the end (1 to 4000 characters)
    #[arg(required = true, value_name = "OBJECTIVE")]
    pub(crate) objective: Vec<String>,
    /// Command that must exit 0 at the end (repeatable)
    #[arg(long, value_name = "CMD")]
    pub(crate) verify: Vec<String>,
    /// Wait for your `goal complete` at the end
    #[arg(long)]
    pub(crate) sign_off: bool,
    /// Maximum number of iterations [default: the budget profile's, else 25]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max: Option<u32>,
    #[command(flatten)]
    pub(crate) agent: AgentArgs,
    #[command(flatten)]
    pub(crate) limits: RunLimitArgs,
    /// Work in a separate git worktree, on the branch steadfast/NAME/run
    #[arg(long)]
    pub(crate) worktree: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use crate::cli::Cli;

    #[test]
    fn examples_are_of_the_command_that_was_asked() {
        let mut cli = Cli::command();
        cli.build();
        for (kind, other) in [("loop", "steadfast pipeline "), ("pipeline", "steadfast loop ")] {
            let mut of_kind = cli.find_subcommand(kind).unwrap().clone();
            for verb in of_kind.get_subcommands_mut() {
                let help = verb.render_long_help().to_string();
                assert!(!help.contains(other), "{kind} {}:\n{help}", verb.get_name());
            }
            let logs = of_kind.find_subcommand_mut("logs").unwrap().render_help().to_string();
            assert!(logs.contains(&format!("\n  steadfast {kind} logs auth -f  ")), "{logs}");
            assert!(!of_kind.render_long_help().to_string().contains(other), "{kind}");
        }
    }
}
