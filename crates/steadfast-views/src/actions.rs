//! What a person does from a view. An action becomes a command of this program, so that the page and the terminal view
//! follow the same rules as the command line: who may do it, what it records and what it says. No text of a field ever
//! reaches a shell or becomes a flag.

mod answer;
mod command;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use steadfast_app::overview::now::{Action, Subject};
use steadfast_engine::process::LimitedCommand;
use steadfast_store::{Store, StoreError};
use steadfast_system::env_vars;
use steadfast_system::paths::Paths;

pub use answer::CommandAnswer;
pub use command::ActionCommand;

/// How long a command may take; `kill` waits for the run's agents.
const LIMIT: Duration = Duration::from_mins(2);
/// Verification commands have limits of their own.
const LONG_LIMIT: Duration = Duration::from_hours(24);
/// What is read of a command's answer.
const MOST_OUTPUT: u64 = 256 << 10;
/// Verifications that run at once.
const MOST_IN_BACKGROUND: usize = 4;

/// What an action is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ActionTarget {
    /// The id of a goal.
    Goal(String),
    /// The id of a run.
    Run(String),
}

impl ActionTarget {
    /// The target of a card; an appointment has no actions.
    pub fn of(subject: &Subject) -> Option<Self> {
        match subject {
            Subject::Goal { goal_id, .. } => Some(Self::Goal(goal_id.clone())),
            Subject::Run { run_id, .. } => Some(Self::Run(run_id.clone())),
            Subject::Appointment { .. } => None,
        }
    }
}

/// What the person entered. Empty fields are `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActionFields {
    /// Amounts to add to a goal's limits, as `goal extend` takes them.
    pub tokens: Option<String>,
    pub usd: Option<String>,
    pub turns: Option<String>,
    pub hours: Option<String>,
    /// What to say to a run.
    pub text: Option<String>,
    /// The stage that an answer is for, by name or number.
    pub stage: Option<String>,
    /// What to remember about an answer.
    pub reason: Option<String>,
    /// The number of a queued goal, and its new number.
    pub from: Option<String>,
    pub to: Option<String>,
    /// The session that adopts a goal.
    pub session: Option<String>,
}

/// Why an action does not become a command.
#[derive(Debug, thiserror::Error)]
pub enum ActionFailure {
    #[error("no such goal")]
    UnknownGoal,
    #[error("no such run")]
    UnknownRun,
    #[error("a newer goal replaced this one")]
    ReplacedGoal,
    #[error("a newer run has the name {0}")]
    ReplacedRun(String),
    #[error("`{action}` does not apply to a {noun}")]
    Unfit { action: Action, noun: &'static str },
    #[error("`{0}` is missing")]
    Missing(&'static str),
    #[error("`{0}` is not valid")]
    Invalid(&'static str),
    #[error("this goal has no verification commands")]
    NoChecks,
    #[error("the project is gone: {}", .0.display())]
    NoProject(PathBuf),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ActionFailure {
    pub fn hint(&self) -> String {
        match self {
            Self::UnknownGoal | Self::UnknownRun => "reload the page".into(),
            Self::ReplacedGoal => "act on the newer goal of its session".into(),
            Self::ReplacedRun(_) => "act on the newer run".into(),
            Self::Unfit { .. } => "use one of the actions that the page shows".into(),
            Self::Missing(field) | Self::Invalid(field) => command::expected(field).into(),
            Self::NoChecks => "set commands when you start a goal: --verify \"cargo test\"".into(),
            Self::NoProject(_) => "put the folder back in its place".into(),
            Self::Store(error) => error.hint().to_string(),
        }
    }

    /// The status of an HTTP answer.
    pub(crate) fn status(&self) -> u16 {
        match self {
            Self::UnknownGoal | Self::UnknownRun => 404,
            Self::Missing(_) | Self::Invalid(_) | Self::Unfit { .. } => 400,
            Self::ReplacedGoal | Self::ReplacedRun(_) | Self::NoChecks | Self::NoProject(_) => 409,
            Self::Store(_) => 500,
        }
    }
}

/// Runs actions.
#[derive(Debug, Clone)]
pub struct Actions {
    paths: Paths,
    program: PathBuf,
    /// Goals that are being verified.
    in_background: Arc<Mutex<BTreeSet<String>>>,
}

impl Actions {
    /// `program` is this program. The paths are absolute: commands run in other directories.
    pub fn new(paths: Paths, program: PathBuf) -> Self {
        Self { paths, program, in_background: Arc::default() }
    }

    /// Does it, and returns what came of it. A verification runs on in the background.
    pub fn perform(&self, target: &ActionTarget, action: Action, fields: &ActionFields) -> CommandAnswer {
        let prepared = Store::open_existing(&self.paths.store)
            .map_err(ActionFailure::from)
            .and_then(|store| ActionCommand::of(store.read(), &self.paths, target, action, fields));
        match prepared {
            Ok(command) if command.is_long() => self.begin(command),
            Ok(command) => self.run(&command, LIMIT),
            Err(error) => CommandAnswer::refused(error.status(), error.to_string(), error.hint()),
        }
    }

    fn run(&self, command: &ActionCommand, limit: Duration) -> CommandAnswer {
        let limited = LimitedCommand::new(&self.program, command.directory(), limit)
            .args(command.arguments(&self.paths))
            .env(env_vars::HOME, &self.paths.home)
            .leaving_children();
        CommandAnswer::of(command, limited.capture(MOST_OUTPUT))
    }

    /// Runs a command in the background. Its result is in the store.
    fn begin(&self, command: ActionCommand) -> CommandAnswer {
        let subject = command.subject().to_owned();
        let running = || self.in_background.lock().unwrap_or_else(PoisonError::into_inner);
        {
            let mut running = running();
            if running.contains(&subject) {
                return CommandAnswer::refused(409, "the checks of this goal run already", "wait for their evidence");
            }
            if running.len() >= MOST_IN_BACKGROUND {
                return CommandAnswer::refused(503, "too many verifications run", "wait for one of them to end");
            }
            running.insert(subject.clone());
        }
        let actions = self.clone();
        std::thread::spawn(move || {
            actions.run(&command, LONG_LIMIT);
            actions.in_background.lock().unwrap_or_else(PoisonError::into_inner).remove(&subject);
        });
        CommandAnswer::done("the checks run; their evidence appears here")
    }
}
