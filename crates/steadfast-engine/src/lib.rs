//! Runs other programs: Codex once more, and the verification commands of a goal, each in its own group with a time
//! limit. Knows nothing of terminals or hosts.

pub mod codex;
pub mod files;
pub mod plan;
pub mod process;
pub mod verify;
