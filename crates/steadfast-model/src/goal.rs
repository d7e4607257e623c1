//! A durable goal: an objective, its limits, and where it stands. This module and the ones below it are pure: they decide
//! what changes and why, and leave writing to `steadfast-store` and `steadfast-app`.

pub mod budget;
pub mod change;
pub mod environment;
pub mod event;
pub mod item;
pub mod liveness;
pub mod nested_run;
pub mod power;
pub mod proof;
pub mod turn;
pub mod wait;
pub mod watch;

use serde::{Deserialize, Serialize};
use strum::{Display, EnumIter, EnumString, IntoStaticStr};

use crate::clock::Millis;
use crate::host::Host;
use crate::limit::{Axis, Limits, SharedSpend, Standing, UNLIMITED_TURNS, Used};
use crate::redact::redact;
use crate::text;
use budget::{BudgetProfile, BudgetSource};
use item::Item;
use proof::CompletedBy;
use wait::Wait;

pub use crate::pause::PausedReason;

/// Continuations of a goal without a cap.
pub const UNLIMITED_CONTINUATIONS: i64 = UNLIMITED_TURNS;
/// Seconds of a goal without a cap: ten years.
pub const UNLIMITED_SECONDS: i64 = 315_360_000;
/// Longest objective, in characters.
pub const OBJECTIVE_MAX: usize = 4_000;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Display, EnumIter, EnumString, IntoStaticStr, Serialize)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum GoalStatus {
    /// Driving turns.
    #[default]
    Active,
    /// Stopped, for a [`PausedReason`]; no hook continues it.
    Paused,
    /// The worker waits for a person or the outside world.
    Blocked,
    /// The token or money budget is spent.
    BudgetLimited,
    Complete,
    Abandoned,
}

impl GoalStatus {
    /// Whether the session is still bound to this goal, so that it cannot start another.
    pub fn is_live(self) -> bool {
        !matches!(self, Self::Complete | Self::Abandoned)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Actor {
    /// A person, at a terminal or by a slash command.
    User,
    /// The agent, through a tool or its shell.
    Worker,
    /// The evaluator subagent, proven by the hook.
    Evaluator,
    /// Steadfast itself, in a hook.
    Steadfast,
}

impl Actor {
    /// Whether a model acts: the worker, or a subagent it started with a prompt of its own choosing.
    pub fn is_agent(self) -> bool {
        matches!(self, Self::Worker | Self::Evaluator)
    }
}

/// One goal, as its row stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Goal {
    pub session_id: String,
    pub goal_id: String,
    pub host: Host,
    pub project_dir: Option<String>,
    pub objective: String,
    pub status: GoalStatus,
    pub paused_reason: Option<PausedReason>,
    pub limits: Limits,
    /// What was used on axes that have no counter of their own below.
    pub counted: Limits,
    pub budget_profile: Option<BudgetProfile>,
    pub budget_source: BudgetSource,
    pub tokens_used: i64,
    pub subagent_tokens: i64,
    /// The evaluator's part of `subagent_tokens`.
    pub evaluator_tokens: i64,
    pub cache_read_tokens: i64,
    pub cost_micros: i64,
    pub unpriced_tokens: i64,
    pub time_used_seconds: i64,
    /// What is used beyond whole seconds: turns may be short and many.
    pub time_used_rest_ms: i64,
    /// Since when the running turn counts as active time; `None` while no turn runs.
    pub resume_at_ms: Option<Millis>,
    pub last_accounted_byte_offset: i64,
    pub last_accounted_uuid: Option<String>,
    pub accounting_uncertain: bool,
    pub last_continuation_at_ms: Option<Millis>,
    pub continuations_used: i64,
    pub budget_limit_reported: bool,
    pub wind_down: Option<Axis>,
    pub wind_down_batches: i64,
    pub warned: Vec<Axis>,
    pub worked_since_continuation: bool,
    pub idle_continuations: i64,
    pub blocks_in_row: i64,
    pub last_message_hash: Option<String>,
    pub failures_in_row: i64,
    /// When the goal goes on by itself. An active goal has it while no turn runs; a paused one if its pause ends by
    /// itself.
    pub wake_at_ms: Option<Millis>,
    /// What a waiting goal waits for.
    pub wait: Option<Wait>,
    /// Set between a wake-up and the turn that it begins.
    pub woken_at_ms: Option<Millis>,
    /// Identifies the instructions that the model has in its context.
    pub briefed_hash: Option<String>,
    /// The user was told that nothing moves the goal.
    pub stall_told: bool,
    /// Tool calls that have no result yet.
    pub open_calls: Option<String>,
    /// How many of the last tool calls brought nothing new.
    pub same_calls: i64,
    /// Identifies the last tool calls with their results, the newest last.
    pub recent_calls: Vec<String>,
    /// How many repetitions the model was last told of.
    pub repeats_told: i64,
    /// The goal no longer runs, but the turn that it ran in does: batches and refused tool calls since then. `None` if no
    /// such turn is known.
    pub overtime: Option<i64>,
    pub verify: Vec<String>,
    /// What must be true at the end, in words; fixed at the start.
    pub items: Vec<Item>,
    /// The evaluator must agree; the worker's own word does not count.
    pub judge: bool,
    /// A person must agree.
    pub sign_off: bool,
    /// Who said that the objective is met, once it is complete.
    pub completed_by: Option<CompletedBy>,
    pub version: i64,
    pub created_at_ms: Millis,
    pub updated_at_ms: Millis,
}

/// What a person or the agent asks for when starting a goal; checked by [`budget::Budget`] and [`objective`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NewGoal {
    pub objective: String,
    pub budget: budget::Budget,
    pub verify: Vec<String>,
    pub items: Vec<String>,
    pub judge: bool,
    pub sign_off: bool,
}

impl Goal {
    pub fn start(new: NewGoal, session_id: &str, host: Host, project_dir: Option<String>, now: Millis) -> Self {
        let budget = new.budget;
        Self {
            session_id: session_id.to_owned(),
            goal_id: uuid::Uuid::new_v4().to_string(),
            host,
            project_dir,
            objective: new.objective,
            limits: budget.limits,
            counted: Limits::default(),
            budget_profile: budget.profile,
            budget_source: budget.source,
            resume_at_ms: Some(now),
            verify: new.verify,
            items: new.items.into_iter().map(Item::open).collect(),
            judge: new.judge,
            sign_off: new.sign_off,
            created_at_ms: now,
            updated_at_ms: now,
            ..Self::default()
        }
    }

    /// Tokens of the worker and its subagents: what the budget is held against.
    pub fn total_tokens(&self) -> i64 {
        self.tokens_used.saturating_add(self.subagent_tokens)
    }

    /// Tokens left of the budget, never negative.
    pub fn remaining_tokens(&self) -> Option<i64> {
        self.limits.get(Axis::Tokens).map(|budget| (budget - self.total_tokens()).max(0))
    }

    /// Seconds in which turns of the goal ran, the running one included.
    pub fn active_seconds(&self, now: Millis) -> i64 {
        self.time_used_seconds + self.unbanked_ms(now) / 1000
    }

    /// Active time that is not in `time_used_seconds` yet.
    fn unbanked_ms(&self, now: Millis) -> Millis {
        self.time_used_rest_ms + self.resume_at_ms.map_or(0, |since| (now - since).max(0))
    }

    /// The status with the reason of a pause: `paused (user)`. Completion by the worker's own word is `unverified`.
    pub fn state(&self) -> String {
        match (self.status, self.paused_reason) {
            (status, Some(reason)) => format!("{status} ({reason})"),
            (status, None) if self.is_unverified() => format!("{status} (unverified)"),
            (status, None) => status.to_string(),
        }
    }

    /// Whether it is complete by the worker's own word.
    pub fn is_unverified(&self) -> bool {
        self.status == GoalStatus::Complete && self.completed_by == Some(CompletedBy::SelfUpdate)
    }

    /// Whether something other than the worker's own word says that the objective is met.
    pub fn is_verified(&self) -> bool {
        self.status == GoalStatus::Complete && self.completed_by.is_some() && !self.is_unverified()
    }

    /// The items without a proof, with their numbers from 1.
    pub fn open_items(&self) -> impl Iterator<Item = (usize, &Item)> {
        (1..).zip(&self.items).filter(|(_, item)| item.proof.is_none())
    }

    /// Continuations left, as the documented column shows them: a large number where no cap is set.
    pub fn continuations_remaining(&self) -> i64 {
        (self.limits.get(Axis::Turns).unwrap_or(UNLIMITED_CONTINUATIONS) - self.continuations_used).max(0)
    }

    /// What the goal used of each limit, without the caps over all goals.
    pub fn used(&self, now: Millis) -> Used {
        self.used_with(SharedSpend::Free, now)
    }

    pub fn used_with(&self, shared: SharedSpend, now: Millis) -> Used {
        Used {
            tokens: self.total_tokens(),
            cost_micros: self.cost_micros,
            turns: self.continuations_used,
            counted: self.counted,
            time_ms: self.active_seconds(now).saturating_mul(1_000),
            started_at_ms: self.created_at_ms,
            now_ms: now,
            shared,
        }
    }

    /// How a limit of the goal stands; zeros where it has none.
    pub fn standing(&self, axis: Axis, now: Millis) -> Standing {
        let none = Standing { axis, used: 0, most: 0 };
        self.limits.standing(axis, &self.used(now)).unwrap_or(none)
    }

    pub fn reached_limit(&self, now: Millis) -> Option<Axis> {
        self.limits.reached(&self.used(now))
    }
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ObjectiveError {
    #[error("the objective is empty")]
    Empty,
    #[error("the objective has {0} characters, more than {OBJECTIVE_MAX}")]
    TooLong(usize),
    #[error("the objective contains a NUL character")]
    Nul,
}

/// Trims and checks the text of an objective, and removes secrets from it: from here on, no copy has them.
pub fn objective(text: &str) -> Result<String, ObjectiveError> {
    let trimmed = text.trim();
    match trimmed.chars().count() {
        0 => Err(ObjectiveError::Empty),
        characters if characters > OBJECTIVE_MAX => Err(ObjectiveError::TooLong(characters)),
        _ if trimmed.contains('\0') => Err(ObjectiveError::Nul),
        // A mark can be longer than the secret.
        _ => Ok(text::cut(&redact(trimmed), OBJECTIVE_MAX)),
    }
}
