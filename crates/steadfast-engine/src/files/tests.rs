//! The public files against a real directory: what they say, what survives in them, and what people do to them.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use steadfast_model::clock::Millis;
use steadfast_model::reading::Tokens;
use steadfast_model::run::machine;
use steadfast_model::run::{
    AgentResult, AttemptId, AttemptUsage, Outcome, Plan, Record, Rule, Run, RunKind, RunLimits, RunStatus, StagePlan,
    StageState, StageStatus, Step, Success,
};
use steadfast_store::{Store, StoreError};
use tempfile::TempDir;

use super::*;

mod edits;
mod exclude;
mod marks;
mod stages;
mod trouble;

/// 2025-01-10T10:00:00Z, as in the documented examples.
const START: Millis = 1_736_503_200_000;
const MINUTE: Millis = 60_000;
const RUN: &str = "run-1";

struct World {
    directory: TempDir,
    home: TempDir,
    store: Store,
    plan: Plan,
    run: Run,
    version: i64,
    /// Fields that the next iteration said something in.
    fields: Vec<(String, String)>,
}

fn stage(name: &str, runs: u32, completion: Rule) -> StagePlan {
    StagePlan { loop_type: Some(name.into()), prompt: "Work.".into(), ..StagePlan::new(name, completion, runs) }
}

impl World {
    fn new(kind: RunKind, name: &str, title: &str, stages: Vec<StagePlan>) -> Self {
        let mut begun: Vec<StageState> = stages.iter().map(|_| StageState::default()).collect();
        begun[0] = StageState { status: StageStatus::Running, started_at_ms: Some(START), ..StageState::default() };
        let pipeline_file = (kind == RunKind::Pipeline).then(|| format!("{title}.yaml"));
        let limits = RunLimits::default();
        let purpose = steadfast_model::run::RunPurpose::Definition;
        let plan = Plan { name: name.into(), kind, title: title.into(), pipeline_file, stages, limits, purpose };
        let run = Run { stages: begun, ..machine::begin(&plan, START) };
        let (directory, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut store = Store::open(&home.path().join("goals.db")).unwrap();
        store.write(|db| db.create_run(RUN, "/p", &plan, &run, START)).unwrap();
        Self { directory, home, store, plan, run, version: 0, fields: Vec::new() }
    }

    fn a_loop() -> Self {
        Self::new(RunKind::Loop, "myfeature", "work", vec![stage("work", 50, Rule::Plateau(2))])
    }

    fn a_pipeline() -> Self {
        let stages = ["improve-plan", "refine-beads"].map(|name| stage(name, 5, Rule::Plateau(2)));
        Self::new(RunKind::Pipeline, "myrefine", "full-refine", stages.to_vec())
    }

    fn open(&self) -> PublicFiles {
        PublicFiles::open(self.directory.path(), self.plan.kind, &self.plan.name).unwrap()
    }

    fn view(&self) -> FileView<'_> {
        FileView { run_id: RUN, plan: &self.plan, run: &self.run, pid: Some(4711) }
    }

    fn output(&self, stage: u32, iteration: u32) -> OutputOf<'_> {
        OutputOf { plan: &self.plan, run: &self.run, stage, iteration }
    }

    fn publish(&self, files: &mut PublicFiles) -> Vec<String> {
        files.publish(&self.view(), self.store.read()).unwrap()
    }

    /// Commits the next iteration of the stage under way, a minute after the last.
    fn commit(&mut self, plateau: Option<bool>, reasoning: Option<&str>) {
        self.commit_many(1, plateau, reasoning);
    }

    fn commit_many(&mut self, many: u32, plateau: Option<bool>, reasoning: Option<&str>) {
        let result = AgentResult {
            plateau,
            reasoning: reasoning.map(str::to_owned),
            fields: std::mem::take(&mut self.fields),
            ..AgentResult::default()
        };
        let (run, version) = (&mut self.run, &mut self.version);
        let saved = self.store.write(|db| {
            for _ in 0..many {
                let (step, now) = next_commit(run, &result);
                *version = db.save_step(RUN, *version, &step, now)?;
                *run = step.run;
            }
            Ok::<(), StoreError>(())
        });
        saved.unwrap();
    }

    fn end(&mut self, status: RunStatus, reason: &str) {
        self.run.status = status;
        self.run.reason = Some(reason.into());
        self.run.completed_at_ms = Some(START + 60 * MINUTE);
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(".claude").join(name)
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&fs_err::read(self.path(name)).unwrap()).unwrap()
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
    }

    /// Changes a file by hand, as `jq … > tmp && mv tmp FILE` does.
    fn edit(&self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut value = self.json(name);
        change(&mut value);
        self.write("tmp", &value.to_string());
        fs_err::rename(self.path("tmp"), self.path(name)).unwrap();
    }

    fn names(&self) -> Vec<String> {
        let entries = fs_err::read_dir(self.path("")).unwrap();
        let mut names: Vec<_> = entries.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn project(&self) -> String {
        self.directory.path().canonicalize().unwrap().display().to_string()
    }
}

/// The step that commits the next iteration of the stage under way, and when.
fn next_commit(run: &Run, result: &AgentResult) -> (Step, Millis) {
    let mut run = run.clone();
    let minutes: u32 = run.stages.iter().map(|stage| stage.iterations).sum();
    let at = |minutes: u32| START + Millis::from(minutes) * MINUTE;
    let state = &mut run.stages[run.stage as usize - 1];
    state.iterations += 1;
    let id = AttemptId { stage: run.stage, iteration: state.iterations, attempt: 1 };
    let usage = AttemptUsage {
        tokens: Tokens { input: 1_000, ..Tokens::default() },
        cost_micros: 250_000,
        ..AttemptUsage::default()
    };
    run.tokens += usage.tokens.input;
    run.cost_micros += usage.cost_micros;
    let success = Box::new(Success {
        result: result.clone(),
        usage,
        started_at_ms: at(minutes),
        ended_at_ms: at(minutes + 1),
        ..Success::default()
    });
    let records = vec![
        Record::AttemptStarted { id },
        Record::AttemptEnded { id, outcome: Outcome::Succeeded(success.clone()) },
        Record::Committed { id, success, facts: Vec::new() },
    ];
    (Step { run, records, acts: Vec::new() }, at(minutes + 1))
}

const REGISTRY: &str = "loop-sessions.json";
const LOOP_STATE: &str = "loop-state-myfeature.json";

#[test]
fn a_loop_has_the_documented_fields_and_keeps_them_in_order() {
    let mut world = World::a_loop();
    let mut files = world.open();
    world.commit(None, None);
    world.commit(Some(true), Some("No significant improvements found"));
    world.publish(&mut files);
    let entry = json!({
        "type": "loop", "loop_type": "work", "started_at": "2025-01-10T10:00:00Z", "project_path": world.project(),
        "max_iterations": 50, "status": "running", "killed_at": null, "completed_at": null, "note": null,
        "reason": null, "pid": 4711, "run_id": "run-1",
    });
    assert_eq!(world.json(REGISTRY), json!({"sessions": {"loop-myfeature": entry}}));
    let extras = |entry: Value| {
        let mut entry = entry;
        for (name, value) in [("duration_seconds", json!(60)), ("attempts", json!(1)), ("tokens", json!(1_000))] {
            entry[name] = value;
        }
        entry["cost_usd"] = json!(0.25);
        entry["summary"] = Value::Null;
        entry
    };
    let first = json!({"iteration": 1, "timestamp": "2025-01-10T10:01:00Z", "plateau": false, "reasoning": null});
    let second = json!({"iteration": 2, "timestamp": "2025-01-10T10:02:00Z", "plateau": true,
                        "reasoning": "No significant improvements found"});
    let state = json!({
        "session": "myfeature", "type": "loop", "loop_type": "work", "started_at": "2025-01-10T10:00:00Z",
        "status": "running", "iteration": 2, "history": [extras(first), extras(second)], "completed_at": null,
        "reason": null, "max_iterations": 50, "tokens": 2_000, "cost_usd": 0.5, "run_id": "run-1",
        "store_id": world.store.read().file_id(),
    });
    assert_eq!(world.json(LOOP_STATE), state);
    let written = fs_err::read_to_string(world.path(LOOP_STATE)).unwrap();
    let keys: Vec<_> = world.json(LOOP_STATE).as_object().unwrap().keys().cloned().collect();
    assert_eq!(keys[..7], ["session", "type", "loop_type", "started_at", "status", "iteration", "history"]);
    assert!(written.starts_with("{\n  \"session\": \"myfeature\",\n") && written.ends_with("}\n"), "{written}");

    world.end(RunStatus::Completed, "plateau");
    world.publish(&mut files);
    let entry = world.json(REGISTRY)["sessions"]["loop-myfeature"].clone();
    let ended = |value: &Value| json!([value["status"], value["completed_at"], value["reason"]]);
    assert_eq!(ended(&entry), json!(["completed", "2025-01-10T11:00:00Z", "plateau"]));
    assert_eq!((&entry["pid"], &entry["killed_at"]), (&Value::Null, &Value::Null));
    assert_eq!(ended(&world.json(LOOP_STATE)), json!(["completed", "2025-01-10T11:00:00Z", "plateau"]));
    let completions = json!([{
        "session": "myfeature", "type": "loop", "status": "completed", "completed_at": "2025-01-10T11:00:00Z",
        "reason": "plateau", "loop_type": "work", "run_id": "run-1",
    }]);
    assert_eq!(world.json("loop-completions.json"), completions);
}

#[test]
fn a_pipeline_has_the_documented_fields_and_counts_stages_from_one() {
    let mut world = World::a_pipeline();
    let mut files = world.open();
    files.begin(&world.view(), Some("name: full-refine\n"), world.store.read()).unwrap();
    world.commit(Some(true), None);
    let quarter = START + 15 * MINUTE;
    let running = StageState { status: StageStatus::Running, started_at_ms: Some(quarter), ..StageState::default() };
    world.run.stages[0].status = StageStatus::Completed;
    world.run.stages[0].completed_at_ms = Some(quarter);
    world.run.stages[0].reason = Some("plateau".into());
    world.run.stages[1] = running;
    world.run.stage = 2;
    world.publish(&mut files);
    let mut state = world.json("pipeline-runs/myrefine/state.json");
    let history = state.as_object_mut().unwrap().remove("history").unwrap();
    assert_eq!((history[0]["stage"].clone(), history[0]["iteration"].clone()), (json!(1), json!(1)));
    let stages = json!([
        {"name": "improve-plan", "loop": "improve-plan", "runs": 5, "status": "completed",
         "started_at": "2025-01-10T10:00:00Z", "completed_at": "2025-01-10T10:15:00Z", "iterations_run": 1,
         "reason": "plateau"},
        {"name": "refine-beads", "loop": "refine-beads", "runs": 5, "status": "running",
         "started_at": "2025-01-10T10:15:00Z", "iterations_run": 0},
    ]);
    let expected = json!({
        "session": "myrefine", "pipeline": "full-refine", "started_at": "2025-01-10T10:00:00Z", "status": "running",
        "current_stage": 2, "stages": stages, "completed_at": null, "reason": null, "type": "pipeline",
        "total_stages": 2, "iteration": 0, "tokens": 1_000, "cost_usd": 0.25, "run_id": "run-1",
        "store_id": world.store.read().file_id(),
    });
    assert_eq!(state, expected);
    let entry = world.json(REGISTRY)["sessions"]["pipeline-myrefine"].clone();
    assert_eq!((&entry["type"], &entry["pipeline_file"]), (&json!("pipeline"), &json!("full-refine.yaml")));
    assert_eq!(entry.get("max_iterations"), None);
    let copy = fs_err::read_to_string(world.path("pipeline-runs/myrefine/pipeline.yaml")).unwrap();
    assert_eq!(copy, "name: full-refine\n");
    assert!(world.path("pipeline-runs/myrefine/stage-2-refine-beads/progress.md").is_file());
}

#[test]
fn the_progress_file_begins_as_documented_and_is_the_agents_from_then_on() {
    let mut world = World::a_loop();
    let verify = Rule::Verify(vec!["npm test".into(), "npm run\nbuild".into()]);
    world.plan.stages[0].completion = Rule::All(vec![Rule::Plateau(2), verify]);
    let mut files = world.open();
    files.begin(&world.view(), None, world.store.read()).unwrap();
    let path = world.path("loop-progress/progress-myfeature.txt");
    assert_eq!(files.progress_file(&world.plan, 1).unwrap(), path.canonicalize().unwrap());
    let head = "# Progress: myfeature\n\nVerify: npm test && npm run build\n\n## Codebase Patterns\n\
                (Patterns discovered during implementation)\n\n---\n";
    assert_eq!(fs_err::read_to_string(&path).unwrap(), head);
    fs_err::write(&path, "mine").unwrap();
    files.begin(&world.view(), None, world.store.read()).unwrap();
    assert_eq!(fs_err::read_to_string(&path).unwrap(), "mine");
    files.ensure_progress(&world.plan, 1, None).unwrap();
    assert_eq!(fs_err::read_to_string(&path).unwrap(), "mine");
    fs_err::remove_dir_all(path.parent().unwrap()).unwrap();
    files.ensure_progress(&world.plan, 1, None).unwrap();
    assert_eq!(fs_err::read_to_string(&path).unwrap(), head, "it comes back once it is gone");
}

#[test]
fn outputs_of_stages_are_kept_and_the_last_one_is_output_md() {
    let mut world = World::a_pipeline();
    world.plan.stages[1].runs = 1;
    world.plan.stages[0].parallel = true;
    let mut files = world.open();
    files.begin(&world.view(), None, world.store.read()).unwrap();
    let read = |name: &str| fs_err::read_to_string(world.path("pipeline-runs/myrefine").join(name)).unwrap();
    files.save_output(world.output(1, 2), b"two").unwrap();
    files.save_output(world.output(1, 1), b"one").unwrap();
    let all = ["run-1.md", "run-2.md", "output.md"].map(|name| read(&format!("stage-1-improve-plan/{name}")));
    assert_eq!(all, ["one", "two", "two"]);
    let own = files.output_file(world.output(2, 1)).unwrap().unwrap();
    assert!(own.ends_with("stage-2-refine-beads/output.md"));
    fs_err::write(&own, "by the agent itself").unwrap();
    files.save_output(world.output(2, 1), b"its terminal").unwrap();
    assert_eq!(read("stage-2-refine-beads/output.md"), "by the agent itself");
    assert!(files.save_output(world.output(3, 1), b"").is_err());
}

#[test]
fn a_stage_that_grew_keeps_all_its_outputs() {
    let mut world = World::a_pipeline();
    world.plan.stages[0].runs = 1;
    let files = world.open();
    fs_err::create_dir_all(world.path("pipeline-runs/myrefine/stage-1-improve-plan")).unwrap();
    let own = files.output_file(world.output(1, 1)).unwrap().unwrap();
    fs_err::write(&own, "by the agent itself").unwrap();
    files.save_output(world.output(1, 1), b"its terminal").unwrap();

    world.run.stages[0].max = Some(3);
    let read = || {
        ["run-1.md", "run-2.md", "run-3.md", "output.md"].map(|name| fs_err::read_to_string(own.with_file_name(name)))
    };
    let texts = || read().map(Result::unwrap_or_default);
    // A new engine looks after the outputs of what was committed before.
    files.save_output(world.output(1, 1), b"its terminal").unwrap();
    assert_eq!(texts(), ["by the agent itself", "", "", "by the agent itself"]);
    for iteration in [2, 3] {
        files.clear_output(world.output(1, iteration)).unwrap();
        files.save_output(world.output(1, iteration), format!("said {iteration}").as_bytes()).unwrap();
    }
    files.save_output(world.output(1, 1), b"its terminal").unwrap();
    assert_eq!(texts(), ["by the agent itself", "said 2", "said 3", "said 3"]);
}

#[test]
fn an_output_without_end_stays_where_it_is_and_is_told() {
    let world = World::a_pipeline();
    let files = world.open();
    let own = files.output_file(world.output(1, 2)).unwrap().unwrap();
    fs_err::create_dir_all(own.parent().unwrap()).unwrap();
    fs_err::File::create(&own).unwrap().set_len(1 << 40).unwrap();
    let error = files.save_output(world.output(1, 2), b"").unwrap_err();
    assert_eq!(error.to_string(), format!("`{}` is too large", own.display()));
    assert!(!own.with_file_name("output.md").exists());
}

#[test]
fn what_a_failed_attempt_left_is_not_the_output() {
    let mut world = World::a_pipeline();
    world.plan.stages[1].runs = 1;
    let files = world.open();
    for of in [world.output(1, 2), world.output(2, 1)] {
        let path = files.output_file(of).unwrap().unwrap();
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        files.clear_output(of).unwrap();
        fs_err::write(&path, "PARTIAL").unwrap();
        files.clear_output(of).unwrap();
        files.save_output(of, b"whole").unwrap();
        assert_eq!(fs_err::read_to_string(&path).unwrap(), "whole");
    }
    // It was the only run of its stage when it failed, and is one of several when it is tried again.
    let path = files.output_file(world.output(2, 1)).unwrap().unwrap();
    fs_err::write(&path, "PARTIAL").unwrap();
    world.run.stages[1].max = Some(2);
    files.clear_output(world.output(2, 1)).unwrap();
    files.save_output(world.output(2, 1), b"whole").unwrap();
    assert_eq!(fs_err::read_to_string(path).unwrap(), "whole");
}

#[test]
fn writing_again_what_is_there_changes_nothing() {
    let mut world = World::a_loop();
    world.commit(Some(false), None);
    world.end(RunStatus::Failed, "no_progress");
    world.publish(&mut world.open());
    let look = |name: &str| {
        let metadata = fs_err::metadata(world.path(name)).unwrap();
        (metadata.modified().unwrap(), std::os::unix::fs::MetadataExt::ino(&metadata))
    };
    let all = [REGISTRY, LOOP_STATE, "loop-completions.json"];
    let before = all.map(look);
    let mut files = world.open();
    world.publish(&mut files);
    world.publish(&mut files);
    assert_eq!(all.map(look), before);
}

#[test]
fn a_long_history_is_extended_without_reading_the_old_one() {
    let mut world = World::a_loop();
    world.commit_many(10_000, Some(false), Some("still going"));
    let mut files = world.open();
    world.publish(&mut files);
    // A store that knows nothing but the newest iteration.
    let mut forgetful = World::a_loop();
    forgetful.run = world.run.clone();
    forgetful.commit(Some(true), None);
    for _ in 0..2 {
        files.publish(&forgetful.view(), forgetful.store.read()).unwrap();
    }
    let state = world.json(LOOP_STATE);
    let numbers: Vec<_> = state["history"].as_array().unwrap().iter().map(|it| it["iteration"].as_u64()).collect();
    assert_eq!(numbers, (1..=10_001).map(Some).collect::<Vec<_>>());
}

#[test]
fn a_crash_between_two_files_is_repaired_by_publishing_again() {
    let mut world = World::a_loop();
    world.commit(Some(false), None);
    let mut files = world.open();
    world.publish(&mut files);
    let old = fs_err::read(world.path(LOOP_STATE)).unwrap();
    world.commit(Some(true), None);
    world.end(RunStatus::Completed, "plateau");
    world.publish(&mut files);
    let all = || [REGISTRY, LOOP_STATE, "loop-completions.json"].map(|name| world.json(name));
    let whole = all();
    // Killed after the registry and the log, before the state.
    fs_err::write(world.path(LOOP_STATE), &old).unwrap();
    world.publish(&mut world.open());
    assert_eq!(all(), whole);
    // Killed before anything but the registry.
    fs_err::write(world.path(LOOP_STATE), &old).unwrap();
    fs_err::remove_file(world.path("loop-completions.json")).unwrap();
    fs_err::write(world.path(".steadfast-abc.tmp"), "unfinished").unwrap();
    world.open().begin(&world.view(), None, world.store.read()).unwrap();
    assert_eq!(all(), whole);
    assert!(!world.path(".steadfast-abc.tmp").exists());
}

#[test]
fn many_runs_publish_at_once_and_none_is_lost() {
    let world = World::a_loop();
    let project: &Path = world.directory.path();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let (mut plan, run) = (world.plan.clone(), world.run.clone());
            let store = Store::open_existing(&world.home.path().join("goals.db")).unwrap();
            plan.name = format!("n{number}");
            scope.spawn(move || {
                let mut run = run;
                let mut files = PublicFiles::open(project, RunKind::Loop, &plan.name).unwrap();
                for reason in 1..=5 {
                    run.reason = Some(format!("{reason}"));
                    let view = FileView { run_id: &plan.name, plan: &plan, run: &run, pid: None };
                    files.publish(&view, store.read()).unwrap();
                }
            });
        }
    });
    let sessions = world.json(REGISTRY)["sessions"].clone();
    let reasons: Vec<_> = (0..8).map(|number| sessions[format!("loop-n{number}")]["reason"].as_str()).collect();
    assert_eq!(reasons, [Some("5"); 8]);
}
