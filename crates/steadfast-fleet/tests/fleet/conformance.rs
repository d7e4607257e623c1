//! The same plan and the same scripted agents give the same records and the same files on one machine and on the fleet.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::world::{World, git};

/// Runs the same command here, in a clone of the project, and returns its status and the clone.
fn locally(world: &World, arguments: &[&str], name: &str) -> (Value, std::path::PathBuf) {
    let clone = world.dir.path().join(format!("local-{name}"));
    git(world.dir.path(), &["clone", "--quiet", &world.project().display().to_string(), &clone.display().to_string()]);
    git(&clone, &["config", "user.name", "Worker"]);
    git(&clone, &["config", "user.email", "worker@example.com"]);
    let mut command = world.command(&[arguments, &["--json"]].concat());
    let output = command.current_dir(&clone).output().unwrap();
    let status = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("{error}: {}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    });
    (status, clone)
}

/// What must be equal: everything but times, places and processes.
fn essence(status: &Value) -> Value {
    let keep = |object: &Value, names: &[&str]| -> Value {
        names.iter().map(|name| ((*name).to_owned(), object[*name].clone())).collect::<serde_json::Map<_, _>>().into()
    };
    let iteration = |row: &Value| {
        keep(
            row,
            &[
                "stage",
                "stage_name",
                "iteration",
                "plateau",
                "reasoning",
                "summary",
                "decision",
                "attempts",
                "tokens",
                "cost_usd",
                "checks",
                "fields",
                "files_touched",
                "items_completed",
                "errors",
                "branches",
            ],
        )
    };
    let stage = |row: &Value| {
        keep(
            row,
            &[
                "stage",
                "name",
                "loop",
                "runs",
                "parallel",
                "status",
                "iterations_run",
                "reason",
                "needs",
                "approve",
                "answer",
                "note",
            ],
        )
    };
    let list =
        |rows: &Value, each: &dyn Fn(&Value) -> Value| rows.as_array().unwrap().iter().map(each).collect::<Value>();
    let mut history: Vec<Value> = list(&status["history"], &iteration).as_array().unwrap().clone();
    // Iterations that run at the same time end in any order.
    history.sort_by_key(|row| (row["stage"].as_u64(), row["iteration"].as_u64()));
    let essence = json!({
        "run": keep(status, &["name", "kind", "status", "iteration", "max_iterations", "reason", "tokens", "cost_usd", "type", "stage", "ended_by"]),
        "stages": list(&status["stages"], &stage), "history": history,
    });
    // A branch cannot be below another one in a repository, so parallel work has a place of its own there.
    serde_json::from_str(&essence.to_string().replace("steadfast-parallel/", "steadfast/")).unwrap()
}

fn tree(directory: &Path, revision: &str) -> String {
    git(directory, &["ls-tree", "-r", "--name-only", revision])
}

#[test]
fn a_loop_with_a_failed_attempt_gives_the_same_records_and_files() {
    let Some(world) = World::new() else { return };
    world.add_loop("conform", "completion: fixed-n\ndelay: 0", "Iteration ${ITERATION} of ${SESSION_NAME}");
    let marks = world.dir.path().join("marks");
    std::fs::create_dir(&marks).unwrap();
    // Its second iteration fails once in each place.
    let agent = world.agent(
        "flaky",
        &format!(
            "prompt=$(cat)\nmark={}/$STEADFAST_RUN-$PLACE\nif [ \"$STEADFAST_ITERATION\" = 2 ] && [ ! -e \"$mark\" ]; then\n  \
             : >\"$mark\"; echo broken >&2; exit 3\nfi\necho \"$prompt\" >>log.txt\n\
             printf '{{\"summary\":\"did %s\",\"decision\":\"continue\",\"usage\":{{\"input_tokens\":7,\"output_tokens\":3,\"cost_usd\":0.5}}}}' \
             \"$STEADFAST_ITERATION\" >\"$STEADFAST_RESULT\"\necho \"answer $STEADFAST_ITERATION\"",
            marks.display()
        )
        .replace("$PLACE", "$(case $PWD in *local-*) echo here;; *) echo fleet;; esac)"),
    );
    let (here, clone) = locally(&world, &["loop", "run", "conform", "same", "--agent", &agent, "--max", "3"], "loop");
    let _worker = world.driver("w1", "2");
    let output = world.run(&["loop", "run", "conform", "same", "--agent", &agent, "--max", "3", "--fleet", "--json"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let fleet: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(essence(&here), essence(&fleet));
    assert_eq!(fleet["history"][1]["attempts"], json!(2), "the failed attempt counts: {fleet}");
    assert!(said.contains("failed (") && said.contains("iteration 3/3 done"), "{said}");
    let log = world.file_of("steadfast/same", "log.txt");
    assert_eq!(log, std::fs::read_to_string(clone.join("log.txt")).unwrap().trim());
    assert_eq!(world.commits_of("same").len(), 3, "one commit for each iteration");
    // The words are the same too, but for what the user types.
    let page = world.ok(&["fleet", "status", "same"]);
    assert!(page.starts_with("loop same (conform): completed (fixed-n)\niteration 3/3 · "), "{page}");
    let attempts = git(&world.repo(), &["for-each-ref", "refs/heads/steadfast-attempts/same"]);
    assert_eq!(attempts, "", "attempt branches are cleaned up");
}

#[test]
fn a_pipeline_with_parallel_stages_and_a_merge_gives_the_same_records_and_files() {
    let Some(world) = World::new() else { return };
    world.add_pipeline(
        "ship",
        "name: ship
defaults: {delay: 0}
stages:
  - {name: plan, prompt: 'plan it', runs: 1}
  - {name: build, prompt: 'build ${INPUTS}', runs: 2, parallel: true}
  - {name: join, merge: build, prompt: 'resolve'}
  - {name: polish, prompt: 'polish ${INPUTS}', runs: 3, command: 'test -e polished'}
  - {name: never, prompt: 'no', when: 'exists(\"no-such-file\")'}
",
    );
    let agent = world.agent(
        "builder",
        "prompt=$(cat)\ncase $STEADFAST_STAGE in\n  plan) echo plan >plan.txt;;\n  build) echo part >part-$STEADFAST_ITERATION.txt;;\n  \
         polish) [ \"$STEADFAST_ITERATION\" = 1 ] || : >polished; echo \"$STEADFAST_ITERATION\" >>polish.txt;;\nesac\n\
         printf '{\"summary\":\"%s %s\"}' \"$STEADFAST_STAGE\" \"$STEADFAST_ITERATION\" >\"$STEADFAST_RESULT\"\n\
         echo \"output of $STEADFAST_STAGE $STEADFAST_ITERATION\"",
    );
    let arguments = ["pipeline", "run", "ship", "same", "--agent", &agent];
    let (here, clone) = locally(&world, &arguments, "pipeline");
    let _worker = world.driver("w1", "3");
    let output = world.run(&[&arguments[..], &["--fleet", "--json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let fleet: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(essence(&here), essence(&fleet));
    let names = tree(&world.repo(), "steadfast/same");
    for name in ["plan.txt", "part-1.txt", "part-2.txt", "polish.txt", "polished"] {
        assert!(names.lines().any(|found| found == name), "{name} is missing on the fleet: {names}");
        assert!(clone.join(name).exists(), "{name} is missing here");
    }
    assert_eq!(world.file_of("steadfast/same", "polish.txt"), "1\n2");
}

#[test]
fn a_headless_goal_runs_on_the_fleet_until_its_commands_pass() {
    let Some(world) = World::new() else { return };
    let agent = world.agent(
        "goal",
        "prompt=$(cat)\ncase $prompt in *'Write the file'*) ;; *) echo 'no objective' >&2; exit 9;; esac\n\
         [ \"$STEADFAST_ITERATION\" = 1 ] || : >done.txt\n[ -n \"$STEADFAST_RUN\" ]",
    );
    let _worker = world.driver("w1", "1");
    let objective = "Write the file done.txt";
    let output = world.run(&["run", objective, "--verify", "test -e done.txt", "--agent", &agent, "--fleet", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let status: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&status["status"], &status["iteration"]), (&json!("completed"), &json!(2)), "{status}");
    let name = status["name"].as_str().unwrap();
    assert!(name.starts_with("run-"), "{name}");
    assert!(tree(&world.repo(), &format!("steadfast/{name}")).contains("done.txt"));
    let found = Command::new("git").arg("-C").arg(world.project()).args(["status", "--porcelain"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&found.stdout), "", "nothing changes here");
}
