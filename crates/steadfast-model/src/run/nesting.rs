//! Runs that agents of other runs start. What one spends counts to the run above it, and it ends with it.

use super::{RunReason, RunStatus, Stopping};

/// How many runs may be inside each other, below a session or a run of the user.
pub const MOST_LEVELS: u32 = 2;

/// How a run ends the runs that its agents started: `stopping` is how it is about to end, if it is.
pub fn end_with_run(status: RunStatus, stopping: Option<&Stopping>) -> Option<Stopping> {
    let limit = stopping.and_then(|stopping| RunReason::parse(&stopping.reason)).filter(|reason| reason.is_limit());
    match limit {
        Some(reason) => Some(Stopping { status: RunStatus::Completed, reason: reason.into() }),
        None if status == RunStatus::Running && stopping.is_none() => None,
        None => {
            let reason = RunReason::Killed.with_detail("the run above it ended");
            Some(Stopping { status: RunStatus::Killed, reason })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nested_run_ends_with_the_run_above_it() {
        assert_eq!(end_with_run(RunStatus::Running, None), None);
        let at_limit = Stopping { status: RunStatus::Completed, reason: "max_hours".into() };
        assert_eq!(end_with_run(RunStatus::Running, Some(&at_limit)), Some(at_limit));
        let killed = end_with_run(RunStatus::Killed, None).unwrap();
        assert_eq!((killed.status, killed.reason.as_str()), (RunStatus::Killed, "killed: the run above it ended"));
    }
}
