//! Several hook calls of one session with a real store, as the program makes them. No input may break a hook: a hook that
//! fails pauses the user's goal.

use std::path::Path;

use steadfast_app::action::{self, Place};
use steadfast_app::hook;
use steadfast_hosts::adapter;
use steadfast_model::goal::{Actor, Goal, GoalStatus, NewGoal};
use steadfast_model::hook::HookInput;
use steadfast_model::host::Host;
use steadfast_store::{Origin, Store};
use steadfast_system::config::Config;
use steadfast_system::paths::Paths;
use tempfile::TempDir;

use crate::hooks::assert_reply;
use crate::scratch;

const START: i64 = 1_800_000_000_000;
const CALLS_MAX: usize = 6;
const SESSION: &str = "s-1";

struct World {
    root: TempDir,
    /// A migrated store, to be copied for each input.
    empty: Vec<u8>,
}

thread_local! {
    static WORLD: World = World::new();
}

impl World {
    fn new() -> Self {
        let root = scratch::new_directory();
        let path = root.path().join("empty.db");
        drop(Store::open(&path).expect("a new store"));
        Self { empty: fs_err::read(&path).expect("its file"), root }
    }

    fn paths(&self) -> Paths {
        let home = self.root.path().to_owned();
        let store = home.join("goals.db");
        for end in ["-wal", "-shm"] {
            // Only a call that was cut off leaves them.
            let _ = fs_err::remove_file(home.join(format!("goals.db{end}")));
        }
        fs_err::write(&store, &self.empty).expect("a copy of the store");
        Paths { home, store, store_from: "test", config: Config::default(), closed: Vec::new() }
    }
}

/// The session's file, then the calls, between lines with `===`. The first byte picks the host, and whether there is a
/// goal.
pub(crate) fn run(data: &[u8]) {
    let (shape, data) = scratch::split_first(data);
    let host = Host::ALL[usize::from(shape & 1)];
    let mut parts = scratch::parts(data);
    let transcript = scratch::file("s-1.jsonl", parts.next().unwrap_or_default());
    WORLD.with(|world| {
        let paths = world.paths();
        if shape & 2 == 0 {
            start_goal(&paths, host, &transcript);
        }
        for (call, now) in parts.take(CALLS_MAX).zip((START..).step_by(1_000)) {
            handle(&paths, host, &transcript, call, now);
        }
    });
}

fn start_goal(paths: &Paths, host: Host, transcript: &Path) {
    let place =
        Place { session_id: SESSION.to_owned(), host, project_dir: None, transcript: Some(transcript.to_owned()) };
    let new = NewGoal { objective: "Make every test pass".to_owned(), ..NewGoal::default() };
    let mut store = Store::open(&paths.store).expect("the store");
    let origin = Origin { actor: Actor::User, place: "goal-cli" };
    action::start(&mut store, &place, new, origin, START).expect("a goal starts");
}

fn handle(paths: &Paths, host: Host, transcript: &Path, stdin: &[u8], now: i64) {
    let Ok(Some(input)) = (adapter(host).read_hook)(stdin) else { return };
    // No other file of this machine may be read.
    let transcript = input.transcript.as_ref().map(|_| transcript.to_owned());
    let input = HookInput { session_id: SESSION.to_owned(), transcript, ..input };
    let input = hook::as_command(input, paths);
    let reply = hook::handle_call(&input, paths, None, now).expect("no other client is known");
    let message = reply.message.as_deref().unwrap_or_default();
    assert!(!message.starts_with("steadfast: "), "{} failed: {message}", input.event_name);
    assert_reply(adapter(host), &input.event_name, &reply);
    let Ok(store) = Store::open_existing(&paths.store) else { return };
    if let Some(goal) = store.read().goal(SESSION).expect("the goal can be read") {
        assert_moves(&store, &goal);
    }
}

/// An active goal has a turn or a moment at which it is woken, and its clock runs only in a turn.
fn assert_moves(store: &Store, goal: &Goal) {
    let session = store.read().session(SESSION).expect("the session can be read");
    let turn_runs = session.is_some_and(|session| session.activity.turn_since_ms.is_some());
    if goal.status == GoalStatus::Active {
        let moves = turn_runs || goal.wake_at_ms.is_some() || goal.woken_at_ms.is_some();
        assert!(moves, "nothing moves {goal:?}");
    }
    assert!(turn_runs || goal.resume_at_ms.is_none(), "the clock runs without a turn: {goal:?}");
}
