//! `steadfast usage`: every response in the session files of the machine, summed once.

mod cache;
pub mod charts;
pub mod collect;
pub mod machine;
pub mod report;
pub mod runs;
pub mod summary;
