//! Detach, list, attach, kill, resume, cleanup, and edits by hand.

use rustix::process::{Signal, kill_process};
use serde_json::json;

use crate::attempts::{eventually, is_alive};
use crate::env::finish;
use crate::runs::{COUNTING, World, signal, wait};

/// Records its pid and runs until it is ended.
const ENDLESS: &str = "echo $$ > agent; echo begun; while :; do sleep 0.05; done";

#[test]
fn a_detached_loop_is_listed_read_and_killed() {
    let world = World::new();
    world.loop_type("open", "completion: {promise: NEVER}");
    let output = world.loop_run(&["open", "bg"], ENDLESS, &["--detach"]);
    let told = output.succeeds().stdout.clone();
    assert!(told.contains("loop bg runs in the background (pid ") && told.contains("loop kill bg"), "{told}");
    let agent = eventually(|| world.lines("agent").pop());
    let list = world.run(&["loop", "list", "--json"]).succeeds().json();
    let run = &list["runs"][0];
    assert_eq!((&run["name"], &run["kind"], &run["status"]), (&json!("bg"), &json!("loop"), &json!("running")));
    assert!(run["pid"].is_i64() && run["live"] == json!(true), "{run}");
    eventually(|| Some(()).filter(|()| world.run(&["loop", "logs", "bg"]).stdout.contains("begun")));

    let output = world.run(&["loop", "kill", "bg", "--json"]);
    let killed = output.succeeds().json();
    assert_eq!((&killed["status"], &killed["reason"]), (&json!("killed"), &json!("killed")));
    assert!(!is_alive(&agent));
    assert_eq!(world.entry("loop-bg")["status"], json!("killed"));
    assert_eq!(world.json("loop-state-bg.json")["status"], json!("killed"));
    world.run(&["loop", "kill", "bg"]).fails_with(3, "loop bg is over (killed");
    world.run(&["loop", "kill", "other"]).fails_with(2, "no loop named other");
}

#[test]
fn logs_follow_across_iterations_and_attach_ends_with_the_run() {
    let world = World::new();
    world.loop_type("three", "completion: fixed-n\nruns: 3");
    let script = "echo \"begin $STEADFAST_ITERATION\"; while [ ! -e go ]; do sleep 0.02; done; printf 'no line end'";
    world.loop_run(&["three"], script, &["-d"]).succeeds();
    eventually(|| Some(()).filter(|()| world.run(&["loop", "logs", "three"]).code == 0));
    let logs = world.watch(&["loop", "logs", "three", "-f"]);
    let attached = world.watch(&["loop", "attach", "three"]);
    logs.says("begin 1");
    attached.says("begin 1");
    std::fs::write(world.in_project("go"), "").unwrap();
    for (output, what) in [(logs.wait(), "logs"), (attached.wait(), "attach")] {
        assert_eq!(output.code, 0, "{what}: {output:?}");
        let begins: Vec<&str> = output.stdout.lines().filter(|line| line.starts_with("begin")).collect();
        assert_eq!(begins, ["begin 1", "begin 2", "begin 3"], "{what}: {output:?}");
        assert_eq!(output.stdout.matches("no line end\n").count(), 3, "{what}: {output:?}");
    }
    let second = world.run(&["loop", "logs", "three", "--iteration", "2"]);
    assert_eq!(second.succeeds().stdout, "begin 2\nno line end\n");
    world.run(&["loop", "logs", "three", "--iteration", "9"]).fails_with(2, "no output of that iteration");
    world.run(&["loop", "attach", "three"]).fails_with(3, "loop three is over");
}

#[test]
fn leaving_an_attached_run_does_not_end_it() {
    let world = World::new();
    world.loop_type("open", "completion: {promise: NEVER}");
    world.loop_run(&["open"], ENDLESS, &["-d"]).succeeds();
    let attached = world.watch(&["loop", "attach", "open"]);
    // The handler for Ctrl-C is installed by then.
    attached.says("begun");
    signal(&attached.child, Signal::INT);
    let output = attached.wait();
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.stderr.contains("detached; loop open is still running"), "{output:?}");
    assert_eq!(world.status("loop", "open")["live"], json!(true));
    world.run(&["loop", "kill", "open"]).succeeds();
}

#[test]
fn ctrl_c_stops_agent_and_run_with_exit_130_and_a_hint() {
    for (by, name) in [(Signal::INT, "INT"), (Signal::HUP, "HUP"), (Signal::TERM, "TERM")] {
        let world = World::new();
        world.loop_type("open", "completion: {promise: NEVER}");
        let script = world.agent(ENDLESS);
        let run = world.spawn(&["loop", "run", "open", "--agent", &script]);
        let agent = eventually(|| world.lines("agent").pop());
        signal(&run, by);
        let output = wait(run);
        assert_eq!(output.code, 130, "{name}: {output:?}");
        assert!(output.stderr.contains("hint: `steadfast loop resume open` resumes it"), "{output:?}");
        assert!(!is_alive(&agent), "{name}");
        let state = world.json("loop-state-open.json");
        assert_eq!((&state["status"], &state["reason"]), (&json!("killed"), &json!("interrupted")), "{name}");
    }
}

#[test]
fn a_second_ctrl_c_kills_an_agent_that_ignores_the_first() {
    let world = World::new();
    // The grace period would be a minute.
    let config = world.env.home().join("config.toml");
    let text = std::fs::read_to_string(&config).unwrap().replace("grace_ms = 300", "grace_ms = 60000");
    std::fs::write(&config, text).unwrap();
    world.loop_type("open", "completion: {promise: NEVER}");
    let script = world.agent(&format!("trap 'echo asked >> asked' TERM INT; {ENDLESS}"));
    let run = world.spawn(&["loop", "run", "open", "--agent", &script]);
    let agent = eventually(|| world.lines("agent").pop());
    signal(&run, Signal::INT);
    eventually(|| world.lines("asked").pop());
    assert!(is_alive(&agent));
    signal(&run, Signal::INT);
    assert_eq!(wait(run).code, 130);
    assert!(!is_alive(&agent));
    assert_eq!(world.status("loop", "open")["reason"], json!("interrupted"));
}

#[test]
fn marking_the_entry_killed_with_jq_stops_the_run() {
    let world = World::new();
    world.loop_type("open", "completion: {promise: NEVER}");
    world.loop_run(&["open", "edited"], ENDLESS, &["-d"]).succeeds();
    let agent = eventually(|| world.lines("agent").pop());
    let mark = |killed_at: &str| {
        let entry = ".sessions[\"loop-edited\"]";
        world.jq(&format!("{entry}.status = \"killed\" | {entry}.killed_at = \"{killed_at}\""));
    };
    mark("2025-01-10T10:00:00Z");
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert_eq!(world.status("loop", "edited")["status"], json!("running"), "a mark that is older than the run");
    let now = steadfast_model::clock::to_rfc3339(steadfast_model::clock::now());
    mark(&now);
    let ended = world.ends("loop", "edited");
    assert_eq!((&ended["status"], &ended["reason"]), (&json!("killed"), &json!("killed_in_registry")));
    assert!(!is_alive(&agent));
    let entry = world.entry("loop-edited");
    assert_eq!((&entry["status"], &entry["killed_at"]), (&json!("killed"), &json!(now)));
}

#[test]
fn entries_removed_by_hand_stay_removed_and_added_ones_are_listed() {
    let world = World::new();
    world.loop_type("three", "completion: fixed-n\nruns: 3");
    let script = "echo x >> tries; [ $STEADFAST_ITERATION != 2 ] || while [ ! -e go ]; do sleep 0.02; done";
    world.loop_run(&["three"], script, &["-d"]).succeeds();
    eventually(|| Some(()).filter(|()| world.lines("tries").len() == 2));
    world.jq("del(.sessions[\"loop-three\"]) | .sessions[\"loop-mine\"] = {type: \"loop\", status: \"running\", note: \"by hand\"}");
    std::fs::write(world.in_project("go"), "").unwrap();
    assert_eq!(world.ends("loop", "three")["reason"], json!("fixed-n"));
    let registry = world.json("loop-sessions.json");
    assert_eq!(registry["sessions"], json!({"loop-mine": {"type": "loop", "status": "running", "note": "by hand"}}));
    let list = world.run(&["loop", "list", "--json"]).json();
    let by_hand: Vec<_> = list["runs"].as_array().unwrap().iter().filter(|run| run["by_hand"] == json!(true)).collect();
    assert_eq!((by_hand.len(), &by_hand[0]["name"]), (1, &json!("mine")));
}

#[test]
fn a_second_engine_for_a_name_is_refused_with_a_hint() {
    let world = World::new();
    world.loop_type("open", "completion: {promise: NEVER}");
    world.loop_run(&["open", "one"], ENDLESS, &["-d"]).succeeds();
    let again = world.loop_run(&["open", "one"], ENDLESS, &[]);
    let hint = again.fails_with(3, "loop one is already running (pid ").stderr.clone();
    assert!(hint.contains("loop attach one") && hint.contains("kill one") && hint.contains("another name"), "{hint}");
    world.run(&["loop", "resume", "one"]).fails_with(3, "is already driven by another process");
    world.run(&["loop", "kill", "one"]).succeeds();
}

#[test]
fn concurrent_starts_with_one_name_give_one_engine() {
    let world = World::new();
    world.loop_type("open", "completion: {promise: NEVER}");
    let agent =
        world.agent("echo $$ >> agents; while [ ! -e go ]; do sleep 0.02; done; echo '<promise>NEVER</promise>'");
    let runs: Vec<_> = (0..6).map(|_| world.spawn(&["loop", "run", "open", "--agent", &agent])).collect();
    eventually(|| world.lines("agents").pop());
    std::thread::sleep(std::time::Duration::from_millis(200));
    std::fs::write(world.in_project("go"), "").unwrap();
    let mut codes: Vec<i32> = runs.into_iter().map(|run| wait(run).code).collect();
    codes.sort_unstable();
    // A process that came after the end may have started its own run.
    assert!(codes.starts_with(&[0]) && codes.iter().all(|code| [0, 3].contains(code)), "{codes:?}");
    assert_eq!(world.lines("agents").len(), codes.iter().filter(|code| **code == 0).count());
}

#[test]
fn a_run_with_a_dead_engine_is_shown_killed_and_resumed() {
    let world = World::new();
    world.loop_type("open", "completion: {promise: DONE}");
    let script = "echo $$ >> agents; [ -e go ] || while :; do sleep 0.05; done; echo '<promise>DONE</promise>'";
    world.loop_run(&["open"], script, &["-d"]).succeeds();
    let orphan = eventually(|| world.lines("agents").pop());
    kill_process(world.engine("loop", "open"), Signal::KILL).unwrap();
    let list = eventually(|| Some(world.run(&["loop", "list"]).stdout).filter(|list| list.contains("gone")));
    assert!(list.contains("gone (was running)") && list.contains("loop resume NAME"), "{list}");
    let status = world.status("loop", "open");
    let gone = (&json!("unknown_termination"), &json!(false), &json!(null));
    assert_eq!((&status["status"], &status["live"], &status["pid"]), gone);
    world.loop_run(&["open"], script, &[]).fails_with(3, "its engine is gone");
    assert!(is_alive(&orphan));

    world.run(&["loop", "kill", "open"]).succeeds();
    assert!(!is_alive(&orphan));
    for status in [&world.entry("loop-open")["status"], &world.json("loop-state-open.json")["status"]] {
        assert_eq!(status, &json!("killed"));
    }
    assert_eq!(world.status("loop", "open")["status"], json!("killed"));

    std::fs::write(world.in_project("go"), "").unwrap();
    assert_eq!(world.run(&["loop", "resume", "open", "--json"]).succeeds().json()["reason"], json!("promise"));
    assert_eq!(world.lines("agents").len(), 2);
    assert_eq!(world.entry("loop-open")["status"], json!("completed"));
    world.run(&["loop", "resume", "open"]).fails_with(3, "the run is completed (promise)");
}

#[test]
fn cleanup_marks_zombies_stops_orphans_and_removes_old_runs() {
    let world = World::new();
    world.loop_type("open", "completion: {promise: NEVER}").loop_type("once", "completion: fixed-n\nruns: 1");
    world.loop_run(&["open", "zombie"], ENDLESS, &["-d"]).succeeds();
    let orphan = eventually(|| world.lines("agent").pop());
    kill_process(world.engine("loop", "zombie"), Signal::KILL).unwrap();
    for name in ["old", "fresh"] {
        world.loop_run(&["once", name], COUNTING, &[]).succeeds();
    }
    world.jq(".sessions[\"loop-old\"].completed_at = \"2025-01-10T10:00:00Z\" | .sessions[\"loop-left\"] = {type: \"loop\", status: \"running\"}");
    world.env.execute("UPDATE runs SET completed_at_ms = 1 WHERE name = 'old'");
    let old = world.status("loop", "old")["run_id"].as_str().unwrap().to_owned();
    let outputs = world.env.home().join("runs").join(&old).join("1-1-1");
    let judged = outputs.with_file_name("1-1-1-judge-1");
    std::fs::create_dir(&judged).unwrap();
    assert!(outputs.is_dir());

    let before = world.json("loop-sessions.json");
    let planned = world.run(&["loop", "cleanup", "--dry-run", "--json"]).succeeds().json();
    assert_eq!(planned["zombies"], json!(["loop-zombie", "loop-left"]));
    assert_eq!(planned["pruned"], json!(["loop-old"]));
    assert_eq!((planned["stopped"].as_array().unwrap().len(), planned["removed"].as_array().unwrap().len()), (1, 1));
    assert_eq!((world.json("loop-sessions.json"), is_alive(&orphan), outputs.is_dir()), (before, true, true));

    let done = world.run(&["loop", "cleanup", "--json"]).succeeds().json();
    assert_eq!(done["zombies"], planned["zombies"]);
    assert!(!is_alive(&orphan) && !outputs.exists() && !judged.exists());
    let registry = world.json("loop-sessions.json");
    let of = |key: &str| registry["sessions"][key]["status"].clone();
    assert_eq!((of("loop-zombie"), of("loop-left")), (json!("unknown_termination"), json!("unknown_termination")));
    assert_eq!((of("loop-old"), of("loop-fresh")), (json!(null), json!("completed")));
    assert_eq!(world.json("loop-state-zombie.json")["status"], json!("unknown_termination"));
    assert_eq!(world.run(&["loop", "cleanup"]).succeeds().stdout, "nothing to clean up\n");
}

#[test]
fn tmux_passes_the_flags_to_the_engine() {
    if std::process::Command::new("tmux").arg("-V").output().is_err() {
        crate::outages::skipped("tmux is missing");
        return;
    }
    let world = World::new();
    world.loop_type("once", "completion: fixed-n\nruns: 1");
    let sockets = world.env.path("tmux");
    std::fs::create_dir_all(&sockets).unwrap();
    let tmux = |arguments: &[&str]| {
        let mut command = std::process::Command::new("tmux");
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("TMUX_TMPDIR", &sockets);
        finish(command.args(arguments), b"")
    };
    // The tmux server already runs, without this test's environment.
    assert_eq!(tmux(&["new-session", "-d", "-s", "other", "sleep 60"]).code, 0);
    let agent = world.agent("cat > prompt; echo done");
    let mut command = world.env.command(&["loop", "run", "once", "in.tmux", "--max", "3", "--agent", &agent, "--tmux"]);
    let output = finish(command.env("TMUX_TMPDIR", &sockets), b"");
    assert_eq!(output.code, 0, "{output:?}");
    let ended = world.ends("loop", "in.tmux");
    assert_eq!(
        (&ended["reason"], &ended["iteration"], &ended["max_iterations"]),
        (&json!("fixed-n"), &json!(3), &json!(3))
    );
    tmux(&["kill-server"]);
}

#[test]
fn resume_without_the_agents_program_changes_nothing() {
    let world = World::new();
    world.loop_type("open", "completion: {promise: NEVER}");
    let agent = world.in_project("a.sh");
    world.write(&agent, "#!/bin/sh\necho $STEADFAST_ITERATION\n");
    std::fs::set_permissions(&agent, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    assert_eq!(world.run(&["loop", "run", "open", "--max", "1", "--agent", "./a.sh"]).code, 5);
    let before = world.status("loop", "open");
    std::fs::remove_file(&agent).unwrap();
    world
        .run(&["loop", "resume", "open", "--max", "3", "--usd", "5"])
        .fails_with(4, "does not exist or is not executable");
    assert_eq!(world.status("loop", "open"), before);
}

#[test]
fn a_registry_key_is_accepted_as_a_name() {
    let world = World::new();
    world.loop_type("once", "completion: fixed-n\nruns: 1");
    world.loop_run(&["once", "a"], "echo fine", &[]).succeeds();
    assert_eq!(world.status("loop", "loop-a")["name"], json!("a"));
    world.run(&["loop", "status", "pipeline-a"]).fails_with(2, "no loop named pipeline-a");
}
