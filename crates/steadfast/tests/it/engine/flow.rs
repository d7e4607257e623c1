//! Conditions, matrix, agents, environment, inputs, artifacts and lanes of stages.

use std::collections::BTreeMap;

use steadfast_model::run::{EnvVariable, StageStatus, condition};

use super::*;

const SECRET: &str = "s3cret-4711";

fn one(name: &str, script: &str) -> StagePlan {
    stage(name, script, 1, Rule::FixedN)
}

fn statuses(run: &Run) -> Vec<StageStatus> {
    run.stages.iter().map(|stage| stage.status).collect()
}

fn names(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn when(text: &str, stage: StagePlan) -> StagePlan {
    StagePlan { when: Some(condition::parse(text).unwrap()), ..stage }
}

#[test]
fn a_stage_runs_only_if_its_condition_holds() {
    use StageStatus::{Completed, Skipped};
    let world = World::new();
    let mut look = one("look", "touch here; echo 'RISK: 7'; echo '{\"decision\": \"continue\"}' > $STEADFAST_RESULT");
    look.output_parse = vec![("risk".into(), "RISK".into())];
    let ran = |name: &str| one(name, "echo $STEADFAST_STAGE >> ran");
    let stages = vec![
        look,
        when("look.fields.risk > 5 and exists(\"here\")", ran("a")),
        when("look.exit_code != 0 or exists(\"gone\")", ran("b")),
        when("b.status == \"skipped\" and look.iterations == 1", ran("c")),
        when("look.decision == \"stop\"", ran("d")),
    ];
    let run = world.drive(&plan(stages));
    assert_eq!(ended(&run), (RunStatus::Completed, "completed"));
    assert_eq!(statuses(&run), [Completed, Completed, Skipped, Completed, Skipped]);
    assert_eq!(world.lines("ran"), ["a", "c"]);
    assert_eq!(run.stages[4].reason.as_deref(), Some("condition: look.decision == \"stop\""));
}

#[test]
fn iterations_have_their_own_agents_and_cells_of_the_matrix() {
    let world = World::new();
    let cells = [("linux", "1"), ("mac", "2"), ("linux", "3")];
    let mut build = stage("build", "exit 1", 3, Rule::FixedN);
    build.prompt = "on ${MATRIX.os}, ${MATRIX.part-no}".into();
    build.matrix = cells.iter().map(|(os, part)| names(&[("os", os), ("part-no", part)])).collect();
    let say = "echo \"$(cat): $STEADFAST_MATRIX_OS $STEADFAST_MATRIX_PART_NO\"";
    build.agents = vec![shell(&format!("{say} first")), shell(&format!("{say} second"))];
    let run = world.drive(&plan(vec![build]));
    assert_eq!(ended(&run), (RunStatus::Completed, "fixed-n"));
    let expected = ["on linux, 1: linux 1 first", "on mac, 2: mac 2 second", "on linux, 3: linux 3 first"];
    assert_eq!(world.summaries(), expected);
}

/// Says that it works, and waits until another one does; gives up after a minute.
fn meets(world: &World, own: &str, other: &str) -> String {
    let room = world.path("room");
    std::fs::create_dir_all(&room).unwrap();
    let room = room.display();
    format!(
        "touch {room}/{own}; n=0; until [ -e {room}/{other} ]; do n=$((n + 1)); [ $n -lt 1200 ] || exit 1; sleep 0.05; done
         echo {own}"
    )
}

/// Drives stages whose agents fail if they do not work at the same time.
fn drive_together(world: &World, stages: Vec<StagePlan>) -> Run {
    let mut plan = plan(stages);
    plan.limits.errors = 1;
    world.drive(&plan)
}

#[test]
fn stages_that_need_the_same_run_at_the_same_time() {
    let world = World::new();
    let after_first =
        |name: &str, other: &str| StagePlan { needs: Some(vec![1]), ..one(name, &meets(&world, name, other)) };
    let stages = vec![one("first", "true"), after_first("a", "b"), after_first("b", "a")];
    assert_eq!(ended(&drive_together(&world, stages)), (RunStatus::Completed, "completed"));
    // Without a need, at the start.
    let world = World::new();
    let free = |name: &str, other: &str| StagePlan { needs: Some(vec![]), ..one(name, &meets(&world, name, other)) };
    let run = drive_together(&world, vec![free("c", "e"), free("d", "c"), free("e", "d")]);
    assert_eq!(ended(&run), (RunStatus::Completed, "completed"));
}

#[test]
fn several_agents_of_a_parallel_stage_work_at_the_same_time() {
    let world = World::new();
    world.repository();
    let mut build = stage("build", "exit 1", 3, Rule::FixedN);
    build.agents = [("x", "y"), ("y", "z"), ("z", "x")].map(|(own, other)| shell(&meets(&world, own, other))).into();
    build.parallel = true;
    let run = drive_together(&world, vec![build]);
    assert_eq!(ended(&run), (RunStatus::Completed, "fixed-n"));
    let mut said = world.summaries();
    said.sort_unstable();
    assert_eq!(said, ["x", "y", "z"]);
}

#[test]
fn stages_beside_a_parallel_one_share_its_time() {
    let world = World::new();
    world.repository();
    let mut build = stage("build", "exit 1", 2, Rule::FixedN);
    build.agents = [("x", "beside"), ("y", "x")].map(|(own, other)| shell(&meets(&world, own, other))).into();
    (build.parallel, build.needs) = (true, Some(vec![]));
    let beside = StagePlan { needs: Some(vec![]), ..one("beside", &meets(&world, "beside", "y")) };
    assert_eq!(ended(&drive_together(&world, vec![build, beside])), (RunStatus::Completed, "completed"));
}

/// All files below a directory that contain a text.
fn containing(directory: &Path, text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        if entry.path().is_dir() {
            found.extend(containing(&entry.path(), text));
        } else {
            let content = std::fs::read(entry.path()).unwrap_or_default();
            if content.windows(text.len()).any(|part| part == text.as_bytes()) {
                found.push(entry.path());
            }
        }
    }
    found
}

#[test]
fn a_stage_gets_the_variables_it_names_and_their_values_are_stored_nowhere() {
    let world = World::new();
    let look = "echo \"${#TOKEN} ${OTHER:-none} ${STEADFAST_TEST_ROOT:+set} $STEADFAST_STAGE\" >> seen";
    let mut deploy = stage("deploy", look, 1, Rule::Verify(vec![format!("{look}; test ${{#TOKEN}} = 11")]));
    deploy.env = vec![EnvVariable { name: "TOKEN".into(), from: "FLOW_TOKEN".into() }];
    world.create(&plan(vec![deploy, one("after", "echo ${OTHER:-none} >> seen")]));
    let mut command = world.engine_command("");
    command.env("FLOW_TOKEN", SECRET).env("OTHER", "passed");
    assert!(command.status().unwrap().success());
    assert_eq!(ended(&world.state()), (RunStatus::Completed, "completed"));
    assert_eq!(world.lines("seen"), ["11 none set deploy", "11 none set ", "passed"]);
    assert_eq!(containing(world.root.path(), SECRET), Vec::<PathBuf>::new());
}

#[test]
fn an_attempt_without_its_variables_cannot_start() {
    let world = World::new();
    let mut deploy = one("deploy", "touch ran");
    deploy.env = vec![EnvVariable { name: "TOKEN".into(), from: "FLOW_NO_TOKEN".into() }];
    let run = world.drive(&plan(vec![deploy]));
    let expected = "cannot_start: not set in the environment of the engine: FLOW_NO_TOKEN (set it, then `resume` from \
                    that shell)";
    assert_eq!(ended(&run), (RunStatus::Failed, expected));
    assert!(!world.in_project("ran").exists());
}

#[test]
fn inputs_are_the_outputs_of_the_stages_that_are_needed() {
    let world = World::new();
    let says = |name: &str| one(name, "echo from $STEADFAST_STAGE");
    let mut sum = one("sum", "cat > asked");
    sum.needs = Some(vec![1, 3]);
    sum.prompt = "${INPUTS}\nand ${INPUTS.b}\n".into();
    let mut late = one("late", "cat > asked-late");
    (late.prompt, late.inputs) = ("Go.".into(), vec!["b".into()]);
    let run = world.drive(&plan(vec![says("a"), says("b"), says("c"), sum, late]));
    assert_eq!(ended(&run), (RunStatus::Completed, "completed"));
    let asked = world.lines("asked").join("\n");
    assert_eq!(asked, "## a\n\nfrom a\n\n## c\n\nfrom c\nand from b");
    assert_eq!(world.lines("asked-late").join("\n"), "Go.\n\nInputs:\n\nfrom b");
}

#[test]
fn artifacts_are_kept_by_name_before_an_iteration_is_committed() {
    let world = World::new();
    world.repository();
    let mut build = stage("build", "mkdir out; echo built $STEADFAST_ITERATION > out/r", 2, Rule::FixedN);
    (build.parallel, build.artifacts) = (true, names(&[("report", "out/r")]));
    let mut sum = one("sum", "cat $(cat) > all; echo x > note.txt");
    (sum.prompt, sum.artifacts) = ("${ARTIFACTS.report}".into(), names(&[("note", "note.txt")]));
    let mut last = one("last", "cat > asked");
    last.prompt = "${ARTIFACTS.note}\n".into();
    let run = world.drive(&plan(vec![build, sum, last]));
    assert_eq!(ended(&run), (RunStatus::Completed, "completed"));
    assert_eq!(world.lines("all"), ["built 1", "built 2"]);
    let kept = world.in_project(".claude/pipeline-runs/test/artifacts/note").canonicalize().unwrap();
    assert_eq!(world.lines("asked"), [kept.display().to_string()]);
}

#[test]
fn an_attempt_without_its_artifact_has_failed() {
    let world = World::new();
    let script = "echo x >> tries; [ $(wc -l < tries) -lt 2 ] || echo done > report.md";
    let mut work = one("work", script);
    work.artifacts = names(&[("report", "report.md")]);
    let run = world.drive(&plan(vec![work]));
    assert_eq!((ended(&run), world.lines("tries").len()), ((RunStatus::Completed, "fixed-n"), 2));
    let kept = world.in_project(".claude/loop-progress/artifacts-test/report");
    assert_eq!(std::fs::read_to_string(kept).unwrap(), "done\n");

    let world = World::new();
    let mut work = one("work", "ln -sf ../home/goals.db report.md");
    work.artifacts = names(&[("report", "report.md")]);
    let mut plan = plan(vec![work]);
    plan.limits.errors = 1;
    let why = "errors: the artifact `report` is missing: `report.md` is outside of the directory where the agent works";
    assert_eq!(ended(&world.drive(&plan)), (RunStatus::Failed, why));
}

#[test]
fn lanes_are_worktrees_that_their_stages_share() {
    let world = World::new();
    let lane = |name: &str, stage: &str, needs: &[u32], script: &str| StagePlan {
        lane: Some(name.into()),
        needs: Some(needs.to_vec()),
        ..one(stage, script)
    };
    world.create_apart(&plan(vec![
        one("first", "echo first > f"),
        lane("x", "x1", &[1], "cat f; echo x1 > x"),
        lane("y", "y1", &[1], "cat f; echo y1 > y"),
        lane("x", "x2", &[2], "test ! -e y; echo x2 >> x"),
    ]));
    let (run, notes) = world.noted();
    assert_eq!((ended(&run), notes), ((RunStatus::Completed, "completed"), vec![]));
    assert_eq!(world.git(&["show", "steadfast/test/lane-x:x"]), "x1\nx2\n");
    assert_eq!(world.git(&["show", "steadfast/test/lane-y:y"]), "y1\n");
    assert_eq!(world.git(&["show", "steadfast/test/lane-y:f"]), "first\n");
    assert!(!world.in_project("x").exists() && !world.in_project("f").exists());
}
