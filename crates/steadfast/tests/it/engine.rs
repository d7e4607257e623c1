//! The engine with shell scripts as agents, a real store, and `kill -9`.

mod flow;
mod merging;
mod places;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use steadfast_engine::attempt::Attempt;
use steadfast_engine::dispatcher::{self, DriveError, Engine};
use steadfast_engine::lock::RunLock;
use steadfast_engine::observer::{Observer, PromptValues, SavedStep};
use steadfast_model::clock;
use steadfast_model::limit::Axis;
use steadfast_model::run::machine;
use steadfast_model::run::{
    AgentKind, AgentPlan, AttemptId, Plan, Record, Rule, Run, RunKind, RunLimits, RunPurpose, RunStatus, StagePlan,
    Stopping,
};
use steadfast_store::Store;
use steadfast_system::config::Config;
use tempfile::TempDir;

use crate::attempts::{eventually, is_alive};

const RUN: &str = "11111111-run";

struct World {
    root: TempDir,
}

impl World {
    fn new() -> Self {
        let world = Self { root: tempfile::tempdir().unwrap() };
        for directory in ["home", "project"] {
            std::fs::create_dir_all(world.path(directory)).unwrap();
        }
        world
    }

    fn path(&self, part: &str) -> PathBuf {
        self.root.path().join(part)
    }

    fn in_project(&self, part: &str) -> PathBuf {
        self.path("project").join(part)
    }

    fn store(&self) -> Store {
        Store::open(&self.path("home/goals.db")).unwrap()
    }

    fn create(&self, plan: &Plan) {
        let project = self.path("project").display().to_string();
        let now = clock::now();
        self.store().write(|db| db.create_run(RUN, &project, plan, &machine::begin(plan, now), now)).unwrap();
    }

    fn drive(&self, plan: &Plan) -> Run {
        self.create(plan);
        self.resume()
    }

    fn resume(&self) -> Run {
        dispatcher::drive(&mut self.store(), &engine(self.root.path()), RUN, &mut []).unwrap()
    }

    /// An engine in a separate process that can be killed.
    fn engine_process(&self, crash_at: &str) -> Child {
        self.engine_command(crash_at).spawn().unwrap()
    }

    fn engine_command(&self, crash_at: &str) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "engine::drive_in_a_separate_process", "--ignored", "--nocapture"])
            .env("STEADFAST_TEST_ROOT", self.root.path())
            .env("STEADFAST_CRASH_AT", crash_at)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    fn git(&self, arguments: &[&str]) -> String {
        let identity = ["-c", "user.name=T", "-c", "user.email=t@example.org"];
        let mut command = Command::new("git");
        let output = command.current_dir(self.path("project")).args(identity).args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn state(&self) -> Run {
        self.store().read().run(RUN).unwrap().unwrap().run
    }

    fn summaries(&self) -> Vec<String> {
        let rows = self.store().read().run_history(RUN, None, 100).unwrap();
        rows.iter().map(|row| row.summary.clone().unwrap_or_default()).collect()
    }

    fn lines(&self, file: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.in_project(file)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

fn engine(root: &Path) -> Engine {
    Engine {
        home: root.join("home"),
        program: env!("CARGO_BIN_EXE_steadfast").into(),
        config: Config::default(),
        grace: Duration::from_millis(300),
    }
}

#[test]
#[ignore = "other tests start it as the engine they kill"]
fn drive_in_a_separate_process() {
    let Some(root) = std::env::var_os("STEADFAST_TEST_ROOT").map(PathBuf::from) else { return };
    let mut store = Store::open(&root.join("home/goals.db")).unwrap();
    dispatcher::drive(&mut store, &engine(&root), RUN, &mut []).unwrap();
}

fn shell(script: &str) -> AgentPlan {
    let words = ["sh", "-c", script].map(str::to_owned).to_vec();
    AgentPlan::new(AgentKind::Command(words))
}

fn stage(name: &str, script: &str, runs: u32, completion: Rule) -> StagePlan {
    StagePlan {
        prompt: "${SESSION} ${ITERATION} ${PERSPECTIVE} ${INPUTS}\n".into(),
        agent: shell(script),
        timeout_ms: 120_000,
        ..StagePlan::new(name, completion, runs)
    }
}

fn plan(stages: Vec<StagePlan>) -> Plan {
    let kind = if stages.len() == 1 { RunKind::Loop } else { RunKind::Pipeline };
    let limits = RunLimits { back_off_ms: 20, idle: 0, ..RunLimits::default() };
    Plan {
        name: "test".into(),
        kind,
        title: "test".into(),
        pipeline_file: None,
        stages,
        limits,
        purpose: RunPurpose::Definition,
    }
}

fn ended(run: &Run) -> (RunStatus, &str) {
    (run.status, run.reason.as_deref().unwrap_or_default())
}

#[test]
fn a_loop_runs_its_iterations_and_keeps_their_results() {
    let world = World::new();
    let script = "cat; echo \"{\\\"summary\\\": \\\"did $STEADFAST_ITERATION\\\"}\" > \"$STEADFAST_RESULT\"";
    let run = world.drive(&plan(vec![stage("work", script, 3, Rule::FixedN)]));
    assert_eq!(ended(&run), (RunStatus::Completed, "fixed-n"));
    assert_eq!(world.summaries(), ["did 1", "did 2", "did 3"]);
    assert_eq!(run, world.state());
    assert_eq!(world.store().read().run(RUN).unwrap().unwrap().engine, None);
}

#[test]
fn two_agreeing_iterations_are_a_plateau_and_a_missing_vote_is_retried() {
    let world = World::new();
    // The second attempt gives no vote.
    let script =
        "echo x >> tries; case $(wc -l < tries) in 2) ;; 1) echo 'PLATEAU: false';; *) echo '**PLATEAU:** yes';; esac";
    let run = world.drive(&plan(vec![stage("improve", script, 9, Rule::Plateau(2))]));
    assert_eq!(ended(&run), (RunStatus::Completed, "plateau"));
    assert_eq!((world.summaries().len(), world.lines("tries").len()), (3, 4));
}

#[test]
fn a_stage_ends_only_when_promise_and_command_hold() {
    let world = World::new();
    let rule = Rule::All(vec![Rule::Promise("DONE".into()), Rule::Command("test $(wc -l < tries) -ge 2".into())]);
    let script = "echo x >> tries; echo '<promise>DONE</promise>'";
    let run = world.drive(&plan(vec![stage("work", script, 9, rule)]));
    assert_eq!(ended(&run), (RunStatus::Completed, "promise+command"));
    assert_eq!(world.lines("tries").len(), 2);
}

#[test]
fn outputs_of_a_stage_reach_the_next_one_word_for_word() {
    let world = World::new();
    let mut ideas = stage("ideas", r#"printf '%s\n' "R&D \${INPUTS} \\1 for $STEADFAST_ITERATION""#, 2, Rule::FixedN);
    ideas.perspectives = vec!["user".into(), "maker".into()];
    let run = world.drive(&plan(vec![ideas, stage("plan", "cat > asked", 1, Rule::FixedN)]));
    assert_eq!(ended(&run), (RunStatus::Completed, "completed"));
    let asked = std::fs::read_to_string(world.in_project("asked")).unwrap();
    let expected = "test 1  ## ideas 1\n\nR&D ${INPUTS} \\1 for 1\n\n## ideas 2\n\nR&D ${INPUTS} \\1 for 2\n";
    assert_eq!(asked, expected);
}

#[test]
fn a_judge_decides_if_the_plan_names_one() {
    let world = World::new();
    let mut improve = stage("improve", "echo x >> tries; echo done", 9, Rule::Plateau(2));
    improve.judge = Some(shell(
        "cat > asked; [ $(wc -l < tries) -ge 2 ] && vote=true || vote=false; echo \"{\\\"plateau\\\": $vote, \\\"reasoning\\\": \\\"seen\\\"}\"",
    ));
    let run = world.drive(&plan(vec![improve]));
    assert_eq!(ended(&run), (RunStatus::Completed, "plateau"));
    assert_eq!(world.lines("tries").len(), 3);
    let asked = std::fs::read_to_string(world.in_project("asked")).unwrap();
    assert!(asked.contains("Iteration 2: done") && asked.contains("<answer>\ndone"), "{asked}");
}

#[test]
fn a_judge_of_a_killed_engine_is_ended_and_another_asked_later() {
    let world = World::new();
    let mut improve = stage("improve", "echo x >> tries; echo done", 9, Rule::Plateau(1));
    // The answer in the form of other tools.
    improve.judge = Some(shell(
        "echo $$ >> judges; [ $(wc -l < judges) -ge 2 ] || while :; do sleep 0.05; done; \
         echo '{\"stop\": true, \"reason\": \"flat\", \"confidence\": 0.9}' > $STEADFAST_RESULT",
    ));
    world.create(&plan(vec![improve]));
    let mut killed = world.engine_process("");
    let first = eventually(|| world.lines("judges").pop());
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(is_alive(&first));
    let stopping = Stopping { status: RunStatus::Killed, reason: "killed".into() };
    world.store().write(|db| db.request_stop(RUN, Some(&stopping))).unwrap();
    assert_eq!(ended(&world.resume()), (RunStatus::Killed, "killed"));
    assert!(!is_alive(&first));
    dispatcher::reopen(&mut world.store(), &engine(world.root.path()), RUN, None).unwrap();
    assert_eq!(ended(&world.resume()), (RunStatus::Completed, "plateau"));
    assert_eq!((world.lines("tries").len(), world.lines("judges").len()), (1, 2));
}

/// Records what it sees and stops the run after two iterations.
#[derive(Default)]
struct Watcher {
    seen: Vec<String>,
    committed: u32,
}

impl Observer for Watcher {
    fn saved(&mut self, saved: &SavedStep<'_>, _notes: &mut Vec<String>) {
        let kept = saved.store.read().run(saved.run_id).unwrap().unwrap();
        assert_eq!(&kept.run, saved.run, "what is shown was saved before");
        for record in saved.records {
            if let Record::Committed { id, .. } = record {
                self.committed += 1;
                self.seen.push(format!("{}: {}", id.iteration, saved.answer(*id).unwrap().trim()));
            }
        }
    }

    fn stop_requested(&mut self, _notes: &mut Vec<String>) -> Option<Stopping> {
        (self.committed >= 2).then(|| Stopping { status: RunStatus::Killed, reason: "enough".into() })
    }

    fn add_prompt_values(&self, _plan: &Plan, _run: &Run, id: AttemptId, values: &mut PromptValues) {
        values.output = Some(format!("/out/{}", id.iteration).into());
    }
}

#[test]
fn an_observer_sees_saved_steps_names_files_and_may_end_the_run() {
    let world = World::new();
    let mut work = stage("work", "cat; [ $STEADFAST_ITERATION -lt 3 ] || sleep 60", 9, Rule::FixedN);
    work.prompt = "to ${OUTPUT}\n".into();
    world.create(&plan(vec![work]));
    let mut watcher = Watcher::default();
    let run = dispatcher::drive(&mut world.store(), &engine(world.root.path()), RUN, &mut [&mut watcher]).unwrap();
    assert_eq!(ended(&run), (RunStatus::Killed, "enough"));
    assert_eq!(watcher.seen, ["1: to /out/1", "2: to /out/2"]);
}

#[test]
fn a_failing_agent_is_retried_and_a_missing_one_is_not() {
    let world = World::new();
    let script = "echo x >> tries; [ $(wc -l < tries) -ge 3 ] || { echo overloaded >&2; exit 1; }; echo fine";
    let run = world.drive(&plan(vec![stage("work", script, 1, Rule::FixedN)]));
    assert_eq!((ended(&run), world.lines("tries").len()), ((RunStatus::Completed, "fixed-n"), 3));

    let world = World::new();
    let mut missing = stage("work", "", 1, Rule::FixedN);
    missing.agent.kind = AgentKind::Command(vec!["steadfast-no-such-agent".into()]);
    let run = world.drive(&plan(vec![missing]));
    let (status, reason) = ended(&run);
    assert_eq!(status, RunStatus::Failed);
    assert!(reason.starts_with("cannot_start: cannot run `steadfast-no-such-agent`"), "{reason}");
}

#[test]
fn a_stop_request_ends_agent_and_run() {
    let world = World::new();
    world.create(&plan(vec![stage(
        "work",
        "trap '' TERM; echo $$ > agent; while :; do sleep 0.1; done",
        9,
        Rule::FixedN,
    )]));
    std::thread::scope(|scope| {
        let driving = scope.spawn(|| world.resume());
        let agent = eventually(|| world.lines("agent").pop());
        let stopping = Stopping { status: RunStatus::Killed, reason: "killed".into() };
        world.store().write(|db| db.request_stop(RUN, Some(&stopping))).unwrap();
        assert_eq!(ended(&driving.join().unwrap()), (RunStatus::Killed, "killed"));
        assert!(!is_alive(&agent));
    });
    assert_eq!(world.summaries(), Vec::<String>::new());
}

#[test]
fn a_killed_run_resumes_where_it_was() {
    let world = World::new();
    let script = "echo $STEADFAST_ITERATION >> began; [ $STEADFAST_ITERATION = 1 ] || [ -e go ] || sleep 60";
    world.create(&plan(vec![stage("work", script, 2, Rule::FixedN)]));
    let stopping = Stopping { status: RunStatus::Killed, reason: "killed".into() };
    std::thread::scope(|scope| {
        let driving = scope.spawn(|| world.resume());
        eventually(|| (world.lines("began").len() == 2).then_some(()));
        world.store().write(|db| db.request_stop(RUN, Some(&stopping))).unwrap();
        assert_eq!(ended(&driving.join().unwrap()), (RunStatus::Killed, "killed"));
    });
    std::fs::write(world.in_project("go"), "").unwrap();
    let engine = engine(world.root.path());
    dispatcher::reopen(&mut world.store(), &engine, RUN, None).unwrap();
    let again = dispatcher::reopen(&mut world.store(), &engine, RUN, None);
    assert!(matches!(again, Err(DriveError::Refused(_))), "{again:?}");
    assert_eq!(ended(&world.resume()), (RunStatus::Completed, "fixed-n"));
    assert_eq!(world.lines("began"), ["1", "2", "2"]);
}

#[test]
fn a_second_engine_is_refused() {
    let world = World::new();
    world.create(&plan(vec![stage("work", "touch began; while [ ! -e go ]; do sleep 0.05; done", 1, Rule::FixedN)]));
    std::thread::scope(|scope| {
        let driving = scope.spawn(|| world.resume());
        eventually(|| world.in_project("began").exists().then_some(()));
        let refused = dispatcher::drive(&mut world.store(), &engine(world.root.path()), RUN, &mut []);
        assert!(matches!(refused, Err(DriveError::Driven { pid: Some(_), .. })), "{refused:?}");
        std::fs::write(world.in_project("go"), "").unwrap();
        assert_eq!(ended(&driving.join().unwrap()), (RunStatus::Completed, "fixed-n"));
    });
    assert!(!RunLock::is_held(&world.path("home"), RUN).unwrap());
}

/// Starts an agent that records its start and waits for `go`; three iterations, each writing a line.
fn slow() -> Plan {
    let script = "echo $STEADFAST_ITERATION >> began; while [ ! -e go ]; do sleep 0.05; done; \
                  echo $STEADFAST_ITERATION >> done; echo \"did $STEADFAST_ITERATION\"";
    plan(vec![stage("work", script, 3, Rule::FixedN)])
}

#[test]
fn the_next_engine_waits_for_a_surviving_agent() {
    let world = World::new();
    world.create(&slow());
    let mut killed = world.engine_process("");
    eventually(|| (world.lines("began").len() == 1).then_some(()));
    killed.kill().unwrap();
    killed.wait().unwrap();
    std::thread::scope(|scope| {
        let driving = scope.spawn(|| world.resume());
        std::fs::write(world.in_project("go"), "").unwrap();
        assert_eq!(ended(&driving.join().unwrap()), (RunStatus::Completed, "fixed-n"));
    });
    assert_eq!((world.lines("began"), world.lines("done")), (three(), three()));
    assert_eq!(world.summaries(), ["did 1", "did 2", "did 3"]);
}

fn three() -> Vec<String> {
    ["1", "2", "3"].map(str::to_owned).to_vec()
}

#[test]
fn an_agent_whose_engine_and_supervisor_were_killed_is_not_doubled() {
    let world = World::new();
    world.create(&slow());
    let mut killed = world.engine_process("");
    eventually(|| (world.lines("began").len() == 1).then_some(()));
    killed.kill().unwrap();
    killed.wait().unwrap();
    let id = AttemptId { stage: 1, iteration: 1, attempt: 1 };
    let attempt = Attempt::at(&world.path("home"), RUN, id);
    let supervisor = attempt.supervisor().unwrap().unwrap().identity.pid;
    kill_process(Pid::from_raw(supervisor).unwrap(), Signal::KILL).unwrap();
    std::thread::scope(|scope| {
        let driving = scope.spawn(|| world.resume());
        std::thread::sleep(Duration::from_millis(700));
        assert_eq!(world.lines("began"), ["1"], "the first agent lives: no second one");
        std::fs::write(world.in_project("go"), "").unwrap();
        assert_eq!(ended(&driving.join().unwrap()), (RunStatus::Completed, "fixed-n"));
    });
    // The exit of the first one was lost, so it was run again after the first had ended.
    assert_eq!(world.lines("began"), ["1", "1", "2", "3"]);
    assert_eq!(world.summaries(), ["did 1", "did 2", "did 3"]);
}

#[test]
fn hours_and_deadline_hold_while_a_run_waits_for_a_usage_limit() {
    for axis in [Axis::Hours, Axis::Deadline] {
        let world = World::new();
        let script = "echo x >> tries; echo \"You've hit your limit · resets 3pm\" >&2; exit 1";
        let mut plan = plan(vec![stage("work", script, 3, Rule::FixedN)]);
        let amount = if axis == Axis::Hours { 1_500 } else { clock::now() + 1_500 };
        plan.limits.limits.set(axis, Some(amount));
        assert_eq!(ended(&world.drive(&plan)), (RunStatus::Completed, "max_hours"), "{axis}");
        assert_eq!(world.lines("tries").len(), 1, "{axis}");
    }
}

#[test]
fn a_deadline_ends_a_running_agent() {
    let world = World::new();
    let mut plan = plan(vec![stage("work", "echo x >> tries; sleep 60", 3, Rule::FixedN)]);
    plan.limits.limits.set(Axis::Deadline, Some(clock::now() + 1_500));
    assert_eq!(ended(&world.drive(&plan)), (RunStatus::Completed, "max_hours"));
    assert_eq!(world.lines("tries").len(), 1);
}

#[test]
fn an_agent_that_records_its_own_success_has_failed() {
    let world = World::new();
    let script = r#"echo x >> tries; [ $(wc -l < tries) -ge 2 ] || { kill -9 $PPID; echo '{"exit_code":0,"signal":null,
        "timed_out":false,"stopped":false,"cannot_start":null,"started_at_ms":0,"ended_at_ms":1}' \
        > "$STEADFAST_ATTEMPT/exit.json"; }"#;
    let before = clock::now();
    let run = world.drive(&plan(vec![stage("work", script, 1, Rule::FixedN)]));
    assert_eq!((ended(&run), world.lines("tries").len()), ((RunStatus::Completed, "fixed-n"), 2));
    let committed = world.store().read().run_history(RUN, None, 9).unwrap().remove(0);
    assert_eq!(committed.id.attempt, 2);
    assert!(committed.started_at_ms >= before && committed.committed_at_ms >= committed.started_at_ms);
}

#[test]
fn wherever_the_engine_dies_every_iteration_is_committed_once() {
    for point in [
        "engine.locked",
        "engine.before_save:1",
        "engine.saved:1",
        "engine.shown:1",
        "engine.prompt_written:2",
        "engine.prepared:2",
        "engine.started:2",
        "engine.attempt_ended:2",
        "engine.before_save:3",
        "engine.saved:3",
        "engine.saved:4",
    ] {
        let world = World::new();
        world.create(&slow());
        std::fs::write(world.in_project("go"), "").unwrap();
        let status = world.engine_process(point).wait().unwrap();
        assert!(!status.success(), "{point} was not reached");
        let is_last = point == "engine.saved:4";
        assert_eq!(world.state().status == RunStatus::Completed, is_last, "{point}");
        let run = world.resume();
        assert_eq!(ended(&run), (RunStatus::Completed, "fixed-n"), "{point}");
        assert_eq!(world.summaries(), ["did 1", "did 2", "did 3"], "{point}");
        assert_eq!((world.lines("began"), world.lines("done")), (three(), three()), "{point}");
    }
}

#[test]
fn wherever_the_supervisor_dies_every_iteration_is_committed_once() {
    for point in [
        "supervisor.started:2",
        "supervisor.locked:2",
        "supervisor.record_written:2",
        "supervisor.spawned:2",
        "supervisor.agent_ended:2",
        "supervisor.exit_written:2",
    ] {
        let world = World::new();
        world.create(&slow());
        std::fs::write(world.in_project("go"), "").unwrap();
        let status = world.engine_process(point).wait().unwrap();
        assert!(status.success(), "{point}");
        assert_eq!(ended(&world.state()), (RunStatus::Completed, "fixed-n"), "{point}");
        assert_eq!(world.summaries(), ["did 1", "did 2", "did 3"], "{point}");
        let again = ["supervisor.spawned:2", "supervisor.agent_ended:2"].contains(&point);
        assert_eq!(world.lines("done").len(), if again { 4 } else { 3 }, "{point}");
    }
}

#[test]
fn a_first_signal_stops_the_run_and_a_second_kills_it() {
    for signals in [1, 2] {
        let world = World::new();
        let script = "trap '' TERM; echo $$ > agent; while :; do sleep 0.1; done";
        world.create(&plan(vec![stage("work", script, 9, Rule::FixedN)]));
        let mut engine = world.engine_process("");
        let agent = eventually(|| world.lines("agent").pop());
        let pid = Pid::from_child(&engine);
        for _ in 0..signals {
            kill_process(pid, Signal::INT).unwrap();
            std::thread::sleep(Duration::from_millis(100));
        }
        assert!(engine.wait().unwrap().success());
        assert_eq!(ended(&world.state()), (RunStatus::Killed, "interrupted"));
        assert!(!is_alive(&agent));
    }
}
