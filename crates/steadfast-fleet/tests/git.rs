//! What a worker does with git, against a real bare repository and with agents that are shell commands. A small host
//! drives the machine as the workflow does: records are written before the acts that follow them.
#![expect(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests look at the world from outside")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use steadfast_engine::process::Cancel;
use steadfast_fleet::wire::{
    AttemptInput, AttemptResult, AttemptShas, CheckInput, ConditionInput, FleetOptions, Heads, RUN_PLACE, RecordInput,
    RunRef, attempt_key,
};
use steadfast_fleet::work::{self, Allowed, NewFleetRun, RunDirectory, WorkError, WorkerContext};
use steadfast_model::clock;
use steadfast_model::run::{
    Act, AgentKind, AgentPlan, AttemptId, FailureKind, MergePlan, Outcome, Plan, Record, Rule, Run, RunEvent, RunKind,
    RunLimits, RunPurpose, RunStatus, StagePlan, condition, machine,
};
use steadfast_system::config::Config;

const RUN_ID: &str = "0123456789abcdef";

fn git(directory: &Path, arguments: &[&str]) -> String {
    let settings = ["-c", "user.name=T", "-c", "user.email=t@t", "-c", "commit.gpgsign=false", "-c", "gc.auto=0"];
    let output = Command::new("git").args(settings).args(arguments).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

struct World {
    root: tempfile::TempDir,
}

impl World {
    /// A bare repository, and a clone of it with one commit.
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        git(root.path(), &["init", "-q", "--bare", "-b", "main", "origin.git"]);
        git(root.path(), &["clone", "-q", "origin.git", "project"]);
        let world = Self { root };
        fs_err::write(world.project().join("a.txt"), "a\n").unwrap();
        git(&world.project(), &["add", "-A"]);
        git(&world.project(), &["commit", "-qm", "one"]);
        git(&world.project(), &["push", "-q", "origin", "HEAD:main"]);
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn project(&self) -> PathBuf {
        self.path("project")
    }

    fn origin(&self) -> PathBuf {
        self.path("origin.git")
    }

    /// Workers with different homes are different machines.
    fn worker(&self, name: &str) -> WorkerContext {
        WorkerContext {
            home: self.path(name),
            program: env!("CARGO_BIN_EXE_steadfast-fleet").into(),
            config: Config::default(),
            grace: Duration::from_millis(500),
            name: name.to_owned(),
            allowed: Allowed::default(),
        }
    }

    fn start(&self, plan: &Plan) -> RunRef {
        self.try_start(plan).unwrap()
    }

    fn try_start(&self, plan: &Plan) -> Result<RunRef, WorkError> {
        self.try_start_as(plan, RUN_ID)
    }

    fn try_start_as(&self, plan: &Plan, run_id: &str) -> Result<RunRef, WorkError> {
        work::start_run(&NewFleetRun {
            home: &self.path("submitter"),
            project: &self.project(),
            repo_url: None,
            run_id,
            plan,
            inputs: Some("the input"),
            objective: "ship it",
            definition: None,
            allow_dirty: false,
        })
        .map(|started| started.run_ref)
    }

    fn refs(&self) -> Vec<String> {
        let listed = git(&self.origin(), &["for-each-ref", "--format=%(refname:strip=2)"]);
        listed.lines().map(str::to_owned).collect()
    }

    fn show(&self, what: &str) -> String {
        git(&self.origin(), &["show", what])
    }
}

fn shell(script: &str) -> AgentPlan {
    AgentPlan::new(AgentKind::Command(["sh", "-c", script].map(str::to_owned).to_vec()))
}

fn stage(name: &str, prompt: &str, runs: u32, script: &str) -> StagePlan {
    StagePlan { prompt: prompt.to_owned(), agent: shell(script), ..StagePlan::new(name, Rule::FixedN, runs) }
}

fn plan(stages: Vec<StagePlan>) -> Plan {
    let kind = if stages.len() == 1 { RunKind::Loop } else { RunKind::Pipeline };
    let limits = RunLimits { back_off_ms: 0, ..RunLimits::default() };
    let (name, title) = ("auth".to_owned(), "work".to_owned());
    Plan { name, kind, title, pipeline_file: None, stages, limits, purpose: RunPurpose::Definition }
}

fn id(stage: u32, iteration: u32, attempt: u32) -> AttemptId {
    AttemptId { stage, iteration, attempt }
}

/// Drives a run as the workflow does, one act after the other, with the workers in turn.
struct Host {
    run_ref: RunRef,
    plan: Plan,
    run: Run,
    heads: Heads,
    seq: u64,
    shas: BTreeMap<String, AttemptShas>,
    workers: Vec<WorkerContext>,
    outcomes: Vec<(AttemptId, Outcome)>,
}

impl Host {
    fn new(world: &World, plan: &Plan, workers: &[&str]) -> Self {
        Self::of(world, plan, world.start(plan), workers)
    }

    /// Drives a run that was started.
    fn of(world: &World, plan: &Plan, run_ref: RunRef, workers: &[&str]) -> Self {
        let mut heads = Heads::default();
        heads.set(RUN_PLACE, &run_ref.repo.base);
        Self {
            run: machine::begin(plan, clock::now()),
            run_ref,
            plan: plan.clone(),
            heads,
            seq: 0,
            shas: BTreeMap::new(),
            workers: workers.iter().map(|name| world.worker(name)).collect(),
            outcomes: Vec::new(),
        }
    }

    fn place(&self, stage: u32, iteration: u32) -> (String, String) {
        let stage_plan = self.plan.stage(stage).unwrap();
        let shared = stage_plan.lane.as_ref().map_or_else(|| RUN_PLACE.to_owned(), |lane| format!("lane-{lane}"));
        if stage_plan.parallel { (format!("{stage}-{iteration}"), shared) } else { (shared, RUN_PLACE.to_owned()) }
    }

    fn base(&self, stage: u32, iteration: u32) -> String {
        let (place, base) = self.place(stage, iteration);
        let places = [place.as_str(), &base, RUN_PLACE];
        places.into_iter().find_map(|place| self.heads.get(place)).unwrap().to_owned()
    }

    fn worker(&mut self) -> WorkerContext {
        self.workers.rotate_left(1);
        self.workers[0].clone()
    }

    fn driven_to_end(mut self) -> Self {
        let mut events = vec![RunEvent::Started];
        while let Some(event) = (!events.is_empty()).then(|| events.remove(0)) {
            let step = machine::step(&self.plan, self.run.clone(), event.without_secrets(), clock::now());
            self.run = step.run;
            self.record(&step.records);
            for act in step.acts {
                match act {
                    Act::Start(id) => {
                        let report = work::attempt(&self.worker(), &self.input(id), &Cancel::default(), &mut |_| {});
                        let outcome = self.reported(id, report.unwrap());
                        events.push(RunEvent::Ended { id, outcome });
                    }
                    Act::Check { id, checks } => {
                        let shas = self.shas.get(&attempt_key(id)).cloned().unwrap_or_default();
                        let input = CheckInput {
                            run_ref: self.run_ref.clone(),
                            id,
                            checks,
                            sha: shas.sha.unwrap_or_else(|| self.base(id.stage, id.iteration)),
                            heads: self.heads.clone(),
                            seq: self.seq,
                            files: shas.files,
                            run: self.run.clone(),
                        };
                        let report = work::check(&self.worker(), &input, &Cancel::default()).unwrap();
                        self.shas.entry(attempt_key(id)).or_default().files = report.files;
                        events.push(RunEvent::Checked { id, facts: report.facts });
                    }
                    Act::Decide(stage) => {
                        let input = ConditionInput {
                            run_ref: self.run_ref.clone(),
                            stage,
                            sha: self.base(stage, 1),
                            heads: self.heads.clone(),
                            seq: self.seq,
                            run: self.run.clone(),
                        };
                        let report = work::condition(&self.worker(), &input, &Cancel::default()).unwrap();
                        events.push(RunEvent::Decided { stage, holds: report.holds, detail: report.detail });
                    }
                    Act::WakeAt(_) => events.push(RunEvent::Woke),
                    Act::Stop(_) | Act::Finish => {}
                }
            }
        }
        let worker = self.worker();
        work::publish(&worker, &self.run_ref, self.heads.get(RUN_PLACE).unwrap()).unwrap();
        work::clean(&worker, &self.run_ref).unwrap();
        self
    }

    fn input(&self, id: AttemptId) -> AttemptInput {
        AttemptInput {
            run_ref: self.run_ref.clone(),
            id,
            base: self.base(id.stage, id.iteration),
            heads: self.heads.clone(),
            seq: self.seq,
            run: self.run.clone(),
            ..AttemptInput::default()
        }
    }

    fn reported(&mut self, id: AttemptId, report: AttemptResult) -> Outcome {
        let place = self.place(id.stage, id.iteration).0;
        let AttemptResult { outcome, sha, files, branch } = report;
        self.shas.insert(attempt_key(id), AttemptShas { place, sha, files, branch });
        self.outcomes.push((id, outcome.clone()));
        outcome
    }

    fn record(&mut self, records: &[Record]) {
        let mut files = Vec::new();
        for record in records {
            let (Record::Committed { id, .. } | Record::AttemptEnded { id, .. }) = record else { continue };
            let Some(shas) = self.shas.get(&attempt_key(*id)) else { continue };
            files.extend(shas.files.clone().map(|files| (*id, files)));
            if let (Record::Committed { .. }, Some(sha)) = (record, &shas.sha) {
                self.heads.set(&shas.place.clone(), sha);
            }
        }
        let input = RecordInput {
            run_ref: self.run_ref.clone(),
            seq: self.seq,
            records: records.to_vec(),
            run: self.run.clone(),
            heads: self.heads.clone(),
            files,
            shas: BTreeMap::new(),
            options: FleetOptions::default(),
        };
        let worker = self.worker();
        work::record(&worker, &input).unwrap();
        // An activity may run twice.
        work::record(&worker, &input).unwrap();
        self.seq += records.len() as u64;
    }

    fn failures(&self) -> Vec<(AttemptId, FailureKind, String)> {
        let failed = |(id, outcome): &(AttemptId, Outcome)| match outcome {
            Outcome::Failed(failure) => Some((*id, failure.kind, failure.message.clone())),
            Outcome::Succeeded(_) => None,
        };
        self.outcomes.iter().filter_map(failed).collect()
    }
}

#[test]
fn a_run_goes_from_machine_to_machine_with_its_work_progress_and_outputs() {
    let world = World::new();
    let first = stage(
        "plan",
        "Write ${OUTPUT}. Read ${INPUTS}. Notes: ${PROGRESS}",
        3,
        "cat > prompt-$STEADFAST_ITERATION.txt; echo note $STEADFAST_ITERATION >> .claude/pipeline-runs/auth/stage-1-plan/progress.md; echo idea $STEADFAST_ITERATION",
    );
    let second = stage("build", "Do this:\n${INPUTS}\n", 1, "cat > second.txt; cat prompt-3.txt > seen.txt");
    let mut plan = plan(vec![first, second]);
    plan.stages[1].inputs = vec!["plan".to_owned()];
    let host = Host::new(&world, &plan, &["one", "two", "three"]).driven_to_end();
    assert_eq!((host.run.status, host.failures()), (RunStatus::Completed, Vec::new()));
    let prompt = world.show("steadfast/auth:second.txt");
    for idea in ["idea 1", "idea 2", "idea 3"] {
        assert!(prompt.contains(idea), "{prompt}");
    }
    assert!(world.show("steadfast/auth:prompt-1.txt").contains("the input"));
    assert_eq!(git(&world.origin(), &["rev-list", "--count", "main..steadfast/auth"]), "4");
    let directory = RunDirectory::open(&world.path("reader"), &host.run_ref.repo.url, "auth").unwrap();
    assert_eq!((directory.state.seq, directory.state.run.status), (host.seq, RunStatus::Completed));
    let committed = |record: &Record| matches!(record, Record::Committed { .. });
    assert_eq!(directory.records(0).unwrap().iter().filter(|record| committed(record)).count(), 4);
    assert_eq!(directory.file(id(1, 2, 1), "answer.md").unwrap().unwrap(), b"idea 2\n");
    let progress = directory.text("progress/1.md").unwrap().unwrap();
    assert!(progress.contains("note 1\nnote 2\nnote 3"), "{progress}");
    assert_eq!(world.refs(), ["main", "steadfast-runs/auth", "steadfast/auth"], "attempts are cleaned up");
    let files = git(&world.origin(), &["ls-tree", "-r", "--name-only", "steadfast/auth"]);
    assert!(!files.contains(".claude"), "state files stay out of the code: {files}");
    let left: Vec<_> = ["one", "two", "three"]
        .iter()
        .flat_map(|name| fs_err::read_dir(world.path(name).join("fleet/work")).into_iter().flatten())
        .collect();
    assert_eq!(left.len(), 0, "{left:?}");
    assert_eq!(RunDirectory::list(&world.path("reader"), &host.run_ref.repo.url).unwrap(), ["auth"]);
}

#[test]
fn parallel_iterations_are_merged_and_conflicts_are_resolved() {
    let world = World::new();
    let mut build = stage(
        "build",
        "Build",
        3,
        "echo $STEADFAST_ITERATION > part-$STEADFAST_ITERATION.txt; echo $STEADFAST_ITERATION > same.txt",
    );
    build.parallel = true;
    let resolve = "cat > conflict.txt; echo resolved > same.txt; git add -A; git -c user.name=A -c user.email=a@a commit -qm resolved --no-verify";
    let mut merge = stage("merge", "Resolve", 3, resolve);
    merge.completion = Rule::Merged;
    merge.merge = Some(MergePlan { from: "build".to_owned(), chosen_by: None });
    let host = Host::new(&world, &plan(vec![build, merge]), &["one", "two"]).driven_to_end();
    assert_eq!((host.run.status, host.failures()), (RunStatus::Completed, Vec::new()));
    for part in 1..=3 {
        assert_eq!(world.show(&format!("steadfast/auth:part-{part}.txt")), part.to_string());
    }
    assert_eq!(world.show("steadfast/auth:same.txt"), "resolved");
    let conflict = world.show("steadfast/auth:conflict.txt");
    assert!(conflict.contains("`steadfast-parallel/auth/1-") && conflict.contains("same.txt"), "{conflict}");
    assert!(world.refs().contains(&"steadfast-parallel/auth/1-2".to_owned()), "{:?}", world.refs());
}

#[test]
fn rules_and_conditions_are_tested_on_the_commit_of_the_attempt() {
    let world = World::new();
    let mut first = stage("work", "Work", 5, "echo $STEADFAST_ITERATION > done-$STEADFAST_ITERATION");
    first.completion = Rule::Verify(vec!["test -e done-2".to_owned()]);
    let mut second = stage("skipped", "Never", 1, "touch wrong");
    second.when = Some(condition::parse("exists('nothing')").unwrap());
    let mut third = stage("last", "Last", 1, "touch last");
    third.when = Some(condition::parse("exists('done-2')").unwrap());
    let host = Host::new(&world, &plan(vec![first, second, third]), &["one", "two"]).driven_to_end();
    assert_eq!(host.run.status, RunStatus::Completed);
    let iterations: Vec<u32> = host.run.stages.iter().map(|stage| stage.iterations).collect();
    assert_eq!(iterations, [2, 0, 1]);
    let directory = RunDirectory::open(&world.path("reader"), &host.run_ref.repo.url, "auth").unwrap();
    let evidence = directory.file(id(1, 2, 1), "evidence.json").unwrap().unwrap();
    assert!(String::from_utf8_lossy(&evidence).contains("test -e done-2"));
}

#[test]
fn a_failed_attempt_leaves_the_run_as_it_was() {
    let world = World::new();
    let script = "test -e /tmp/none; echo half > half.txt; test \"$(cat $FLAG 2>/dev/null)\" = yes || { echo yes > $FLAG; exit 3; }";
    let flag = world.path("flag").display().to_string();
    let stage = stage("work", "Work", 1, &script.replace("$FLAG", &flag));
    let host = Host::new(&world, &plan(vec![stage]), &["one", "two"]).driven_to_end();
    assert_eq!(host.run.status, RunStatus::Completed);
    assert_eq!(
        host.failures().iter().map(|(id, kind, _)| (id.attempt, *kind)).collect::<Vec<_>>(),
        [(1, FailureKind::Exit)]
    );
    assert_eq!(git(&world.origin(), &["rev-list", "--count", "main..steadfast/auth"]), "1");
}

#[test]
fn a_long_answer_comes_through_and_secrets_do_not() {
    let world = World::new();
    let key = format!("sk-ant-api03-{}", "Ab1".repeat(31));
    let script = format!(
        "head -c 5000000 /dev/zero | tr '\\0' x > $OUT; echo >> $OUT; echo {key} >> $OUT; echo 'my key is {key}'; echo {key} >&2"
    );
    let out = ".claude/pipeline-runs/auth/stage-1-say/output.md";
    let say = stage("say", "Write to ${OUTPUT}", 1, &script.replace("$OUT", out));
    let host = Host::new(&world, &plan(vec![say, stage("next", "Next", 1, "true")]), &["one"]).driven_to_end();
    assert_eq!((host.run.status, host.failures()), (RunStatus::Completed, Vec::new()));
    let directory = RunDirectory::open(&world.path("reader"), &host.run_ref.repo.url, "auth").unwrap();
    let output = directory.file(id(1, 1, 1), "output.md").unwrap().unwrap();
    assert!(output.len() > 5_000_000, "{}", output.len());
    for name in directory.files(id(1, 1, 1)).unwrap() {
        let content = directory.file(id(1, 1, 1), &name).unwrap().unwrap();
        assert!(!String::from_utf8_lossy(&content).contains(&key), "{name}");
    }
}

#[test]
fn records_are_written_once_whoever_writes_them() {
    let world = World::new();
    let plan = plan(vec![stage("work", "Work", 1, "true")]);
    let run_ref = world.start(&plan);
    let record = |number: u32| Record::AttemptStarted { id: id(1, number, 1) };
    let input = |seq: u64, numbers: &[u32]| RecordInput {
        run_ref: run_ref.clone(),
        seq,
        records: numbers.iter().map(|number| record(*number)).collect(),
        run: machine::begin(&plan, 1),
        ..RecordInput::default()
    };
    let (one, two) = (world.worker("one"), world.worker("two"));
    work::record(&one, &input(0, &[1, 2])).unwrap();
    // The other machine has an old mirror, and repeats a part.
    work::record(&two, &input(0, &[1, 2])).unwrap();
    work::record(&two, &input(1, &[2, 3])).unwrap();
    work::record(&one, &input(3, &[4])).unwrap();
    assert!(matches!(work::record(&one, &input(9, &[10])), Err(WorkError::Behind { found: 4, wanted: 9, .. })));
    std::thread::scope(|scope| {
        for worker in [&one, &two] {
            scope.spawn(|| work::record(worker, &input(4, &[5, 6])).unwrap());
        }
    });
    let many: Vec<u32> = (7..1_207).collect();
    work::record(&two, &input(6, &many)).unwrap();
    let directory = RunDirectory::open(&world.path("reader"), &run_ref.repo.url, "auth").unwrap();
    let expected: Vec<Record> = (1..1_207).map(record).collect();
    assert_eq!(directory.records(0).unwrap(), expected);
    assert_eq!(directory.records(1_204).unwrap(), expected[1_204..]);
}

#[test]
fn a_killed_worker_leaves_no_agent_and_nothing_wrong() {
    let world = World::new();
    let pid = world.path("pid");
    let script = format!("echo half > half.txt; echo $$ > {}; sleep 1000", pid.display());
    let plan = plan(vec![stage("work", "Work", 1, &script)]);
    let host = Host::new(&world, &plan, &["one"]);
    let input = host.input(id(1, 1, 1));
    // The worker is a process of its own, which is this test again.
    let mut worker = Command::new(std::env::current_exe().unwrap())
        .args(["works_until_it_is_killed", "--exact", "--ignored", "--nocapture"])
        .env("FLEET_TEST_ROOT", world.root.path())
        .env("FLEET_TEST_INPUT", serde_json::to_string(&input).unwrap())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let agent = wait_for(|| fs_err::read_to_string(&pid).ok()?.trim().parse::<u32>().ok());
    let is_alive = || is_alive(&agent.to_string());
    assert!(is_alive());
    worker.kill().unwrap();
    worker.wait().unwrap();
    wait_for(|| (!is_alive()).then_some(()));
    assert_eq!(world.refs(), ["main", "steadfast-runs/auth", "steadfast/auth"]);
    let context = world.worker("one");
    assert_eq!(fs_err::read_dir(context.home.join("fleet/work")).unwrap().count(), 1);
    work::tidy(&context).unwrap();
    assert_eq!(fs_err::read_dir(context.home.join("fleet/work")).unwrap().count(), 0);
}

/// Not a test of its own: the worker of the test above.
#[test]
#[ignore = "is started by another test"]
fn works_until_it_is_killed() {
    let Ok(root) = std::env::var("FLEET_TEST_ROOT") else { return };
    let input: AttemptInput = serde_json::from_str(&std::env::var("FLEET_TEST_INPUT").unwrap()).unwrap();
    let context = WorkerContext {
        home: Path::new(&root).join("one"),
        program: env!("CARGO_BIN_EXE_steadfast-fleet").into(),
        config: Config::default(),
        grace: Duration::from_millis(500),
        name: "one".to_owned(),
        allowed: Allowed::default(),
    };
    work::attempt(&context, &input, &Cancel::default(), &mut |_| {}).unwrap();
}

fn is_alive(pid: &str) -> bool {
    fs_err::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z"))
}

fn wait_for<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + Duration::from_mins(1);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < until, "it did not happen in a minute");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_cancelled_attempt_ends_with_its_agent() {
    let world = World::new();
    let pid = world.path("pid");
    let script = format!("echo $$ > {}; sleep 1000", pid.display());
    let host = Host::new(&world, &plan(vec![stage("work", "Work", 1, &script)]), &["one"]);
    let cancel = Cancel::default();
    let beats = std::cell::Cell::new(0);
    let report = std::thread::scope(|scope| {
        scope.spawn(|| {
            wait_for(|| fs_err::read_to_string(&pid).ok()?.trim().parse::<u32>().ok());
            cancel.cancel();
        });
        work::attempt(&host.workers[0], &host.input(id(1, 1, 1)), &cancel, &mut |_| beats.set(beats.get() + 1)).unwrap()
    });
    assert!(matches!(report.outcome, Outcome::Failed(failure) if failure.kind == FailureKind::Stopped));
    assert!(beats.get() > 0);
    let agent = fs_err::read_to_string(&pid).unwrap();
    assert!(!is_alive(agent.trim()));
}

#[test]
fn what_must_not_travel_or_run_is_refused() {
    let world = World::new();
    let key = format!("sk-ant-api03-{}", "Ab1".repeat(31));
    let secret = plan(vec![stage("work", &format!("Use {key}"), 1, "true")]);
    assert!(matches!(world.try_start(&secret), Err(WorkError::Secrets(_))));
    let plain = plan(vec![stage("work", "Work", 1, "true")]);
    fs_err::write(world.project().join("b.txt"), "b").unwrap();
    assert!(matches!(world.try_start(&plain), Err(WorkError::Dirty(files)) if files == "b.txt"));
    fs_err::remove_file(world.project().join("b.txt")).unwrap();
    let host = Host::new(&world, &plain, &["one"]);
    assert!(matches!(world.try_start(&plain), Err(WorkError::Exists(name)) if name == "auth"));
    let mut worker = world.worker("one");
    worker.allowed.repos = vec!["https://elsewhere/repo.git".to_owned()];
    let refused = work::attempt(&worker, &host.input(id(1, 1, 1)), &Cancel::default(), &mut |_| {}).unwrap_err();
    assert!(refused.is_busy(), "{refused}");
    worker.allowed = Allowed { repos: vec![host.run_ref.repo.url.clone()], agents: vec!["claude".to_owned()] };
    let refused = work::attempt(&worker, &host.input(id(1, 1, 1)), &Cancel::default(), &mut |_| {}).unwrap_err();
    assert!(refused.is_busy(), "{refused}");
    for url in ["ext::sh -c touch% /tmp/x", "--upload-pack=touch"] {
        assert!(matches!(RunDirectory::open(&world.path("x"), url, "auth"), Err(WorkError::Address(_))), "{url}");
    }
    assert!(matches!(
        RunDirectory::open(&world.path("x"), &host.run_ref.repo.url, "nobody"),
        Err(WorkError::NoRun(name)) if name == "nobody"
    ));
}

#[test]
fn settings_that_an_agent_leaves_in_its_checkout_are_not_used() {
    let world = World::new();
    let (thief, ran) = (world.path("thief.git"), world.path("ran"));
    git(world.root.path(), &["init", "-q", "--bare", "-b", "main", "thief.git"]);
    git(&world.project(), &["push", "-q", &thief.display().to_string(), "HEAD:main"]);
    let hooks = world.path("hooks");
    fs_err::create_dir_all(&hooks).unwrap();
    // Every program notes that it ran; a filter and a monitor also have to answer.
    let program = |name: &str, answer: &str| {
        let file = hooks.join(name);
        fs_err::write(&file, format!("#!/bin/sh\necho {name} >> {}\n{answer}\n", ran.display())).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs_err::set_permissions(&file, mode).unwrap();
        file.display().to_string()
    };
    for hook in ["pre-push", "pre-commit", "post-commit", "post-index-change", "reference-transaction"] {
        program(hook, "");
    }
    let (origin, thief_url) = (world.origin().display().to_string(), thief.display().to_string());
    let settings = [
        (format!("url.{thief_url}.insteadOf"), origin.clone()),
        (format!("url.{thief_url}.pushInsteadOf"), origin.clone()),
        ("core.hooksPath".to_owned(), hooks.display().to_string()),
        ("core.fsmonitor".to_owned(), program("monitor", "exit 1")),
        ("filter.x.clean".to_owned(), program("clean", "cat")),
        ("filter.x.process".to_owned(), program("process", "exit 1")),
        ("core.sshCommand".to_owned(), program("ssh", "exit 1")),
        ("core.editor".to_owned(), program("editor", "exit 1")),
        ("core.pager".to_owned(), program("pager", "cat")),
        ("credential.helper".to_owned(), program("helper", "")),
        ("gpg.program".to_owned(), program("gpg", "exit 1")),
        ("diff.external".to_owned(), program("diff", "exit 0")),
        ("core.alternateRefsCommand".to_owned(), program("alternates", "")),
        ("core.worktree".to_owned(), world.path("elsewhere").display().to_string()),
    ];
    fs_err::create_dir_all(world.path("elsewhere")).unwrap();
    let mut script = String::from("set -eu; echo '*.txt filter=x diff=x' > .gitattributes; echo work > work.txt; ");
    for (name, value) in &settings {
        write!(script, "git config {name} '{value}'; ").unwrap();
    }
    write!(script, "mkdir -p .git/hooks; cp {}/* .git/hooks/; rm -f {}", hooks.display(), ran.display()).unwrap();
    let mut stage = stage("work", "Work", 1, &script);
    stage.completion = Rule::Verify(vec!["test -e work.txt".to_owned()]);
    let host = Host::new(&world, &plan(vec![stage]), &["one"]).driven_to_end();
    assert_eq!((host.run.status, host.failures()), (RunStatus::Completed, Vec::new()));
    assert_eq!(world.show("steadfast/auth:work.txt"), "work");
    let stolen = git(&thief, &["for-each-ref", "--format=%(refname)"]);
    assert_eq!(stolen, "refs/heads/main", "work went to another repository");
    assert_eq!(fs_err::read_to_string(&ran).unwrap_or_default(), "", "programs of the agent ran");
}

#[test]
fn an_attempt_fails_if_its_repository_cannot_be_made_anew() {
    let world = World::new();
    let (ran, filter) = (world.path("ran"), world.path("filter"));
    fs_err::write(&filter, format!("#!/bin/sh\necho filter >> {}\ncat\n", ran.display())).unwrap();
    fs_err::set_permissions(&filter, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    // The folder of the attempt is now inside of the repository, so the repository cannot be moved there.
    let script = format!(
        "set -eu; git config filter.x.clean '{}'; echo '*.txt filter=x' > .gitattributes; echo work > work.txt; \
         root=$(cd .. && pwd -P); top=$root-moved; mkdir $top; \
         mv $root/tree $top/tree; mv $root $top/tree/.git/root; ln -s $top/tree/.git/root $root; \
         ln -s $top/tree $top/tree/.git/root/tree; rm -f {}",
        filter.display(),
        ran.display()
    );
    let mut stage = stage("work", "Work", 1, &script);
    // The engine looks at the files after each attempt of such a stage.
    stage.completion = Rule::Verify(vec!["true".to_owned()]);
    let host = Host::new(&world, &plan(vec![stage]), &["one"]);
    let result = work::attempt(&host.workers[0], &host.input(id(1, 1, 1)), &Cancel::default(), &mut |_| {}).unwrap();
    assert_eq!(fs_err::read_to_string(&ran).unwrap_or_default(), "", "a program of the agent ran");
    let Outcome::Failed(failure) = &result.outcome else { panic!("{result:?}") };
    assert!(failure.message.starts_with("cannot make the repository anew: "), "{failure:?}");
    assert_eq!((failure.kind, failure.exit_code, result.sha), (FailureKind::Transient, Some(0), None));
}

#[test]
fn an_agent_cannot_replace_the_repository_of_its_checkout() {
    let world = World::new();
    let script = "set -eu; echo work > work.txt; rm -rf .git; git init -q -b other .; git -c user.name=A -c user.email=a@a \
                  commit -q --allow-empty -m other";
    let host = Host::new(&world, &plan(vec![stage("work", "Work", 1, script)]), &["one"]).driven_to_end();
    assert_eq!((host.run.status, host.failures()), (RunStatus::Completed, Vec::new()));
    assert_eq!(world.show("steadfast/auth:work.txt"), "work");
    assert_eq!(git(&world.origin(), &["rev-list", "--count", "main..steadfast/auth"]), "1");
}

#[test]
fn commits_of_an_agent_are_kept() {
    let world = World::new();
    let commit = "git -c user.name=A -c user.email=a@a commit -q --no-verify -m";
    let script = format!(
        "set -eu; git checkout -q -b topic; echo one > one.txt; git add one.txt; {commit} one; echo two > two.txt; \
         git add two.txt; {commit} two; echo three > three.txt; git rm -q a.txt; echo skip > skip.log; \
         echo '*.log' > .gitignore"
    );
    let host = Host::new(&world, &plan(vec![stage("work", "Work", 1, &script)]), &["one"]).driven_to_end();
    assert_eq!((host.run.status, host.failures()), (RunStatus::Completed, Vec::new()));
    let subjects = git(&world.origin(), &["log", "--reverse", "--format=%s", "main..steadfast/auth"]);
    assert_eq!(subjects, "one\ntwo\nauth: work iteration 1");
    let files = git(&world.origin(), &["ls-tree", "--name-only", "steadfast/auth"]);
    assert_eq!(files, ".gitignore\none.txt\nthree.txt\ntwo.txt");
}

#[test]
fn mirrors_that_were_not_used_for_days_are_deleted() {
    let world = World::new();
    let plan = plan(vec![stage("work", "Work", 1, "true")]);
    let run_ref = world.start(&plan);
    let mut worker = world.worker("submitter");
    let mirrors = worker.home.join("fleet/mirrors");
    let count = || fs_err::read_dir(&mirrors).unwrap().filter(|entry| entry.as_ref().unwrap().path().is_dir()).count();
    let age = |days: u64| {
        for path in fs_err::read_dir(&mirrors).unwrap().map(|entry| entry.unwrap().path()) {
            if path.extension().is_some_and(|extension| extension == "use") {
                let file = fs_err::OpenOptions::new().append(true).open(path).unwrap();
                let then = std::time::SystemTime::now() - Duration::from_hours(24 * days);
                file.file().set_modified(then).unwrap();
            }
        }
    };
    age(29);
    work::tidy(&worker).unwrap();
    assert_eq!(count(), 1, "it was used in the last 30 days");
    age(31);
    let in_use = RunDirectory::open(&worker.home, &run_ref.repo.url, "auth").unwrap();
    age(31);
    work::tidy(&worker).unwrap();
    assert_eq!(count(), 1, "it is in use");
    drop(in_use);
    worker.config.fleet.mirrors_days = Some(0);
    work::tidy(&worker).unwrap();
    assert_eq!(count(), 1, "0 is never");
    worker.config.fleet.mirrors_days = Some(7);
    work::tidy(&worker).unwrap();
    assert_eq!(count(), 0);
    // The next use makes it anew.
    let directory = RunDirectory::open(&worker.home, &run_ref.repo.url, "auth").unwrap();
    assert_eq!(directory.plan.name, "auth");
}

#[test]
fn a_later_run_of_the_name_sets_the_earlier_one_aside() {
    let world = World::new();
    let mut build = stage("build", "Build", 2, "echo $STEADFAST_ITERATION > part-$STEADFAST_ITERATION.txt");
    build.parallel = true;
    let plan = plan(vec![build, stage("next", "Next", 1, "echo first > next.txt")]);
    let first = Host::new(&world, &plan, &["one"]).driven_to_end();
    let old_code = git(&world.origin(), &["rev-parse", "steadfast/auth"]);
    // A branch of this name that a user made is no run.
    git(&world.project(), &["push", "-q", "origin", "HEAD:refs/heads/steadfast/auth.1"]);
    let later = world.try_start_as(&plan, "fedcba9876543210").unwrap();
    let expected = [
        "main",
        "steadfast-parallel/auth.2/1-1",
        "steadfast-parallel/auth.2/1-2",
        "steadfast-runs/auth",
        "steadfast-runs/auth.2",
        "steadfast/auth",
        "steadfast/auth.1",
        "steadfast/auth.2",
    ];
    assert_eq!(world.refs(), expected);
    assert_eq!(git(&world.origin(), &["rev-parse", "steadfast/auth.2"]), old_code);
    let open = |name: &str| RunDirectory::open(&world.path("reader"), &later.repo.url, name).unwrap();
    let aside = open("auth.2");
    assert_eq!((aside.state.seq, aside.state.run.status), (first.seq, RunStatus::Completed));
    assert_eq!((aside.plan.name.as_str(), aside.state.run_ref.name.as_str()), ("auth.2", "auth.2"));
    assert_eq!(aside.state.run_ref.repo.branch, "steadfast/auth.2");
    assert_eq!(aside.records(0).unwrap().len(), usize::try_from(first.seq).unwrap());
    assert_eq!(open("auth").state.run_ref.run_id, "fedcba9876543210");
    // The worker has the directory of the earlier run in its mirror, which has more records.
    let host = Host::of(&world, &plan, later, &["one"]).driven_to_end();
    assert_eq!((host.run.status, host.failures()), (RunStatus::Completed, Vec::new()));
    assert_eq!(git(&world.origin(), &["rev-list", "--count", "main..steadfast/auth"]), "1");
    // What an old worker still sends for the earlier run does not reach the new one.
    let late = RecordInput { run_ref: first.run_ref, seq: host.seq, run: first.run, ..RecordInput::default() };
    let refused = work::record(&world.worker("two"), &late).unwrap_err();
    assert!(refused.to_string().contains("another run has the name auth"), "{refused}");
}
