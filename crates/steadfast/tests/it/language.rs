//! The language of pipelines as users see it: `validate`, `graph`, `--dry-run`, and runs of what was planned.

use serde_json::json;

use crate::env::Output;
use crate::runs::World;

impl Output {
    fn stdout_has(&self, words: &str) -> &Self {
        assert!(self.stdout.contains(words), "{words}\n{}", self.stdout);
        self
    }

    fn stderr_has(&self, words: &str) -> &Self {
        assert!(self.stderr.contains(words), "{words}\n{}", self.stderr);
        self
    }

    fn is_refused(&self) -> &Self {
        assert_eq!(self.code, 1, "{}{}", self.stdout, self.stderr);
        self
    }
}

fn pipeline(world: &World, yaml: &str) {
    world.write(&world.claude("pipelines/p.yaml"), yaml);
}

/// A loop type of the project.
fn loop_type(world: &World, name: &str, yaml: &str) {
    world.write(&world.claude(&format!("loops/{name}/loop.yaml")), yaml);
    world.write(&world.claude(&format!("loops/{name}/prompt.md")), "Do it.");
}

const DIAMOND: &str = "name: diamond
stages:
  - {name: build, prompt: x, needs: []}
  - {name: lint, prompt: x, needs: build, runs: 3, parallel: true}
  - {name: test, prompt: x, needs: build, when: 'build.exit_code == 0'}
  - {name: ship, prompt: x, needs: [lint, test], approve: 'Ship \"it\" <b>now</b>?'}
";

#[test]
fn an_unknown_key_stops_a_run_before_it_starts() {
    let world = World::new();
    pipeline(&world, "stages:\n  - {name: a, prompt: x, aprove: true}\n");
    let output = world.run(&["pipeline", "run", "p", "r", "--agent", &world.agent("echo done"), "--json"]);
    output.is_refused().stderr_has("a stage has no key `aprove`").stderr_has("did you mean `approve`?");
    world.loop_type("mine", "efort: high\n");
    world.run(&["loop", "validate", "mine"]).is_refused().stdout_has("a loop type has no key `efort`");
}

#[test]
fn validate_without_a_name_checks_the_whole_project() {
    let world = World::new();
    let checked = world.run(&["pipeline", "validate", "--json"]).succeeds().json();
    assert_eq!(checked, json!({"valid": true, "definitions": []}));
    pipeline(&world, DIAMOND);
    loop_type(&world, "good", "runs: 2\n");
    let output = world.run(&["loop", "validate"]);
    output.succeeds().stdout_has(".claude/loops/good is valid").stdout_has(".claude/pipelines/p.yaml is valid");
    loop_type(&world, "bad", "runs: 2\ncompletion: platau\n");
    world.write(&world.claude("pipelines/uses.yml"), "stages:\n  - {name: a, loop: bad}\n");
    let checked = world.run(&["pipeline", "validate", "--json"]);
    let checked = checked.is_refused().json();
    let found: Vec<_> =
        checked["definitions"].as_array().unwrap().iter().map(|one| (&one["file"], &one["valid"])).collect();
    let expected = [
        (&json!(".claude/loops/bad"), &json!(false)),
        (&json!(".claude/loops/good"), &json!(true)),
        (&json!(".claude/pipelines/p.yaml"), &json!(true)),
        (&json!(".claude/pipelines/uses.yml"), &json!(false)),
    ];
    assert_eq!(found, expected);
    let text = world.run(&["pipeline", "validate"]);
    // The fault of the loop type is printed once, with its own line.
    assert_eq!(text.is_refused().stdout.matches("loop.yaml:2: error: there is no completion rule").count(), 1);
}

#[test]
fn validate_without_a_name_checks_the_folders_of_an_older_tool_too() {
    let world = World::new();
    let nothing = world.run(&["loop", "validate"]);
    nothing.succeeds().stdout_has("scripts/stages").stdout_has("scripts/pipelines");
    let stage = |name: &str, yaml: &str| {
        let folder = world.in_project("scripts/stages").join(name);
        world.write(&folder.join("stage.yaml"), &format!("name: {name}\n{yaml}\n"));
        world.write(&folder.join("prompt.md"), "Go.");
    };
    stage("good", "termination: {type: fixed, iterations: 2}");
    stage("bad", "termination: {type: judgement}");
    world.write(&world.in_project("scripts/pipelines/all.yaml"), "nodes:\n  - {id: a, stage: good}\n");
    for kind in ["loop", "pipeline"] {
        let checked = world.run(&[kind, "validate", "--json"]).is_refused().json();
        let found: Vec<_> =
            checked["definitions"].as_array().unwrap().iter().map(|one| (&one["file"], &one["valid"])).collect();
        let expected = [
            (&json!("scripts/stages/bad"), &json!(false)),
            (&json!("scripts/stages/good"), &json!(true)),
            (&json!("scripts/pipelines/all.yaml"), &json!(true)),
        ];
        assert_eq!(found, expected);
    }
}

#[test]
fn a_graph_shows_levels_needs_and_conditions() {
    let world = World::new();
    pipeline(&world, DIAMOND);
    let text = world.run(&["pipeline", "graph", "p"]).succeeds().stdout.clone();
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().take(3).collect()).collect();
    let expected = [
        ["LEVEL", "STAGE", "NEEDS"],
        ["1", "build", "-"],
        ["2", "lint", "build"],
        ["2", "test", "build"],
        ["3", "ship", "lint,"],
    ];
    assert_eq!(lines, expected, "{text}");
    assert!(text.contains("3 at once") && text.contains("when build.exit_code == 0"), "{text}");
    let mermaid = world.run(&["pipeline", "graph", ".claude/pipelines/p.yaml", "--mermaid"]).succeeds().stdout.clone();
    assert!(mermaid.starts_with("flowchart TD\n  s1[\"build\"]\n  s2[\"lint<br/>3 at once\"]\n"), "{mermaid}");
    assert!(mermaid.contains("approve: Ship #34;it#34; #60;b#62;now#60;/b#62;?"), "{mermaid}");
    assert!(mermaid.trim_end().ends_with("  s1 --> s2\n  s1 --> s3\n  s2 --> s4\n  s3 --> s4"), "{mermaid}");
    let json = world.run(&["pipeline", "graph", "p", "--json"]).succeeds().json();
    assert_eq!(json["stages"][3]["needs"], json!(["lint", "test"]));
    assert_eq!((&json["stages"][3]["level"], &json["stages"][1]["parallel"]), (&json!(3), &json!(3)));
    pipeline(&world, "stages:\n  - {name: a, prompt: x, needs: b}\n  - {name: b, prompt: x}\n");
    let cycle = "the stages wait for each other: a needs b needs a";
    world.run(&["pipeline", "graph", "p"]).is_refused().stderr_has(cycle);
}

#[test]
fn a_dry_run_shows_conditions_and_the_inputs_that_it_adds() {
    let world = World::new();
    pipeline(
        &world,
        "stages:\n  - {name: a, prompt: Plan it.}\n  - {name: b, prompt: Do it., inputs: [a], when: \"a.status != 'failed'\"}\n",
    );
    world.write(&world.in_project("notes.md"), "mind the gap");
    let output = world.run(&["pipeline", "run", "p", "r", "--dry-run", "--input", "notes.md"]);
    output.succeeds().stdout_has("mind the gap").stdout_has("when       a.status != \"failed\"");
    output.stdout_has("[output of stage a]").stderr_has("note: the prompt does not name its inputs");
    world.run(&["pipeline", "validate", "p"]).succeeds().stdout_has("p is valid").stdout_has("note: the prompt");
}

#[test]
fn items_of_the_command_line_run_once_each() {
    let world = World::new();
    loop_type(&world, "each", "delay: 0\n");
    world.write(&world.claude("loops/each/prompt.md"), "Do <${ITEM}>");
    let output = world.loop_run(&["each", "r"], "cat >> asked; echo >> asked", &["--items", "a,b,c"]);
    output.succeeds();
    assert_eq!(world.lines("asked"), ["Do <a>", "Do <b>", "Do <c>"]);
}

#[test]
fn a_name_with_quotes_is_shown_as_it_is() {
    let world = World::new();
    world.loop_type("mine", "runs: 1\n");
    let output = world.run(&["loop", "run", "mine", "x'y\"z"]);
    output.is_refused().stderr_has("the name `x'y\"z` contains `'`");
}
