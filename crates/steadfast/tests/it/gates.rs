//! Gates of pipelines: what stops a pipeline, what lets it go on, and what `stop` in a result means.

use serde_json::{Value, json};

use crate::env::finish;
use crate::runs::World;

/// Notes which stage ran, and answers.
const NOTING: &str =
    "cat > /dev/null; echo $STEADFAST_STAGE >> ran; echo \"did $STEADFAST_STAGE $STEADFAST_ITERATION\"";

/// Says that nothing is left to do.
const STOP: &str = "echo '{\"summary\": \"x\", \"decision\": \"stop\"}' > $STEADFAST_RESULT";

struct Ended {
    code: i32,
    status: Value,
    stderr: String,
    ran: Vec<String>,
    /// The entry in the list of ended runs.
    completion: Value,
}

fn run(stages: &str, script: &str) -> Ended {
    let world = World::new();
    world.write(&world.in_project("p.yaml"), &format!("name: p\ndefaults: {{delay: 0}}\nstages:\n{stages}"));
    for list in ["PLAN.md", "DONE.md"] {
        world.write(&world.in_project(list), "- [ ] one thing\n");
    }
    let agent = world.agent(script);
    // A `bd` with one bead that stays open.
    world.write(&world.env.path("bin/bd"), "#!/bin/sh\necho '[{\"id\": 1}]'\n");
    world.make_executable(&world.env.path("bin/bd"));
    let path = format!("{}:{}", world.env.path("bin").display(), std::env::var("PATH").unwrap());
    let mut command = world.env.command(&["pipeline", "run", "./p.yaml", "g", "--trust", "--agent", &agent, "--json"]);
    let output = finish(command.env("PATH", path), b"");
    let ran = std::fs::read_to_string(world.in_project("ran")).unwrap_or_default();
    let status = world.status("pipeline", "g");
    let ran = ran.lines().map(str::to_owned).collect();
    let completion = world.json("loop-completions.json")[0].clone();
    Ended { code: output.code, status, stderr: output.stderr, ran, completion }
}

#[test]
fn a_failing_gate_stops_the_pipeline_with_exit_5() {
    for gate in ["verify: 'false'", "completion: {command: 'false'}", "completion: {checklist: PLAN.md}"] {
        for runs in [1, 3] {
            let stages = format!(
                "  - {{name: fix, prompt: fix it, runs: {runs}, {gate}}}\n  - {{name: deploy, prompt: ship it}}\n"
            );
            let ended = run(&stages, NOTING);
            assert_eq!(ended.code, 5, "{gate} {runs}: {}", ended.status);
            let of_run = (&ended.status["status"], &ended.status["reason"]);
            assert_eq!(of_run, (&json!("completed"), &json!("max_iterations")), "{gate}");
            assert_eq!(ended.status["stages"][0]["reason"], json!("max_iterations"));
            assert_eq!(ended.ran, vec!["fix"; runs], "{gate}: deploy must not run");
            let rule = ["verify", "command", "checklist"].into_iter().find(|rule| gate.contains(rule)).unwrap();
            let times = if runs == 1 { "1 iteration".to_owned() } else { format!("{runs} iterations") };
            let why = format!("max_iterations (stage fix did not hold: {rule} failed after {times})");
            assert!(ended.stderr.contains(&format!("pipeline g completed: {why}\n")), "{}", ended.stderr);
            assert_eq!(ended.completion["ended_by_stage"], json!("fix"), "{gate}");
        }
    }
}

#[test]
fn a_gate_that_holds_lets_the_next_stage_run() {
    let stages = "  - {name: fix, prompt: fix it, runs: 3, verify: 'test $(wc -l < ran) -ge 2'}\n  - {name: deploy, prompt: x}\n";
    let ended = run(stages, NOTING);
    assert_eq!((ended.code, ended.ran.join(" ").as_str()), (0, "fix fix deploy"));
    assert!(ended.completion.get("ended_by_stage").is_none() && !ended.stderr.contains("did not hold"));
}

#[test]
fn rules_that_are_no_gates_go_on_at_their_maximum() {
    for rule in ["plateau", "{promise: DONE}"] {
        let stages =
            format!("  - {{name: fix, prompt: fix, runs: 2, completion: {rule}}}\n  - {{name: deploy, prompt: x}}\n");
        let script = format!("{NOTING}; echo '{{\"summary\": \"x\", \"plateau\": false}}' > $STEADFAST_RESULT");
        let ended = run(&stages, &script);
        assert_eq!((ended.code, ended.ran.join(" ").as_str()), (0, "fix fix deploy"), "{rule}");
    }
}

#[test]
fn stop_in_a_result_ends_the_stage_under_every_rule() {
    let script = format!("{NOTING}; {STOP}");
    for rule in ["fixed-n", "all-items", "plateau", "{promise: DONE}"] {
        let stages = format!(
            "  - {{name: fix, prompt: fix, runs: 6, items: [a, b, c], completion: {rule}}}\n  - {{name: deploy, prompt: x}}\n"
        );
        let ended = run(&stages, &script);
        assert_eq!((ended.code, ended.ran.join(" ").as_str()), (0, "fix deploy"), "{rule}");
        assert_eq!(ended.status["stages"][0]["reason"], json!("stopped"), "{rule}");
    }
}

#[test]
fn stop_in_a_result_ends_a_gated_stage_and_does_not_open_the_gate() {
    let script = format!("{NOTING}; echo '- [x] one thing' > DONE.md; {STOP}");
    let gates = ["verify: '{}'", "completion: {command: '{}'}", "completion: {checklist: '{}'}"];
    for gate in gates {
        let stages = |argument: &str| {
            let gate = gate.replace("{}", argument);
            format!("  - {{name: fix, prompt: fix, runs: 6, {gate}}}\n  - {{name: deploy, prompt: x}}\n")
        };
        let is_list = gate.contains("checklist");
        let ended = run(&stages(if is_list { "PLAN.md" } else { "false" }), &script);
        assert_eq!((ended.code, ended.ran.join(" ").as_str()), (5, "fix"), "{gate}");
        assert_eq!(ended.status["reason"], json!("stopped"), "{gate}");
        assert_eq!(ended.completion["ended_by_stage"], json!("fix"), "{gate}");
        // A gate that holds counts as such.
        let ended = run(&stages(if is_list { "DONE.md" } else { "true" }), &script);
        assert_eq!((ended.code, ended.ran.join(" ").as_str()), (0, "fix deploy"), "{gate}");
        assert_ne!(ended.status["stages"][0]["reason"], json!("stopped"), "{gate}");
    }
}

#[test]
fn stop_in_a_result_ends_a_stage_with_beads_left() {
    let stages = "  - {name: fix, prompt: fix, runs: 6, completion: beads-empty}\n  - {name: deploy, prompt: x}\n";
    let ended = run(stages, &format!("{NOTING}; {STOP}"));
    assert_eq!((ended.code, ended.ran.join(" ").as_str()), (0, "fix deploy"));
    assert_eq!(ended.status["stages"][0]["reason"], json!("stopped"));
}
