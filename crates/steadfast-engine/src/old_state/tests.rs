use std::path::Path;

use serde_json::json;
use steadfast_model::run::{RunKind, RunStatus, StageStatus};

use super::*;

struct Project(tempfile::TempDir);

impl Project {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    #[expect(clippy::needless_pass_by_value, reason = "tests pass texts and JSON alike")]
    fn write(&self, path: &str, content: impl ToString) {
        let path = self.0.path().join(path);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, content.to_string()).unwrap();
    }

    fn read(&self) -> OldState {
        read(self.0.path()).unwrap()
    }

    fn only(&self) -> OldRun {
        let mut found = self.read();
        assert_eq!((found.runs.len(), &found.warnings), (1, &Vec::new()), "{found:?}");
        found.runs.remove(0)
    }
}

fn numbers(run: &OldRun) -> Vec<(u32, u32)> {
    run.iterations.iter().map(|iteration| (iteration.row.id.stage, iteration.row.id.iteration)).collect()
}

fn output(iteration: &OldIteration) -> String {
    fs_err::read_to_string(iteration.output.as_ref().unwrap()).unwrap()
}

/// A loop of the newest tool that was killed after two of five iterations.
fn newest_loop(project: &Project) {
    let at = ".claude/pipeline-runs/auth";
    let entry = |iteration: u32, summary: &str| {
        json!({"iteration": iteration, "timestamp": format!("2026-01-20T10:0{iteration}:00Z"), "stage": "tidy",
            "decision": "continue", "summary": summary, "signals": {"plateau_suspected": iteration == 2}})
    };
    let state = json!({"session": "auth", "type": "loop", "started_at": "2026-01-20T10:00:00Z", "status": "running",
        "current_stage": 0, "iteration": 3, "iteration_completed": 2, "iteration_started": "2026-01-20T10:03:00Z",
        "stages": [], "history": [entry(1, "one"), entry(2, "two")], "event_offset": 0});
    project.write(&format!("{at}/state.json"), state);
    let events = "{\"ts\":\"x\",\"type\":\"session_start\",\"session\":\"auth\",\"data\":{\"mode\":\"single\"}}\n\
        {\"type\":\"node_start\",\"cursor\":{\"node_path\":\"0\"},\"data\":{\"id\":\"tidy\",\"max_iterations\":5}}\n\
        {\"type\":\"iteration_st";
    project.write(&format!("{at}/events.jsonl"), events);
    for iteration in 1..=3 {
        project.write(&format!("{at}/stage-00-tidy/iterations/00{iteration}/output.md"), format!("out {iteration}"));
    }
    project.write(&format!("{at}/progress-auth.md"), "learned");
}

#[test]
fn a_newest_loop_has_its_type_maximum_history_and_outputs() {
    let project = Project::new();
    newest_loop(&project);
    let run = project.only();
    assert_eq!((run.kind, run.name.as_str(), run.title.as_str()), (RunKind::Loop, "auth", "tidy"));
    assert_eq!((run.max_iterations, run.status), (Some(5), RunStatus::UnknownTermination));
    assert_eq!(numbers(&run), [(1, 1), (1, 2)]);
    let second = &run.iterations[1];
    assert_eq!((second.row.summary.as_deref(), second.row.plateau), (Some("two"), Some(true)));
    assert_eq!(output(second), "out 2");
    assert_eq!(run.stages[0].status, StageStatus::Running);
    assert!(run.progress[&1].ends_with("progress-auth.md"));
    // Reading again gives the same.
    assert_eq!(project.only(), run);
}

#[test]
fn a_crash_that_wrote_an_iteration_twice_or_not_at_all_is_counted_right() {
    let project = Project::new();
    let state = |history: Value, completed: u32| {
        json!({"session": "x", "type": "loop", "status": "running", "current_stage": 0,
            "iteration_completed": completed, "stages": [], "history": history})
    };
    let entry = |iteration: u32, summary: &str| json!({"iteration": iteration, "summary": summary});
    let file = ".claude/pipeline-runs/x/state.json";
    project.write(file, state(json!([entry(1, "a"), entry(2, "b"), entry(2, "c")]), 2));
    let run = project.only();
    assert_eq!((numbers(&run), run.iterations[1].row.summary.as_deref()), (vec![(1, 1), (1, 2)], Some("c")));
    // A finished session that was started again continues the old history.
    project.write(file, state(json!([entry(1, "a"), entry(2, "b"), entry(1, "new")]), 1));
    let run = project.only();
    assert_eq!((numbers(&run), run.iterations[0].row.summary.as_deref()), (vec![(1, 1)], Some("new")));
    // The state counts an iteration that the history lacks.
    project.write(file, state(json!([entry(1, "a")]), 2));
    project.write(".claude/pipeline-runs/x/stage-00-x/iterations/002/result.json", json!({"summary": "from result"}));
    let run = project.only();
    assert_eq!((numbers(&run), run.iterations[1].row.summary.as_deref()), (vec![(1, 1), (1, 2)], Some("from result")));
}

#[test]
fn a_pipeline_of_the_first_tool_is_at_the_stage_that_was_running() {
    let project = Project::new();
    let at = ".claude/pipeline-runs/ship";
    let stages = json!([{"index": 0, "name": "plan", "status": "complete", "timestamp": "2026-01-10T10:10:00Z"},
        {"index": 1, "name": "build", "status": "running", "timestamp": "2026-01-10T10:11:00Z"}]);
    let state = json!({"pipeline": "ship-it", "session": "ship", "started_at": "2026-01-10T10:00:00+00:00",
        "status": "running", "current_stage": 1, "stages": stages});
    project.write(&format!("{at}/state.json"), state);
    project.write(&format!("{at}/pipeline.yaml"), "name: ship-it\n");
    project.write(&format!("{at}/stage-1-plan/run-0.md"), "first");
    project.write(&format!("{at}/stage-1-plan/run-1.md"), "second");
    project.write(&format!("{at}/stage-2-build/run-0.md"), "built");
    project.write(&format!("{at}/stage-2-build/run-1.md"), "half");
    let run = project.only();
    assert_eq!((run.kind, run.title.as_str()), (RunKind::Pipeline, "ship-it"));
    let statuses: Vec<StageStatus> = run.stages.iter().map(|stage| stage.status).collect();
    assert_eq!(statuses, [StageStatus::Completed, StageStatus::Running]);
    assert_eq!(numbers(&run), [(1, 1), (1, 2), (2, 1)]);
    let outputs: Vec<String> = run.iterations.iter().map(output).collect();
    assert_eq!(outputs, ["first", "second", "built"]);
    assert!(matches!(run.definition, Some(OldDefinition::File(_))));
}

#[test]
fn a_compiled_plan_becomes_a_definition() {
    let project = Project::new();
    project.write("prompts/own.md", "do it");
    let node = |id: &str, more: Value| {
        let mut node = json!({"path": "0", "id": id, "kind": "stage", "ref": id, "provider": {"type": "claude-code",
            "model": "opus"}, "termination": {"type": "fixed", "max": 2, "min_iterations": null}, "inputs": {}});
        node.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        node
    };
    let plan = json!({"version": 1, "pipeline": {"name": "p"}, "nodes": [
        node("known", json!({"prompt_path": "prompts/own.md"})), node("own", json!({"prompt_path": "prompts/own.md"})),
        node("outside", json!({"prompt_path": "/etc/passwd"}))]});
    let definition = OldDefinition::Compiled { file: "plan.json".into(), plan };
    let project_dir = fs_err::canonicalize(project.0.path()).unwrap();
    let text = definition.text(&project_dir, &["known".to_owned()]).unwrap();
    let stages = serde_json::from_str::<Value>(&text).unwrap()["stages"].clone();
    assert_eq!((&stages[0]["stage"], &stages[0]["prompt"]), (&json!("known"), &Value::Null));
    assert_eq!((&stages[1]["stage"], &stages[1]["prompt"]), (&Value::Null, &json!("do it")));
    assert_eq!((&stages[2]["stage"], &stages[2]["prompt"]), (&json!("outside"), &Value::Null));
    assert_eq!(stages[0]["termination"], json!({"type": "fixed", "max": 2}));
}

#[test]
fn a_compiled_block_keeps_what_its_stages_and_the_pipeline_say() {
    let project = Project::new();
    let inner = json!({"path": "0.0", "id": "try", "kind": "stage", "ref": "own", "prompt": "go", "delay": 3,
        "context": "be brief", "output_path": "docs/x.md", "termination": {"type": "fixed", "max": 2}, "inputs": {}});
    let plan = json!({"version": 1, "pipeline": {"name": "p", "commands": {"test": "make"}, "inputs": ["docs/*.md"]},
        "nodes": [{"path": "0", "id": "duel", "kind": "parallel", "providers": ["claude", {"name": "codex"}],
            "stages": [inner], "inputs": {"from_initial": true}, "failure_mode": "continue"}]});
    let definition = OldDefinition::Compiled { file: "plan.json".into(), plan };
    let text = definition.text(project.0.path(), &[]).unwrap();
    let found: Value = serde_json::from_str(&text).unwrap();
    let stage = json!({"name": "try", "prompt": "go", "delay": 3, "context": "be brief", "output_path": "docs/x.md",
        "termination": {"type": "fixed", "max": 2}});
    let block = json!({"providers": ["claude", {"name": "codex"}], "failure_mode": "continue", "stages": [stage]});
    assert_eq!(found["stages"], json!([{"name": "duel", "parallel": block, "inputs": {"from_initial": true}}]));
    assert_eq!((&found["commands"], &found["inputs"]), (&json!({"test": "make"}), &json!(["docs/*.md"])));
}

#[test]
fn hostile_and_broken_files_are_reported_and_leave_the_rest() {
    let project = Project::new();
    let outside = tempfile::tempdir().unwrap();
    fs_err::write(outside.path().join("secret"), "secret").unwrap();
    newest_loop(&project);
    let link = |target: &Path, at: &str| {
        let at = project.0.path().join(".claude/pipeline-runs").join(at);
        fs_err::create_dir_all(at.parent().unwrap()).unwrap();
        let _ = fs_err::remove_file(&at);
        fs_err::os::unix::fs::symlink(target, at).unwrap();
    };
    link(&outside.path().join("secret"), "auth/stage-00-tidy/iterations/001/output.md");
    link(outside.path(), "linked");
    fs_err::write(outside.path().join("state.json"), "{\"session\":\"linked\",\"status\":\"running\"}").unwrap();
    project.write(".claude/pipeline-runs/torn/state.json", "{\"session\": \"to");
    project.write(".claude/loop-state-bad.json", json!({"session": "../../x", "status": "running"}));
    project.write(".claude/loop-state-odd.json", json!({"session": "odd", "status": 7, "history": "no"}));
    let found = project.read();
    assert_eq!(found.runs.len(), 1, "{found:?}");
    assert_eq!(found.runs[0].iterations[0].output, None);
    let warnings = found.warnings.join("\n");
    for part in
        ["linked/state.json` is not in the project", "torn/state.json` is broken", "invalid session", "no status"]
    {
        assert!(warnings.contains(part), "{part}: {warnings}");
    }
}
