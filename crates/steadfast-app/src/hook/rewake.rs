//! The hook that runs in the background after a turn, and may wake the client. It starts at every Stop beside the
//! normal hook, so it first waits for that one's decision. It may outlive prompts, `/clear` and Esc, so it reads the
//! goal again right before it acts, and acts once.

use std::time::{Duration, Instant};

use serde_json::json;

use super::HookError;
use steadfast_hosts::adapter;
use steadfast_model::clock::{self, Millis};
use steadfast_model::goal::change::{self, Change, Span};
use steadfast_model::goal::event::{Event, EventKind};
use steadfast_model::goal::{Actor, Goal, GoalStatus, PausedReason};
use steadfast_model::hook::HookInput;
use steadfast_model::prompt;
use steadfast_store::{Origin, Store, StoreError};
use steadfast_system::paths::Paths;

/// How long the normal hook may take to decide.
const DECISION_WAIT: Duration = Duration::from_secs(3);
const DECISION_STEP: Duration = Duration::from_millis(50);
/// The longest nap between two looks at the goal.
const NAP: Millis = 5_000;

/// Waits until the goal is to be woken and returns the text that wakes the model; `None` if it is not to be woken.
pub fn rewake(input: &HookInput, paths: &Paths) -> Result<Option<String>, HookError> {
    if !(adapter(input.host).can_rewake)() {
        return Ok(None);
    }
    let deadline = Instant::now() + DECISION_WAIT;
    let mut wake_at = None;
    while wake_at.is_none() && Instant::now() < deadline {
        match wanted(input, paths)? {
            Wanted::No => return Ok(None),
            Wanted::NotYet => std::thread::sleep(DECISION_STEP),
            Wanted::At(at) => wake_at = Some(at),
        }
    }
    let Some(wake_at) = wake_at else { return Ok(None) };
    loop {
        let left = wake_at - clock::now();
        if left <= 0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(u64::try_from(left.min(NAP)).unwrap_or(0)));
        // A prompt, a pause or another wake-up makes this one pointless.
        if !matches!(wanted(input, paths)?, Wanted::At(at) if at == wake_at) {
            return Ok(None);
        }
    }
    claim(input, paths, wake_at)
}

enum Wanted {
    No,
    NotYet,
    At(Millis),
}

/// Opens the store only for a look, so that a long wait holds nothing.
fn wanted(input: &HookInput, paths: &Paths) -> Result<Wanted, HookError> {
    let store = match Store::open_existing(&paths.store) {
        Ok(store) => store,
        Err(StoreError::Missing(_)) => return Ok(Wanted::No),
        Err(error) => return Err(error.into()),
    };
    let Some(goal) = store.read().goal(&input.session_id)? else {
        return Ok(Wanted::No);
    };
    let may_wake = goal.status == GoalStatus::Active || goal.paused_reason.is_some_and(PausedReason::wakes_by_itself);
    let alive = store.read().session(&input.session_id)?.is_some_and(|session| session.ended_at_ms.is_none());
    Ok(match goal.wake_at_ms {
        _ if !may_wake || !alive => Wanted::No,
        Some(at) => Wanted::At(at),
        None => Wanted::NotYet,
    })
}

/// Claims the wake-up, so that no other process does, and renders the prompt.
fn claim(input: &HookInput, paths: &Paths, wake_at: Millis) -> Result<Option<String>, HookError> {
    let now = clock::now();
    let origin = Origin { actor: Actor::Steadfast, place: "rewake" };
    let mut store = Store::open_existing(&paths.store)?;
    let woken: Option<(String, Goal)> = store.write(|db| {
        let Some(goal) = db.goal(&input.session_id)?.filter(|goal| goal.wake_at_ms == Some(wake_at)) else {
            return Ok(None);
        };
        let change = match goal.status {
            GoalStatus::Active => {
                let after = Goal { updated_at_ms: now, wake_at_ms: None, ..goal.clone() };
                Change { goal: after, events: vec![Event::new(EventKind::GoalWoken, json!({}))], span: Span::Keep }
            }
            _ => match change::wake(&goal, now) {
                Some(change) => change,
                None => return Ok(None),
            },
        };
        let wait_over = prompt::wait_over(&goal, now)?;
        Ok::<_, HookError>(Some((wait_over, db.save(&goal, change, origin)?)))
    })?;
    let Some((wait_over, goal)) = woken else { return Ok(None) };
    let asked = match goal.wind_down {
        Some(limit) => prompt::wind_down(&goal, prompt::Wording::Quoted, limit, now)?,
        None => prompt::continuation(&goal, prompt::Wording::Quoted, &[], now)?,
    };
    Ok(Some(format!("{wait_over}\n{asked}").trim_start().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action;
    use crate::action::Place;
    use steadfast_model::goal::NewGoal;
    use steadfast_model::goal::wait::WaitFor;
    use steadfast_model::hook::HookEvent;
    use steadfast_model::host::Host;
    use steadfast_store::Session;
    use steadfast_system::config::Config;

    #[test]
    fn a_goal_that_waits_is_woken_once_its_moment_has_come() {
        let home = tempfile::tempdir().unwrap();
        let paths = Paths {
            home: home.path().to_owned(),
            store: home.path().join("goals.db"),
            store_from: "test",
            config: Config::default(),
        };
        let input = HookInput {
            host: Host::Claude,
            turn_id: None,
            event_name: "Stop".into(),
            session_id: "s1".into(),
            transcript: None,
            cwd: "/".into(),
            project_dir: "/".into(),
            event: HookEvent::PreCompact,
            observations: Vec::new(),
        };
        let origin = Origin { actor: Actor::Worker, place: "test" };
        let now = clock::now();
        let session = Session {
            session_id: "s1".into(),
            host: Host::Claude,
            cwd: "/".into(),
            project_dir: "/".into(),
            transcript_path: String::new(),
            client: None,
            parent_session_id: None,
            parent_link: None,
            last_prompt_ms: None,
            started_at_ms: now,
            last_seen_ms: now,
            ended_at_ms: None,
            end_reason: None,
            ..Session::default()
        };
        let new = NewGoal { objective: "wait for the build".into(), ..NewGoal::default() };
        let mut store = Store::open(&paths.store).unwrap();
        store.write(|db| db.put_session(&session)).unwrap();
        action::start(&mut store, &Place::from(&session), new, origin, now).unwrap();
        action::apply(&mut store, "s1", origin, now, |goal| change::wait(goal, WaitFor::Time, Some(now + 1), now))
            .unwrap();

        assert!(matches!(wanted(&input, &paths).unwrap(), Wanted::At(at) if at == now + 1));
        let text = claim(&input, &paths, now + 1).unwrap().expect("the model is woken");
        assert!(text.contains("wait for the build"));
        let goal = store.read().goal("s1").unwrap().unwrap();
        assert_eq!((goal.status, goal.wake_at_ms), (GoalStatus::Active, None));
        assert_eq!(claim(&input, &paths, now + 1).unwrap(), None, "only one wake-up");
    }
}
