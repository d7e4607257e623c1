//! Runs that end in the middle of an iteration: finished work is checked later, and no process is left.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::attempts::{eventually, is_alive};
use crate::runs::{COUNTING, World, signal, wait};

/// A check that hangs the first time and passes the second time.
const TESTED: &str = "completion: {verify: ['./test.sh']}\nruns: 1";

fn tested() -> World {
    let world = World::new();
    world.loop_type("tested", TESTED);
    let script = "#!/bin/sh\necho $$ >> testers\n[ $(wc -l < testers) -ge 2 ] || while :; do sleep 0.05; done\n";
    let path = world.in_project("test.sh");
    world.write(&path, script);
    std::process::Command::new("chmod").arg("+x").arg(path).status().unwrap();
    world
}

fn tester(world: &World) -> String {
    eventually(|| world.lines("testers").pop())
}

fn resumes_with_the_check(world: &World) {
    let output = world.run(&["loop", "resume", "tested", "--json"]);
    let status = output.succeeds().json();
    let told = (&status["status"], &status["reason"], &status["iteration"]);
    assert_eq!(told, (&json!("completed"), &json!("verify"), &json!(1)), "{output:?}");
    assert_eq!((world.lines("tries").len(), world.lines("testers").len()), (1, 2), "one agent, two tests");
}

#[test]
fn resume_runs_an_interrupted_check_again() {
    let world = tested();
    let agent = world.agent(COUNTING);
    let run = world.spawn(&["loop", "run", "tested", "--agent", &agent]);
    let first = tester(&world);
    signal(&run, Signal::TERM);
    assert_eq!(wait(run).code, 130);
    assert!(!is_alive(&first));
    assert_eq!(world.status("loop", "tested")["iteration"], json!(0), "not counted before its test");
    resumes_with_the_check(&world);

    let world = tested();
    world.loop_run(&["tested"], COUNTING, &["-d"]).succeeds();
    let first = tester(&world);
    world.run(&["loop", "kill", "tested"]).succeeds();
    assert!(!is_alive(&first));
    resumes_with_the_check(&world);
}

#[test]
fn kill_cleanup_and_resume_end_a_check_of_a_killed_engine() {
    for verb in [Some("kill"), Some("cleanup"), None] {
        let world = tested();
        world.loop_run(&["tested"], COUNTING, &["-d"]).succeeds();
        let first = tester(&world);
        kill_process(world.engine("loop", "tested"), Signal::KILL).unwrap();
        eventually(|| Some(()).filter(|()| world.status("loop", "tested")["live"] == json!(false)));
        assert!(is_alive(&first));
        match verb {
            Some("kill") => drop(world.run(&["loop", "kill", "tested"]).succeeds()),
            Some(verb) => {
                let planned = world.run(&["loop", verb, "--dry-run", "--json"]).succeeds().json();
                assert_eq!(planned["stopped"], json!(["loop tested, test of iteration 1"]));
                assert!(is_alive(&first));
                assert_eq!(world.run(&["loop", verb, "--json"]).succeeds().json()["stopped"], planned["stopped"]);
            }
            None => {}
        }
        assert_eq!(is_alive(&first), verb.is_none(), "{verb:?}");
        resumes_with_the_check(&world);
        assert!(!is_alive(&first), "{verb:?}");
    }
}

#[test]
fn processes_in_their_own_session_end_before_the_next_agent_starts() {
    let world = World::new();
    world.loop_type("late", "completion: fixed-n\nruns: 1\ntimeout: 1s\nlimits: {errors: 2}");
    let script = "echo $$ >> agents; while :; do sleep 0.05; done";
    // Each agent checks whether the previous one is alive; a zombie is not.
    let look = "[ -e agents ] && s=$(cat /proc/$(cat agents)/stat 2>/dev/null) && case \"$s\" in *') Z '*) ;; *) echo twin >> twins;; esac";
    let agent = world.agent(&format!("{look}; {script}"));
    let output = world.run(&["loop", "run", "late", "--agent", &format!("setsid -w {agent}")]);
    assert_eq!(output.code, 1, "{output:?}");
    let agents = world.lines("agents");
    assert_eq!((agents.len(), agents.iter().any(|agent| is_alive(agent))), (2, false), "{agents:?}");
    assert_eq!(world.lines("twins"), Vec::<String>::new());
}

#[test]
fn waiting_for_the_orphans_of_a_killed_supervisor_is_reported() {
    let world = World::new();
    world.loop_type("once", "completion: fixed-n\nruns: 1");
    let script = "echo $$ >> agents; while [ ! -e go ]; do sleep 0.05; done";
    world.loop_run(&["once"], script, &["-d"]).succeeds();
    let agent = eventually(|| world.lines("agents").pop());
    let run_id = world.status("loop", "once")["run_id"].as_str().unwrap().to_owned();
    let supervisor = std::fs::read(world.env.home().join("runs").join(run_id).join("1-1-1/pid")).unwrap();
    let supervisor: Value = serde_json::from_slice(&supervisor).unwrap();
    kill_process(world.engine("loop", "once"), Signal::KILL).unwrap();
    let supervisor = i32::try_from(supervisor["identity"]["pid"].as_i64().unwrap()).unwrap();
    kill_process(Pid::from_raw(supervisor).unwrap(), Signal::KILL).unwrap();
    eventually(|| Some(()).filter(|()| world.status("loop", "once")["live"] == json!(false)));
    let resumed = world.spawn(&["loop", "resume", "once"]);
    let waits = format!("waiting for process {agent} of iteration 1, whose supervisor is gone; `kill once` ends it");
    let log = || world.run(&["loop", "logs", "once", "--engine"]).stdout;
    eventually(|| log().contains(&waits).then_some(()));
    std::fs::write(world.in_project("go"), "").unwrap();
    let output = wait(resumed);
    assert_eq!((output.code, output.stderr.matches(&waits).count()), (0, 1), "{output:?}");
}

#[test]
fn a_closed_reader_ends_logs_and_attach_but_not_the_run() {
    let world = World::new();
    world.loop_type("open", "completion: {promise: NEVER}");
    let silent = "echo begun; while :; do sleep 0.05; done";
    world.loop_run(&["open"], silent, &["-d"]).succeeds();
    eventually(|| Some(()).filter(|()| world.run(&["loop", "logs", "open"]).stdout.contains("begun")));
    for verb in [&["logs", "open", "-f"][..], &["attach", "open"]] {
        let mut command = world.env.command(&[&["loop"], verb].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        assert_eq!(line, "begun\n");
        drop(reader);
        let ended = eventually(|| child.try_wait().unwrap());
        assert_eq!(ended.code(), Some(0), "{verb:?}");
        assert_eq!(world.status("loop", "open")["live"], json!(true));
    }
    for verb in [&["logs", "open", "-f"][..], &["logs", "open"], &["attach", "open"]] {
        let mut command = world.env.command(&[&["loop"], verb].concat());
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = wait(command.stdout(full).stderr(Stdio::piped()).spawn().unwrap());
        assert_eq!(output.code, 4, "{verb:?}: {output:?}");
        assert!(output.stderr.contains("cannot write output"), "{verb:?}: {output:?}");
    }
    world.run(&["loop", "kill", "open"]).succeeds();
}

#[test]
fn logs_report_when_they_show_less_than_requested() {
    let world = World::new();
    world.loop_type("once", "completion: fixed-n\nruns: 1");
    world.loop_run(&["once"], "yes a line of output | head -c 3000000", &[]).succeeds();
    let output = world.run(&["loop", "logs", "once", "-n", "1000000"]);
    assert!(
        output.succeeds().stderr.contains("only the last 1 MiB are read; the whole output is in /"),
        "{}",
        output.stderr
    );
    assert_eq!(world.run(&["loop", "logs", "once", "-n", "9"]).succeeds().stderr, "");
}

/// Its number is in a file; it left session, group and environment of its agent.
const HIDDEN: &str =
    "env -i setsid -f sh -c 'echo $$ > hidden; exec sleep 62'; while [ ! -s hidden ]; do sleep 0.02; done";

#[test]
fn nothing_outlives_the_time_limit_of_an_iteration() {
    let world = World::new();
    world.loop_type("once", "completion: fixed-n\nmax: 1\nlimits: {errors: 1}");
    let output = world.loop_run(&["once"], &format!("{HIDDEN}; sleep 60"), &["--timeout", "2s"]);
    assert_eq!(output.code, 1, "{output:?}");
    assert!(!is_alive(&world.lines("hidden")[0]));
}

#[test]
fn what_hid_ends_when_a_run_is_resumed_after_everything_was_killed() {
    let world = World::new();
    world.loop_type("once", "completion: fixed-n\nmax: 1");
    let script = format!("[ -e hidden ] && exit 0; {HIDDEN}; sleep 60");
    let agent = world.agent(&script);
    world.run(&["loop", "run", "once", "--agent", &agent, "--detach"]).succeeds();
    let hidden = eventually(|| world.lines("hidden").pop());
    let run_id = world.env.sql("SELECT run_id FROM runs").remove(0).remove(0);
    let attempt = world.env.home().join("runs").join(run_id).join("1-1-1");
    let read = |name: &str| std::fs::read_to_string(attempt.join(name)).unwrap_or_default();
    eventually(|| read("escaped.json").contains(hidden.trim()).then_some(()));
    let supervisor = serde_json::from_str::<Value>(&read("pid")).unwrap()["identity"]["pid"].as_i64().unwrap();
    for pid in [world.engine("loop", "once"), Pid::from_raw(i32::try_from(supervisor).unwrap()).unwrap()] {
        kill_process(pid, Signal::KILL).unwrap();
        // On a busy machine it holds its locks for a while.
        eventually(|| (!is_alive(&pid.as_raw_nonzero().to_string())).then_some(()));
    }
    assert!(is_alive(&hidden));
    // The agent itself is found by its session, and would be waited for.
    let agents = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        let of_session = stat.rsplit_once(") ")?.1.split(' ').nth(3)? == supervisor.to_string();
        entry.file_name().to_str()?.parse::<i32>().ok().filter(|_| of_session)
    });
    for pid in agents.collect::<Vec<_>>() {
        let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
    }
    world.run(&["loop", "resume", "once"]).succeeds();
    assert!(!is_alive(&hidden));
}
