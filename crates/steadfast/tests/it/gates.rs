//! Gates of pipelines: what stops a pipeline, what lets it go on, and what `stop` in a result means.

use serde_json::{Value, json};

use crate::runs::World;

/// Notes which stage ran, and answers.
const NOTING: &str =
    "cat > /dev/null; echo $STEADFAST_STAGE >> ran; echo \"did $STEADFAST_STAGE $STEADFAST_ITERATION\"";

struct Ended {
    code: i32,
    status: Value,
    stderr: String,
    ran: Vec<String>,
}

fn run(stages: &str, script: &str) -> Ended {
    let world = World::new();
    world.write(&world.in_project("p.yaml"), &format!("name: p\ndefaults: {{delay: 0}}\nstages:\n{stages}"));
    world.write(&world.in_project("PLAN.md"), "- [ ] one thing\n");
    let agent = world.agent(script);
    let output = world.run(&["pipeline", "run", "./p.yaml", "g", "--trust", "--agent", &agent, "--json"]);
    let ran = std::fs::read_to_string(world.in_project("ran")).unwrap_or_default();
    let status = world.status("pipeline", "g");
    let ran = ran.lines().map(str::to_owned).collect();
    Ended { code: output.code, status, stderr: output.stderr, ran }
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
            assert!(ended.stderr.contains("fix"), "it says which stage did not hold: {}", ended.stderr);
        }
    }
}

#[test]
fn a_gate_that_holds_lets_the_next_stage_run() {
    let stages = "  - {name: fix, prompt: fix it, runs: 3, verify: 'test $(wc -l < ran) -ge 2'}\n  - {name: deploy, prompt: x}\n";
    let ended = run(stages, NOTING);
    assert_eq!((ended.code, ended.ran.join(" ").as_str()), (0, "fix fix deploy"));
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
    let script = format!("{NOTING}; echo '{{\"summary\": \"x\", \"decision\": \"stop\"}}' > $STEADFAST_RESULT");
    for rule in ["fixed-n", "all-items", "plateau", "{promise: DONE}"] {
        let stages = format!(
            "  - {{name: fix, prompt: fix, runs: 6, items: [a, b, c], completion: {rule}}}\n  - {{name: deploy, prompt: x}}\n"
        );
        let ended = run(&stages, &script);
        assert_eq!((ended.code, ended.ran.join(" ").as_str()), (0, "fix deploy"), "{rule}");
        assert_eq!(ended.status["stages"][0]["reason"], json!("stopped"), "{rule}");
    }
    // An agent does not get past a gate by saying stop.
    let stages = "  - {name: fix, prompt: fix, runs: 6, verify: 'false'}\n  - {name: deploy, prompt: x}\n";
    let ended = run(stages, &script);
    assert_eq!((ended.code, ended.ran.join(" ").as_str()), (5, "fix"));
    assert_eq!(ended.status["reason"], json!("stopped"));
}
