//! What a dead engine left, in words: agents that still run, results that wait, and what `resume` and `kill` do about it.

use super::{AttemptView, Left, LeftView, RunDetail};

/// Process ids on a line.
const PIDS_SHOWN: usize = 8;

/// The lines of a status page about a run whose engine is gone.
pub(super) fn lines(detail: &RunDetail) -> Vec<String> {
    let run = &detail.run;
    let (command, name) = (run.command(), &run.name);
    let mut lines = vec!["its engine is gone, and left:".to_owned()];
    let left = detail.under_way.iter().filter_map(|attempt| Some((attempt, attempt.left.as_ref()?)));
    lines.extend(left.map(|(attempt, left)| format!("  {}: {}", place(detail, attempt), words(left))));
    if lines.len() == 1 {
        lines = vec!["its engine is gone; no agent was at work".to_owned()];
    }
    let has = |wanted: Left| {
        detail.under_way.iter().filter_map(|attempt| attempt.left.as_ref()).any(|left| left.state == wanted)
    };
    let mut first = Vec::new();
    if has(Left::Running) {
        first.push("waits for the agents that run");
    }
    if has(Left::Running) || has(Left::Finished) || has(Left::Unchecked) {
        first.push("collects what is finished");
    }
    first.push("continues the run");
    lines.push(format!("`{command} resume {name}` {}", first.join(", ")));
    let ends = if has(Left::Running) { "stops the agents that run and ends the run" } else { "ends the run" };
    lines.push(format!("`{command} kill {name}` {ends}; committed iterations stay"));
    lines
}

fn place(detail: &RunDetail, attempt: &AttemptView) -> String {
    let stage = detail.stages.iter().find(|stage| stage.stage == attempt.stage);
    match stage.filter(|_| detail.stages.len() > 1) {
        Some(stage) => format!("stage {}, iteration {}", stage.name, attempt.iteration),
        None => format!("iteration {}", attempt.iteration),
    }
}

fn words(left: &LeftView) -> String {
    match left.state {
        Left::NotStarted => "its agent was not started".to_owned(),
        Left::Running => {
            let pids: Vec<String> = left.pids.iter().take(PIDS_SHOWN).map(ToString::to_string).collect();
            let more = if left.pids.len() > PIDS_SHOWN { " …" } else { "" };
            let shown = if pids.is_empty() { String::new() } else { format!(" (pid {}{more})", pids.join(", ")) };
            format!("its agent still runs{shown}")
        }
        Left::Finished => "its agent has finished; the result waits to be collected".to_owned(),
        Left::Unchecked => "its agent has finished; the checks wait to be run".to_owned(),
        Left::Lost => "its agent was lost; the iteration is tried again".to_owned(),
    }
}
