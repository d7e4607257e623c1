//! Other ways for a run to get into trouble: no room, no right to write, two engines at once, process numbers that mean
//! somebody else by now, and a supervisor that is held until its agent's time is over.

use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::truth::Truth;
use super::world::{NAME, Part, Scenario, World};
use super::{assert_same, undisturbed};
use crate::attempts::eventually;
use crate::env::{Output, finish};
use crate::outages::skipped;

#[test]
fn only_one_of_many_concurrent_engines_drives() {
    let truth = undisturbed(Scenario::Fixed);
    let world = World::new(Scenario::Fixed);
    world.start("engine.locked").wait().unwrap();
    let engines: Vec<Child> = (0..6).map(|_| world.spawn_resume("")).collect();
    let codes: Vec<Option<i32>> = engines.into_iter().map(|mut engine| engine.wait().unwrap().code()).collect();
    let drove = codes.iter().filter(|code| **code == Some(0)).count();
    let refused = codes.iter().filter(|code| **code == Some(3)).count();
    // An engine that starts after the end only publishes it.
    assert!(drove >= 1 && drove + refused == codes.len(), "{codes:?}");
    assert_same(&truth, &Truth::of(&world), &world, "six engines");
}

#[test]
fn only_one_of_many_concurrent_starts_creates_the_run() {
    let truth = undisturbed(Scenario::Fixed);
    let world = World::new(Scenario::Fixed);
    let starts: Vec<Child> = (0..6).map(|_| world.start("engine.locked:9")).collect();
    let codes: Vec<Option<i32>> = starts.into_iter().map(|mut start| start.wait().unwrap().code()).collect();
    let made = codes.iter().filter(|code| **code == Some(0)).count();
    assert!(codes.iter().all(|code| [Some(0), Some(3)].contains(code)) && made >= 1, "{codes:?}");
    // A start after the end of the first run is a new run that repeats the work.
    if made == 1 {
        assert_same(&truth, &Truth::of(&world), &world, "six starts");
    }
    let doubled = std::fs::read_to_string(world.path("book/doubled")).unwrap_or_default();
    assert_eq!(doubled, "");
}

/// Lets an engine die before its first supervisor started, and puts somebody else's number where the supervisor's would be.
fn resumed_with_supervisor(pid: u32, started: &str) -> (World, Truth) {
    let world = World::new(Scenario::Fixed);
    world.start("engine.prepared").wait().unwrap();
    let run = std::fs::read_dir(world.path("home/runs")).unwrap().flatten().next().unwrap().path();
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let supervisor = json!({"identity": {"pid": pid, "started": started, "boot": boot.trim()}, "started_at_ms": 1});
    std::fs::write(run.join("1-1-1/pid"), supervisor.to_string()).unwrap();
    let found = world.to_its_end();
    (world, found)
}

fn started(pid: u32) -> String {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(") ").unwrap().1.split(' ').nth(19).unwrap().to_owned()
}

#[test]
fn a_reused_pid_is_not_waited_for() {
    let truth = undisturbed(Scenario::Fixed);
    // A leader of its own session, as a supervisor is, but not the one that was written down.
    let mut other = Command::new("setsid").args(["sleep", "60"]).stdout(Stdio::null()).spawn().unwrap();
    let (world, found) = resumed_with_supervisor(other.id(), "17");
    assert_same(&truth, &found, &world, "a recycled number");
    assert!(other.try_wait().unwrap().is_none(), "a stranger is left alone");
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn a_zombie_is_not_waited_for() {
    let truth = undisturbed(Scenario::Fixed);
    let mut dead = Command::new("setsid").arg("true").spawn().unwrap();
    let started = started(dead.id());
    eventually(|| {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", dead.id())).unwrap();
        stat.contains(") Z").then_some(())
    });
    let (world, found) = resumed_with_supervisor(dead.id(), &started);
    assert_same(&truth, &found, &world, "a zombie");
    dead.wait().unwrap();
}

#[test]
fn a_supervisor_that_is_held_past_the_time_limit_is_not_waited_for() {
    let world = World::new(Scenario::Fixed);
    let script = format!(
        "echo $$ >>{0}/book/agents; while [ $(wc -l <{0}/book/agents) -lt 2 ]; do sleep 0.1; done",
        world.path("").display()
    );
    let agent = format!("sh -c '{script}'");
    let arguments = ["loop", "run", "fixed", NAME, "--max", "1", "--timeout", "1s", "--agent", &agent];
    let mut engine = world.command(&arguments, "").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let agents = || std::fs::read_to_string(world.path("book/agents")).unwrap_or_default();
    eventually(|| (agents().lines().count() == 1).then_some(()));
    let supervisor = world.processes(&engine).into_iter().find(|(_, part)| *part == Part::Supervisor).unwrap().0;
    kill_process(Pid::from_raw(supervisor).unwrap(), Signal::STOP).unwrap();
    assert!(engine.wait().unwrap().success(), "{}", world.story());
    assert_eq!(agents().lines().count(), 2, "the second one came after the first was ended");
    let failures = world.sql("SELECT coalesce(failure, 'none') FROM run_attempts ORDER BY attempt");
    assert_eq!(failures, ["timed_out", "none"]);
    assert_eq!(world.processes(&engine), []);
}

#[test]
fn a_fast_loop_honours_a_stop_request() {
    let world = World::new(Scenario::Fixed);
    let arguments = ["loop", "run", "fixed", NAME, "--max", "100000", "--agent", "true"];
    let mut engine = world.command(&arguments, "").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    eventually(|| {
        world.path("home/goals.db").exists().then(|| world.sql("SELECT 'x' FROM run_iterations LIMIT 1"))?.pop()
    });
    finish(&mut world.command(&["loop", "kill", NAME], ""), b"").succeeds();
    assert_eq!(engine.wait().unwrap().code(), Some(130));
}

/// Runs a script in its own mount namespace.
fn apart(world: &World, script: &str) -> Output {
    let mut command = Command::new("unshare");
    command
        .args(["--user", "--map-root-user", "--mount", "sh", "-euc", script, "sh"])
        .arg(env!("CARGO_BIN_EXE_steadfast"))
        .arg(world.path("home"))
        .arg(world.path("agent.sh"))
        .env("STEADFAST_HOME", world.path("home"))
        .env("HOME", world.path("user"))
        .current_dir(world.path("project"));
    finish(&mut command, b"")
}

/// Whether mounting is allowed here.
fn can_mount(world: &World) -> bool {
    let output = apart(world, "mount -t tmpfs tmpfs \"$2\"");
    if output.code != 0 {
        skipped(&format!("mounts are not allowed here: {}", output.stderr.trim()));
    }
    output.code == 0
}

#[test]
fn an_unwritable_home_is_a_clear_error_and_changes_nothing() {
    let world = World::new(Scenario::Fixed);
    if !can_mount(&world) {
        return;
    }
    let script =
        "mount --bind \"$2\" \"$2\" && mount -o remount,bind,ro \"$2\" && exec \"$1\" loop run fixed r --agent \"$3\"";
    apart(&world, script).fails_with(4, "goals.db");
    assert!(!world.path("project/.claude").exists() && !world.path("home/runs").exists());
    assert!(!world.path("book/log").exists());
    assert!(world.start("").wait().unwrap().success());
}

#[test]
fn a_run_on_a_full_disk_is_refused_or_waits_for_room() {
    let truth = undisturbed(Scenario::Fixed);
    let mut refused = 0;
    for size in [20, 300, 560, 620, 680, 740, 800, 4000] {
        let world = World::new(Scenario::Fixed);
        if !can_mount(&world) {
            return;
        }
        // The small disk grows after a while. It disappears with the shell, so its content is copied back.
        let script = format!(
            "cp -r \"$2\" \"$2-kept\"; mount -t tmpfs -o size={size}k tmpfs \"$2\"; cp -r \"$2-kept/.\" \"$2\"; code=0
             \"$1\" loop run fixed r --agent \"$3\" & engine=$!
             for _ in 1 2 3 4 5 6; do sleep 0.5; kill -0 $engine 2>/dev/null || break; done
             mount -o remount,size=64m \"$2\"; wait $engine || code=$?
             rm -r \"$2-kept\"; cp -r \"$2\" \"$2-kept\"; umount \"$2\"; cp -r \"$2-kept/.\" \"$2\"; exit $code"
        );
        let output = apart(&world, &script);
        refused += usize::from(output.code != 0);
        if output.code != 0 {
            assert!(output.code == 4 && !output.stderr.contains("panicked"), "{size}: {output:?}");
        }
        let found = world.to_its_end();
        assert_same(&truth, &found, &world, &format!("{size} kB: {output:?}"));
    }
    assert!((1..8).contains(&refused), "{refused}");
}
