//! The beads tracker: whether a label has no open issues. `bd` is asked for ready issues and for all that are not
//! closed, because another agent may be working on one.

use serde_json::Value;

use super::{CheckContext, CheckResult, last_line};

const MOST_OUTPUT: u64 = 16 << 20;
/// The statuses of issues that need no work.
const CLOSED: [&str; 4] = ["closed", "tombstone", "done", "resolved"];

pub(super) fn are_empty_by(bd: &str, label: &str, context: &CheckContext) -> CheckResult {
    let ready = match list(bd, &["ready", "--json", "--label", label], context) {
        Ok(issues) => issues.len(),
        Err(why) => return (None, why),
    };
    if ready > 0 {
        let are = if ready == 1 { "bead is" } else { "beads are" };
        return (Some(false), format!("{ready} {are} ready"));
    }
    let open = match list(bd, &["list", "--json", "--label", label], context) {
        Ok(issues) => issues.iter().filter(|issue| !is_closed(issue)).count(),
        Err(why) => return (None, why),
    };
    (Some(open == 0), format!("no bead is ready, {open} are in progress or blocked"))
}

fn list(bd: &str, arguments: &[&str], context: &CheckContext) -> Result<Vec<Value>, String> {
    let line = || format!("{bd} {}", arguments.join(" "));
    let captured = match context.command(bd).args(arguments.iter().copied()).capture(MOST_OUTPUT) {
        Ok(captured) => captured,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err("cannot count beads: `bd` is not installed".to_owned());
        }
        Err(error) => return Err(format!("cannot run `bd`: {error}")),
    };
    if captured.exit_code != Some(0) {
        return Err(format!("`{}` failed: {}", line(), last_line(&captured.stderr_tail)));
    }
    // `bd` prints an empty list also as nothing or as `null`.
    let text = captured.stdout.trim_ascii();
    match serde_json::from_slice::<Value>(if text.is_empty() { b"null" } else { text }) {
        Ok(Value::Null) => Ok(Vec::new()),
        Ok(Value::Array(issues)) => Ok(issues),
        _ => Err(format!("`{}` did not print a JSON list", line())),
    }
}

fn is_closed(issue: &Value) -> bool {
    issue.get("status").and_then(Value::as_str).is_some_and(|status| CLOSED.contains(&status))
}
