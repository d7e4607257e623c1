//! Waits: who may wait for what, and the looks at the condition, one transaction each.

use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use super::{ActionError, apply, change, goal_of, refuse_agent};
use steadfast_model::clock::Millis;
use steadfast_model::goal::wait::{Seen, Wait, WaitCondition, WaitError, WaitFor, WaitRequest};
use steadfast_model::goal::{Actor, Goal};
use steadfast_model::run::name;
use steadfast_model::text;
use steadfast_store::{Origin, Store, StoreError};
use steadfast_system::process::{self, ProcessIdentity};

const ORIGIN: Origin = Origin { actor: Actor::Steadfast, place: "wait" };

/// Lets the goal of a session wait. A person may wait for anything; an agent for commands that are among `approved` or
/// verify the goal, and for what is inside the project or belongs to the user.
pub fn start(
    store: &mut Store,
    session_id: &str,
    request: &WaitRequest,
    approved: &[String],
    origin: Origin,
    now: Millis,
) -> Result<Goal, ActionError> {
    let by_agent = origin.actor != Actor::User;
    let goal = goal_of(store.read(), session_id)?;
    change::may_wait(&goal, now)?;
    // Its engine would take the pause for the end of the run.
    if name::is_of_goal(session_id) {
        return Err(WaitError::GoalOfRun.into());
    }
    request.check(by_agent, now)?;
    let wait_for = match &request.condition {
        None => WaitFor::Time,
        Some(WaitCondition::Command(command)) => {
            if by_agent && !approved.contains(command) && !goal.verify.contains(command) {
                return match refuse_agent(store, session_id, "wait --command", origin, now) {
                    Err(ActionError::Store(error)) => Err(error.into()),
                    _ => Err(WaitError::UnapprovedCommand.into()),
                };
            }
            WaitFor::Command(command.clone())
        }
        Some(WaitCondition::File(path)) => file(path, goal.project_dir.as_deref(), by_agent)?,
        Some(WaitCondition::Process(pid)) => running_process(*pid, by_agent)?,
    };
    apply(store, session_id, origin, now, |goal| change::wait(goal, wait_for, request.until, now))
}

fn file(path: &str, project: Option<&str>, by_agent: bool) -> Result<WaitFor, WaitError> {
    let project = project.map(Path::new);
    let path = Path::new(path);
    let absolute = match project {
        _ if path.is_absolute() => path.to_owned(),
        Some(project) => project.join(path),
        None => return Err(WaitError::NoDirectory),
    };
    let shown = absolute.to_string_lossy().into_owned();
    if by_agent && !project.is_some_and(|project| is_inside(&absolute, project)) {
        return Err(WaitError::OutsideProject(text::headline(&shown, 160)));
    }
    Ok(WaitFor::File(shown))
}

/// Whether a path, which need not exist yet, is below a directory. Links are followed; `..` is refused because what it
/// leads to may change.
fn is_inside(path: &Path, directory: &Path) -> bool {
    let real = |path: &Path| fs_err::canonicalize(path).ok();
    let existing = path.ancestors().find_map(real);
    let goes_up = path.components().any(|part| part == Component::ParentDir);
    let inside = |existing: PathBuf| real(directory).is_some_and(|directory| existing.starts_with(directory));
    !goes_up && existing.is_some_and(inside)
}

fn running_process(pid: i64, by_agent: bool) -> Result<WaitFor, WaitError> {
    let running = i32::try_from(pid).ok().and_then(ProcessIdentity::of).ok_or(WaitError::NoProcess(pid))?;
    if by_agent && !process::is_of_same_user(running.pid) {
        return Err(WaitError::ForeignProcess(pid));
    }
    let ProcessIdentity { pid, started, boot } = running;
    Ok(WaitFor::Process { pid, started, boot })
}

/// Claims the next look at the condition, if it is time: no other process looks for as long as a look takes. Returns
/// what to look at.
pub fn begin_check(store: &mut Store, goal: &Goal, takes: Duration, now: Millis) -> Result<Option<Wait>, StoreError> {
    let lease = Millis::try_from(takes.as_millis()).unwrap_or(Millis::MAX);
    let claim = |goal: &Goal| change::begin_check(goal, lease, now);
    // Looks that take no time need no claim: what they find is recorded once.
    if lease == 0 {
        return Ok(claim(goal).and(goal.wait.clone()));
    }
    store.write(|db| {
        let Some(goal) = db.goal(&goal.session_id)? else { return Ok(None) };
        match claim(&goal) {
            Some(change) => Ok(db.save(&goal, change, ORIGIN)?.wait),
            None => Ok(None),
        }
    })
}

/// Records what a look found: the next one comes later, or the goal is due now. Returns the goal if this look changed it.
pub fn note_check(
    store: &mut Store,
    session_id: &str,
    looked_at: &Wait,
    seen: Seen,
    now: Millis,
) -> Result<Option<Goal>, StoreError> {
    store.write(|db| {
        let Some(goal) = db.goal(session_id)? else { return Ok(None) };
        match change::note_check(&goal, looked_at, seen, now) {
            Some(change) => db.save(&goal, change, ORIGIN).map(Some),
            None => Ok(None),
        }
    })
}

#[cfg(test)]
mod tests;
