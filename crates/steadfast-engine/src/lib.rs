//! Runs other programs: the agents of loops and pipelines, the verify commands of goals, and one more turn of Codex.
//! Every program has a process group of its own and a time limit. Nothing here writes to a terminal.

pub mod agent;
pub mod attempt;
pub mod checks;
pub mod crash;
mod descendants;
pub mod dispatcher;
pub mod durable;
mod environment;
mod excerpt;
pub mod files;
mod footprint;
pub mod foreground;
pub mod goal_link;
pub mod interrupt;
pub mod lock;
pub mod nesting;
pub mod notify;
pub mod observer;
pub mod old_runs;
pub mod old_state;
mod outage;
pub mod plan;
pub mod process;
pub mod publish;
pub mod run_folder;
pub mod submission;
pub mod supervisor;
#[cfg(feature = "testing")]
pub mod testing;
pub mod trust;
pub mod verify;
pub mod wait;
pub mod work;
pub mod worktree;

pub use descendants::kill_descendants;
