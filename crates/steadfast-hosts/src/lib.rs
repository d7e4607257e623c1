//! The interactive agents we hook into. What is true of each is data (`steadfast_model::host`), what needs code is in
//! its adapter (`host/adapter.rs`, `host/claude.rs`, `host/codex.rs`). Foreign JSON does not leave the adapters.

mod activity;
mod adapter;
mod backwards;
pub mod claude;
pub mod codex;
pub mod command;
mod context;
pub mod doctor;
pub mod headless;
pub mod install;
pub mod lines;
mod observe;
mod repair;
mod skim;
pub mod stream;
pub mod tree;
pub mod trouble;

use serde_json::{Map, Value};

pub use activity::worked_since;
pub use adapter::{HostAdapter, SubagentFiles, ToolCallOrigin, adapter, adapters};
pub use context::{Since, Statement, holds_text};

fn is_json_object(stdin: &[u8]) -> bool {
    serde_json::from_slice::<Map<String, Value>>(stdin).is_ok()
}
