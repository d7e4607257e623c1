//! What happens: hook handlers, actions on goals, accounting, usage, and the read model behind every view.
//! Synchronous and without threads, because it runs inside hooks on the user's hot path.

pub mod accounting;
pub mod action;
pub mod caller;
pub mod exit_codes;
pub mod hook;
pub mod liveness;
pub mod native;
pub mod overview;
pub mod prompting;
pub mod session;
#[cfg(test)]
mod testing;
pub mod tool_args;
pub mod transfer;
pub mod upkeep;
pub mod usage;
pub mod wake;
