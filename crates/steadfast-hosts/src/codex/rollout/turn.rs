//! Whether a turn runs and which model answers, from the end of a rollout. No hook reports the end of a turn that failed.

use std::ops::ControlFlow;
use std::path::Path;

use memchr::memmem;
use serde::Deserialize;
use serde_json::Value;

use crate::backwards;

#[derive(Deserialize)]
struct RolloutLine<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    payload: Payload<'a>,
}

#[derive(Deserialize)]
struct Payload<'a> {
    #[serde(rename = "type")]
    kind: Option<&'a str>,
}

/// `None` if the file cannot be read, or says nothing about turns.
pub(crate) fn turn_runs(rollout: &Path) -> Option<bool> {
    let mut runs = None;
    let read = backwards::read(rollout, None, |line, _| {
        let line: Option<RolloutLine<'_>> = serde_json::from_slice(line).ok();
        runs = line.filter(|line| line.kind == "event_msg").and_then(|line| match line.payload.kind? {
            "task_started" | "turn_started" => Some(true),
            "task_complete" | "turn_complete" | "turn_aborted" => Some(false),
            _ => None,
        });
        if runs.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    read.ok().and(runs)
}

/// The model of the newest turn, near the end of the file.
pub(crate) fn last_model(rollout: &Path) -> Option<String> {
    let mut model = None;
    let read = backwards::read(rollout, None, |line, _| {
        let is_turn = memmem::find(line, br#""turn_context""#).is_some();
        let line: Value = if is_turn { serde_json::from_slice(line).unwrap_or_default() } else { Value::Null };
        if line["type"] == "turn_context" {
            model = line["payload"]["model"].as_str().map(str::to_owned);
        }
        if model.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    read.ok().and(model)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_of_a_turn_is_in_the_file() {
        let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/codex/rollout");
        for name in ["simple.jsonl", "turn-failed-usage-limit.jsonl", "turn-interrupted-sigint.jsonl"] {
            assert_eq!(turn_runs(&samples.join(name)), Some(false), "{name}");
        }
        assert_eq!(turn_runs(Path::new("/nowhere")), None);
    }

    #[test]
    fn a_turn_runs_from_its_first_line_on() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rollout.jsonl");
        let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/codex/rollout/tool-call.jsonl");
        let whole = fs_err::read_to_string(sample).unwrap();
        let (before, after) = whole.split_once("\"task_complete\"").unwrap();
        let running = &before[..=before.rfind('\n').unwrap()];
        fs_err::write(&path, running).unwrap();
        assert_eq!((turn_runs(&path), after.is_empty()), (Some(true), false));
        fs_err::write(&path, "{\"type\":\"session_meta\",\"payload\":{}}\nnot json\n").unwrap();
        assert_eq!(turn_runs(&path), None);
    }
}
