//! Reports to hand to a colleague: one HTML file with everything in it, no scripts and nothing to load. `report/goal.rs`
//! and `report/run.rs` say what is in them, `report/file.rs` writes them.

mod file;
mod goal;
mod outcome;
mod run;
mod template;

pub use file::{FileError, write};
pub use goal::goal_html;
pub use run::run_html;

/// A template and its values do not fit together.
#[derive(Debug, thiserror::Error)]
#[error("cannot make the report: {0}")]
pub struct ReportError(String);

impl ReportError {
    pub fn hint(&self) -> &'static str {
        "report this as a bug; the same report without --html has the same facts"
    }
}

#[cfg(test)]
mod tests;
