//! The interactive agents we hook into. What differs between them is data here and wire types in the modules
//! below; foreign JSON never leaves those.

pub mod claude;
pub mod install;
pub mod process;
mod skim;
pub mod tree;

use std::path::Path;

use serde::Serialize;
use strum::{Display, EnumString, IntoStaticStr};

use crate::usage::{Position, Reading};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Display, EnumString, IntoStaticStr, Serialize)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Host {
    Claude,
    Codex,
}

/// Reads the responses that are new in a session file, and nothing else about it.
pub fn read_counts(host: Host, path: &Path, from: &Position) -> std::io::Result<Reading> {
    match host {
        Host::Claude => claude::transcript::read_counts(path, from),
        // Codex rollouts have a form of their own, which is not read yet. When they are, `usage/cache.rs` needs
        // another `MAGIC`, or files that were listed before stay empty.
        Host::Codex => Ok(Reading::nothing_new(from.clone())),
    }
}
