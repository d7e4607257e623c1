//! The interactive agents we hook into. What differs between them is data here and wire types in the modules
//! below; foreign JSON never leaves those.

pub mod claude;
pub mod codex;
pub mod install;
pub mod process;

use std::path::Path;

use serde::Serialize;
use strum::{Display, EnumString, IntoStaticStr};

use crate::usage::{Position, Reading};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString, IntoStaticStr, Serialize)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Host {
    Claude,
    Codex,
}

/// Reads what is new in a session file of a host.
pub fn read_transcript(host: Host, path: &Path, from: &Position) -> std::io::Result<Reading> {
    match host {
        Host::Claude => claude::transcript::read(path, from),
        Host::Codex => codex::rollout::read(path, from),
    }
}
