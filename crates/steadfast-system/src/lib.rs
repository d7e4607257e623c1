//! The machine: environment variables, paths and configuration, files within bounds, processes.

pub mod bounded;
pub mod clock;
pub mod config;
pub mod disk;
pub mod env_vars;
pub mod folder;
pub mod log;
pub mod paths;
pub mod private;
pub mod process;
pub mod project;
pub mod unfinished;
pub mod watch_lock;
