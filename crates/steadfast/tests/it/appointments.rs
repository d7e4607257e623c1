//! Runs at a time, and again and again: made and cancelled by the user, kept by `steadfast watch`.

use serde_json::{Value, json};
use steadfast_model::clock;

use crate::attempts::eventually;
use crate::env::{Output, finish};
use crate::runs::World;
use crate::schemas::check;

fn world() -> World {
    let world = World::new();
    world.loop_type("one", "completion: fixed-n\nruns: 1");
    world
}

fn appointments(world: &World) -> Value {
    let list = world.run(&["loop", "list", "--json"]).succeeds().json();
    check("run-list.schema.json", &list);
    list["appointments"].clone()
}

/// Makes the appointment `nightly` with an agent that counts its runs.
fn make(world: &World, more: &[&str]) -> Output {
    let agent = world.agent("echo x >> tries; echo done");
    world.run(&[&["loop", "run", "one", "nightly", "--agent", &agent], more].concat())
}

/// Moves the series of times back, as if the time had passed.
fn pass(world: &World, ms: i64) {
    world
        .env
        .execute(&format!("UPDATE appointments SET next_at_ms = next_at_ms - {ms}, first_at_ms = first_at_ms - {ms}"));
}

fn watch(world: &World) -> String {
    world.run(&["watch", "--once"]).succeeds().stdout.clone()
}

fn ends(world: &World, times: usize) {
    eventually(|| (world.lines("tries").len() == times).then_some(()));
    assert_eq!(world.ends("loop", "nightly")["status"], "completed");
}

const HOUR: i64 = 3_600_000;

#[test]
fn a_run_that_was_put_off_starts_once_at_its_time() {
    let world = world();
    let made = make(&world, &["--at", "in 2h", "--max", "1"]);
    assert!(made.succeeds().stdout.contains("loop nightly starts at "), "{made:?}");
    assert!(made.stdout.contains("loop cancel nightly"), "{made:?}");
    assert_eq!(watch(&world), "");
    let row = appointments(&world)[0].clone();
    let words: Vec<&str> = row["arguments"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!((&words[..4], words.last()), (&["loop", "run", "one", "nightly"][..], Some(&"1")));
    assert!(!words.contains(&"--at") && row["every_seconds"].is_null(), "{row}");
    let page = world.run(&["loop", "list"]);
    assert!(page.succeeds().stdout.contains("APPOINTMENT") && page.stdout.contains("nightly"), "{page:?}");
    pass(&world, 2 * HOUR);
    let said = watch(&world);
    assert!(said.contains("started run") && said.contains("loop nightly at its time"), "{said}");
    ends(&world, 1);
    assert_eq!(appointments(&world), json!([]));
    assert_eq!(watch(&world), "");
    ends(&world, 1);
}

#[test]
fn a_repeated_run_keeps_its_times_and_makes_up_for_missed_ones_once() {
    let world = world();
    make(&world, &["--every", "1h", "--json", "-d"]).succeeds();
    let first = world.env.sql("SELECT first_at_ms FROM appointments")[0][0].parse::<i64>().unwrap();
    assert!((first - clock::now() - HOUR).abs() < 600_000);
    // The machine was off for the first three times.
    pass(&world, 3 * HOUR + HOUR / 2);
    watch(&world);
    ends(&world, 1);
    let row =
        world.env.sql("SELECT next_at_ms - first_at_ms, claimed_at_ms IS NULL, every_ms FROM appointments").remove(0);
    assert_eq!(row, [(3 * HOUR).to_string(), "1".to_owned(), HOUR.to_string()]);
    assert_eq!(watch(&world), "");
    pass(&world, HOUR);
    watch(&world);
    ends(&world, 2);
    let last = appointments(&world)[0]["last_run_id"].as_str().unwrap().to_owned();
    assert_eq!(world.status("loop", "nightly")["run_id"], last.as_str());
}

#[test]
fn a_time_at_which_the_run_before_still_runs_is_skipped() {
    let world = world();
    let agent = world.agent("echo x >> tries; while [ ! -e go ]; do sleep 0.02; done; echo done");
    world.run(&["loop", "run", "one", "nightly", "--agent", &agent, "--every", "1h"]).succeeds();
    pass(&world, HOUR);
    watch(&world);
    eventually(|| world.lines("tries").pop());
    pass(&world, HOUR);
    let said = watch(&world);
    assert!(said.contains("skipped run"), "{said}");
    let row = appointments(&world)[0].clone();
    assert_eq!(row["last_error"], "skipped: the run before had not ended");
    assert!(row["next_at"].is_string(), "{row}");
    std::fs::write(world.in_project("go"), "").unwrap();
    ends(&world, 1);
    pass(&world, HOUR);
    watch(&world);
    ends(&world, 2);
    assert_eq!(appointments(&world)[0]["last_error"], Value::Null);
}

#[test]
fn a_process_that_died_while_it_started_a_run_loses_and_doubles_nothing() {
    let world = world();
    make(&world, &["--at", "in 2h"]).succeeds();
    let id = "0b9d5f1e-6d0c-4d0e-9f58-2c1f0a3b4c5d";
    let claim = |ago: i64| {
        let at = clock::now() - ago;
        world.env.execute(&format!(
            "UPDATE appointments SET next_at_ms = NULL, claimed_at_ms = {at}, last_at_ms = {at}, last_run_id = '{id}'"
        ));
    };
    claim(0);
    assert_eq!(watch(&world), "", "the other process may still be at work");
    claim(HOUR);
    watch(&world);
    ends(&world, 1);
    assert_eq!(world.status("loop", "nightly")["run_id"], id);
    // The other process had created the run.
    make(&world, &["--at", "in 2h"]).succeeds();
    claim(HOUR);
    watch(&world);
    assert_eq!(appointments(&world), json!([]));
    ends(&world, 1);
}

#[test]
fn a_run_starts_where_its_command_was_given() {
    let world = world();
    world.repository();
    world.write(&world.in_project("web/agent.sh"), "cat > prompt; echo x >> tries; echo done");
    world.write(&world.in_project("web/plan.md"), "Paint it");
    let make = ["loop", "run", "one", "nightly", "--agent", "sh web/agent.sh", "--input", "plan.md", "--at", "in 2h"];
    finish(world.env.command(&make).current_dir(world.in_project("web")), b"").succeeds();
    pass(&world, 2 * HOUR);
    watch(&world);
    ends(&world, 1);
    let prompt = std::fs::read_to_string(world.in_project("prompt")).unwrap();
    assert!(prompt.contains("[Paint it]"), "{prompt}");
}

#[test]
fn a_run_that_cannot_start_says_why() {
    let world = world();
    make(&world, &["--at", "in 2h"]).succeeds();
    std::fs::remove_dir_all(world.env.home().join("loops/one")).unwrap();
    pass(&world, 2 * HOUR);
    let said = watch(&world);
    assert!(said.contains("missed run"), "{said}");
    let row = appointments(&world)[0].clone();
    assert!(row["last_error"].as_str().unwrap().contains("one") && row["next_at"].is_null(), "{row}");
    let message = world.env.sql("SELECT kind, title FROM outbox").remove(0);
    assert_eq!(message, ["run_ended", "loop nightly did not start at its time"]);
    world.run(&["loop", "cancel", "nightly"]).succeeds();
    assert_eq!(appointments(&world), json!([]));
}

#[test]
fn an_appointment_is_checked_when_it_is_made() {
    let world = world();
    for (more, code, words) in [
        (&["--at", "yesterday"][..], 1, "invalid time `yesterday`"),
        (&["--at", "2020-01-01 03:00"], 1, "invalid time"),
        (&["--every", "5s"], 1, "invalid interval `5s`"),
        (&["--every", "1h", "--tmux"], 1, "--tmux"),
        (&["--every", "1h", "--input", "missing.md"], 1, "missing.md"),
        (&["--every", "1h", "--agent", "./missing.sh"], 1, "--agent"),
    ] {
        make(&world, more).fails_with(code, words);
    }
    world.run(&["loop", "run", "none", "--every", "1h"]).fails_with(1, "none");
    world.run(&["loop", "run", "one", "--every", "1h", "--agent", "./missing.sh"]).fails_with(4, "missing.sh");
    let agent = world.agent("echo done");
    world.write(&world.env.home().join("pipelines/ship.yaml"), "name: ship\nstages:\n  - {name: a, prompt: A}\n");
    let ship = |name: &[&str]| {
        world
            .run(&[&["pipeline", "run", "ship"], name, &["--agent", &agent, "--at", "22:00", "--every", "1d"]].concat())
    };
    ship(&[]).fails_with(1, "needs a name");
    ship(&["nightly"]).succeeds();
    ship(&["nightly"]).fails_with(3, "already has an appointment");
    make(&world, &["--every", "1h", "--dry-run"]).succeeds();
    assert_eq!(appointments(&world), json!([]), "pipelines are not listed as loops");
    world.run(&["loop", "cancel", "nightly"]).fails_with(2, "has no appointment");
    world.run(&["pipeline", "cancel", "nightly"]).succeeds();
}

#[test]
fn an_agent_makes_and_cancels_no_appointment() {
    let world = world();
    make(&world, &["--every", "1h"]).succeeds();
    for arguments in [&["run", "one", "mine", "--every", "1h"][..], &["cancel", "nightly"]] {
        let mut command = world.env.command(&[&["loop"], arguments].concat());
        finish(command.env("CLAUDECODE", "1"), b"").fails_with(3, "is for the user");
    }
    assert_eq!(appointments(&world).as_array().unwrap().len(), 1);
}

#[test]
fn watch_lives_while_an_appointment_does_and_starts_again_with_a_session() {
    let world = world();
    let config = world.env.home().join("config.toml");
    let text = std::fs::read_to_string(&config).unwrap() + "[watch]\nidle_seconds = 1\n";
    std::fs::write(&config, text).unwrap();
    make(&world, &["--every", "1h"]).succeeds();
    let doctor = world.run(&["doctor"]);
    assert!(
        doctor.stdout.contains("1 appointment, the next at") && doctor.stdout.contains("does not run"),
        "{doctor:?}"
    );
    let home = world.env.home();
    let is_held = || steadfast_system::watch_lock::is_held(&home);
    assert!(!is_held());
    let start =
        json!({"hook_event_name": "SessionStart", "source": "startup", "session_id": "s1", "cwd": world.env.project()});
    let mut hook = world.env.command(&["hook", "claude"]);
    finish(hook.env_remove("STEADFAST_NO_WATCH"), start.to_string().as_bytes());
    eventually(|| is_held().then_some(()));
    pass(&world, HOUR);
    ends(&world, 1);
    assert!(is_held());
    let doctor = world.run(&["doctor"]);
    assert!(doctor.stdout.contains("steadfast setup watch --yes"), "{doctor:?}");
    world.run(&["loop", "cancel", "nightly"]).succeeds();
    eventually(|| (!is_held()).then_some(()));
}
