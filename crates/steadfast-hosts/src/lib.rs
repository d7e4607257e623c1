//! The interactive agents we hook into: one adapter for each. Foreign JSON does not leave the adapters.

mod activity;
mod adapter;
mod backwards;
pub mod claude;
pub mod codex;
pub mod command;
mod context;
pub mod doctor;
pub mod headless;
mod hook;
pub mod install;
pub mod lines;
mod observe;
mod program;
pub mod project_files;
mod repair;
mod skim;
pub mod stream;
pub mod tree;
pub mod trouble;
pub mod wake;

pub use activity::worked_since;
pub use adapter::{AgentCall, HostAdapter, SubagentFiles, ToolCallOrigin, adapter, adapters};
pub use context::{Since, Statement, holds_text};
pub use program::installed_version;
