//! Histories of real runs, replayed by this version: a run that an earlier version began must go on after an upgrade. A
//! history is never replaced; add one with `steadfast fleet history NAME`.

use std::path::Path;

use steadfast_fleet::worker::block_on;
use steadfast_fleet::workflow::RunWorkflow;
use temporalio_client::WorkflowHistory;
use temporalio_sdk::workflow_replayer::{WorkflowReplayer, WorkflowReplayerOptions};

async fn replay(history: &[u8]) -> Result<(), String> {
    let options = WorkflowReplayerOptions::new().register_workflow::<RunWorkflow>();
    let options = options.map_err(|error| error.to_string())?.build();
    let replayer = WorkflowReplayer::new(options).map_err(|error| error.to_string())?;
    let history = WorkflowHistory::from_json(history).map_err(|error| error.to_string())?;
    replayer.replay_workflow(history).await.map_err(|error| error.to_string())
}

#[test]
fn every_saved_history_replays() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/histories");
    let mut files: Vec<_> = fs_err::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 4, "{files:?}");
    for file in files {
        let history = fs_err::read(&file).unwrap();
        let replayed = block_on(replay(&history)).unwrap();
        assert_eq!(replayed, Ok(()), "{}", file.display());
    }
}

#[test]
fn a_history_of_other_code_is_refused() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/histories/loop.json");
    let history = fs_err::read_to_string(file).unwrap();
    assert!(history.contains("\"record\""));
    let other = history.replace("\"record\"", "\"another\"");
    let error = block_on(replay(other.as_bytes())).unwrap().unwrap_err();
    assert!(error.contains("ondeterminism"), "{error}");
}
