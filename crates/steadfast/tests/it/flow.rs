//! What stages of a pipeline file do at run time, from end to end.

use serde_json::{Value, json};

use crate::env::finish;
use crate::runs::World;

fn pipeline(world: &World, stages: &str) {
    world.write(&world.in_project("p.yaml"), &format!("name: p\ndefaults: {{delay: 0}}\nstages:\n{stages}"));
}

fn stages(status: &Value) -> Vec<(&str, &str)> {
    let stages = status["stages"].as_array().unwrap();
    stages.iter().map(|stage| (stage["name"].as_str().unwrap(), stage["status"].as_str().unwrap())).collect()
}

#[test]
fn branches_are_built_judged_and_merged() {
    let world = World::new();
    world.repository();
    world.write(&world.in_project(".gitignore"), "out\n");
    world.git(&["add", ".gitignore"]);
    world.git(&["commit", "-q", "-m", "ignore"]);
    pipeline(
        &world,
        r#"  - {name: build, parallel: true, matrix: {part: [a, b, c]}, artifacts: {notes: out/notes}, prompt: 'part ${MATRIX.part}'}
  - {name: judge, prompt: '${INPUTS}'}
  - {name: merge, merge: {from: build, chosen_by: judge}}
  - {name: rework, when: judge.decision == "stop", prompt: 'again'}
  - {name: report, needs: [merge], prompt: '${ARTIFACTS.notes}'}
"#,
    );
    let agent = world.agent(
        r#"case $STEADFAST_STAGE in
        build) mkdir out; echo "$(cat)" > out/notes; echo "$STEADFAST_MATRIX_PART" > "file-$STEADFAST_MATRIX_PART"; echo ok ;;
        judge) cat > asked; echo '{"summary": "a and c", "branches": [1, "steadfast/r/1-3"]}' > "$STEADFAST_RESULT" ;;
        report) cat $(cat) ;;
        *) exit 3 ;;
        esac"#,
    );
    let output = world.run(&["pipeline", "run", "p.yaml", "r", "--agent", &agent, "--json"]);
    let status = output.succeeds().json();
    assert_eq!((&status["status"], &status["reason"]), (&json!("completed"), &json!("completed")));
    let expected = ["completed", "completed", "completed", "skipped", "completed"];
    assert_eq!(stages(&status).iter().map(|(_, status)| *status).collect::<Vec<_>>(), expected);
    let files: Vec<bool> = ["a", "b", "c"].map(|part| world.in_project(&format!("file-{part}")).exists()).to_vec();
    assert_eq!(files, [true, false, true]);
    let merges = world.git(&["log", "--merges", "--format=%s", "--reverse"]);
    assert_eq!(merges, "Merge branch 'steadfast/r/1-1'\nMerge branch 'steadfast/r/1-3'\n");
    let asked = std::fs::read_to_string(world.in_project("asked")).unwrap();
    assert!(asked.contains("## build 2 (branch steadfast/r/1-2)\n"), "{asked}");
    let read = |path: &str| std::fs::read_to_string(world.claude("pipeline-runs/r").join(path)).unwrap();
    assert_eq!(read("artifacts/notes-2"), "part b\n");
    assert_eq!(read("stage-5-report/output.md").trim(), "part a\npart b\npart c");
    assert_eq!(read("stage-3-merge/output.md").trim(), "merged 2 branches: steadfast/r/1-1, steadfast/r/1-3");
}

#[test]
fn secrets_reach_only_the_stage_that_names_them_and_no_file() {
    let world = World::new();
    pipeline(
        &world,
        "  - {name: deploy, env: [FLOW_TOKEN], prompt: 'go', verify: 'test ${#FLOW_TOKEN} = 14 && test -z \"$OTHER\"'}\n",
    );
    let agent = world.agent("echo \"${#FLOW_TOKEN} ${OTHER:-none}\" > seen");
    let arguments = ["pipeline", "run", "p.yaml", "r", "--agent", &agent];
    let refused = world.run(&arguments);
    assert_eq!(refused.code, 1, "{refused:?}");
    let all = format!("{}{}", refused.stdout, refused.stderr);
    assert!(all.contains("not set in the environment of the engine: FLOW_TOKEN"), "{all}");
    let mut command = world.env.command(&["pipeline", "resume", "r"]);
    let output = finish(command.env("FLOW_TOKEN", "s3cret-4711-xy").env("OTHER", "private"), b"");
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(world.lines("seen"), ["14 none"]);
    let mut grep = std::process::Command::new("grep");
    let found = finish(grep.args(["-rlaF", "s3cret-4711-xy"]).arg(world.env.home()).arg(world.env.project()), b"");
    assert_eq!((found.code, found.stdout.as_str()), (1, ""));
}
