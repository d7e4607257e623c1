//! The heart of Steadfast: goals and their life cycle, what a session spent, the hosts' wire formats and the
//! store. Everything here is synchronous and starts no thread; it never touches a terminal, a socket or clap,
//! because it runs inside hooks on the user's hot path.
//!
//! Reading order: [`goal`], [`hook`], [`host`], [`usage`], [`store`].

pub mod accounting;
pub mod action;
pub mod bounded;
pub mod clock;
pub mod config;
pub mod directive;
pub mod env_vars;
pub mod goal;
pub mod hook;
pub mod host;
pub mod log;
pub mod memory;
pub mod native;
pub mod overview;
pub mod paths;
pub mod price;
pub mod project;
pub mod prompt;
pub mod run;
pub mod session;
pub mod spend;
pub mod store;
#[cfg(test)]
mod testing;
pub mod text;
pub mod usage;
