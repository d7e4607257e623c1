//! What the goals of one session are after each step, in a few lines: no clock, no files, no rows.

use proptest::prelude::*;
use proptest_state_machine::ReferenceStateMachine;
use steadfast_model::goal::{GoalStatus, PausedReason};
use steadfast_store::testing::START;

#[derive(Debug, Clone)]
pub(crate) enum GoalStep {
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
pub(crate) struct ModelGoal {
    pub(crate) objective: String,
    pub(crate) status: GoalStatus,
    pub(crate) reason: Option<PausedReason>,
    pub(crate) budget: Option<i64>,
    pub(crate) used: i64,
    /// Whether what the session uses is charged to it.
    pub(crate) claims: bool,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct GoalsModel {
    pub(crate) now: i64,
    pub(crate) goal: Option<ModelGoal>,
    pub(crate) over: Vec<ModelGoal>,
    pub(crate) queue: Vec<String>,
    /// Tokens in the session's file that are charged to the goal when it is read.
    unread: i64,
    pub(crate) names: u32,
    /// A turn of the client runs.
    turn: bool,
    /// The turn that runs began before its goal stopped.
    overtime: bool,
    /// What the last verb of the user did.
    pub(crate) accepted: bool,
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
