//! The interactive agents we hook into. What differs between them is data here and wire types in the modules
//! below; foreign JSON never leaves those.

pub mod claude;
pub mod install;
pub mod process;

use serde::Serialize;
use strum::{Display, EnumString, IntoStaticStr};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString, IntoStaticStr, Serialize)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Host {
    Claude,
    Codex,
}
