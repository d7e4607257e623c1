//! The life of the goals of one session: every verb of the user, prompts and interrupts, spending, the queue, two writers
//! of one row, and agents that try what is not theirs.

mod model;

use proptest_state_machine::{StateMachineTest, prop_state_machine};
use steadfast_app::action::{self, ActionError, Claim};
use steadfast_model::goal::budget::{Budget, BudgetSource};
use steadfast_model::goal::change;
use steadfast_model::goal::{Goal, GoalStatus, NewGoal};
use steadfast_model::hook::HookEvent;
use steadfast_model::limit::{Axis, Limits};
use steadfast_store::testing::{SESSION, USER, WORKER, reply};
use steadfast_store::{Store, StoreError};

use self::model::{GoalStep, GoalsModel, ModelGoal};
use super::session::Client;

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
                test.client.world.store = Store::open(test.client.world.store.path()).expect("the same store");
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
