//! Runs as rows: atomic steps, one commit per iteration, and a small state at any length.

mod talk;

use super::*;
use crate::Store;
use crate::testing::runs::{agent, failure, id, killed, loop_of, pipeline_of, stage, success};
use crate::testing::{MINUTE, START, World};
use steadfast_model::limit::{Axis, Limits};
use steadfast_model::reading::Tokens;
use steadfast_model::run::{
    AgentDecision, AgentResult, AttemptId, AttemptUsage, Check, Checked, FailureKind, Outcome, Rule, RunEvent,
    RunLimits, StagePlan, Success,
};

const PROJECT: &str = "/home/ada/shop";
const ENGINE: ProcessId = ProcessId { pid: 4_242, started: 77 };

/// A run in a store, driven as an engine does.
struct Engine {
    world: World,
    run_id: String,
    now: Millis,
}

impl Engine {
    fn new(plan: &Plan) -> Self {
        let mut world = World::new();
        create(&mut world.store, "run-1", plan).unwrap();
        Self { world, run_id: "run-1".into(), now: START }
    }

    fn row(&self) -> RunRow {
        self.world.store.read().run(&self.run_id).unwrap().unwrap()
    }

    fn send(&mut self, event: RunEvent) -> Step {
        self.now += MINUTE;
        let row = self.row();
        let step = machine::step(&row.plan, row.run, event, self.now);
        self.save(row.version, &step).unwrap();
        assert_eq!(self.row().run, step.run);
        step
    }

    fn reopen(&mut self, max: Option<u32>) {
        self.now += MINUTE;
        let row = self.row();
        let step = machine::reopen(&row.plan, &row.run, max, self.now).unwrap();
        self.save(row.version, &step).unwrap();
    }

    fn save(&mut self, version: i64, step: &Step) -> Result<i64, StoreError> {
        let (run_id, now) = (self.run_id.clone(), self.now);
        self.world.store.write(|db| db.save_step(&run_id, version, step, now))
    }

    fn ended(&mut self, attempt: &str, outcome: Outcome) -> Step {
        self.send(RunEvent::Ended { id: id(attempt), outcome })
    }

    fn ok(&mut self, attempt: &str) -> Step {
        self.ended(attempt, Outcome::Succeeded(Box::new(success(attempt))))
    }

    fn history(&self) -> Vec<IterationRow> {
        self.world.store.read().run_history(&self.run_id, None, 100).unwrap()
    }

    fn rows(&self, sql: &str) -> Vec<String> {
        let db = self.world.store.read();
        let mut statement = db.0.prepare(sql).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }

    fn count(&self, table: &str) -> i64 {
        let sql = format!("SELECT count(*) FROM {table} WHERE run_id = ?1");
        self.world.store.read().0.query_row(&sql, [&self.run_id], |row| row.get(0)).unwrap()
    }
}

fn create(store: &mut Store, run_id: &str, plan: &Plan) -> Result<RunRow, StoreError> {
    store.write(|db| db.create_run(run_id, PROJECT, plan, &machine::begin(plan, START), START))
}

fn three() -> Plan {
    loop_of(stage(Rule::FixedN, 3))
}

#[test]
fn a_run_comes_back_as_it_was_saved() {
    let plan = pipeline_of(vec![
        StagePlan { judge: Some(agent()), items: vec!["a".into()], ..stage(Rule::AllItems, 3) },
        stage(Rule::Any(vec![Rule::Plateau(2), Rule::Verify(vec!["make".into()])]), 5),
    ]);
    let mut engine = Engine::new(&plan);
    let expected = RunRow {
        run_id: "run-1".into(),
        project_dir: PROJECT.into(),
        plan: plan.clone(),
        sealed: Vec::new(),
        run: machine::begin(&plan, START),
        version: 0,
        engine: None,
        stop_requested: None,
        updated_at_ms: START,
    };
    assert_eq!(engine.row(), expected);
    let step = engine.send(RunEvent::Started);
    let after = RunRow { run: step.run, version: 1, updated_at_ms: START + MINUTE, ..expected };
    assert_eq!(engine.row(), after);
    assert_eq!(engine.world.store.read().newest_run(PROJECT, RunKind::Pipeline, "refine").unwrap(), Some(after));
    for (project, kind, name) in [
        ("/elsewhere", RunKind::Pipeline, "refine"),
        (PROJECT, RunKind::Loop, "refine"),
        (PROJECT, RunKind::Pipeline, "other"),
    ] {
        assert_eq!(engine.world.store.read().newest_run(project, kind, name).unwrap(), None);
    }
}

#[test]
fn lists_show_the_current_stage() {
    let mut engine = Engine::new(&pipeline_of(vec![stage(Rule::FixedN, 1), stage(Rule::FixedN, 5)]));
    engine.send(RunEvent::Started);
    engine.ok("1.1.1");
    engine.ok("2.1.1");
    let line = |engine: &Engine, filter| engine.world.store.read().runs(filter, 10).unwrap();
    let expected = RunLine {
        run_id: "run-1".into(),
        name: "refine".into(),
        kind: RunKind::Pipeline,
        title: "full-refine".into(),
        project_dir: PROJECT.into(),
        status: RunStatus::Running,
        reason: None,
        stage: 2,
        iterations: 1,
        max_iterations: 5,
        tokens: 200,
        cost_micros: 4_000,
        engine: None,
        is_stop_requested: false,
        started_at_ms: START,
        updated_at_ms: START + 3 * MINUTE,
        completed_at_ms: None,
        cost_unknown: false,
        tokens_unknown: false,
        is_asking: false,
    };
    assert_eq!(line(&engine, RunFilter::default()), std::slice::from_ref(&expected));
    for (filter, count) in [
        (RunFilter { project_dir: Some(PROJECT), ..RunFilter::default() }, 1),
        (RunFilter { project_dir: Some("/home/ada"), ..RunFilter::default() }, 0),
        (RunFilter { kind: Some(RunKind::Loop), ..RunFilter::default() }, 0),
        (RunFilter { status: Some(RunStatus::Running), kind: Some(RunKind::Pipeline), ..RunFilter::default() }, 1),
        (RunFilter { status: Some(RunStatus::Killed), ..RunFilter::default() }, 0),
    ] {
        assert_eq!(line(&engine, filter).len(), count, "{filter:?}");
    }
    engine.send(RunEvent::StopRequested(killed()));
    engine.ended("2.2.1", failure(FailureKind::Stopped));
    let killed = RunLine {
        status: RunStatus::Killed,
        reason: Some("killed by user".into()),
        tokens: 205,
        cost_micros: 4_100,
        updated_at_ms: START + 5 * MINUTE,
        completed_at_ms: Some(START + 5 * MINUTE),
        ..expected
    };
    assert_eq!(line(&engine, RunFilter::default()), [killed]);
}

#[test]
fn a_reopened_run_shows_its_larger_maximum() {
    let mut engine = Engine::new(&loop_of(stage(Rule::Promise("DONE".into()), 1)));
    engine.send(RunEvent::Started);
    engine.ok("1.1.1");
    engine.reopen(Some(7));
    let line = engine.world.store.read().runs(RunFilter::default(), 1).unwrap().remove(0);
    assert_eq!(
        (line.status, line.iterations, line.max_iterations, line.completed_at_ms),
        (RunStatus::Running, 1, 7, None)
    );
}

#[test]
fn the_loser_of_a_race_changes_nothing() {
    let mut engine = Engine::new(&three());
    let row = engine.row();
    let mine = machine::step(&row.plan, row.run.clone(), RunEvent::Started, START);
    let theirs = machine::step(&row.plan, row.run, RunEvent::StopRequested(killed()), START);
    assert_eq!(engine.save(0, &theirs).unwrap(), 1);
    let before = engine.row();
    for version in [0, 2, -1] {
        assert!(matches!(engine.save(version, &mine), Err(StoreError::Stale)), "{version}");
    }
    assert_eq!((engine.row(), engine.count("run_attempts")), (before, 0));
    let absent = engine.world.store.write(|db| db.save_step("nobody", 0, &mine, START));
    assert!(matches!(absent, Err(StoreError::Stale)));
}

#[test]
fn a_second_commit_of_an_iteration_rolls_back_its_step() {
    let mut engine = Engine::new(&three());
    engine.send(RunEvent::Started);
    let committed = engine.ok("1.1.1");
    let before = engine.row();
    let again: Vec<Record> =
        committed.records.iter().filter(|record| matches!(record, Record::Committed { .. })).cloned().collect();
    let step = Step { records: again, run: machine::begin(&before.plan, 0), acts: Vec::new() };
    let error = engine.save(before.version, &step).unwrap_err();
    let words = "a value in the store is not understood: stage 1, iteration 1, attempt 1 was committed before";
    assert_eq!(error.to_string(), words);
    assert_eq!((engine.row(), engine.history().len()), (before, 1));
}

#[test]
fn attempts_start_once_and_end_once() {
    let mut engine = Engine::new(&three());
    engine.send(RunEvent::Started);
    let ended = Record::AttemptEnded { id: id("1.1.1"), outcome: failure(FailureKind::Exit) };
    let unknown = Record::AttemptEnded { id: id("1.9.1"), outcome: failure(FailureKind::Exit) };
    let started = Record::AttemptStarted { id: id("1.1.1") };
    engine.ended("1.1.1", failure(FailureKind::Exit));
    let before = engine.row();
    for (record, words) in [
        (ended, "stage 1, iteration 1, attempt 1 is not under way"),
        (unknown, "stage 1, iteration 9, attempt 1 is not under way"),
        (started, "stage 1, iteration 1, attempt 1 was started before"),
    ] {
        let step = Step { run: before.run.clone(), records: vec![record], acts: Vec::new() };
        let error = engine.save(before.version, &step).unwrap_err();
        assert!(error.to_string().ends_with(words), "{error}");
        assert_eq!(engine.row(), before);
    }
}

#[test]
fn history_keeps_the_result_and_cost_of_each_iteration() {
    let judged = StagePlan { judge: Some(agent()), ..stage(Rule::Plateau(2), 5) };
    let mut engine = Engine::new(&loop_of(judged));
    engine.send(RunEvent::Started);
    engine.ended("1.1.1", failure(FailureKind::Lost));
    let result = AgentResult {
        summary: Some("did it".into()),
        plateau: Some(true),
        reasoning: Some("all\u{1b}[1m good".into()),
        decision: Some(AgentDecision::Continue),
        fields: vec![("risk".into(), "low".into())],
        files: vec!["a\u{1b}[1m.rs".into()],
        branches: vec!["x/1".into()],
        ..AgentResult::default()
    };
    let worked = Success { result, exit_code: 0, started_at_ms: START + 9, ..success("a") };
    engine.ended("1.1.2", Outcome::Succeeded(Box::new(worked)));
    let verdict = Checked { check: Check::Judge, holds: Some(false), detail: "x".repeat(9_000), usage: None };
    engine.send(RunEvent::Checked { id: id("1.1.2"), facts: vec![verdict.clone()] });
    let expected = IterationRow {
        id: id("1.1.2"),
        plateau: Some(false),
        decision: Some(AgentDecision::Continue),
        summary: Some("did it".into()),
        reasoning: Some(format!("{}…", "x".repeat(7_999))),
        fields: vec![("risk".into(), "low".into())],
        report: IterationReport {
            files: vec!["a.rs".into()],
            branches: vec!["x/1".into()],
            ..IterationReport::default()
        },
        facts: vec![Checked { detail: format!("{}…", "x".repeat(7_999)), ..verdict }],
        exit_code: 0,
        tokens: 105,
        cost_micros: 2_100,
        started_at_ms: START + 9,
        committed_at_ms: START + 4 * MINUTE,
        cost_unknown: false,
        tokens_unknown: false,
    };
    assert_eq!(engine.history(), [expected]);
    let attempts = format!(
        "SELECT concat_ws(' ', stage, iteration, attempt, status, failure, message, exit_code, input_tokens,
           output_tokens, cache_creation_tokens, cache_read_tokens, cost_micros, started_at_ms - {START},
           ended_at_ms - {START})
         FROM run_attempts ORDER BY stage, iteration, attempt"
    );
    let expected = [
        "1 1 1 failed lost it was lost 1 5 0 0 0 100 0 0",
        "1 1 2 succeeded 0 60 30 10 500 2000 9 0",
        "1 2 1 starting 0 0 0 0 0 240000",
    ];
    assert_eq!(engine.rows(&attempts), expected);
    let first = IterationUsage {
        run_id: "run-1".into(),
        name: engine.row().plan.name,
        kind: RunKind::Loop,
        project_dir: PROJECT.into(),
        stage: 1,
        stage_name: engine.row().plan.stages[0].name.clone(),
        iteration: 1,
        attempts: 2,
        is_committed: true,
        usage: AttemptUsage {
            tokens: Tokens { input: 65, output: 30, cache_creation: 10, cache_creation_1h: 0, cache_read: 500 },
            cost_micros: 2_100,
            ..AttemptUsage::default()
        },
        unpriced_tokens: 0,
        started_at_ms: START,
        lasted_ms: 4 * MINUTE - 9,
    };
    let second = IterationUsage {
        iteration: 2,
        attempts: 1,
        is_committed: false,
        usage: AttemptUsage::default(),
        started_at_ms: START + 4 * MINUTE,
        lasted_ms: 0,
        ..first.clone()
    };
    let db = engine.world.store.read();
    assert_eq!(db.iteration_usage().unwrap(), [first.clone(), second.clone()]);
    engine
        .world
        .store
        .write(|db| {
            db.0.execute(
                "UPDATE run_attempts SET cost_micros = 0, cost_unknown = 1 WHERE iteration = 1 AND attempt = 1",
                [],
            )
            .map_err(StoreError::from)
        })
        .unwrap();
    // Tokens without a cost have an unknown cost.
    let unpriced = IterationUsage {
        unpriced_tokens: 5,
        usage: AttemptUsage { cost_micros: 2_000, cost_unknown: true, ..first.usage },
        ..first
    };
    let db = engine.world.store.read();
    assert_eq!(db.iteration_usage().unwrap(), [unpriced, second]);
    assert_eq!(db.project_of_run("run-1").unwrap().as_deref(), Some(PROJECT));
    assert_eq!(db.project_of_run("nobody").unwrap(), None);
}

#[test]
fn history_is_read_in_pages_across_stages() {
    let mut engine = Engine::new(&pipeline_of(vec![stage(Rule::FixedN, 2), stage(Rule::FixedN, 3)]));
    engine.send(RunEvent::Started);
    let all = ["1.1.1", "1.2.1", "2.1.1", "2.2.1", "2.3.1"];
    for attempt in all {
        engine.ok(attempt);
    }
    let db = engine.world.store.read();
    let page = |after, most| -> Vec<AttemptId> {
        db.run_history("run-1", after, most).unwrap().into_iter().map(|row| row.id).collect()
    };
    let ids = all.map(id);
    assert_eq!(page(None, 100), ids);
    assert_eq!(page(None, 2), ids[..2]);
    assert_eq!(page(Some((1, 2)), 2), ids[2..4]);
    assert_eq!(page(Some((2, 2)), 2), ids[4..]);
    assert_eq!(page(Some((2, 3)), 2), []);
    let last: Vec<AttemptId> = db.last_iterations("run-1", 3).unwrap().into_iter().map(|row| row.id).collect();
    assert_eq!(last, [ids[4], ids[3], ids[2]]);
    assert_eq!(db.run_history("nobody", None, 100).unwrap(), []);
    let end = |stage, most| -> Vec<AttemptId> {
        db.end_of_stage("run-1", stage, most).unwrap().into_iter().map(|row| row.id).collect()
    };
    assert_eq!((end(1, 9), end(2, 2), end(3, 9)), (ids[..2].to_vec(), ids[3..].to_vec(), vec![]));
}

#[test]
fn a_stop_request_stays_until_the_end_it_asked_for() {
    let mut engine = Engine::new(&three());
    engine.send(RunEvent::Started);
    let version = engine.row().version;
    let request = |engine: &mut Engine, stopping: Option<Stopping>| {
        engine.world.store.write(|db| db.request_stop("run-1", stopping.as_ref())).unwrap()
    };
    assert!(request(&mut engine, Some(killed())));
    assert_eq!(engine.world.store.read().stop_request("run-1").unwrap(), Some(killed()));
    assert_eq!(engine.row().stop_requested, Some(killed()));
    assert_eq!(engine.row().version, version, "the engine's next step still fits");
    assert!(engine.world.store.read().runs(RunFilter::default(), 1).unwrap()[0].is_stop_requested);
    assert!(request(&mut engine, None));
    assert_eq!(engine.world.store.read().stop_request("run-1").unwrap(), None);

    request(&mut engine, Some(killed()));
    engine.send(RunEvent::StopRequested(killed()));
    engine.ended("1.1.1", failure(FailureKind::Stopped));
    assert_eq!(engine.row().stop_requested, None, "obeyed");
    request(&mut engine, Some(killed()));
    engine.reopen(None);
    assert_eq!(engine.row().stop_requested, None, "a request that came after the end is not about this life");
    assert!(!engine.world.store.write(|db| db.request_stop("nobody", None)).unwrap());
    assert_eq!(engine.world.store.read().stop_request("nobody").unwrap(), None);
}

#[test]
fn the_engine_of_a_run_is_recorded_and_cleared() {
    let mut engine = Engine::new(&three());
    assert!(engine.world.store.write(|db| db.set_engine("run-1", Some(ENGINE))).unwrap());
    assert_eq!((engine.row().engine, engine.row().version), (Some(ENGINE), 0));
    assert!(engine.world.store.write(|db| db.set_engine("run-1", None)).unwrap());
    assert_eq!(engine.row().engine, None);
    assert!(!engine.world.store.write(|db| db.set_engine("nobody", Some(ENGINE))).unwrap());
}

#[test]
fn a_run_without_an_engine_is_marked_once() {
    let mut engine = Engine::new(&three());
    engine.send(RunEvent::Started);
    engine.world.store.write(|db| db.set_engine("run-1", Some(ENGINE))).unwrap();
    let row = engine.row();
    let marked = engine.world.store.write(|db| db.mark_orphan(&row, START + 9)).unwrap();
    let run = machine::orphaned(&row.plan, row.run.clone(), START + 9).run;
    assert_eq!(run.status, RunStatus::UnknownTermination);
    assert_eq!(marked, RunRow { run, version: 2, engine: None, updated_at_ms: START + 9, ..row.clone() });
    let again = engine.world.store.write(|db| db.mark_orphan(&marked, START + 99)).unwrap();
    assert_eq!(again, marked);
    let stale = engine.world.store.write(|db| db.mark_orphan(&row, START + 99));
    assert!(matches!(stale, Err(StoreError::Stale)), "another process was first");
}

#[test]
fn one_name_has_one_live_run() {
    let mut engine = Engine::new(&three());
    engine.send(RunEvent::Started);
    let words = |result: Result<_, StoreError>| result.map(|_: RunRow| ()).unwrap_err().to_string();
    assert_eq!(words(create(&mut engine.world.store, "run-2", &three())), "a loop named auth is running already");
    let other = Plan { kind: RunKind::Pipeline, ..three() };
    create(&mut engine.world.store, "run-3", &other).unwrap();

    engine.send(RunEvent::StopRequested(killed()));
    engine.ended("1.1.1", failure(FailureKind::Stopped));
    let later = machine::begin(&three(), START + MINUTE);
    engine.world.store.write(|db| db.create_run("run-2", PROJECT, &three(), &later, START + MINUTE)).unwrap();
    let newest = engine.world.store.read().newest_run(PROJECT, RunKind::Loop, "auth").unwrap().unwrap();
    assert_eq!(newest.run_id, "run-2");
    let row = engine.row();
    let reopened = machine::reopen(&row.plan, &row.run, None, START).unwrap();
    let refused = engine.save(row.version, &reopened);
    assert!(matches!(refused, Err(StoreError::RunIsLive { kind: RunKind::Loop, .. })), "{refused:?}");
    assert_eq!(engine.row(), row);
}

#[test]
fn a_plan_may_get_larger_limits() {
    let mut engine = Engine::new(&three());
    let plan = Plan {
        limits: RunLimits { limits: Limits::default().with(Axis::Tokens, 9), ..RunLimits::default() },
        ..three()
    };
    assert_eq!(engine.world.store.write(|db| db.change_plan("run-1", 0, &plan, START)).unwrap(), 1);
    assert_eq!((engine.row().plan, engine.row().version), (plan.clone(), 1));
    let stale = engine.world.store.write(|db| db.change_plan("run-1", 0, &plan, START));
    assert!(matches!(stale, Err(StoreError::Stale)));
}

#[test]
fn a_state_of_an_earlier_version_is_read() {
    let engine = Engine::new(&three());
    let before = engine.row();
    let sql = "UPDATE runs SET state_json = json_set(json_remove(state_json, '$.capped'), '$.errors_in_row', 3)";
    engine.world.store.read().0.execute_batch(sql).unwrap();
    assert_eq!(engine.row(), before);
}

#[test]
fn a_damaged_state_is_an_error_that_names_its_column() {
    let engine = Engine::new(&three());
    for column in ["state_json", "plan_json", "stop_requested"] {
        let db = engine.world.store.read();
        let kept: Option<String> = db.0.query_row(&format!("SELECT {column} FROM runs"), [], |row| row.get(0)).unwrap();
        db.0.execute(&format!("UPDATE runs SET {column} = '{{\"half'"), []).unwrap();
        let error = db.run("run-1").unwrap_err().to_string();
        assert!(error.contains(column), "{error}");
        db.0.execute(&format!("UPDATE runs SET {column} = ?1"), [kept]).unwrap();
    }
    assert_eq!(engine.row().run, machine::begin(&three(), START));
}

#[test]
fn ten_thousand_iterations_leave_a_small_state_and_one_row_to_read() {
    const MANY: u32 = 10_000;
    let plan = loop_of(stage(Rule::FixedN, MANY + 1));
    let mut engine = Engine::new(&plan);
    let mut run = engine.send(RunEvent::Started).run;
    let mut version = engine.row().version;
    engine
        .world
        .store
        .write(|db| {
            for iteration in 1..=MANY {
                let id = AttemptId { stage: 1, iteration, attempt: 1 };
                let outcome = Outcome::Succeeded(Box::new(success("same")));
                let step = machine::step(&plan, run.clone(), RunEvent::Ended { id, outcome }, START);
                version = db.save_step("run-1", version, &step, START)?;
                run = step.run;
            }
            Ok::<_, StoreError>(())
        })
        .unwrap();
    assert_eq!(engine.count("run_iterations"), i64::from(MANY));
    let db = engine.world.store.read();
    let size: i64 = db.0.query_row("SELECT length(state_json) FROM runs", [], |row| row.get(0)).unwrap();
    assert!(size < 2_000, "{size} bytes of state");
    assert_eq!(engine.row().run, run);
    let last: Vec<u32> = db.last_iterations("run-1", 2).unwrap().iter().map(|row| row.id.iteration).collect();
    assert_eq!(last, [MANY, MANY - 1]);
    // Reading a run or a page of its history scans no table.
    let newest = "SELECT * FROM runs WHERE project_dir = 'p' AND kind = 'loop' AND name = 'n'
        ORDER BY started_at_ms DESC, run_id DESC LIMIT 1";
    let page = "SELECT iteration FROM run_iterations WHERE run_id = 'r' AND (stage, iteration) > (1, 5000)
        ORDER BY stage, iteration LIMIT 10";
    let last = "SELECT iteration FROM run_iterations WHERE run_id = 'r' ORDER BY stage DESC, iteration DESC LIMIT 1";
    for sql in ["SELECT * FROM runs WHERE run_id = 'r'", newest, page, last] {
        let mut statement = db.0.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let steps: Vec<String> =
            statement.query_map([], |row| row.get("detail")).unwrap().collect::<Result<_, _>>().unwrap();
        assert!(steps.iter().all(|step| step.starts_with("SEARCH")), "{sql}: {steps:?}");
    }
}
