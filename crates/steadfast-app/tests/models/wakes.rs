//! Wake-ups: however many processes see that a goal is due, one wakes it; the claim of a process that died is put back;
//! and an active goal always has a turn, a claim or a moment at which it is woken.

use std::thread;

use proptest::prelude::*;
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};
use steadfast_app::action::{self, ActionError};
use steadfast_app::wake::{self, Woken};
use steadfast_model::goal::budget::Budget;
use steadfast_model::goal::turn::retry_delay;
use steadfast_model::goal::wait::WaitRequest;
use steadfast_model::goal::{Goal, GoalStatus};
use steadfast_model::hook::HookEvent;
use steadfast_store::Store;
use steadfast_store::testing::{SESSION, START, USER, new_goal};

use super::session::Client;

const PROCESSES: usize = 3;
/// More failures in a row pause the goal.
const FAILURES: i64 = 4;
/// A goal that starts without a turn is given this long for its prompt.
const PROMPT_FOLLOWS: i64 = 2_000;

#[derive(Debug, Clone)]
enum WakeStep {
    Prompt {
        typed: bool,
    },
    /// The turn fails, and is to be repeated later.
    Fail,
    SessionEnds,
    Pause,
    Resume,
    /// The user lets the goal wait so many seconds.
    Wait(i64),
    TimePasses(i64),
    /// A process notes when the goal is due.
    Look(usize),
    /// It claims what it noted, if that is due.
    Claim(usize),
    /// All processes claim at once.
    Race,
    /// The process that won dies before it wakes the client, and another one finds its claim.
    WinnerDies,
}

#[derive(Debug, Clone, Default)]
struct WakesModel {
    now: i64,
    is_paused: bool,
    waits: bool,
    wake_at: Option<i64>,
    woken_at: Option<i64>,
    turn: bool,
    failures: i64,
    seen: [Option<i64>; PROCESSES],
    /// Whether the last claim won.
    won: bool,
}

impl WakesModel {
    fn is_active(&self) -> bool {
        !self.is_paused && !self.waits
    }

    /// What a claim can win now.
    fn moment(&self) -> Option<i64> {
        self.wake_at.filter(|_| !self.is_paused)
    }

    fn claim(&mut self, noted: Option<i64>) {
        self.won = noted.is_some() && noted == self.moment() && noted <= Some(self.now) && !self.turn;
        if self.won {
            if self.waits {
                self.failures = 0;
            }
            (self.waits, self.wake_at, self.woken_at) = (false, None, Some(self.now));
        }
    }
}

impl ReferenceStateMachine for WakesModel {
    type State = Self;
    type Transition = WakeStep;

    fn init_state() -> BoxedStrategy<Self> {
        Just(Self { now: START, wake_at: Some(START + PROMPT_FOLLOWS), ..Self::default() }).boxed()
    }

    fn transitions(_model: &Self) -> BoxedStrategy<WakeStep> {
        prop_oneof![
            3 => any::<bool>().prop_map(|typed| WakeStep::Prompt { typed }),
            2 => Just(WakeStep::Fail),
            2 => Just(WakeStep::SessionEnds),
            1 => Just(WakeStep::Pause),
            2 => Just(WakeStep::Resume),
            2 => (1..60_i64).prop_map(WakeStep::Wait),
            3 => (1..90_i64).prop_map(WakeStep::TimePasses),
            4 => (0..PROCESSES).prop_map(WakeStep::Look),
            4 => (0..PROCESSES).prop_map(WakeStep::Claim),
            2 => Just(WakeStep::Race),
            2 => Just(WakeStep::WinnerDies),
        ]
        .boxed()
    }

    fn preconditions(model: &Self, step: &WakeStep) -> bool {
        !matches!(step, WakeStep::Fail) || model.failures < FAILURES
    }

    fn apply(mut model: Self, step: &WakeStep) -> Self {
        model.now += 100;
        let now = model.now;
        match step {
            WakeStep::Prompt { typed } => {
                model.turn = true;
                let is_over = model.waits && model.wake_at.is_some_and(|at| at <= now);
                if model.is_active() || is_over {
                    if is_over || *typed {
                        model.failures = 0;
                    }
                    (model.waits, model.wake_at, model.woken_at) = (false, None, None);
                }
            }
            WakeStep::Fail => {
                model.turn = false;
                if model.is_active() {
                    model.failures += 1;
                    model.wake_at = Some(now + retry_delay(model.failures));
                    model.woken_at = None;
                }
            }
            WakeStep::SessionEnds => {
                model.turn = false;
                if model.is_active() {
                    model.woken_at = None;
                    model.wake_at.get_or_insert(now);
                }
            }
            WakeStep::Pause => {
                if !model.is_paused {
                    (model.is_paused, model.waits, model.wake_at, model.woken_at) = (true, false, None, None);
                }
            }
            WakeStep::Resume => {
                if !model.is_active() {
                    (model.is_paused, model.waits, model.woken_at, model.failures) = (false, false, None, 0);
                    model.wake_at = if model.turn { None } else { Some(now) };
                }
            }
            WakeStep::Wait(seconds) => {
                if model.is_active() {
                    (model.waits, model.wake_at, model.woken_at) = (true, Some(now + seconds * 1_000), None);
                }
            }
            WakeStep::TimePasses(seconds) => model.now += seconds * 1_000,
            WakeStep::Look(process) => model.seen[*process] = model.moment(),
            WakeStep::Claim(process) => {
                let noted = model.seen[*process];
                model.claim(noted);
            }
            WakeStep::Race => {
                let due = model.moment();
                model.claim(due);
            }
            WakeStep::WinnerDies => {
                if model.woken_at.take().is_some() {
                    model.wake_at = Some(now);
                }
            }
        }
        model
    }
}

struct WakesTest {
    client: Client,
    processes: [Store; PROCESSES],
    seen: [Option<i64>; PROCESSES],
    /// The goal as the process that won last has it.
    winner: Option<Goal>,
}

impl WakesTest {
    fn goal(&self) -> Goal {
        self.client.goal().expect("the goal")
    }

    fn claim(&mut self, process: usize, noted: Option<i64>, now: i64) -> Option<Woken> {
        let due = noted.filter(|at| *at <= now)?;
        let paths = self.client.paths();
        wake::claim(&mut self.processes[process], &paths, SESSION, due, now).expect("a claim")
    }

    /// Every process claims the same moment at the same time.
    fn race(&mut self, now: i64) -> Vec<Woken> {
        let Some(due) = wake::moment(&self.goal()).filter(|at| *at <= now) else { return Vec::new() };
        let paths = &self.client.paths();
        thread::scope(|scope| {
            let racers: Vec<_> = self
                .processes
                .iter_mut()
                .map(|store| scope.spawn(move || wake::claim(store, paths, SESSION, due, now).expect("a claim")))
                .collect();
            racers.into_iter().filter_map(|racer| racer.join().expect("a racer")).collect()
        })
    }

    fn user(&mut self, verb: impl FnOnce(&mut Store) -> Result<Goal, ActionError>) {
        if let Err(ActionError::Store(error)) = verb(&mut self.client.world.store) {
            panic!("{error}");
        }
    }
}

impl StateMachineTest for WakesTest {
    type SystemUnderTest = Self;
    type Reference = WakesModel;

    fn init_test(_model: &WakesModel) -> Self {
        let mut client = Client::new();
        let place = client.place();
        action::start(&mut client.world.store, &place, new_goal(Budget::default()), USER, START).expect("a goal");
        let processes = std::array::from_fn(|_| Store::open(client.world.store.path()).expect("a process"));
        Self { client, processes, seen: [None; PROCESSES], winner: None }
    }

    fn apply(mut test: Self, model: &WakesModel, step: WakeStep) -> Self {
        let now = model.now;
        let winners: Vec<Woken> = match step {
            WakeStep::Claim(process) => test.claim(process, test.seen[process], now).into_iter().collect(),
            WakeStep::Race => test.race(now),
            _ => Vec::new(),
        };
        if matches!(step, WakeStep::Claim(_) | WakeStep::Race) {
            assert_eq!(winners.len(), usize::from(model.won), "one process wins, if the goal is due");
        }
        if let Some(woken) = winners.into_iter().next() {
            test.winner = Some(woken.goal);
        }
        match step {
            WakeStep::Prompt { typed } => test.client.hook("UserPromptSubmit", HookEvent::Prompt { typed }, now),
            WakeStep::Fail => {
                let event = HookEvent::StopFailure { error: "server_error".into(), message: "API Error: 529".into() };
                test.client.hook("StopFailure", event, now);
            }
            WakeStep::SessionEnds => {
                test.client.hook("SessionEnd", HookEvent::SessionEnd { reason: "other".into() }, now);
            }
            WakeStep::Pause => test.user(|store| action::pause(store, SESSION, USER, now)),
            WakeStep::Resume => test.user(|store| action::resume(store, SESSION, USER, now)),
            WakeStep::Wait(seconds) => {
                let request = WaitRequest { until: Some(now + seconds * 1_000), condition: None };
                test.user(|store| action::wait::start(store, SESSION, &request, &[], USER, now));
            }
            WakeStep::Look(process) => test.seen[process] = wake::moment(&test.goal()),
            WakeStep::WinnerDies => {
                if let Some(claimed) = test.winner.take() {
                    wake::put_back(&mut test.client.world.store, &claimed, now, now).expect("the claim is put back");
                }
            }
            WakeStep::TimePasses(_) | WakeStep::Claim(_) | WakeStep::Race => {}
        }
        test
    }

    fn check_invariants(test: &Self, model: &WakesModel) {
        let goal = test.goal();
        let status = if model.is_active() { GoalStatus::Active } else { GoalStatus::Paused };
        assert_eq!(goal.status, status);
        assert_eq!((goal.wake_at_ms, goal.woken_at_ms), (model.wake_at, model.woken_at), "wake-up and claim");
        assert_eq!(test.client.turn_runs(), model.turn, "a turn runs");
        let moves = model.turn || goal.wake_at_ms.is_some() || goal.woken_at_ms.is_some();
        assert!(moves || goal.status != GoalStatus::Active, "nothing moves {goal:?}");
        assert!(model.turn || goal.resume_at_ms.is_none(), "the clock runs without a turn");
    }
}

prop_state_machine! {
    #![proptest_config(super::cases(32))]

    #[test]
    fn one_process_wakes_a_goal_and_none_is_forgotten(sequential 1..40 => WakesTest);
}
