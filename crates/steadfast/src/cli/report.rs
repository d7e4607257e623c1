//! The flags of reports.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct HtmlArgs {
    /// Write one self-contained HTML file with charts; without FILE or with `-`, print it
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub(crate) html: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct RunReportArgs {
    /// Name of the run
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) html: HtmlArgs,
}

/// What `steadfast run` does besides starting.
#[derive(Debug, Subcommand)]
pub(crate) enum RunOnceVerb {
    /// Show a run with all its iterations, or write a report of it
    #[command(after_help = "Example: steadfast run report run-1a2b3c4d --html report.html
An objective that begins with this word has to be quoted: steadfast run \"report the failing tests\"")]
    Report(RunReportArgs),
}
