//! Public state files under `.claude`, which people and other tools write: the registry, states of loops and pipelines.

use steadfast_engine::{files, old_state};
use steadfast_model::run::name::RunName;

use crate::scratch;

/// In this order, between lines with `===`.
const FILES: [&str; 4] = [
    "loop-sessions.json",
    "loop-state-fuzzed.json",
    "pipeline-runs/fuzzed/state.json",
    "pipeline-runs/fuzzed/plan.json",
];

pub(crate) fn run(data: &[u8]) {
    let mut parts = scratch::parts(data);
    let mut registry_file = None;
    for name in FILES {
        let path = scratch::file(&format!("state/.claude/{name}"), parts.next().unwrap_or_default());
        registry_file.get_or_insert(path);
    }
    let registry_file = registry_file.expect("the first file");
    let project = registry_file.ancestors().nth(2).expect("the project");
    let found = old_state::read(project).expect("a directory can be read");
    for run in &found.runs {
        assert!(run.name.parse::<RunName>().is_ok(), "{:?}", run.name);
    }
    assert_eq!(old_state::read(project).ok().as_ref(), Some(&found), "two readings differ");

    let entries = files::registry(project).unwrap_or_default();
    let Some(first) = entries.first() else { return };
    if files::mark_killed(project, &first.key, 0).is_ok_and(|is_marked| is_marked) {
        let after = files::registry(project).expect("a marked registry can be read");
        assert_eq!(after.len(), entries.len());
        for (before, after) in entries.iter().zip(&after).filter(|(before, _)| before.key != first.key) {
            assert_eq!(before, after, "another entry changed");
        }
    }
}
