//! What could not be written into the public files is written later: by the engine, or by the next command.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::attempts::eventually;
use crate::env::finish;
use crate::outages::with_mounts;
use crate::runs::World;

const STAGES: &str = "defaults: {delay: 0}\nstages:\n  - {name: one, prompt: go}\n  - {name: two, prompt: go}\n\
                      \x20 - {name: three, prompt: go}\n";
const OUTPUT: &str = "pipeline-runs/r/stage-2-two/output.md";

/// A pipeline whose second stage puts a directory where its output belongs.
fn blocked(more: &str) -> World {
    let world = World::new();
    world.write(&world.in_project("p.yaml"), STAGES);
    let agent = world.agent(&format!(
        "[ $STEADFAST_STAGE = two ] && mkdir -p .claude/{OUTPUT}/x
        {more}
        echo said $STEADFAST_STAGE"
    ));
    let output = world.run(&["pipeline", "run", "p.yaml", "r", "--agent", &agent]);
    output.succeeds();
    assert!(output.stderr.contains("cannot keep the output of stage 2"), "{output:?}");
    world
}

fn is_published(world: &World) -> bool {
    let state = world.json("pipeline-runs/r/state.json");
    let is_there = std::fs::read_to_string(world.claude(OUTPUT)).is_ok_and(|text| text == "said two\n");
    assert_eq!(is_there, state.get("unpublished").is_none(), "{state}");
    is_there
}

#[test]
fn an_output_that_could_not_be_written_is_written_by_the_next_command() {
    for command in [&["pipeline", "status", "r"][..], &["pipeline", "list"], &["pipeline", "cleanup"]] {
        let world = blocked("");
        assert!(!is_published(&world));
        let state = world.json("pipeline-runs/r/state.json");
        assert_eq!((&state["status"], &state["unpublished"]), (&json!("completed"), &json!(["stage-2-two/output.md"])));
        world.run(command).succeeds();
        assert!(!is_published(&world), "it is still blocked");
        std::fs::remove_dir_all(world.claude(OUTPUT)).unwrap();
        world.run(command).succeeds();
        assert!(is_published(&world), "{command:?}");
    }
}

#[test]
fn a_later_run_and_the_watcher_write_it_too() {
    let world = blocked("");
    std::fs::remove_dir_all(world.claude(OUTPUT)).unwrap();
    world.loop_type("turn", "completion: fixed-n");
    world.loop_run(&["turn", "other"], "true", &["--max", "1"]).succeeds();
    assert!(is_published(&world));

    let world = blocked("");
    std::fs::remove_dir_all(world.claude(OUTPUT)).unwrap();
    world.run(&["watch", "--once"]).succeeds();
    assert!(is_published(&world));
}

#[test]
fn it_is_written_although_the_same_name_was_started_again() {
    let aside = "pipeline-runs/r.previous-1";
    for command in
        [&["pipeline", "status", "r"][..], &["pipeline", "list"], &["pipeline", "cleanup"], &["watch", "--once"]]
    {
        let world = blocked("");
        let agent = world.agent("echo later $STEADFAST_STAGE");
        world.run(&["pipeline", "run", "p.yaml", "r", "--agent", &agent]).succeeds();
        let output = world.claude(&format!("{aside}/stage-2-two/output.md"));
        let owed = || world.json(&format!("{aside}/state.json")).get("unpublished").cloned();
        let first = "(SELECT run_id FROM runs ORDER BY started_at_ms LIMIT 1)";
        world.env.execute(&format!("UPDATE runs SET completed_at_ms = 1 WHERE run_id = {first}"));
        world.run(&["pipeline", "cleanup", "--older-than", "1"]).succeeds();
        world.run(command).succeeds();
        assert_eq!(owed(), Some(json!(["stage-2-two/output.md"])), "it is still blocked");
        std::fs::remove_dir_all(&output).unwrap();
        world.run(command).succeeds();
        assert_eq!(
            (owed(), std::fs::read_to_string(&output).ok().as_deref()),
            (None, Some("said two\n")),
            "{command:?}"
        );
        // The later run is as it was, and there is one end of each.
        assert_eq!(std::fs::read_to_string(world.claude(OUTPUT)).unwrap(), "later two\n");
        assert_eq!(world.json("loop-completions.json").as_array().unwrap().len(), 2);
        let ends = world.json(&format!("{aside}/state.json"));
        assert_eq!((&ends["session"], &ends["status"]), (&json!("r"), &json!("completed")));
    }
}

#[test]
fn the_engine_writes_it_at_its_next_step() {
    let world = blocked(&format!("[ $STEADFAST_STAGE = three ] && rm -r .claude/{OUTPUT}"));
    assert!(is_published(&world));
}

#[test]
fn cleanup_keeps_an_answer_that_is_still_owed() {
    let world = blocked("");
    world.env.execute("UPDATE runs SET completed_at_ms = 1");
    world.run(&["pipeline", "cleanup", "--older-than", "1"]).succeeds();
    std::fs::remove_dir_all(world.claude(OUTPUT)).unwrap();
    world.run(&["pipeline", "status", "r"]).succeeds();
    assert!(is_published(&world));
}

#[test]
fn a_kill_after_any_saved_step_loses_no_output() {
    let mut seen = [0, 0];
    for nth in 1..=40 {
        let world = World::new();
        world.write(&world.in_project("p.yaml"), STAGES);
        let agent = world.agent("echo said");
        let mut command = world.env.command(&["pipeline", "run", "p.yaml", "r", "--agent", &agent]);
        let output = finish(command.env("STEADFAST_CRASH_AT", format!("engine.saved:{nth}")), b"");
        if output.code == 0 {
            break;
        }
        let status = world.status("pipeline", "r");
        let is_over = status["status"] == json!("completed");
        for (stage, name) in ["1-one", "2-two", "3-three"].into_iter().enumerate() {
            if status["stages"][stage]["iterations_run"] == json!(1) {
                seen[usize::from(is_over)] += 1;
                let text = std::fs::read_to_string(world.claude(&format!("pipeline-runs/r/stage-{name}/output.md")));
                assert_eq!(text.ok().as_deref(), Some("said\n"), "{nth}, {name}: {status}");
            }
        }
        if is_over {
            assert_eq!(world.json("loop-completions.json")[0]["status"], json!("completed"));
        }
    }
    assert!(seen.into_iter().all(|outputs| outputs > 0), "of runs that can be resumed, and that are over: {seen:?}");
}

#[test]
fn the_last_end_wins_in_the_completions_file() {
    let world = World::new();
    world.loop_type("turn", "completion: fixed-n");
    world.write(&world.claude("loop-completions.json"), "[{\"session\": \"before\", \"mine\": 1}]");
    let script = "if [ -e fixed ]; then echo ok; else exit 1; fi";
    assert_ne!(world.loop_run(&["turn", "r"], script, &["--max", "1"]).code, 0);
    world.loop_run(&["turn", "later"], "true", &["--max", "1"]).succeeds();
    let ends = || {
        let ends = world.json("loop-completions.json");
        let of = |end: &Value| (end["session"].clone(), end["status"].clone());
        ends.as_array().unwrap().iter().map(of).collect::<Vec<_>>()
    };
    let (before, later) = ((json!("before"), json!(null)), (json!("later"), json!("completed")));
    assert_eq!(ends(), [before.clone(), (json!("r"), json!("failed")), later.clone()]);
    world.write(&world.in_project("fixed"), "");
    world.run(&["loop", "resume", "r"]).succeeds();
    assert_eq!(ends(), [before.clone(), (json!("r"), json!("completed")), later.clone()]);

    world.run(&["loop", "resume", "r", "--max", "2"]).succeeds();
    assert_eq!(ends(), [before, (json!("r"), json!("completed")), later]);
}

#[test]
fn the_end_of_a_resumed_run_replaces_that_by_kill_or_limit() {
    let world = World::new();
    world.loop_type("promise", "completion: {promise: DONE}");
    let script = "echo $$ >> tries; [ -e stays ] && while [ ! -e go ]; do sleep 0.02; done; [ -e go ] && echo '<promise>DONE</promise>'; true";
    let ends = || {
        let ends = world.json("loop-completions.json");
        let of = |end: &Value| (end["session"].clone(), end["status"].clone(), end["reason"].clone());
        ends.as_array().unwrap().iter().map(of).collect::<Vec<_>>()
    };
    let end = |status: &str, reason: &str| (json!("r"), json!(status), json!(reason));
    world.loop_run(&["promise", "r"], script, &["--max", "1"]);
    let by_limit = ends();
    assert_eq!(by_limit, [end("completed", "max_iterations")]);

    world.write(&world.in_project("stays"), "");
    let agent_runs = |count: usize| eventually(|| Some(()).filter(|()| world.lines("tries").len() == count));
    world.run(&["loop", "resume", "r", "--max", "9", "-d"]).succeeds();
    agent_runs(2);
    world.run(&["loop", "kill", "r"]).succeeds();
    assert_eq!(ends(), [end("killed", "killed")]);

    world.write(&world.in_project("go"), "");
    world.run(&["loop", "resume", "r"]).succeeds();
    assert_eq!(ends(), [end("completed", "promise")]);
}

/// The state of a long history is not written after every iteration, but soon after.
#[test]
fn a_long_history_is_shown_a_moment_later_and_completely_at_the_end() {
    let world = World::new();
    world.loop_type("many", "completion: fixed-n\nmax: 430");
    let script = "read line; [ \"$STEADFAST_ITERATION\" -ne 425 ] || until [ -f go ]; do sleep 0.05; done";
    let agent = world.agent(script);
    let mut engine = world.spawn(&["loop", "run", "many", "m", "--agent", &agent]);
    let shown = || world.claude("loop-state-m.json").exists().then(|| world.json("loop-state-m.json"));
    let history = |state: &Value| state["history"].as_array().map_or(0, Vec::len);
    eventually(|| shown().filter(|state| history(state) == 424));
    world.write(&world.in_project("go"), "");
    assert!(engine.wait().unwrap().success());
    let state = world.json("loop-state-m.json");
    assert_eq!((&state["status"], history(&state)), (&json!("completed"), 430));
}

/// What a run left whose project had no room from its first step to its end, and what `command` published once there was
/// room again. `None` where mounting is not allowed.
fn published_after_a_full_disk(world: &World, run: &str, commands: &str) -> Option<PathBuf> {
    let published = world.env.path("published");
    std::fs::create_dir_all(&published).unwrap();
    let script = format!(
        r#"mount -t tmpfs -o size=1m tmpfs "$PWD"; cd "$PWD"; mkdir .claude
         for size in 65536 512 1; do dd if=/dev/zero bs=$size 2>/dev/null >>ballast || true; done
         "$1" {run} --agent "$4" || code=$?
         [ ! -s .claude/loop-sessions.json ]; [ ! -e .claude/pipeline-runs/r/state.json ]
         rm ballast
         {commands}
         cp -a .claude "$3"; cd /; umount "$OLDPWD""#
    );
    let agent = world.agent("cat >/dev/null; echo said");
    let output = with_mounts(&world.env, &script, &[&published.display().to_string(), &agent])?;
    assert_eq!(output.code, 0, "{output:?}");
    Some(published.join(".claude"))
}

#[test]
fn a_run_on_a_full_disk_is_published_by_the_next_command() {
    for command in ["status r", "list", "cleanup"] {
        let world = World::new();
        world.write(&world.env.home().join("pipelines/ship.yaml"), STAGES);
        let commands = format!("\"$1\" pipeline {command}");
        let Some(claude) = published_after_a_full_disk(&world, "pipeline run ship r", &commands) else { return };
        let text = |file: &str| std::fs::read_to_string(claude.join(file)).unwrap_or_else(|error| error.to_string());
        let json =
            |file: &str| serde_json::from_str::<Value>(&text(file)).unwrap_or_else(|error| json!(error.to_string()));
        let state = json("pipeline-runs/r/state.json");
        assert_eq!((&state["status"], state.get("unpublished")), (&json!("completed"), None), "{command}: {state}");
        for stage in ["1-one", "2-two", "3-three"] {
            assert_eq!(text(&format!("pipeline-runs/r/stage-{stage}/output.md")), "said\n", "{command}");
        }
        assert_eq!(json("loop-sessions.json")["sessions"]["pipeline-r"]["status"], "completed");
        assert_eq!(json("loop-completions.json")[0]["session"], "r");
    }

    let world = World::new();
    world.loop_type("once", "completion: fixed-n\nmax: 1");
    // What the user then removes stays removed.
    let commands = r#""$1" watch --once; [ -e .claude/loop-state-r.json ]; rm .claude/loop-completions.json
        "$1" loop status r; [ ! -e .claude/loop-completions.json ]"#;
    let Some(claude) = published_after_a_full_disk(&world, "loop run once r", commands) else { return };
    let names: Vec<String> = std::fs::read_dir(&claude)
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name().into_string().unwrap())
        .filter(|name| name.starts_with(".steadfast-"))
        .collect();
    assert!(claude.join("loop-state-r.json").exists() && names.is_empty(), "{names:?}");
}
