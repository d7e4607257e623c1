//! State files as the older tools really wrote them.

use serde_json::json;
use steadfast_model::run::AttemptId;
use tempfile::TempDir;

use super::*;

/// 2025-01-10T10:00:00Z.
const START: Millis = 1_736_503_200_000;

struct World(TempDir);

impl World {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, value: &Value) -> PathBuf {
        let path = self.0.path().canonicalize().unwrap().join(".claude").join(name);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(&path, value.to_string()).unwrap();
        path
    }

    fn import(&self) -> Import {
        import(self.0.path()).unwrap()
    }

    fn only(&self) -> Imported {
        let mut import = self.import();
        assert_eq!((import.runs.len(), import.warnings.len()), (1, 0), "{import:?}");
        import.runs.remove(0)
    }
}

fn committed(iteration: u32, minutes: Millis, plateau: Option<bool>, reasoning: Option<&str>) -> IterationRow {
    IterationRow {
        id: AttemptId { stage: 1, iteration, attempt: 1 },
        plateau,
        reasoning: reasoning.map(str::to_owned),
        started_at_ms: START + (minutes - 1) * 60_000,
        committed_at_ms: START + minutes * 60_000,
        ..IterationRow::default()
    }
}

#[test]
fn a_loop_of_the_first_engine() {
    let world = World::new();
    let file = world.write(
        "loop-state-auth.json",
        &json!({"session": "auth", "loop_type": "improve-plan", "started_at": "2025-01-10T11:00:00+01:00",
            "status": "complete", "iteration": 2, "history": [
                {"iteration": 1, "timestamp": "2025-01-10T11:01:00+01:00", "plateau": "false", "reasoning": "more"},
                {"iteration": 2, "timestamp": "2025-01-10T11:02:00+01:00", "plateau": "Yes (ready)"}],
            "completed_at": "2025-01-10T11:02:00+01:00", "completion_reason": "Plateau\nconfirmed"}),
    );
    let before = fs_err::read(&file).unwrap();
    let run = world.only();
    let expected = Imported {
        id: run.id.clone(),
        file: file.clone(),
        name: "auth".into(),
        kind: RunKind::Loop,
        title: "improve-plan".into(),
        status: RunStatus::Completed,
        reason: Some("Plateau\nconfirmed".into()),
        started_at_ms: Some(START),
        completed_at_ms: Some(START + 120_000),
        max_iterations: None,
        stage: 1,
        stages: vec![],
        iterations: vec![committed(1, 1, Some(false), Some("more")), committed(2, 2, Some(true), None)],
        progress: None,
        warnings: vec![],
    };
    assert_eq!(run, expected);
    assert_eq!(world.only(), expected, "reading again gives the same");
    assert_eq!(fs_err::read(&file).unwrap(), before);
}

#[test]
fn the_maximum_of_the_registry_and_the_progress_of_the_agents_come_along() {
    let world = World::new();
    let state =
        json!({"session": "auth", "loop_type": "work", "started_at": "2025-01-10T10:00:00Z", "status": "complete"});
    world.write("loop-state-auth.json", &state);
    let entry = json!({"type": "loop", "status": "running", "max_iterations": 20});
    world.write("loop-sessions.json", &json!({"sessions": {"loop-auth": entry}}));
    let old = world.write("progress-auth.md", &json!("what we learned"));
    let run = world.only();
    assert_eq!((run.max_iterations, run.status, run.progress.as_ref()), (Some(20), RunStatus::Completed, Some(&old)));
    assert!(bring_progress(world.0.path(), &run).unwrap());
    let new = world.0.path().join(".claude/loop-progress/progress-auth.txt");
    assert_eq!(fs_err::read(&new).unwrap(), fs_err::read(&old).unwrap());
    fs_err::write(&new, "ours").unwrap();
    assert!(!bring_progress(world.0.path(), &run).unwrap());
    assert_eq!(fs_err::read_to_string(&new).unwrap(), "ours");
}

#[test]
fn the_one_state_file_of_the_merged_engine() {
    let world = World::new();
    world.write(
        "state.json",
        &json!({"session": "auth", "type": "loop", "started_at": "2025-01-10T10:00:00Z", "status": "running",
            "current_stage": 0, "iteration": 3, "stages": [], "history": [
                {"iteration": 1, "timestamp": "2025-01-10T10:01:00Z"}, {"iteration": 2, "timestamp": "2025-01-10T10:02:00Z"},
                {"iteration": 2, "timestamp": "2025-01-10T10:03:00Z"}, {"iteration": 1, "timestamp": "2025-01-10T10:04:00Z"},
                {"iteration": 2, "timestamp": "2025-01-10T10:05:00Z"}]}),
    );
    let killed = json!({"type": "loop", "status": "killed", "killed_at": "2025-01-10T10:30:00Z"});
    world.write("loop-sessions.json", &json!({"sessions": {"loop-auth": killed}}));
    let run = world.only();
    assert_eq!((run.stage, run.status), (1, RunStatus::Killed));
    assert_eq!(run.completed_at_ms, Some(START + 30 * 60_000));
    let numbers: Vec<_> = run.iterations.iter().map(|it| (it.id.iteration, it.committed_at_ms - START)).collect();
    assert_eq!(numbers, [(1, 60_000), (2, 180_000), (3, 240_000), (4, 300_000)]);
    assert_eq!(run.warnings.len(), 2, "{:?}", run.warnings);
}

#[test]
fn pipelines_that_count_from_zero() {
    let world = World::new();
    let stages = json!([{"index": 0, "name": "plan", "status": "complete", "timestamp": "2025-01-10T10:05:00Z"},
                        {"index": 1, "name": "beads", "status": "running", "timestamp": "2025-01-10T10:06:00Z"}]);
    world.write(
        "pipeline-runs/refine/state.json",
        &json!({"pipeline": "full-refine", "session": "refine", "started_at": "2025-01-10T10:00:00Z",
            "status": "running", "current_stage": 1, "stages": stages}),
    );
    let run = world.only();
    let stage = |name: &str, status: &str, started: Option<Millis>, completed: Option<Millis>| ImportedStage {
        name: name.into(),
        loop_type: None,
        runs: None,
        status: status.into(),
        started_at_ms: started,
        completed_at_ms: completed,
        reason: None,
    };
    assert_eq!((run.kind, run.stage), (RunKind::Pipeline, 2));
    let (first, second) = (START + 300_000, START + 360_000);
    let expected = [stage("plan", "completed", None, Some(first)), stage("beads", "running", Some(second), None)];
    assert_eq!(run.stages, expected);
    assert_eq!(run.status, RunStatus::UnknownTermination, "nobody drives it any more");
}

#[test]
fn the_newest_layout_with_its_decisions_and_signals() {
    let world = World::new();
    let history = json!([
        {"iteration": 1, "timestamp": "2025-01-10T10:01:00Z", "stage": "elegance", "decision": "continue",
         "reason": "more to do", "summary": "one", "files_touched": []},
        {"iteration": 2, "timestamp": "2025-01-10T10:02:00Z", "stage": "elegance", "decision": "error",
         "signals": {"plateau_suspected": true, "risk": "high"}},
    ]);
    world.write(
        "pipeline-runs/tidy/state.json",
        &json!({"session": "tidy", "type": "loop", "started_at": "2025-01-10T10:00:00Z", "status": "failed",
            "current_stage": 0, "iteration": 2, "iteration_completed": 2, "iteration_started": null, "event_offset": 0,
            "stages": [{"index": 0, "name": "elegance", "status": "failed", "timestamp": "2025-01-10T10:03:00Z"}],
            "history": history, "failed_at": "2025-01-10T10:03:00Z",
            "error": {"type": "agent", "message": "it broke", "timestamp": "x"}}),
    );
    let run = world.only();
    assert_eq!((run.kind, run.title.as_str()), (RunKind::Loop, "elegance"));
    assert_eq!((run.status, run.reason.as_deref()), (RunStatus::Failed, Some("it broke")));
    let mut first = committed(1, 1, Some(false), Some("more to do"));
    (first.summary, first.decision) = (Some("one".into()), Some(steadfast_model::run::AgentDecision::Continue));
    let mut second = committed(2, 2, Some(true), None);
    second.decision = Some(steadfast_model::run::AgentDecision::Error);
    assert_eq!(run.iterations, [first, second]);
}

#[test]
fn what_cannot_be_read_is_told_and_our_own_runs_are_left_out() {
    let world = World::new();
    world.write("loop-state-ours.json", &json!({"session": "ours", "status": "running", "run_id": "r"}));
    world.write("loop-state-broken.json", &json!([]));
    world.write("loop-state-odd.json", &json!({"session": "../odd", "status": "running"}));
    world.write("loop-state-what.json", &json!({"session": "what", "status": "dreaming"}));
    world.write("loop-state-x.json.broken-1", &json!({"session": "x", "status": "running"}));
    std::os::unix::fs::symlink("/etc/passwd", world.0.path().join(".claude/loop-state-link.json")).unwrap();
    let import = world.import();
    assert_eq!(import.runs, []);
    let expected =
        ["`.claude/loop-state-broken.json` is broken", "leaves the project", "`../odd` contains `/`", "`dreaming`"];
    assert_eq!(import.warnings.len(), expected.len(), "{:?}", import.warnings);
    for (told, expected) in import.warnings.iter().zip(expected) {
        assert!(told.contains(expected), "{told}");
    }
    assert_eq!(World::new().import(), Import::default());
}
