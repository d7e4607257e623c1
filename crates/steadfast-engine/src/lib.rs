//! Runs other programs: the verification commands of a goal, each in its own process group and with a time
//! limit. Knows nothing of terminals or hosts.

pub mod process;
pub mod verify;
