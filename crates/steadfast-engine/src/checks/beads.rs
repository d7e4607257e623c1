//! The beads tracker: whether a label has no work left. `bd` is asked for what is ready and for everything that is not
//! closed, since an issue in another agent's hands is not done.

use std::process::Stdio;

use serde_json::Value;

use super::{Finding, Surroundings};
use crate::process;

const MOST_OUTPUT: u64 = 16 << 20;
/// Statuses of issues that nobody has to work on any more.
const OVER: [&str; 4] = ["closed", "tombstone", "done", "resolved"];

pub(super) fn are_empty(label: &str, here: &Surroundings) -> Finding {
    are_empty_by("bd", label, here)
}

pub(super) fn are_empty_by(bd: &str, label: &str, here: &Surroundings) -> Finding {
    let ready = match list(&[bd, "ready", "--json", "--label", label], here) {
        Ok(issues) => issues.len(),
        Err(why) => return (None, why),
    };
    if ready > 0 {
        return (Some(false), format!("{ready} beads are ready"));
    }
    let open = match list(&[bd, "list", "--json", "--label", label], here) {
        Ok(issues) => issues.iter().filter(|issue| !is_over(issue)).count(),
        Err(why) => return (None, why),
    };
    (Some(open == 0), format!("no bead is ready, {open} are in progress or blocked"))
}

fn list(argv: &[&str], here: &Surroundings) -> Result<Vec<Value>, String> {
    let captured =
        process::capture_with(&here.watch, Stdio::null(), &[], argv, &here.directory, here.limit, MOST_OUTPUT);
    let captured = match captured {
        Ok(captured) => captured,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err("`bd` is not installed: beads cannot be counted".to_owned());
        }
        Err(error) => return Err(format!("`bd` cannot be run: {error}")),
    };
    if captured.exit_code != Some(0) {
        let last = captured.stderr_tail.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
        return Err(format!("`{}` failed: {last}", argv.join(" ")));
    }
    // Nothing and `null` are how an empty list is told, too.
    let text = captured.stdout.trim_ascii();
    match serde_json::from_slice::<Value>(if text.is_empty() { b"null" } else { text }) {
        Ok(Value::Null) => Ok(Vec::new()),
        Ok(Value::Array(issues)) => Ok(issues),
        _ => Err(format!("`{}` did not print a list", argv.join(" "))),
    }
}

fn is_over(issue: &Value) -> bool {
    issue.get("status").and_then(Value::as_str).is_some_and(|status| OVER.contains(&status))
}
