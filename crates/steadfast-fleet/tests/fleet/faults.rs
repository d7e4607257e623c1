//! What dies and what happens then: a frozen worker, a kill with and without workers, a drain, large answers.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::world::{World, processes_of, until};

const FIXED: &str = "completion: fixed-n\ndelay: 0";

#[test]
fn a_frozen_worker_is_taken_over_and_what_its_agent_used_is_charged() {
    // The beat of the run is shorter than in earnest, so that the test does not take minutes.
    let Some(world) = World::with_config("heartbeat_seconds = 6") else { return };
    world.add_loop("work", FIXED, "go");
    let _driver = world.driver("driver", "0");
    let frozen = world.worker("frozen", &["--slots", "1"]);
    frozen.wait_ready();
    let agent = world.writer("12");
    world.start_loop("work", "cold", &agent, &["--max", "1"]);
    until("the agent runs", || (!world.ran().is_empty()).then_some(()));
    // Beats are sent every 0.8 of that time; the second one says what the agent has reported.
    std::thread::sleep(Duration::from_secs(7));
    frozen.signal("STOP");
    let other = world.worker("other", &["--slots", "1"]);
    other.wait_ready();
    let status = world.wait_end("cold");
    assert_eq!((&status["status"], &status["iteration"]), (&json!("completed"), &json!(1)), "{status}");
    assert_eq!(status["history"][0]["attempts"], json!(2));
    assert_eq!(world.ran().len(), 2, "the agent ran twice");
    assert_eq!(status["tokens"], json!(30), "both count: {status}");
    assert_eq!(world.file_of("steadfast/cold", "log.txt"), "1", "and one is kept");
    frozen.signal("CONT");
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(world.file_of("steadfast/cold", "log.txt"), "1", "what comes late changes nothing");
    frozen.kill();
}

#[test]
fn kill_ends_the_run_and_leaves_no_process() {
    let Some(world) = World::new() else { return };
    world.add_loop("work", FIXED, "go");
    let _worker = world.driver("w1", "1");
    let agent = world.agent("sleeper", "cat >/dev/null\necho x >>log.txt\nsleep 600");
    world.start_loop("work", "long", &agent, &["--max", "5"]);
    until("the agent runs", || (!processes_of(&world.dir.path().join("sleeper")).is_empty()).then_some(()));
    let output = world.run(&["fleet", "kill", "long"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let status = world.wait_end("long");
    assert_eq!(status["status"], json!("killed"), "{status}");
    until("no agent is left", || processes_of(&world.dir.path().join("sleeper")).is_empty().then_some(()));
    let again = world.run(&["fleet", "kill", "long"]);
    assert_eq!(again.status.code(), Some(3), "a run that is over cannot be killed");
}

#[test]
fn a_run_killed_while_no_worker_is_up_ends_when_one_comes() {
    let Some(world) = World::new() else { return };
    world.add_loop("work", FIXED, "go");
    let agent = world.writer("0");
    world.start_loop("work", "waiting", &agent, &["--max", "2"]);
    let said = world.ok(&["fleet", "kill", "waiting"]);
    assert!(said.contains("no worker drives runs now"), "{said}");
    assert_eq!(world.status("waiting")["status"], json!("running"));
    let _worker = world.driver("late", "1");
    let status = world.wait_end("waiting");
    assert_eq!((&status["status"], &status["iteration"]), (&json!("killed"), &json!(0)), "{status}");
    assert_eq!(world.ran().len(), 0, "no agent was started");
}

#[test]
fn a_killed_worker_takes_its_agents_with_it_and_another_one_continues() {
    let Some(world) = World::with_config("heartbeat_seconds = 6") else { return };
    world.add_loop("work", FIXED, "go");
    let _driver = world.driver("driver", "0");
    let first = world.worker("first", &["--slots", "1"]);
    first.wait_ready();
    let agent = world.writer("3");
    world.start_loop("work", "moved", &agent, &["--max", "2"]);
    until("the agent runs", || (!world.ran().is_empty()).then_some(()));
    first.kill();
    until("its agent is gone", || processes_of(&world.dir.path().join("writer-3")).is_empty().then_some(()));
    let _second = world.worker("second", &["--slots", "1"]);
    let status = world.wait_end("moved");
    assert_eq!((&status["status"], &status["iteration"]), (&json!("completed"), &json!(2)), "{status}");
    assert_eq!(world.file_of("steadfast/moved", "log.txt"), "1\n2");
}

#[test]
fn a_drained_worker_gives_its_work_back_and_that_is_no_error() {
    let Some(world) = World::new() else { return };
    world.add_loop("work", FIXED, "go");
    let _driver = world.driver("driver", "0");
    let first = world.worker("first", &["--slots", "1"]);
    first.wait_ready();
    let agent = world.agent(
        "once",
        &format!(
            "cat >/dev/null\nmark={}/begun\nif [ ! -e \"$mark\" ]; then : >\"$mark\"; sleep 600; fi\necho x >>log.txt\n\
             printf '{{\"summary\":\"ok\"}}' >\"$STEADFAST_RESULT\"",
            world.dir.path().display()
        ),
    );
    world.start_loop("work", "drained", &agent, &["--max", "1"]);
    until("the agent runs", || world.dir.path().join("begun").exists().then_some(()));
    let begin = Instant::now();
    let mut drain = std::process::Command::new(env!("CARGO_BIN_EXE_steadfast-fleet"));
    let home = world.dir.path().join("first");
    let drain = drain.arg("drain").env("HOME", &home).env("STEADFAST_HOME", home.join("steadfast")).output().unwrap();
    assert!(drain.status.success(), "{}", String::from_utf8_lossy(&drain.stderr));
    assert_eq!(first.wait(), 0);
    let _second = world.worker("second", &["--slots", "1"]);
    let status = world.wait_end("drained");
    assert_eq!(status["status"], json!("completed"), "{status}, drained in {:?}", begin.elapsed());
    let log = world.ok(&["fleet", "status", "drained"]);
    assert!(!log.contains("failed"), "{log}");
}

#[test]
fn an_answer_of_five_megabytes_comes_through() {
    let Some(world) = World::new() else { return };
    world.add_loop("work", FIXED, "go");
    let _worker = world.driver("w1", "1");
    let agent = world.agent(
        "talker",
        "cat >/dev/null\ni=0\nwhile [ $i -lt 5120 ]; do printf '%01023d\\n' $i; i=$((i+1)); done\nprintf 'the last line\\n'",
    );
    world.start_loop("work", "talk", &agent, &["--max", "1"]);
    let status = world.wait_end("talk");
    assert_eq!(status["status"], json!("completed"), "{status}");
    let said = world.ok(&["fleet", "logs", "talk", "-n", "1"]);
    assert_eq!(said.trim(), "the last line");
    let whole = world.json(&["fleet", "logs", "talk"]);
    let length = whole["text"].as_str().unwrap().len();
    assert!(length > 3_900_000, "as much as a run on one machine keeps: {length}");
}

#[test]
fn a_run_whose_repository_is_gone_says_why_and_can_be_ended_and_resumed() {
    let Some(world) = World::new() else { return };
    world.add_pipeline(
        "ask",
        "name: ask\ndefaults: {delay: 0}\nstages:\n  - {name: ship, prompt: 'ship', approve: 'Ship it?'}\n",
    );
    let _worker = world.driver("w1", "1");
    let agent = world.writer("0");
    world.ok(&["pipeline", "run", "ask", "stuck", "--agent", &agent, "--fleet", "--detach"]);
    until("the stage waits", || (world.status("stuck")["stages"][0]["status"] == "awaiting_approval").then_some(()));
    let away = world.dir.path().join("away.git");
    std::fs::rename(world.repo(), &away).unwrap();
    world.ok(&["fleet", "approve", "stuck"]);
    let page = until("the reason is shown", || {
        let page = world.ok(&["fleet", "status", "stuck"]);
        page.contains("last try: ").then_some(page)
    });
    assert!(page.contains("record") && page.contains("git fetch failed"), "{page}");
    // A machine that never saw the run has nothing to show but the reason.
    let other = world.dir.path().join("other-home");
    std::fs::create_dir_all(&other).unwrap();
    let output = world.command(&["fleet", "status", "stuck"]).env("STEADFAST_HOME", &other).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("record failed: git"), "{said}");
    // Its end cannot be recorded either, so it is ended on the server alone.
    world.ok(&["fleet", "kill", "stuck", "--force"]);
    assert_eq!(world.status("stuck")["live"], json!(false));
    std::fs::rename(&away, world.repo()).unwrap();
    world.ok(&["fleet", "resume", "stuck", "--detach"]);
    until("the stage waits again", || {
        (world.status("stuck")["stages"][0]["status"] == "awaiting_approval").then_some(())
    });
    world.ok(&["fleet", "approve", "stuck"]);
    assert_eq!(world.wait_end("stuck")["status"], json!("completed"));
}

#[test]
fn a_repository_that_refuses_deletions_does_not_hold_a_run_up() {
    let Some(world) = World::new() else { return };
    world.add_loop("work", FIXED, "go");
    crate::world::git(&world.repo(), &["config", "receive.denyDeletes", "true"]);
    let worker = world.driver("w1", "1");
    let agent = world.writer("0");
    world.start_loop("work", "kept", &agent, &["--max", "1"]);
    assert_eq!(world.wait_end("kept")["status"], json!("completed"));
    let log = worker.log();
    assert!(log.contains("branches of attempts of kept are not deleted yet: git push failed"), "{log}");
    assert!(log.contains("branches of attempts of kept are left in the repository: git push failed"), "{log}");
}
