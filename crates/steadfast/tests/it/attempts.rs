//! Attempts with real processes: after any kill the agent is found, waited for or ended, and never started twice.

mod containment;
mod forgery;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use steadfast_engine::attempt::{Attempt, AttemptExit, AttemptSpec, AttemptState, RunKey};
use steadfast_model::run::AttemptId;
use tempfile::TempDir;

const LONG: Duration = Duration::from_mins(2);
const GRACE: Duration = Duration::from_millis(300);

struct World {
    home: TempDir,
    attempt: Attempt,
}

impl World {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let attempt = Attempt::at(home.path(), "run-1", AttemptId { stage: 1, iteration: 1, attempt: 1 });
        Self { home, attempt: attempt.with_key(Some(RunKey::new("a secret"))) }
    }

    /// Without a token, a supervisor can be started by hand, as those of earlier versions were.
    fn without_key() -> Self {
        let world = Self::new();
        Self { attempt: world.attempt.clone().with_key(None), ..world }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn prepare(&self, argv: &[&str], limit: Duration) {
        self.prepare_as(argv, limit, false);
    }

    fn prepare_as(&self, argv: &[&str], limit: Duration, bound_to_parent: bool) {
        let spec = AttemptSpec {
            argv: argv.iter().map(|word| (*word).to_owned()).collect(),
            directory: self.home.path().to_owned(),
            env: vec![("STEADFAST_RUN".into(), "r".into())],
            env_remove: vec!["LEAKED".into()],
            limit_ms: u64::try_from(limit.as_millis()).unwrap(),
            grace_ms: u64::try_from(GRACE.as_millis()).unwrap(),
            ordinal: 1,
            has_token: false,
            output_bytes: 0,
            clock: None,
            bound_to_parent,
        };
        self.attempt.prepare(&spec, "the prompt\n", &[]).unwrap();
    }

    fn start(&self) -> std::process::Child {
        self.attempt.start(env!("CARGO_BIN_EXE_steadfast").as_ref()).unwrap()
    }

    /// Prepares a shell script, starts its supervisor and lets somebody else wait for that, as `init` would.
    fn run(&self, script: &str, limit: Duration) {
        self.prepare(&["sh", "-c", script], limit);
        let mut supervisor = self.start();
        std::thread::spawn(move || supervisor.wait());
    }

    fn appears(&self, name: &str) -> String {
        let path = self.path(name);
        eventually(|| std::fs::read_to_string(&path).ok().filter(|text| text.ends_with('\n')))
    }

    fn exit(&self) -> AttemptExit {
        self.attempt.wait(LONG, GRACE).unwrap().unwrap()
    }

    fn supervisor_pid(&self) -> i32 {
        eventually(|| self.attempt.supervisor().unwrap()).identity.pid
    }
}

pub(crate) fn eventually<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let patience = Instant::now() + Duration::from_mins(1);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < patience, "it never happened");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn kill(pid: i32) {
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
}

pub(crate) fn is_alive(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).is_ok_and(|stat| !stat.contains(") Z"))
}

#[test]
fn the_agent_gets_prompt_and_environment_and_its_exit_is_recorded() {
    let world = World::new();
    world.run("cat; echo $STEADFAST_RUN $STEADFAST_ATTEMPT; echo oops >&2; exit 7", LONG);
    world.supervisor_pid();
    let exit = world.exit();
    assert_eq!(
        exit,
        AttemptExit {
            exit_code: Some(7),
            signal: None,
            timed_out: false,
            stopped: false,
            cannot_start: None,
            started_at_ms: exit.started_at_ms,
            ended_at_ms: exit.ended_at_ms,
            supervisor: Some(world.attempt.supervisor().unwrap().unwrap().identity),
            seal: exit.seal.clone(),
        }
    );
    assert!(exit.ended_at_ms >= exit.started_at_ms && exit.started_at_ms > 0);
    let output = std::fs::read_to_string(world.attempt.output()).unwrap();
    assert_eq!(output, format!("the prompt\nr {}\n", world.attempt.directory().display()));
    assert_eq!(std::fs::read_to_string(world.attempt.errors()).unwrap(), "oops\n");
}

#[test]
fn an_agent_that_is_bound_to_the_process_that_started_it_ends_with_it() {
    for with_key in [true, false] {
        let world = if with_key { World::new() } else { World::without_key() };
        let script = "setsid sleep 1000 & echo $! > other; echo $$ > agent; sleep 1000";
        world.prepare_as(&["sh", "-c", script], LONG, true);
        let mut supervisor = world.attempt.start_bound(env!("CARGO_BIN_EXE_steadfast").as_ref()).unwrap();
        let (agent, other) = (world.appears("agent"), world.appears("other"));
        assert!(is_alive(&agent) && is_alive(&other));
        // What the system does with the files of a killed process.
        drop(supervisor.stdin.take());
        supervisor.wait().unwrap();
        assert!(!is_alive(&agent) && !is_alive(&other));
        assert!(world.exit().stopped);
    }
}

#[test]
fn only_the_owner_can_read_an_attempt() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new();
    world.run("true", LONG);
    world.supervisor_pid();
    world.exit();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(world.attempt.directory()), 0o700);
    for entry in std::fs::read_dir(world.attempt.directory()).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

#[test]
fn a_missing_program_cannot_start() {
    let world = World::new();
    world.prepare(&["steadfast-no-such-program"], LONG);
    world.start().wait().unwrap();
    let reason = world.exit().cannot_start.unwrap();
    assert!(reason.contains("steadfast-no-such-program"), "{reason}");
}

#[test]
fn a_pipe_in_place_of_the_result_does_not_block() {
    let world = World::new();
    let result = world.attempt.result().display().to_string();
    world.run(&format!("mkfifo '{result}'; echo done > made"), LONG);
    world.appears("made");
    assert_eq!(world.exit().exit_code, Some(0));
}

#[test]
fn a_second_supervisor_starts_nothing() {
    let world = World::new();
    world.run("echo once >> count; sleep 0.3", LONG);
    world.appears("count");
    assert!(!world.start().wait().unwrap().success());
    world.exit();
    assert!(!world.start().wait().unwrap().success());
    assert_eq!(std::fs::read_to_string(world.path("count")).unwrap(), "once\n");
}

#[test]
fn a_supervisor_that_comes_late_starts_nothing() {
    let world = World::new();
    world.prepare(&["sh", "-c", "touch started"], LONG);
    assert_eq!(world.attempt.inspect().unwrap(), AttemptState::NeverStarted);
    assert!(!world.start().wait().unwrap().success());
    assert!(!world.path("started").exists());
    assert_eq!(world.attempt.wait(LONG, GRACE).unwrap(), None);
}

#[test]
fn the_supervisor_ends_an_agent_that_ignores_term_when_its_time_is_over() {
    let world = World::new();
    world.run(
        "trap '' TERM; (trap '' TERM; echo $$ > /dev/null; sleep 60 & echo $! > child; wait) & sleep 60",
        LONG / 400,
    );
    let child = world.appears("child");
    let exit = world.exit();
    assert_eq!((exit.timed_out, exit.stopped, exit.signal), (true, false, Some(9)));
    assert!(!is_alive(&child), "the group goes with its leader");
}

#[test]
fn stopping_ends_the_agent_and_processes_in_their_own_sessions() {
    let world = World::new();
    world.run(
        "trap '' TERM; setsid sh -c 'trap \"\" TERM; echo $$ > stray; sleep 60' & echo $$ > agent; sleep 60",
        LONG,
    );
    let (agent, stray) = (world.appears("agent"), world.appears("stray"));
    world.attempt.stop(GRACE).unwrap();
    let AttemptState::Ended(exit) = world.attempt.inspect().unwrap() else { panic!("{:?}", world.attempt.inspect()) };
    assert_eq!((exit.stopped, exit.timed_out), (true, false));
    assert!(!is_alive(&agent) && !is_alive(&stray));
}

#[test]
fn a_time_limit_ends_processes_in_their_own_sessions_before_the_exit_is_recorded() {
    let world = World::new();
    world.run("exec setsid -w sh -c 'trap \"\" TERM; echo $$ > stray; sleep 60'", Duration::from_secs(2));
    let stray = world.appears("stray");
    assert!(world.exit().timed_out);
    assert!(!is_alive(&stray));
}

#[test]
fn ten_megabytes_of_output_are_streamed_to_the_file() {
    let world = World::new();
    world.run("head -c 10000000 /dev/zero; echo END", LONG);
    world.supervisor_pid();
    assert_eq!(world.exit().exit_code, Some(0));
    assert_eq!(std::fs::metadata(world.attempt.output()).unwrap().len(), 10_000_004);
}

#[test]
fn an_agent_whose_supervisor_was_killed_is_found_and_waited_for() {
    let world = World::new();
    world.run("echo $$ > agent; while [ ! -e go ]; do sleep 0.05; done; echo done > done", LONG);
    let agent = world.appears("agent");
    kill(world.supervisor_pid());
    let descendants = eventually(|| match world.attempt.inspect().unwrap() {
        AttemptState::Orphaned { descendants, .. } => Some(descendants),
        AttemptState::Supervised => None,
        other => panic!("{other:?}"),
    });
    let agent_pid = agent.trim().parse::<i32>().unwrap();
    assert!(descendants.session.iter().any(|found| found.pid == agent_pid), "{descendants:?} {agent}");
    let waiting = std::thread::spawn({
        let attempt = world.attempt.clone();
        move || attempt.wait(LONG, GRACE).unwrap()
    });
    std::fs::write(world.path("go"), "").unwrap();
    assert_eq!(waiting.join().unwrap(), None);
    assert_eq!(world.appears("done"), "done\n");
    assert_eq!(world.attempt.inspect().unwrap(), AttemptState::Gone);
}

#[test]
fn an_agent_whose_supervisor_was_killed_still_has_its_time_limit() {
    let world = World::new();
    world.run("trap '' TERM; echo $$ > agent; while :; do sleep 0.05; done", LONG);
    let agent = world.appears("agent");
    kill(world.supervisor_pid());
    assert_eq!(world.attempt.wait(Duration::ZERO, GRACE).unwrap(), None);
    assert!(!is_alive(&agent));
}

#[test]
fn an_agent_whose_supervisor_was_killed_can_be_stopped() {
    let world = World::new();
    world.run("trap '' TERM; echo $$ > agent; while :; do sleep 0.05; done", LONG);
    let agent = world.appears("agent");
    kill(world.supervisor_pid());
    eventually(|| (world.attempt.inspect().unwrap() != AttemptState::Supervised).then_some(()));
    world.attempt.stop(GRACE).unwrap();
    assert!(!is_alive(&agent));
    assert_eq!(world.attempt.inspect().unwrap(), AttemptState::Gone);
}

#[test]
fn an_attempt_survives_its_parent_and_a_hangup() {
    let world = World::without_key();
    world.prepare(&["sh", "-c", "echo $$ > agent; while [ ! -e go ]; do sleep 0.05; done; exit 5"], LONG);
    // The engine is this shell: it starts the supervisor, hangs up on its group and dies.
    let engine = format!(
        "'{}' __exec '{}' & while [ ! -e '{}' ]; do sleep 0.05; done; kill -HUP 0; kill -9 $$",
        env!("CARGO_BIN_EXE_steadfast"),
        world.attempt.directory().display(),
        world.path("agent").display()
    );
    std::process::Command::new("setsid").args(["--wait", "sh", "-c", &engine]).status().unwrap();
    assert_eq!(world.attempt.inspect().unwrap(), AttemptState::Supervised);
    std::fs::write(world.path("go"), "").unwrap();
    assert_eq!(world.exit().exit_code, Some(5));
}

#[test]
fn an_attempt_runs_in_a_pid_namespace() {
    // In a pid namespace, the session of its creator is outside and has the id 0.
    let apart = ["--user", "--map-root-user", "--pid", "--fork", "--mount-proc"];
    let unshare = || std::process::Command::new("unshare");
    if !unshare().args(apart).arg("true").status().is_ok_and(|status| status.success()) {
        crate::outages::skipped("process namespaces are not allowed here");
        return;
    }
    let world = World::without_key();
    world.prepare(&["sh", "-c", "exit 5"], LONG);
    // A shell between, so that the supervisor is not the first process of the namespace.
    let keep = ["sh", "-c", "\"$0\" __exec \"$1\"; true", env!("CARGO_BIN_EXE_steadfast")];
    assert!(unshare().args(apart).args(keep).arg(world.attempt.directory()).status().unwrap().success());
    assert_eq!(world.exit().exit_code, Some(5));
}

#[test]
fn after_killing_everything_nothing_is_waited_for() {
    let world = World::new();
    world.run("echo $$ > agent; sleep 60", LONG);
    let agent = world.appears("agent");
    world.attempt.kill().unwrap();
    assert!(!is_alive(&agent));
    assert_eq!(world.attempt.wait(LONG, GRACE).unwrap(), None);
}
