//! The documented promises about state files: every recipe, run with the real bash and jq against files that our code
//! wrote, and the effect of its edits on a run.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use steadfast_engine::files::{FileView, OutputOf, PublicFiles};
use steadfast_engine::plan::{Catalogue, Overrides, plan_loop, plan_pipeline};
use steadfast_model::run::{AttemptId, Plan, Record, Run, RunKind, RunStatus, StageStatus, Step, Success, machine};
use steadfast_store::Store;

use crate::env::Env;

const RECIPES: &str = include_str!("state_file_recipes.sh");
/// 2025-01-10T10:00:00Z.
const START: i64 = 1_736_503_200_000;

/// The text of one recipe.
fn recipe(name: &str) -> &'static str {
    let (_, rest) = RECIPES.split_once(&format!("#: {name}\n")).unwrap_or_else(|| panic!("no recipe {name}"));
    rest.split("\n#: ").next().unwrap()
}

/// A project in which a loop and a pipeline run.
struct World {
    env: Env,
    store: Store,
    runs: Vec<(Plan, Run)>,
}

impl World {
    fn new() -> Self {
        let jq = Command::new("jq").arg("--version").output();
        assert!(jq.is_ok(), "the jq command is needed; ./test installs it");
        let env = Env::new();
        let catalogue = Catalogue { project: env.project(), home: env.home() };
        let flags = Overrides { max: Some(50), verify: vec!["npm test".into()], ..Overrides::default() };
        let a_loop = plan_loop(&catalogue, "work", Some("myfeature"), &flags).unwrap();
        let flags = Overrides::default();
        let pipeline = plan_pipeline(&catalogue, "full-refine", Some("myrefine"), &flags, START).unwrap();
        let mut runs = Vec::new();
        let mut store = Store::open(&env.store()).unwrap();
        for planned in [a_loop, pipeline] {
            let mut run = machine::begin(&planned.plan, START);
            run.stages[0].status = StageStatus::Running;
            run.stages[0].started_at_ms = Some(START);
            run.stages[0].iterations = 1;
            commit_first(&mut store, &planned.plan, &run);
            let mut files = PublicFiles::open(&env.project(), planned.plan.kind, &planned.plan.name).unwrap();
            let view = FileView { run_id: &planned.plan.name, plan: &planned.plan, run: &run, pid: None };
            files.begin(&view, planned.definition.as_deref(), store.read()).unwrap();
            runs.push((planned.plan, run));
        }
        Self { env, store, runs }
    }

    fn open(&self, at: usize) -> PublicFiles {
        let plan = &self.runs[at].0;
        let mut files = PublicFiles::open(&self.env.project(), plan.kind, &plan.name).unwrap();
        self.publish(at, &mut files);
        files
    }

    fn publish(&self, at: usize, files: &mut PublicFiles) {
        let (plan, run) = &self.runs[at];
        files.publish(&FileView { run_id: &plan.name, plan, run, pid: None }, self.store.read()).unwrap();
    }

    fn end(&mut self, at: usize, status: RunStatus, reason: &str, when: i64) {
        let run = &mut self.runs[at].1;
        (run.status, run.reason, run.completed_at_ms) = (status, Some(reason.into()), Some(when));
        self.open(at);
    }

    /// Runs a recipe in the project and returns its output.
    fn run(&self, name: &str) -> String {
        let mut command = Command::new("bash");
        command.args(["-euo", "pipefail", "-c", recipe(name)]).current_dir(self.env.project());
        let output = command.output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{name}: {output:?}");
        assert!(!self.env.project().join("tmp").exists(), "{name} left its file behind");
        String::from_utf8(output.stdout).unwrap()
    }

    fn registry(&self) -> Value {
        read(&self.env.project().join(".claude/loop-sessions.json"))["sessions"].clone()
    }

    fn keys(&self) -> Vec<String> {
        self.registry().as_object().unwrap().keys().cloned().collect()
    }
}

/// A run under its name in the store, with one iteration.
fn commit_first(store: &mut Store, plan: &Plan, run: &Run) {
    let id = AttemptId { stage: 1, iteration: 1, attempt: 1 };
    let success = Box::new(Success { started_at_ms: START, ended_at_ms: START, ..Success::default() });
    let records = vec![Record::Committed { id, success, facts: Vec::new() }];
    let step = Step { run: run.clone(), records, acts: Vec::new() };
    store.write(|db| db.create_run(&plan.name, "/p", plan, run, START)).unwrap();
    store.write(|db| db.save_step(&plan.name, 0, &step, START)).unwrap();
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn the_fixture_has_every_recipe() {
    let names: Vec<_> = RECIPES.lines().filter_map(|line| line.strip_prefix("#: ")).collect();
    assert_eq!(names.len(), 11, "{names:?}");
}

#[test]
fn reading_recipes_print_the_documented_output() {
    let mut world = World::new();
    let whole: Value = serde_json::from_str(&world.run("Read current state")).unwrap();
    assert_eq!(whole["sessions"], world.registry());
    assert_eq!(world.run("List running sessions"), "loop-myfeature\npipeline-myrefine\n");
    assert_eq!(world.run("Reading Loop State"), "\"running\"\n1\n\"running\"\nnull\n");
    let stages = "{\n  \"name\": \"improve-plan\",\n  \"status\": \"running\"\n}\n";
    assert_eq!(world.run("Reading Pipeline State"), format!("1\n{stages}\"running\"\n"));
    let progress = world.env.project().join(".claude/loop-progress/progress-myfeature.txt");
    let entry = "\n## 2025-01-10 - beads-123\n- Implemented\n";
    let head = std::fs::read_to_string(&progress).unwrap();
    assert!(head.starts_with("# Progress: myfeature\n\nVerify: npm test\n\n## Codebase Patterns\n"), "{head}");
    std::fs::write(&progress, format!("{head}{entry}")).unwrap();
    assert_eq!(world.run("Reading Progress"), format!("{head}{entry}{entry}"));

    world.end(0, RunStatus::Completed, "beads-empty", START + 60_000);
    assert_eq!(world.run("Reading Loop State"), "\"completed\"\n1\n\"done\"\n\"beads-empty\"\n");
    assert_eq!(world.run("List running sessions"), "pipeline-myrefine\n");
}

#[test]
fn a_session_added_by_hand_is_kept_and_listed() {
    let world = World::new();
    let other = recipe("Add a new session").replace("loop-myfeature", "loop-byhand");
    let added = Command::new("bash").args(["-euc", &other]).current_dir(world.env.project()).status().unwrap();
    assert!(added.success());
    let mut files = world.open(0);
    assert_eq!(world.keys(), ["loop-myfeature", "pipeline-myrefine", "loop-byhand"]);
    // The recipe as printed names our own run: the entry loses our fields and gets them back.
    world.run("Add a new session");
    assert_eq!(world.registry()["loop-myfeature"].get("run_id"), None);
    world.publish(0, &mut files);
    assert!(!files.is_marked_killed().unwrap());
    assert_eq!(world.registry()["loop-myfeature"]["started_at"], json!("2025-01-10T10:00:00Z"));
    assert_eq!(world.registry()["loop-byhand"]["status"], json!("running"));
}

#[test]
fn a_session_marked_as_killed_asks_its_run_to_stop() {
    let mut world = World::new();
    let mut files = world.open(0);
    assert!(!files.is_marked_killed().unwrap());
    world.run("Update status");
    assert!(files.is_marked_killed().unwrap());
    let killed_at = world.registry()["loop-myfeature"]["killed_at"].clone();
    assert!(killed_at.is_string());
    world.end(0, RunStatus::Killed, "marked as killed", START + 60_000);
    assert_eq!(world.registry()["loop-myfeature"]["killed_at"], killed_at);
    assert_eq!(world.run("Reading Loop State"), "\"killed\"\n1\n\"running\"\n\"marked as killed\"\n");
}

#[test]
fn a_session_removed_by_hand_stays_removed_and_leaves_an_orphaned_state_file() {
    let world = World::new();
    let mut files = world.open(0);
    assert_eq!(world.run("Find orphaned state files (no matching session)"), "");
    world.run("Remove a session entry");
    assert!(!files.is_marked_killed().unwrap());
    world.publish(0, &mut files);
    assert_eq!(world.keys(), ["pipeline-myrefine"]);
    let orphans = world.run("Find orphaned state files (no matching session)");
    assert_eq!(orphans, "Orphaned: .claude/loop-state-myfeature.json\n");
}

#[test]
fn cleanup_keeps_running_and_recent_entries() {
    let mut world = World::new();
    let now = steadfast_model::clock::now();
    world.end(0, RunStatus::Completed, "plateau", now);
    world.run("Remove completed entries older than 7 days");
    assert_eq!(world.keys(), ["loop-myfeature", "pipeline-myrefine"]);
    world.end(0, RunStatus::Completed, "plateau", now - 8 * 86_400_000);
    world.run("Remove completed entries older than 7 days");
    assert_eq!(world.keys(), ["pipeline-myrefine"]);
    world.end(1, RunStatus::Killed, "stopped", now);
    world.run("Remove all killed/completed entries");
    assert_eq!(world.keys(), Vec::<String>::new());
    world.open(0);
    assert_eq!(world.keys(), Vec::<String>::new(), "what was cleaned up does not come back");
}

#[test]
fn the_directory_has_the_documented_structure() {
    let mut world = World::new();
    let (plan, run) = &world.runs[1];
    let files = PublicFiles::open(&world.env.project(), RunKind::Pipeline, "myrefine").unwrap();
    files.save_output(OutputOf { plan, run, stage: 1, iteration: 1 }, b"out").unwrap();
    world.end(0, RunStatus::Completed, "beads-empty", START + 60_000);
    for name in [
        "loop-sessions.json",
        "loop-state-myfeature.json",
        "loop-progress/progress-myfeature.txt",
        "loop-completions.json",
        "pipeline-runs/myrefine/state.json",
        "pipeline-runs/myrefine/pipeline.yaml",
        "pipeline-runs/myrefine/stage-1-improve-plan/progress.md",
        "pipeline-runs/myrefine/stage-1-improve-plan/output.md",
        "pipeline-runs/myrefine/stage-2-refine-beads/progress.md",
    ] {
        assert!(world.env.project().join(".claude").join(name).is_file(), "{name}");
    }
}

#[test]
fn a_store_that_cannot_be_read_leaves_the_state_as_it_was() {
    let mut world = World::new();
    let mut files = world.open(0);
    let state = world.env.project().join(".claude/loop-state-myfeature.json");
    let before = std::fs::read(&state).unwrap();
    let (plan, run) = &mut world.runs[0];
    run.stages[0].iterations = 2;
    world.env.execute("UPDATE run_iterations SET facts_json = 'damaged', iteration = 2 WHERE run_id = 'myfeature'");
    let view = FileView { run_id: &plan.name, plan, run, pid: None };
    let error = files.publish(&view, world.store.read()).unwrap_err().to_string();
    assert!(error.starts_with("cannot read the run's iterations: "), "{error}");
    assert_eq!(std::fs::read(&state).unwrap(), before);
}
