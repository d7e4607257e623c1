//! The life of the goals of one session: every verb of the user, prompts and interrupts, spending, the queue, two writers
//! of one row, and agents that try what is not theirs.

use proptest::prelude::*;
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};
use steadfast_app::action::{self, ActionError, Claim};
use steadfast_model::goal::budget::{Budget, BudgetSource};
use steadfast_model::goal::change;
use steadfast_model::goal::{Goal, GoalStatus, NewGoal, PausedReason};
use steadfast_model::hook::HookEvent;
use steadfast_model::limit::{Axis, Limits};
use steadfast_store::testing::{SESSION, START, USER, WORKER, reply};
use steadfast_store::{Store, StoreError};

use super::session::Client;

#[derive(Debug, Clone)]
enum GoalStep {
    Start {
        budget: Option<i64>,
    },
    Enqueue,
    StartNext,
    MoveQueued {
        from: usize,
        to: usize,
    },
    DropQueued(usize),
    Pause,
    Resume,
    Edit,
    Block,
    Abandon,
    Complete,
    Extend(i64),
    Prompt,
    Interrupt,
    /// The model answers; the session's file shows it, and nothing has read it yet.
    Spend(i64),
    /// Two processes read the goal, and both write it.
    TwoWriters,
    AgentTries(usize),
    Reopen,
}

#[derive(Debug, Clone, PartialEq)]
struct ModelGoal {
    objective: String,
    status: GoalStatus,
    reason: Option<PausedReason>,
    budget: Option<i64>,
    used: i64,
    /// Whether what the session uses is charged to it.
    claims: bool,
}

#[derive(Debug, Clone, Default)]
struct GoalsModel {
    now: i64,
    goal: Option<ModelGoal>,
    over: Vec<ModelGoal>,
    queue: Vec<String>,
    /// Tokens in the session's file that are charged to the goal when it is read.
    unread: i64,
    names: u32,
    /// A turn of the client runs.
    turn: bool,
    /// The turn that runs began before its goal stopped.
    overtime: bool,
    /// What the last verb of the user did.
    accepted: bool,
}

impl GoalsModel {
    fn name(&mut self) -> String {
        self.names += 1;
        format!("objective {}", self.names)
    }

    fn live(&self) -> Option<&ModelGoal> {
        self.goal.as_ref().filter(|goal| goal.status.is_live())
    }

    /// The file is read before each change.
    fn charge(&mut self) {
        let unread = std::mem::take(&mut self.unread);
        if let Some(goal) = &mut self.goal {
            goal.used += unread;
            if goal.status == GoalStatus::Active && unread > 0 && goal.is_spent() {
                goal.status = GoalStatus::BudgetLimited;
            }
        }
    }

    fn begin(&mut self, objective: String, budget: Option<i64>) {
        self.overtime = false;
        let old = self.goal.replace(ModelGoal {
            objective,
            status: GoalStatus::Active,
            reason: None,
            budget,
            used: 0,
            claims: true,
        });
        self.over.extend(old.map(|old| ModelGoal { claims: false, ..old }));
    }

    fn start_next(&mut self) {
        if self.live().is_none() && !self.queue.is_empty() {
            let next = self.queue.remove(0);
            self.begin(next, None);
        }
    }

    /// Changes the live goal if the verb is allowed.
    fn verb(&mut self, change: impl FnOnce(&mut ModelGoal) -> bool) {
        let before = self.goal.as_ref().map(|goal| goal.status);
        self.accepted = match &mut self.goal {
            Some(goal) if goal.status.is_live() => change(goal),
            _ => false,
        };
        let after = self.goal.as_ref().map(|goal| goal.status);
        if before != after {
            let stops = matches!(after, Some(GoalStatus::Paused | GoalStatus::Blocked));
            self.overtime = stops && before == Some(GoalStatus::Active) && self.turn;
        }
    }
}

impl ModelGoal {
    fn is_spent(&self) -> bool {
        self.budget.is_some_and(|budget| self.used >= budget)
    }

    fn set(&mut self, status: GoalStatus, reason: Option<PausedReason>) {
        (self.status, self.reason) = (status, reason);
        self.claims = match status {
            GoalStatus::Active => true,
            GoalStatus::Blocked | GoalStatus::BudgetLimited => self.claims,
            _ => false,
        };
    }
}

impl ReferenceStateMachine for GoalsModel {
    type State = Self;
    type Transition = GoalStep;

    fn init_state() -> BoxedStrategy<Self> {
        Just(Self { now: START, ..Self::default() }).boxed()
    }

    fn transitions(_state: &Self) -> BoxedStrategy<GoalStep> {
        prop_oneof![
            4 => prop::option::of(1..200_i64).prop_map(|budget| GoalStep::Start { budget }),
            2 => Just(GoalStep::Enqueue),
            1 => Just(GoalStep::StartNext),
            1 => (1..4_usize, 1..4_usize).prop_map(|(from, to)| GoalStep::MoveQueued { from, to }),
            1 => (1..4_usize).prop_map(GoalStep::DropQueued),
            2 => Just(GoalStep::Pause),
            3 => Just(GoalStep::Resume),
            1 => Just(GoalStep::Edit),
            1 => Just(GoalStep::Block),
            1 => Just(GoalStep::Abandon),
            1 => Just(GoalStep::Complete),
            2 => (1..300_i64).prop_map(GoalStep::Extend),
            3 => Just(GoalStep::Prompt),
            1 => Just(GoalStep::Interrupt),
            4 => (1..100_i64).prop_map(GoalStep::Spend),
            1 => Just(GoalStep::TwoWriters),
            1 => (0..5_usize).prop_map(GoalStep::AgentTries),
            1 => Just(GoalStep::Reopen),
        ]
        .boxed()
    }

    fn apply(mut model: Self, step: &GoalStep) -> Self {
        model.now += 1_000;
        model.accepted = true;
        let reads = !matches!(
            step,
            GoalStep::Spend(_)
                | GoalStep::Reopen
                | GoalStep::TwoWriters
                | GoalStep::AgentTries(_)
                | GoalStep::MoveQueued { .. }
                | GoalStep::DropQueued(_)
        );
        // Starting the next goal reads only if there is one to start.
        let reads =
            reads && !(matches!(step, GoalStep::StartNext) && (model.live().is_some() || model.queue.is_empty()));
        if reads {
            model.charge();
        }
        match step {
            GoalStep::Start { budget } => {
                model.accepted = model.live().is_none();
                if model.accepted {
                    let name = model.name();
                    model.begin(name, *budget);
                }
            }
            GoalStep::Enqueue => {
                let name = model.name();
                model.queue.push(name);
                model.start_next();
            }
            GoalStep::StartNext => model.start_next(),
            GoalStep::MoveQueued { from, to } => {
                model.accepted = (*from).max(*to) <= model.queue.len();
                if model.accepted {
                    let entry = model.queue.remove(from - 1);
                    model.queue.insert(to - 1, entry);
                }
            }
            GoalStep::DropQueued(number) => {
                model.accepted = *number <= model.queue.len();
                if model.accepted {
                    model.queue.remove(number - 1);
                }
            }
            GoalStep::Pause => model.verb(|goal| {
                let may = match goal.status {
                    GoalStatus::Active | GoalStatus::BudgetLimited => true,
                    GoalStatus::Paused => goal.reason == Some(PausedReason::Interrupted),
                    _ => false,
                };
                if may {
                    goal.set(GoalStatus::Paused, Some(PausedReason::User));
                }
                may
            }),
            GoalStep::Resume => model.verb(|goal| {
                let may = matches!(goal.status, GoalStatus::Paused | GoalStatus::Blocked);
                if may && goal.is_spent() {
                    goal.set(GoalStatus::BudgetLimited, None);
                } else if may {
                    goal.set(GoalStatus::Active, None);
                }
                may
            }),
            GoalStep::Edit => {
                let name = model.name();
                model.verb(|goal| {
                    goal.objective = name;
                    true
                });
            }
            GoalStep::Block => model.verb(|goal| {
                let may = goal.status == GoalStatus::Active;
                if may {
                    goal.set(GoalStatus::Blocked, None);
                }
                may
            }),
            GoalStep::Abandon => model.verb(|goal| {
                goal.set(GoalStatus::Abandoned, None);
                true
            }),
            GoalStep::Complete => model.verb(|goal| {
                goal.set(GoalStatus::Complete, None);
                true
            }),
            GoalStep::Extend(add) => model.verb(|goal| {
                let budget = goal.budget.unwrap_or(goal.used) + add;
                let is_stopped = goal.status == GoalStatus::BudgetLimited;
                if is_stopped && goal.used >= budget {
                    return false;
                }
                goal.budget = Some(budget);
                if is_stopped {
                    goal.set(GoalStatus::Active, None);
                }
                true
            }),
            GoalStep::Prompt => {
                model.overtime = false;
                model.turn |= model.live().is_some();
                if let Some(goal) = &mut model.goal {
                    // The turn before this one was the last that the goal pays for.
                    goal.claims &= matches!(goal.status, GoalStatus::Active | GoalStatus::BudgetLimited);
                    if goal.reason == Some(PausedReason::Interrupted) {
                        goal.set(GoalStatus::Active, None);
                    }
                }
            }
            GoalStep::Interrupt => {
                let overtime = std::mem::take(&mut model.overtime);
                let Some(goal) = &mut model.goal else { return model };
                if goal.status == GoalStatus::Active {
                    goal.set(GoalStatus::Paused, Some(PausedReason::Interrupted));
                    model.turn = false;
                } else if overtime {
                    goal.claims = false;
                    model.turn = false;
                }
            }
            GoalStep::Spend(tokens) => {
                if model.goal.as_ref().is_some_and(|goal| goal.claims) {
                    model.unread += tokens;
                }
            }
            GoalStep::TwoWriters => {
                let name = model.name();
                model.verb(|goal| {
                    goal.objective = name;
                    true
                });
            }
            GoalStep::AgentTries(_) => model.accepted = false,
            GoalStep::Reopen => {}
        }
        model
    }
}

struct GoalsTest {
    client: Client,
    /// The version of the row after the last step.
    version: i64,
    responses: u32,
}

impl GoalsTest {
    /// Whether the user's verb was accepted; other errors than refusals are faults.
    fn user(&mut self, step: &GoalStep, name: String, now: i64) -> bool {
        let (place, store) = (self.client.place(), &mut self.client.world.store);
        let done = match step {
            GoalStep::Start { budget } => action::start(store, &place, new(name, *budget), USER, now).map(drop),
            GoalStep::Enqueue => action::enqueue(store, &place, new(name, None), USER, now).map(drop),
            GoalStep::StartNext => action::start_next(store, &place, USER, now).map(drop),
            GoalStep::MoveQueued { from, to } => action::move_queued(store, SESSION, *from, *to, USER, now).map(drop),
            GoalStep::DropQueued(number) => action::drop_queued(store, SESSION, *number, USER, now).map(drop),
            GoalStep::Pause => action::pause(store, SESSION, USER, now).map(drop),
            GoalStep::Resume => action::resume(store, SESSION, USER, now).map(drop),
            GoalStep::Edit => action::edit(store, SESSION, name, USER, now).map(drop),
            GoalStep::Block => action::block(store, SESSION, "stuck", USER, now).map(drop),
            GoalStep::Abandon => action::abandon(store, SESSION, USER, now).map(drop),
            GoalStep::Complete => action::complete(store, SESSION, &Claim::User, USER, now).map(drop),
            GoalStep::Extend(add) => {
                action::extend(store, SESSION, Limits::default().with(Axis::Tokens, *add), USER, now).map(drop)
            }
            _ => Ok(()),
        };
        match done {
            Ok(()) => true,
            Err(ActionError::Store(error)) => panic!("{error}"),
            Err(_) => false,
        }
    }

    /// Both processes read the same row; the second to write gets `Stale` and changes nothing.
    fn two_writers(&mut self, name: &str, now: i64) -> bool {
        let Some(goal) = self.client.goal() else { return false };
        let mut other = Store::open(self.client.world.store.path()).expect("a second process");
        let Ok(change) = change::edit(&goal, name.to_owned(), now) else { return false };
        let first = other.write(|db| db.save(&goal, change.clone(), USER)).expect("the first writer");
        let second = self.client.world.store.write(|db| db.save(&goal, change, USER));
        assert!(matches!(second, Err(StoreError::Stale)), "{second:?}");
        assert_eq!(self.client.goal(), Some(first));
        true
    }

    fn agent_tries(&mut self, which: usize, now: i64) {
        let before = self.client.goal();
        let (place, store) = (self.client.place(), &mut self.client.world.store);
        let tried = match which {
            0 => action::extend(store, SESSION, Limits::default().with(Axis::Tokens, 1), WORKER, now).map(drop),
            1 => action::reconcile(store, SESSION, WORKER, now).map(drop),
            2 => action::enqueue(store, &place, new("mine".into(), None), WORKER, now).map(drop),
            3 => action::move_queued(store, SESSION, 1, 1, WORKER, now).map(drop),
            _ => action::drop_queued(store, SESSION, 1, WORKER, now).map(drop),
        };
        assert!(matches!(tried, Err(ActionError::NotForAgents(_))), "{tried:?}");
        let same = |goal: Goal| Goal { version: 0, updated_at_ms: 0, ..goal };
        assert_eq!(self.client.goal().map(same), before.map(same), "only the log has it");
    }
}

fn new(objective: String, budget: Option<i64>) -> NewGoal {
    let mut limits = Limits::default();
    limits.set(Axis::Tokens, budget);
    NewGoal { objective, budget: Budget { limits, source: BudgetSource::Tokens, profile: None }, ..NewGoal::default() }
}

impl StateMachineTest for GoalsTest {
    type SystemUnderTest = Self;
    type Reference = GoalsModel;

    fn init_test(_model: &GoalsModel) -> Self {
        Self { client: Client::new(), version: -1, responses: 0 }
    }

    fn apply(mut test: Self, model: &GoalsModel, step: GoalStep) -> Self {
        let (now, name) = (model.now, format!("objective {}", model.names));
        let before = test.client.goal().map(|goal| goal.version);
        match &step {
            GoalStep::Prompt => test.client.hook("UserPromptSubmit", HookEvent::Prompt { typed: true }, now),
            GoalStep::Interrupt => test.client.hook("Interrupt", HookEvent::Interrupt, now),
            GoalStep::Spend(tokens) => {
                test.responses += 1;
                test.client.world.write(&reply(&format!("m{}", test.responses), now, [*tokens, 0, 0, 0]));
            }
            GoalStep::TwoWriters => assert_eq!(test.two_writers(&name, now), model.accepted),
            GoalStep::AgentTries(which) => test.agent_tries(*which, now),
            GoalStep::Reopen => {
                test.client.world.store = Store::open(test.client.world.store.path()).expect("the same store")
            }
            verb => assert_eq!(test.user(verb, name, now), model.accepted, "{verb:?}"),
        }
        let version = test.client.goal().map_or(-1, |goal| goal.version);
        assert!(before.is_none_or(|before| version >= before), "the version went back");
        test.version = version;
        test
    }

    fn check_invariants(test: &Self, model: &GoalsModel) {
        let db = test.client.world.store.read();
        let goal = test.client.goal();
        assert_eq!(goal.as_ref().map(|goal| seen(test, goal)), model.goal);
        let over: Vec<ModelGoal> =
            db.replaced_goals(None).expect("goals").iter().map(|goal| seen(test, goal)).collect();
        let mut known: Vec<ModelGoal> = model.over.clone();
        known.reverse();
        assert_eq!(over, known);
        let queue: Vec<String> =
            db.queue(SESSION).expect("the queue").into_iter().map(|entry| entry.goal.objective).collect();
        assert_eq!(queue, model.queue);
        if let Some(goal) = goal {
            assert_moves(test, &goal);
        }
    }
}

fn seen(test: &GoalsTest, goal: &Goal) -> ModelGoal {
    ModelGoal {
        objective: goal.objective.clone(),
        status: goal.status,
        reason: goal.paused_reason,
        budget: goal.limits.get(Axis::Tokens),
        used: goal.tokens_used,
        claims: test.client.world.store.read().has_open_span(&goal.goal_id).expect("spans"),
    }
}

/// An active goal has a turn or a moment at which it is woken, and its clock runs only in a turn.
fn assert_moves(test: &GoalsTest, goal: &Goal) {
    let turn_runs = test.client.turn_runs();
    if goal.status == GoalStatus::Active {
        assert!(turn_runs != goal.wake_at_ms.is_some(), "turn: {turn_runs}, {goal:?}");
        assert_eq!(turn_runs, goal.resume_at_ms.is_some(), "{goal:?}");
    } else {
        assert_eq!(goal.resume_at_ms, None, "{goal:?}");
    }
}

prop_state_machine! {
    #![proptest_config(super::cases(32))]

    #[test]
    fn goals_are_as_their_model_says(sequential 1..40 => GoalsTest);
}
