//! Runs: the machine alone in memory against the same machine with the store between all its steps, with engines that
//! die, two engines at once, stops, approvals and reopenings. What is saved is what the machine decided, once.

use proptest::prelude::*;
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};
use steadfast_model::run::machine::{begin, orphaned, reopen, step};
use steadfast_model::run::{
    Act, AttemptId, Checked, FailureKind, Outcome, Phase, Plan, Record, Rule, Run, RunEvent, RunStatus, StagePlan,
    StageStatus, Step,
};
use steadfast_model::testing::runs::{failure, killed, loop_of, pipeline_of, stage, success};
use steadfast_store::testing::{START, World};
use steadfast_store::{RunRow, Store, StoreError};

const RUN: &str = "run-1";

#[derive(Debug, Clone, PartialEq)]
enum RunsStep {
    Send(RunEvent),
    /// The engine dies; another one takes the run over.
    Crash,
    /// The engine dies between the decision and its transaction.
    CrashBeforeSaving(RunEvent),
    /// An engine that read the run earlier saves a step.
    LateEngine,
    /// No engine is left, and a person looks.
    Orphan,
    Reopen,
}

#[derive(Debug, Clone)]
struct RunsModel {
    plan: Plan,
    run: Run,
    now: i64,
    /// What was asked for and is not done yet.
    acts: Vec<Act>,
    attempts: Vec<AttemptId>,
    commits: Vec<(u32, u32)>,
    successes: u32,
}

impl RunsModel {
    fn new(plan: Plan) -> Self {
        let run = begin(&plan, START);
        let (attempts, commits) = (Vec::new(), Vec::new());
        let mut model = Self { plan, run, now: START, acts: Vec::new(), attempts, commits, successes: 0 };
        model.send(RunEvent::Started);
        model
    }

    fn send(&mut self, event: RunEvent) {
        self.acts.retain(|act| !is_done(act, &event));
        let step = step(&self.plan, self.run.clone(), event, self.now);
        self.take(step);
    }

    fn take(&mut self, step: Step) {
        for record in &step.records {
            match record {
                Record::AttemptStarted { id } => self.attempts.push(*id),
                Record::Committed { id, .. } => self.commits.push((id.stage, id.iteration)),
                _ => {}
            }
        }
        self.acts.extend(step.acts);
        self.run = step.run;
    }

    fn is_running(&self) -> bool {
        self.run.status == RunStatus::Running
    }

    /// Everything that can happen now.
    fn possible(&self) -> Vec<RunsStep> {
        let mut events = Vec::new();
        for attempt in self.run.active.iter().filter(|attempt| attempt.phase == Phase::Running) {
            let ended = |outcome| RunEvent::Ended { id: attempt.id, outcome };
            let done = success(&format!("footprint {}", self.successes));
            events.push(ended(Outcome::Succeeded(Box::new(done))));
            events.push(ended(failure(FailureKind::Transient)));
            events.push(ended(failure(FailureKind::Lost)));
        }
        for act in &self.acts {
            match act {
                Act::Check { id, checks } => {
                    for holds in [Some(true), Some(false), None] {
                        let fact = |check: &_| Checked {
                            check: Clone::clone(check),
                            holds,
                            usage: None,
                            detail: String::new(),
                        };
                        events.push(RunEvent::Checked { id: *id, facts: checks.iter().map(fact).collect() });
                    }
                }
                Act::Decide(stage) => {
                    for holds in [Some(true), Some(false), None] {
                        events.push(RunEvent::Decided { stage: *stage, holds, detail: String::new() });
                    }
                }
                Act::WakeAt(_) => events.push(RunEvent::Woke),
                Act::Start(_) | Act::Stop(_) | Act::Finish => {}
            }
        }
        for (stage, number) in self.run.stages.iter().zip(1..) {
            if stage.status == StageStatus::AwaitingApproval {
                events.push(RunEvent::Answered { stage: number, approved: true, note: None });
                events.push(RunEvent::Answered { stage: number, approved: false, note: Some("no".into()) });
            }
        }
        let mut steps = vec![RunsStep::LateEngine];
        if self.is_running() {
            let lost = events.first().cloned().map(RunsStep::CrashBeforeSaving);
            steps.extend(events.into_iter().map(RunsStep::Send));
            steps.extend(lost);
            steps.extend([RunsStep::Send(RunEvent::StopRequested(killed())), RunsStep::Crash, RunsStep::Orphan]);
        } else {
            steps.push(RunsStep::Reopen);
        }
        steps
    }
}

/// Whether an event answers what was asked for.
fn is_done(act: &Act, event: &RunEvent) -> bool {
    match (act, event) {
        (Act::Check { id, .. }, RunEvent::Checked { id: other, .. }) => id == other,
        (Act::Decide(stage), RunEvent::Decided { stage: other, .. }) => stage == other,
        (Act::WakeAt(_), RunEvent::Woke) => true,
        _ => false,
    }
}

fn plans() -> Vec<Plan> {
    let fixed = |runs| stage(Rule::FixedN, runs);
    let named = |name: &str, plan: StagePlan| StagePlan { name: name.into(), ..plan };
    let asked = StagePlan { approve: Some("go on?".into()), ..named("asked", fixed(1)) };
    let checked = named("checked", stage(Rule::Verify(vec!["make test".into()]), 3));
    let parallel =
        StagePlan { parallel: true, items: vec!["item".into(); 3], ..named("wide", stage(Rule::AllItems, 3)) };
    vec![
        loop_of(fixed(3)),
        loop_of(stage(Rule::Plateau(2), 4)),
        pipeline_of(vec![named("first", fixed(1)), asked, checked]),
        pipeline_of(vec![parallel, named("last", fixed(1))]),
    ]
}

impl ReferenceStateMachine for RunsModel {
    type State = Self;
    type Transition = RunsStep;

    fn init_state() -> BoxedStrategy<Self> {
        prop::sample::select(plans()).prop_map(Self::new).boxed()
    }

    fn transitions(model: &Self) -> BoxedStrategy<RunsStep> {
        prop::sample::select(model.possible()).boxed()
    }

    fn preconditions(model: &Self, step: &RunsStep) -> bool {
        model.possible().contains(step)
    }

    fn apply(mut model: Self, step: &RunsStep) -> Self {
        model.now += 1_000;
        match step {
            RunsStep::Send(event) => {
                model.successes += 1;
                if *event == RunEvent::Woke {
                    let moments =
                        model.acts.iter().filter_map(|act| if let Act::WakeAt(at) = act { Some(*at) } else { None });
                    model.now = moments.max().unwrap_or(model.now).max(model.now);
                }
                model.send(event.clone());
            }
            RunsStep::Crash | RunsStep::CrashBeforeSaving(_) => {
                model.acts.clear();
                model.send(RunEvent::Started);
            }
            RunsStep::LateEngine => {}
            RunsStep::Orphan => {
                model.acts.clear();
                let step = orphaned(&model.plan, model.run.clone(), model.now);
                model.take(step);
            }
            RunsStep::Reopen => {
                model.acts.clear();
                if let Ok(step) = reopen(&model.plan, &model.run, None, model.now) {
                    model.take(step);
                    model.send(RunEvent::Started);
                }
            }
        }
        model
    }
}

struct RunsTest {
    world: World,
}

impl RunsTest {
    fn row(&self) -> RunRow {
        self.world.store.read().run(RUN).expect("the run").expect("it is there")
    }

    /// One step of an engine that knows only the store.
    fn send(&mut self, event: RunEvent, now: i64) {
        let row = self.row();
        let event = match event {
            RunEvent::Answered { stage, approved, note } => self.answered(stage, approved, note.as_deref(), now),
            other => other,
        };
        let step = step(&row.plan, row.run, event, now);
        self.save(row.version, &step, now).expect("the only engine");
    }

    fn save(&mut self, version: i64, step: &Step, now: i64) -> Result<i64, StoreError> {
        self.world.store.write(|db| db.save_step(RUN, version, step, now))
    }

    /// A person's answer goes through the store, and stays what it was once an engine took it.
    fn answered(&mut self, stage: u32, approved: bool, note: Option<&str>, now: i64) -> RunEvent {
        let taken = self.world.store.write(|db| {
            assert!(db.answer_approval(RUN, stage, approved, note, now)?, "the question is open");
            let taken = db.take_answer(RUN, stage, now)?;
            assert!(!db.answer_approval(RUN, stage, !approved, None, now)?, "it was taken");
            assert_eq!(db.take_answer(RUN, stage, now)?, taken, "an engine that died finds it again");
            Ok::<_, StoreError>(taken)
        });
        let (approved, note) = taken.expect("the answer").expect("there is one");
        RunEvent::Answered { stage, approved, note }
    }
}

impl StateMachineTest for RunsTest {
    type SystemUnderTest = Self;
    type Reference = RunsModel;

    fn init_test(model: &RunsModel) -> Self {
        let mut test = Self { world: World::new() };
        let run = begin(&model.plan, START);
        let created = test.world.store.write(|db| db.create_run(RUN, "/p", &model.plan, &run, START));
        created.expect("a run");
        test.send(RunEvent::Started, START);
        test
    }

    fn apply(mut test: Self, model: &RunsModel, change: RunsStep) -> Self {
        let now = model.now;
        match change {
            RunsStep::Send(event) => test.send(event, now),
            RunsStep::Crash => {
                test.world.store = Store::open(test.world.store.path()).expect("the same store");
                test.send(RunEvent::Started, now);
            }
            RunsStep::CrashBeforeSaving(event) => {
                let row = test.row();
                let step = step(&row.plan, row.run, event, now);
                let saved = test.world.store.write(|db| {
                    db.save_step(RUN, row.version, &step, now)?;
                    Err::<(), _>(StoreError::Stale)
                });
                assert!(saved.is_err());
                test.send(RunEvent::Started, now);
            }
            RunsStep::LateEngine => {
                let before = test.row();
                let step = step(&before.plan, before.run.clone(), RunEvent::StopRequested(killed()), now);
                let late = test.save(before.version - 1, &step, now);
                assert!(matches!(late, Err(StoreError::Stale)), "{late:?}");
                assert_eq!(test.row().run, before.run);
            }
            RunsStep::Orphan => {
                let row = test.row();
                test.world.store.write(|db| db.mark_orphan(&row, now)).expect("an orphan");
            }
            RunsStep::Reopen => {
                let row = test.row();
                if let Ok(step) = reopen(&row.plan, &row.run, None, now) {
                    test.save(row.version, &step, now).expect("a person reopens it");
                    test.send(RunEvent::Started, now);
                }
            }
        }
        test
    }

    fn check_invariants(test: &Self, model: &RunsModel) {
        let row = test.row();
        assert_eq!(row.run, model.run);
        assert_eq!(row.plan, model.plan);
        let history = test.world.store.read().run_history(RUN, None, usize::MAX).expect("its history");
        let mut committed: Vec<(u32, u32)> = model.commits.clone();
        committed.sort_unstable();
        assert_eq!(history.iter().map(|row| (row.id.stage, row.id.iteration)).collect::<Vec<_>>(), committed);
        let mut attempts = model.attempts.clone();
        attempts.sort_unstable();
        attempts.dedup();
        assert_eq!(attempts.len(), model.attempts.len(), "an attempt is recorded once");
    }
}

prop_state_machine! {
    #![proptest_config(super::cases(32))]

    #[test]
    fn the_store_holds_what_the_machine_decided(sequential 1..40 => RunsTest);
}
