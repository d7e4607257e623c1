//! The background hook that wakes Claude Code's terminal interface: exactly one wake-up over any number of processes,
//! and trouble only delays it.

use std::io::Read as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{self, ClientChild};
use crate::env::{Env, finish};

const LIMIT: Duration = Duration::from_mins(1);

/// A hook of the terminal client, which can be woken.
fn in_terminal(env: &Env, arguments: &[&str]) -> Command {
    let mut command = env.command(arguments);
    command.env("CLAUDE_CODE_ENTRYPOINT", "cli");
    command
}

fn input(env: &Env, event: &str) -> Vec<u8> {
    let input = json!({
        "hook_event_name": event, "session_id": "s1", "transcript_path": env.transcript("s1"), "cwd": env.project(),
        "background_tasks": [], "source": "resume", "prompt": "<task-notification>", "notification_type": "idle_prompt",
    });
    input.to_string().into_bytes()
}

/// The normal hook, as the client calls it in its terminal interface.
fn hook(env: &Env, event: &str) -> Value {
    let output = finish(&mut in_terminal(env, &["hook", "claude"]), &input(env, event));
    assert_eq!(output.code, 0, "{output:?}");
    if output.stdout.is_empty() { Value::Null } else { output.json() }
}

struct Waker(ClientChild);

impl Waker {
    fn start(env: &Env, event: &str) -> Self {
        Self::run(&in_terminal(env, &["hook", "claude", "--rewake"]), env, event)
    }

    /// A process that exists from now on, and whose code begins once this file is there.
    fn start_late(env: &Env, event: &str, file: &Path) -> Self {
        let hook = in_terminal(env, &["hook", "claude", "--rewake"]);
        let mut late = Command::new("sh");
        late.args(["-c", "until [ -e \"$0\" ]; do sleep 0.02; done; exec \"$@\""]).arg(file);
        late.arg(hook.get_program()).args(hook.get_args()).env_clear();
        late.envs(hook.get_envs().filter_map(|(name, value)| Some((name, value?)))).current_dir(env.project());
        Self::run(&late, env, event)
    }

    fn run(command: &Command, env: &Env, event: &str) -> Self {
        let mut child = client::spawn(command);
        child.write(&input(env, event));
        child.close_stdin();
        Self(child)
    }

    /// Its exit code and what it said, when it ends.
    fn end(&mut self) -> (Option<i32>, String) {
        let start = Instant::now();
        let code = loop {
            match self.0.try_wait() {
                Some(code) => break code,
                None => assert!(start.elapsed() < LIMIT, "the waker still waits"),
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let mut said = String::new();
        self.0.take_stderr().read_to_string(&mut said).unwrap();
        (Some(code), said)
    }

    fn waits(&mut self) -> bool {
        self.0.try_wait().is_none()
    }
}

impl Drop for Waker {
    fn drop(&mut self) {
        self.0.kill();
        self.0.wait();
    }
}

/// Waits until this process is the registered waker of the session.
fn wait_until_registered(env: &Env, waker: &Waker) {
    let start = Instant::now();
    while env.sql("SELECT waker_pid FROM sessions")[0][0] != waker.0.pid.to_string() {
        assert!(start.elapsed() < LIMIT, "{:?}", env.sql("SELECT * FROM sessions"));
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn wake_ups(env: &Env) -> usize {
    env.event_kinds().iter().filter(|kind| *kind == "goal_woken").count()
}

#[test]
fn the_terminal_client_is_woken_with_the_whole_text_once_and_then_with_a_reminder() {
    let env = Env::new();
    env.start(&["Reach the end of the road"]);
    let mut lengths = Vec::new();
    for turn in 0..3 {
        env.says("s1", &format!("m{turn}"), &format!("turn {turn}"), 10);
        assert_eq!(hook(&env, "Stop"), Value::Null, "no block, which would fill the screen");
        let (code, said) = Waker::start(&env, "Stop").end();
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("Reach the end of the road"), "{said}");
        lengths.push(said.chars().count());
        assert_eq!(hook(&env, "UserPromptSubmit"), Value::Null);
    }
    assert!(lengths[0] > 3 * lengths[1] && lengths[1] == lengths[2], "{lengths:?}");
    assert_eq!(wake_ups(&env), 3);
    assert_eq!(env.status()["continuations_used"], 3);
}

#[test]
fn of_many_wakers_one_wakes_and_the_others_leave() {
    let env = Env::new();
    env.start(&["x"]);
    hook(&env, "Stop");
    let mut wakers: Vec<Waker> = (0..4).map(|_| Waker::start(&env, "Stop")).collect();
    let start = Instant::now();
    while wake_ups(&env) == 0 {
        assert!(start.elapsed() < LIMIT);
    }
    hook(&env, "UserPromptSubmit");
    let woken = wakers.iter_mut().filter_map(|waker| waker.end().0).filter(|code| *code == 2).count();
    assert_eq!((woken, wake_ups(&env)), (1, 1));
}

#[test]
fn a_waker_that_begins_in_the_next_turn_leaves_it_alone() {
    let env = Env::new();
    env.start(&["x"]);
    hook(&env, "Stop");
    let begin = env.path("begin");
    let mut late = Waker::start_late(&env, "Stop", &begin);
    // The process is older than the turn, by more than the clock of process starts can miss.
    std::thread::sleep(Duration::from_millis(50));
    hook(&env, "UserPromptSubmit");
    std::fs::write(&begin, "").unwrap();
    assert_eq!((late.end().0, wake_ups(&env)), (Some(0), 0));
}

#[test]
fn a_paused_goal_is_woken_when_another_terminal_resumes_it() {
    let env = Env::new();
    env.start(&["x"]);
    env.goal(&["pause"]).succeeds();
    hook(&env, "Stop");
    let mut waker = Waker::start(&env, "Stop");
    wait_until_registered(&env, &waker);
    assert!(waker.waits());
    env.goal(&["resume"]).succeeds();
    assert_eq!(waker.end().0, Some(2));
}

#[test]
fn a_waker_leaves_when_a_turn_begins_or_a_newer_one_takes_over() {
    let env = Env::new();
    env.start(&["x"]);
    env.goal(&["pause"]).succeeds();
    hook(&env, "Stop");
    let mut first = Waker::start(&env, "Stop");
    wait_until_registered(&env, &first);
    let mut second = Waker::start(&env, "Notification");
    assert_eq!(first.end().0, Some(0));
    wait_until_registered(&env, &second);
    hook(&env, "UserPromptSubmit");
    assert_eq!(second.end().0, Some(0));
    assert_eq!(wake_ups(&env), 0);
}

#[test]
fn a_killed_waker_is_replaced_by_the_next_hook_and_the_goal_is_woken_once() {
    let env = Env::new();
    env.start(&["x"]);
    env.goal(&["wait", "--for", "3s"]).succeeds();
    hook(&env, "Stop");
    let killed = Waker::start(&env, "Stop");
    wait_until_registered(&env, &killed);
    drop(killed);
    assert_eq!(Waker::start(&env, "Notification").end().0, Some(2));
    assert_eq!((wake_ups(&env), env.status()["status"].clone()), (1, json!("active")));
}

#[test]
fn a_store_that_is_locked_at_the_moment_only_delays_the_wake_up() {
    let env = Env::new();
    env.start(&["x"]);
    hook(&env, "Stop");
    let blocker = rusqlite::Connection::open(env.store()).unwrap();
    blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut waker = Waker::start(&env, "Stop");
    // Longer than the waker waits for the lock.
    std::thread::sleep(Duration::from_secs(7));
    assert!(waker.waits());
    blocker.execute_batch("ROLLBACK").unwrap();
    assert_eq!(waker.end().0, Some(2));
    assert_eq!(wake_ups(&env), 1);
}

#[test]
fn a_stop_that_met_a_locked_store_is_decided_by_the_waker() {
    let env = Env::new();
    env.start(&["x"]);
    // Linux counts the start of a process in hundredths of a second; a turn that is no longer would seem to be the next.
    std::thread::sleep(Duration::from_millis(50));
    let blocker = rusqlite::Connection::open(env.store()).unwrap();
    blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut waker = Waker::start(&env, "Stop");
    let told = hook(&env, "Stop");
    assert!(told["systemMessage"].as_str().is_some_and(|said| said.contains("steadfast")), "{told}");
    blocker.execute_batch("ROLLBACK").unwrap();
    assert_eq!(waker.end().0, Some(2));
    assert_eq!((wake_ups(&env), env.status()["paused_reason"].clone()), (1, Value::Null));
}

/// The session was closed by `/exit`; its waker starts beside the hook that records that it is open again.
#[test]
fn a_waker_that_looks_before_its_session_is_recorded_as_open_waits_for_that() {
    let env = Env::new();
    env.start(&["x"]);
    env.hook("s1", &json!({"hook_event_name": "SessionEnd", "reason": "prompt_input_exit"}));
    let mut waker = Waker::start(&env, "SessionStart");
    // Long enough for a look at the store.
    std::thread::sleep(Duration::from_millis(500));
    assert!(waker.waits());
    hook(&env, "SessionStart");
    assert_eq!(waker.end().0, Some(2));
    assert_eq!(wake_ups(&env), 1);
}
