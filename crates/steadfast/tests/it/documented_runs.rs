//! Everything that `docs/runs.md` shows: its definitions are validated and run with a scripted `claude`. The commands of
//! the tutorials are run by `scripts/docs_tests`.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::attempts::eventually;
use crate::env::finish;
use crate::runs::World;

/// Does what each stage of the page asks for, and reports its usage as Claude Code does.
const CLAUDE: &str = r#"#!/bin/sh
[ "$1" = --version ] && { echo '2.1.197 (Claude Code)'; exit; }
prompts=${0%/*}/prompts
mkdir -p "$prompts"
asked=$prompts/${STEADFAST_STAGE:-judge}-$STEADFAST_ITERATION
cat > "$asked"
said='did it'
case ${STEADFAST_STAGE:-judge} in
  judge) printf '{"summary": "the second", "branches": [2]}' > "$STEADFAST_RESULT" ;;
  gather) said='RISK: low' ;;
  try) echo "$STEADFAST_MATRIX_DB" > notes.md; git add notes.md; git commit -qm notes ;;
  level) said='PLATEAU: true' ;;
  plan) echo '- [x] one' > PLAN.md ;;
  done) said='<promise>DONE</promise>' ;;
  all) touch SURE ;;
  test) said='FAILURES: 2' ;;
  fix) said='fixed both' ;;
  write) echo "$STEADFAST_MATRIX_PART" | tee part.md > notes.md ;;
  merge) git checkout -q --theirs part.md notes.md; git add part.md notes.md; git commit -q --no-edit ;;
  review) echo 'a review' > review.md ;;
  refine) echo '{"decision": "stop", "reason": "nothing is left"}' > "$(sed -n '/, to:$/{n;p;q}' "$asked")" ;;
esac
grep -q 'Judge whether its work has levelled off' "$asked" && said='{\"plateau\": true, \"reasoning\": \"even\"}'
usage='"usage":{"input_tokens":7,"output_tokens":3}'
echo '{"type":"result","subtype":"success","is_error":false,"result":"'"$said"'","total_cost_usd":0.01,'"$usage}"
"#;

/// A block between code fences.
struct Block {
    language: String,
    text: String,
}

fn blocks() -> Vec<Block> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/runs.md");
    let page = std::fs::read_to_string(page).unwrap();
    let mut open: Option<Block> = None;
    let mut blocks = Vec::new();
    for line in page.lines() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(language), None) => {
                open = Some(Block { language: language.to_owned(), text: String::new() });
            }
            (None, Some(block)) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) => {}
        }
    }
    blocks
}

impl Block {
    /// The file that the first line names, and its content.
    fn file(&self) -> Option<(&str, &str)> {
        let (first, rest) = self.text.split_once('\n')?;
        let name = first.strip_prefix("# ").or_else(|| first.strip_prefix("<!-- ")?.strip_suffix(" -->"))?;
        name.starts_with(".claude/").then_some((name, rest))
    }
}

/// A project with what the page expects, and a scripted client on the PATH.
fn project() -> (World, PathBuf) {
    let world = World::new();
    let programs = world.env.path("programs");
    world.write(&programs.join("claude"), CLAUDE);
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_steadfast"), programs.join("steadfast")).unwrap();
    world.write(&world.in_project("TASK.md"), "Make it work.\n");
    world.write(&world.in_project("check.sh"), "#!/bin/sh\ntrue\n");
    world.make_executable(&programs.join("claude"));
    world.make_executable(&world.in_project("check.sh"));
    world.commit_all();
    (world, programs)
}

fn shell(world: &World, programs: &Path, script: &str) {
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let as_user = world.env.command(&[]);
    let mut shell = Command::new("sh");
    shell.args(["-e", "-c", script]).env_clear().current_dir(world.env.project());
    shell.envs(as_user.get_envs().filter_map(|(name, value)| Some((name, value?))));
    for name in ["AUTHOR", "COMMITTER"] {
        shell.env(format!("GIT_{name}_NAME"), "A").env(format!("GIT_{name}_EMAIL"), "a@example.org");
    }
    let output = finish(shell.env("PATH", path), b"");
    assert_eq!(output.code, 0, "{script}\n{output:?}");
}

/// The definitions of the reference, written to a project.
fn with_reference() -> (World, PathBuf, Vec<String>) {
    let (world, programs) = project();
    world.write(&programs.join("bd"), "#!/bin/sh\necho '[]'\n");
    world.make_executable(&programs.join("bd"));
    world.write(&world.in_project("PLAN.md"), "- [ ] one\n");
    let mut names = Vec::new();
    for block in &blocks() {
        if block.language == "yaml" {
            names.push(block.file().unwrap_or_else(|| panic!("no file name in {}", block.text)).0.to_owned());
        }
        if let Some((name, text)) = block.file() {
            world.write(&world.in_project(name), text);
        }
    }
    (world, programs, names)
}

#[test]
fn every_definition_of_the_reference_is_valid() {
    let (world, _, names) = with_reference();
    for name in &names {
        let output = match name.strip_prefix(".claude/loops/") {
            Some(folder) => world.run(&["loop", "validate", folder.split_once('/').unwrap().0]),
            None => world.run(&["pipeline", "validate", &format!("./{name}")]),
        };
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{name}: {output:?}");
    }
    assert!(names.len() >= 5, "the reference shows definitions: {names:?}");
}

/// Runs a pipeline of the reference, says yes where it asks, and returns its stages and all prompts.
fn run_reference(name: &str) -> (World, Vec<String>, String) {
    let (world, programs, _) = with_reference();
    shell(&world, &programs, &format!("steadfast trust --yes; steadfast pipeline run {name} r --detach"));
    let status = eventually(|| {
        let status = world.status("pipeline", "r");
        if status["approvals"].as_array().is_some_and(|asked| asked.iter().any(|it| it["waiting"] == true)) {
            world.run(&["pipeline", "approve", "r"]).succeeds();
        }
        (status["status"] != "running").then_some(status)
    });
    assert_eq!(status["status"], "completed", "{status:#}");
    let text = |stage: &Value, key: &str| stage[key].as_str().unwrap_or("-").to_owned();
    let stages = status["stages"].as_array().unwrap().iter();
    let stages = stages.map(|stage| format!("{} {}", text(stage, "name"), text(stage, "reason"))).collect();
    let prompts = std::fs::read_dir(programs.join("prompts")).unwrap().flatten();
    let prompts = prompts.map(|file| std::fs::read_to_string(file.path()).unwrap()).collect::<Vec<_>>().join("\n");
    assert!(!prompts.contains("${"), "every variable has a value: {prompts}");
    (world, stages, prompts)
}

#[test]
fn the_pipeline_with_every_key_runs() {
    let (world, stages, prompts) = run_reference("every-key");
    let expected =
        ["gather all-items", "polish plateau", "try fixed-n", "judge fixed-n", "merge merged", "check verify"];
    assert_eq!(stages, expected);
    assert_eq!(world.lines("notes.md"), ["sqlite"], "the branch that the judge chose");
    for part in ["Look at the docs as a maker.", "Make it work.", "Try pg.", "Improve PLAN.md."] {
        assert!(prompts.contains(part), "{part}: {prompts}");
    }
}

#[test]
fn the_pipeline_with_every_rule_runs() {
    let (_, stages, _) = run_reference("rules");
    let reasons = ["all-items", "plateau", "beads-empty", "command", "checklist", "promise", "command+verify"];
    let names = ["each", "level", "beads", "build", "plan", "done", "all"];
    assert_eq!(stages, names.iter().zip(reasons).map(|(name, reason)| format!("{name} {reason}")).collect::<Vec<_>>());
}

#[test]
fn the_pipeline_with_every_variable_runs() {
    let (world, stages, prompts) = run_reference("variables");
    assert_eq!(stages, ["write fixed-n", "review all-items", "merge merged"]);
    let root = world.in_project(".claude/pipeline-runs/r").display().to_string();
    for part in [
        "Iteration 2 (index 1) of r (r): write part b to part.md and\nnotes to notes.md. Keep it small.",
        "Review the style (style) as a reader:\n## write 1 (branch steadfast/r/1-1)",
        "Test with `./check.sh`.",
        "Write the review to review.md (else",
        "Merge steadfast/r/1-2. In conflict: notes.md\npart.md",
        &format!("Notes: {root}/artifacts/notes-1\n{root}/artifacts/notes-2"),
        &format!("Earlier notes: {root}/stage-2-review/progress.md ({root}/stage-2-review/progress.md)"),
    ] {
        assert!(prompts.contains(part), "{part}: {prompts}");
    }
    assert_eq!(world.lines("part.md"), ["b"]);
}

#[test]
fn the_pipeline_with_conditions_runs() {
    let (_, stages, prompts) = run_reference("conditions");
    assert_eq!(stages, ["test fixed-n", "fix fixed-n", "celebrate fixed-n"]);
    assert!(prompts.contains("Fix this: FAILURES: 2"), "{prompts}");
}

#[test]
fn a_pipeline_of_another_tool_runs() {
    let (_, stages, prompts) = run_reference("moved");
    assert_eq!(stages, ["refine plateau"]);
    assert!(prompts.contains("Improve the plan. Keep the API."), "{prompts}");
}

#[test]
fn every_pipeline_of_the_reference_is_run() {
    let (_, _, names) = with_reference();
    let pipelines = names.iter().filter_map(|name| name.strip_prefix(".claude/pipelines/")?.strip_suffix(".yaml"));
    assert_eq!(pipelines.collect::<Vec<_>>(), ["every-key", "rules", "conditions", "variables", "moved"]);
}

#[test]
fn the_result_file_of_the_page_is_read() {
    let block = blocks().into_iter().find(|block| block.language == "json").unwrap();
    let world = World::new();
    world.write(&world.in_project("shown.json"), &block.text);
    world.loop_type("once", "completion: plateau\nruns: 1");
    let output = world.loop_run(&["once", "r"], "cat > /dev/null; cat shown.json > $STEADFAST_RESULT", &["--json"]);
    let (status, shown): (Value, Value) = (output.json(), serde_json::from_str(&block.text).unwrap());
    let (done, kept) = (&status["history"][0], world.json("loop-state-r.json")["history"][0].clone());
    for (key, field) in
        [("summary", "summary"), ("reasoning", "reasoning"), ("decision", "decision"), ("plateau", "plateau")]
    {
        assert_eq!((&done[field], &kept[field]), (&shown[key], &shown[key]), "{key}");
    }
    for (key, field) in
        [("files", "files_touched"), ("items", "items_completed"), ("errors", "errors"), ("branches", "branches")]
    {
        assert_eq!(kept[field], shown[key], "{key}");
    }
    // What is read from the cache is not counted.
    assert_eq!((&kept["tokens"], &kept["cost_usd"]), (&json!(990), &json!(0.02)));
    let fields: Vec<&String> = shown.as_object().unwrap().keys().collect();
    assert_eq!(fields.len(), 9, "every field is tested: {fields:?}");
}
