//! The flags of `goal wait`.

use clap::Args;
use steadfast_model::clock::Millis;
use steadfast_model::goal::wait::{WaitCondition, WaitError, WaitRequest};

#[derive(Debug, Args)]
#[command(after_help = "The goal wakes when the condition is met, at the latest after 24 hours or at the given time.
Examples:
  steadfast goal wait --for 15m
  steadfast goal wait --file build.done --until 17:30
  steadfast goal wait --command \"curl -fs localhost:8080/health\" --for 2h")]
pub(crate) struct WaitArgs {
    /// Wait until this time: 17:30, 2026-11-15T17:30, or "in 3h"
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    until: Option<String>,
    /// Wait for this long: 90s, 15m, 2h, 1d
    #[arg(long = "for", value_name = "DURATION", conflicts_with = "until", allow_hyphen_values = true)]
    duration: Option<String>,
    /// Wait until this command exits with 0
    #[arg(long, value_name = "CMD", group = "condition", allow_hyphen_values = true)]
    command: Option<String>,
    /// Wait until this file exists; the path is relative to the goal's directory
    #[arg(long, value_name = "PATH", group = "condition", allow_hyphen_values = true)]
    file: Option<String>,
    /// Wait until this process ends
    #[arg(long, value_name = "N", group = "condition", allow_hyphen_values = true)]
    pid: Option<i64>,
}

impl WaitArgs {
    pub(crate) fn request(&self, now: Millis) -> Result<WaitRequest, WaitError> {
        let until = match (&self.until, &self.duration) {
            (Some(moment), _) => Some(WaitRequest::parse_until(moment, now)?),
            (None, Some(duration)) => Some(WaitRequest::parse_for(duration, now)?),
            (None, None) => None,
        };
        let condition = match (&self.command, &self.file, self.pid) {
            (Some(command), ..) => Some(WaitCondition::Command(command.clone())),
            (None, Some(path), _) => Some(WaitCondition::File(path.clone())),
            (None, None, pid) => pid.map(WaitCondition::Process),
        };
        Ok(WaitRequest { until, condition })
    }
}
