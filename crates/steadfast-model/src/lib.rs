//! The leaf of the workspace: pure values and decisions. No file, database, process or client JSON is read here, so
//! that every crate above can depend on it and every decision can be tested without I/O.
//!
//! Reading order: [`goal`], [`run`], [`hook`], [`reading`], [`memory`].

// Here, because this crate is compiled first: an error of a crate above would hide the reason.
#[cfg(windows)]
compile_error!("steadfast needs Linux or macOS; on Windows, build and run it in WSL");

pub mod clock;
pub mod directive;
pub mod goal;
pub mod hook;
pub mod host;
pub mod limit;
pub mod memory;
pub mod outbox;
pub mod pause;
pub mod price;
pub mod prompt;
pub mod quota;
pub mod reading;

pub mod redact;
pub mod run;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod text;
