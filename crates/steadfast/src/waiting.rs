//! Looks at what goals wait for. The processes that wake goals call [`look`] whenever `Goal::next_check` is due.

use std::process::{Command, Stdio};
use std::time::Duration;

use steadfast_app::action::wait;
use steadfast_engine::{process, wait as looker};
use steadfast_model::clock;
use steadfast_model::goal::Goal;
use steadfast_model::goal::wait::{Seen, Wait};
use steadfast_store::{Store, StoreError};
use steadfast_system::paths::Paths;

#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum Looked {
    /// It is not time, or another process looks.
    NotDue,
    /// A process of its own runs the command and records what it finds.
    Started,
    NotYet,
    /// The condition is met, and the goal is due now.
    Met,
    /// The goal no longer waits, or another process recorded the same.
    TooLate,
}

/// Looks once, if it is time, and returns at once: a command runs in a process of its own, which holds it to its time
/// limit even if the caller ends.
pub(crate) fn look(paths: &Paths, store: &mut Store, goal: &Goal) -> Result<Looked, StoreError> {
    let Some(wait) = claim(paths, store, goal)? else { return Ok(Looked::NotDue) };
    if looker::longest_look(&wait, limit(paths)).is_zero() {
        return look_at(paths, store, goal, &wait);
    }
    start(paths, goal)?;
    Ok(Looked::Started)
}

/// Looks once and waits for the result. A caller that has claimed the look already says so.
pub(crate) fn look_and_wait(
    paths: &Paths,
    store: &mut Store,
    goal: &Goal,
    is_claimed: bool,
) -> Result<Looked, StoreError> {
    let wait = if is_claimed { goal.wait.clone() } else { claim(paths, store, goal)? };
    match wait {
        Some(wait) => {
            process::begin_session();
            look_at(paths, store, goal, &wait)
        }
        None => Ok(Looked::NotDue),
    }
}

fn limit(paths: &Paths) -> Duration {
    Duration::from_secs(paths.config.goal.wait_timeout_seconds)
}

fn claim(paths: &Paths, store: &mut Store, goal: &Goal) -> Result<Option<Wait>, StoreError> {
    let Some(wait) = &goal.wait else { return Ok(None) };
    wait::begin_check(store, goal, looker::longest_look(wait, limit(paths)), clock::now())
}

fn look_at(paths: &Paths, store: &mut Store, goal: &Goal, wait: &Wait) -> Result<Looked, StoreError> {
    let seen = looker::look(goal, wait, limit(paths));
    let noted = wait::note_check(store, &goal.session_id, wait, seen, clock::now())?;
    Ok(match noted {
        None => Looked::TooLate,
        Some(_) if seen == Seen::Met => Looked::Met,
        Some(_) => Looked::NotYet,
    })
}

/// Starts `steadfast __look` through a shell that ends at once, so that the looker is never a zombie of this process.
fn start(paths: &Paths, goal: &Goal) -> Result<(), StoreError> {
    let mut shell = Command::new("sh");
    shell.args(["-c", "\"$@\" &", "sh"]).arg(std::env::current_exe()?).arg("--db").arg(&paths.store);
    shell.args(["__look", "--claimed", "--", &goal.session_id]);
    shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    Ok(())
}
