//! Records that the supervisor of an attempt did not write are not believed.

use super::*;

/// Kills the supervisor, which is the parent of the agent, and writes the record of a success.
const FORGE: &str = r#"kill -9 $PPID; cd "$STEADFAST_ATTEMPT"; echo '{"exit_code":0,"signal":null,"timed_out":false,
    "stopped":false,"cannot_start":null,"started_at_ms":0,"ended_at_ms":1,"seal":"0"}' > exit.json"#;

#[test]
fn an_exit_that_the_agent_wrote_is_a_lost_attempt() {
    let world = World::new();
    world.run(&format!("{FORGE}; cd -; echo done > done"), LONG);
    world.appears("done");
    assert_eq!(world.attempt.wait(LONG, GRACE).unwrap(), None);
    assert_eq!(world.attempt.inspect().unwrap(), AttemptState::Gone);
}

#[test]
fn the_exit_of_another_attempt_is_not_believed() {
    let (first, second) = (World::new(), World::new());
    first.run("exit 0", LONG);
    first.supervisor_pid();
    assert_eq!(first.exit().exit_code, Some(0));
    let second = World {
        attempt: Attempt::at(second.home.path(), "run-1", AttemptId { stage: 1, iteration: 2, attempt: 1 })
            .with_key(Some(RunKey::new("a secret"))),
        ..second
    };
    let copy = format!(
        "kill -9 $PPID; cp '{}'/* \"$STEADFAST_ATTEMPT\"; echo done > done",
        first.attempt.directory().display()
    );
    second.run(&copy, LONG);
    second.appears("done");
    assert_eq!(second.attempt.wait(LONG, GRACE).unwrap(), None);
}

#[test]
fn damaged_records_do_not_end_a_run() {
    let world = World::new();
    world.run("kill -9 $PPID; echo '{' > \"$STEADFAST_ATTEMPT/exit.json\"; echo done > done", LONG);
    world.appears("done");
    assert_eq!(world.attempt.wait(LONG, GRACE).unwrap(), None);
}

#[test]
fn processes_that_the_agent_wrote_down_are_left_alone() {
    let world = World::new();
    let mut other = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", other.id())).unwrap();
    let started = stat.rsplit_once(") ").unwrap().1.split(' ').nth(19).unwrap().to_owned();
    let list = format!(r#"{{"processes":[{{"pid":{},"started":"{started}"}}],"seal":"0"}}"#, other.id());
    world.run(&format!("kill -9 $PPID; echo '{list}' > \"$STEADFAST_ATTEMPT/escaped.json\"; echo done > done"), LONG);
    world.appears("done");
    assert_eq!(world.attempt.wait(Duration::ZERO, GRACE).unwrap(), None);
    world.attempt.kill().unwrap();
    assert!(other.try_wait().unwrap().is_none());
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn a_supervisor_without_its_token_starts_nothing() {
    let world = World::new();
    world.prepare(&["sh", "-c", "touch started"], LONG);
    let by_hand = world.attempt.clone().with_key(None);
    assert!(!by_hand.start(env!("CARGO_BIN_EXE_steadfast").as_ref()).unwrap().wait().unwrap().success());
    assert!(!world.path("started").exists());
    assert_eq!(world.attempt.inspect().unwrap(), AttemptState::NeverStarted);
}
