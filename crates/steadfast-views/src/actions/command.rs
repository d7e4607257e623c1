//! From an action to the arguments of a command.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use steadfast_app::overview::now::Action;
use steadfast_model::goal::Goal;
use steadfast_model::run::RunKind;
use steadfast_store::{Db, RunRow};
use steadfast_system::paths::Paths;

use super::{ActionFailure, ActionFields, ActionTarget};

const LONGEST_AMOUNT: usize = 24;
const LONGEST_WORD: usize = 200;
/// As `say` and `approve` allow.
const LONGEST_TEXT: usize = 4_000;

/// A command of this program that is ready to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionCommand {
    action: Action,
    subject: String,
    words: Vec<String>,
    directory: PathBuf,
}

/// What a field has to be, as a hint.
pub(super) fn expected(field: &str) -> &'static str {
    match field {
        "tokens" => "give tokens to add, such as 500k or 2M",
        "usd" => "give US dollars to add, such as 5",
        "turns" => "give turns to add, such as 20",
        "hours" => "give hours to add, such as 2",
        "amount" => "give tokens, US dollars, turns or hours to add",
        "text" => "write 1 to 4000 characters",
        "reason" => "write at most 4000 characters",
        "stage" => "give the name or number of a stage",
        "from" | "to" => "give a number in the queue, from 1",
        "session" => "give the id of a session",
        _ => "reload the page",
    }
}

impl ActionCommand {
    /// The command of an action, if its target exists and its fields are valid.
    pub fn of(
        db: Db<'_>,
        paths: &Paths,
        target: &ActionTarget,
        action: Action,
        fields: &ActionFields,
    ) -> Result<Self, ActionFailure> {
        match target {
            ActionTarget::Goal(goal_id) => {
                let goal = goal_of(db, goal_id, action)?;
                let words = goal_words(&goal, action, fields)?;
                let project = goal.project_dir.as_deref().map(PathBuf::from).filter(|project| project.is_dir());
                let directory = project.unwrap_or_else(|| paths.home.clone());
                Ok(Self { action, subject: goal.goal_id, words, directory })
            }
            ActionTarget::Run(run_id) => {
                let row = run_of(db, run_id)?;
                let words = run_words(&row, action, fields)?;
                let directory = PathBuf::from(&row.project_dir);
                if !directory.is_dir() {
                    return Err(ActionFailure::NoProject(directory));
                }
                Ok(Self { action, subject: row.run_id, words, directory })
            }
        }
    }

    /// All arguments: the store and the form of the answer, then the words of the command.
    pub fn arguments(&self, paths: &Paths) -> Vec<OsString> {
        let mut db = OsString::from("--db=");
        db.push(&paths.store);
        [db, "--json".into()].into_iter().chain(self.words.iter().map(OsString::from)).collect()
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub(super) fn action(&self) -> Action {
        self.action
    }

    pub(super) fn subject(&self) -> &str {
        &self.subject
    }

    /// Whether it may take longer than a person waits for a page.
    pub(super) fn is_long(&self) -> bool {
        self.action == Action::Verify
    }
}

/// The goal that an action is about. A command acts on the newest goal of a session, so that must be it.
fn goal_of(db: Db<'_>, goal_id: &str, action: Action) -> Result<Goal, ActionFailure> {
    let replaced = || db.replaced_by_id(goal_id).map(|goals| goals.into_iter().any(|goal| goal.goal_id == goal_id));
    let Some(goal) = db.goal_with_id(goal_id)? else {
        return Err(if replaced()? { ActionFailure::ReplacedGoal } else { ActionFailure::UnknownGoal });
    };
    if action == Action::Verify && goal.verify.is_empty() {
        return Err(ActionFailure::NoChecks);
    }
    Ok(goal)
}

/// The run that an action is about. A command names the newest run of a project by its name, so that must be it.
fn run_of(db: Db<'_>, run_id: &str) -> Result<RunRow, ActionFailure> {
    let row = db.run(run_id)?.ok_or(ActionFailure::UnknownRun)?;
    let newest = db.newest_run(&row.project_dir, row.plan.kind, &row.plan.name)?;
    if newest.is_some_and(|newest| newest.run_id != row.run_id) {
        return Err(ActionFailure::ReplacedRun(row.plan.name));
    }
    Ok(row)
}

fn goal_words(goal: &Goal, action: Action, fields: &ActionFields) -> Result<Vec<String>, ActionFailure> {
    let session = match action {
        Action::Adopt => word("session", fields.session.as_deref())?,
        _ => goal.session_id.clone(),
    };
    let verb: Vec<String> = match action {
        Action::Pause | Action::Resume | Action::Verify | Action::Complete | Action::Abandon => {
            vec![action.to_string()]
        }
        Action::Reconcile => vec!["reconcile".into(), "--accept-reset".into()],
        Action::Extend => {
            let amounts =
                [("tokens", &fields.tokens), ("usd", &fields.usd), ("turns", &fields.turns), ("hours", &fields.hours)];
            let mut words = vec!["extend".to_owned()];
            for (name, amount) in amounts {
                if let Some(amount) = amount {
                    words.push(format!("--add-{name}={}", checked(name, amount.trim(), LONGEST_AMOUNT)?));
                }
            }
            if words.len() == 1 {
                return Err(ActionFailure::Missing("amount"));
            }
            words
        }
        Action::Adopt => vec!["adopt".into(), "--".into(), goal.goal_id.clone()],
        Action::QueueMove => {
            let (from, to) = (number("from", fields.from.as_deref())?, number("to", fields.to.as_deref())?);
            vec!["queue".into(), "move".into(), "--".into(), from, to]
        }
        Action::QueueDrop => {
            vec!["queue".into(), "drop".into(), "--".into(), number("from", fields.from.as_deref())?]
        }
        Action::Kill | Action::Approve | Action::Reject | Action::Say => {
            return Err(ActionFailure::Unfit { action, noun: "goal" });
        }
    };
    Ok(["goal".to_owned(), format!("--session={session}")].into_iter().chain(verb).collect())
}

fn run_words(row: &RunRow, action: Action, fields: &ActionFields) -> Result<Vec<String>, ActionFailure> {
    let (kind, name) = (row.plan.kind, row.plan.name.clone());
    let is_pipeline = kind == RunKind::Pipeline;
    let mut words = vec![kind.to_string(), action.to_string()];
    match action {
        Action::Kill => words.extend(["--".into(), name]),
        Action::Resume => words.extend(["--detach".into(), "--".into(), name]),
        Action::Say => words.extend(["--".into(), name, text("text", fields.text.as_deref())?]),
        Action::Approve | Action::Reject if is_pipeline => {
            if let Some(reason) = fields.reason.as_deref().filter(|reason| !reason.trim().is_empty()) {
                words.push(format!("--note={}", text("reason", Some(reason))?));
            }
            words.extend(["--".into(), name]);
            if let Some(stage) = fields.stage.as_deref() {
                words.push(word("stage", Some(stage))?);
            }
        }
        _ => return Err(ActionFailure::Unfit { action, noun: "run" }),
    }
    Ok(words)
}

/// A text of one or more lines.
fn text(field: &'static str, given: Option<&str>) -> Result<String, ActionFailure> {
    let text = given.unwrap_or_default().trim().replace("\r\n", "\n");
    let is_text = |c: char| !c.is_control() || c == '\n' || c == '\t';
    // The command would read `-` from stdin.
    match text.chars().count() {
        0 => Err(ActionFailure::Missing(field)),
        1..=LONGEST_TEXT if text.chars().all(is_text) && text != "-" => Ok(text),
        _ => Err(ActionFailure::Invalid(field)),
    }
}

/// A single word or amount, without control characters.
fn checked(field: &'static str, given: &str, longest: usize) -> Result<String, ActionFailure> {
    match given.chars().count() {
        0 => Err(ActionFailure::Missing(field)),
        length if length <= longest && !given.chars().any(char::is_control) => Ok(given.to_owned()),
        _ => Err(ActionFailure::Invalid(field)),
    }
}

fn word(field: &'static str, given: Option<&str>) -> Result<String, ActionFailure> {
    checked(field, given.unwrap_or_default().trim(), LONGEST_WORD)
}

fn number(field: &'static str, given: Option<&str>) -> Result<String, ActionFailure> {
    let number = word(field, given)?.parse::<u32>().ok().filter(|number| *number > 0);
    number.map(|number| number.to_string()).ok_or(ActionFailure::Invalid(field))
}

#[cfg(test)]
mod tests;
