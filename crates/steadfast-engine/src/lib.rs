//! Runs other programs: Codex once more, the verification commands of a goal, and the agents of loops and pipelines.
//! Every program has a group of its own and a time limit. Knows nothing of terminals.

pub mod agent;
pub mod attempt;
pub mod checks;
pub mod crash;
pub mod dispatcher;
pub mod durable;
pub mod files;
pub mod footprint;
pub mod foreground;
pub mod interrupt;
pub mod notify;
pub mod plan;
pub mod process;
pub mod processes;
pub mod publish;
pub mod pursuit;
pub mod shim;
pub mod verify;
pub mod worktree;
