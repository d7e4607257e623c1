//! What comes with the program: built-in loop types and pipelines, new ones to begin from, and how a plan is shown.

use super::*;
use crate::plan::dry_run::{dry_run, prompts};
use crate::plan::scaffold::{Readers, new_loop, new_pipeline};

#[test]
fn everything_built_in_is_valid() {
    let world = World::new();
    let loops: Vec<_> = world.catalogue.list(RunKind::Loop).unwrap().into_iter().map(|listed| listed.name).collect();
    assert_eq!(loops, ["work", "improve-plan", "refine-beads", "idea-wizard"]);
    for name in &loops {
        assert_eq!(validate_loop(&world.catalogue, name).unwrap(), [], "{name}");
        let planned = plan_loop(&world.catalogue, name, None, &Overrides::default()).unwrap();
        let prompt = &planned.plan.stages[0].prompt;
        assert!(prompt.contains("${PROGRESS}") && prompt.contains("${RESULT}"), "{name}");
    }
    let pipelines = world.catalogue.list(RunKind::Pipeline).unwrap();
    assert_eq!(pipelines.len(), 6);
    for listed in pipelines {
        assert_eq!(validate_pipeline(&world.catalogue, &listed.name).unwrap(), [], "{}", listed.name);
        assert!(listed.description.is_some(), "{}", listed.name);
    }
    let rules = loops.iter().map(|name| {
        let planned = plan_loop(&world.catalogue, name, Some("auth"), &Overrides::default()).unwrap();
        let stage = &planned.plan.stages[0];
        (stage.completion.clone(), stage.check_before, stage.min_iterations, stage.runs)
    });
    let expected = [
        (Rule::BeadsEmpty("loop/auth".into()), true, 1, 25),
        (Rule::Plateau(2), false, 2, 25),
        (Rule::Plateau(2), false, 2, 25),
        (Rule::FixedN, false, 1, 5),
    ];
    assert_eq!(rules.collect::<Vec<_>>(), expected);
}

#[test]
fn new_definitions_are_valid_and_overwrite_nothing() {
    let world = World::new();
    let loops = world.catalogue.project.join(".claude/loops");
    let files = new_loop(&loops, "polish", Readers::Project).unwrap();
    assert_eq!(files, [loops.join("polish/loop.yaml"), loops.join("polish/prompt.md")]);
    assert_eq!(validate_loop(&world.catalogue, "polish").unwrap(), []);
    assert!(matches!(new_loop(&loops, "polish", Readers::Project), Err(PlanError::Exists { .. })));
    // A call that died before it wrote the definition is made good by the next one.
    fs_err::remove_file(&files[0]).unwrap();
    fs_err::write(&files[1], "mine").unwrap();
    assert_eq!(new_loop(&loops, "polish", Readers::Project).unwrap(), files);
    assert_eq!(fs_err::read_to_string(&files[1]).unwrap(), "mine");
    let taken = loops.join("taken");
    fs_err::write(&taken, "").unwrap();
    assert!(matches!(new_loop(&loops, "taken", Readers::Project), Err(PlanError::Exists { .. })));
    assert!(matches!(new_loop(&loops, "../polish", Readers::Project), Err(PlanError::Name(_))));
    let path = world.catalogue.project.join(".claude/pipelines/mine.yaml");
    new_pipeline(&path, "mine", Readers::Project).unwrap();
    assert_eq!(validate_pipeline(&world.catalogue, "mine").unwrap(), []);
    let before = fs_err::read(&path).unwrap();
    assert!(matches!(new_pipeline(&path, "other", Readers::Project), Err(PlanError::Exists { .. })));
    assert_eq!(fs_err::read(&path).unwrap(), before);
}

#[test]
fn a_dry_run_shows_settings_files_and_first_prompts() {
    let world = World::new();
    let plan = world.pipeline(
        "name: full\nlimits: {usd: 3}\nstages:\n  - name: plan\n    prompt: \"Plan into ${OUTPUT}, ${MISSING}.\"\n    agent: ./run 'a b'\n\
         \x20 - name: look\n    runs: 2\n    completion: {any: [plateau, {command: make}]}\n    perspectives: [user]\n\
         \x20   prompt: |\n      As ${PERSPECTIVE}, ${ITERATION}:\n      ${INPUTS.plan}\n",
    );
    let expected = "\
pipeline auth (full)
  limits     $3.00, 5 errors in a row, 3 iterations without progress
  note       the limit holds only if the agent reports `usage` in its result file; without it the run ends after the first attempt

stage 1: plan
  loop type  -
  agent      ./run a b
  at most    1
  over when  1 iteration is done
  timing     2h 00m for an agent, 0s between iterations
  progress   .claude/pipeline-runs/auth/stage-1-plan/progress.md
  output     .claude/pipeline-runs/auth/stage-1-plan/output.md
  unknown    ${MISSING}
  first prompt:
    | Plan into .claude/pipeline-runs/auth/stage-1-plan/output.md, ${MISSING}.

stage 2: look
  loop type  -
  agent      claude
  at most    2
  over when  (2 iterations in a row find nothing left to improve) or (`make` exits with 0)
  timing     2h 00m for an agent, 0s between iterations
  progress   .claude/pipeline-runs/auth/stage-2-look/progress.md
  output     .claude/pipeline-runs/auth/stage-2-look/run-1.md
  prompt 1 (user):
    | As user, 1:
    | [output of stage plan]
    | 
    | ---
    | You work alone in one iteration of a run;";
    let shown = dry_run(&plan, "").unwrap();
    assert!(shown.starts_with(expected), "{shown}");
    assert!(shown.contains("    | [result file]\n") && shown.contains("always say it: "), "{shown}");
}

#[test]
fn prompts_of_a_dry_run_are_filled_in_with_inputs_and_each_perspective() {
    let world = World::new();
    let plan = world.pipeline(
        "defaults: {agent: ./run}\nstages:\n  - {name: a, perspectives: [x, y, z], runs: 2, prompt: '${PERSPECTIVE}<${INPUTS}>'}\n\
         \x20 - {name: b, items: [i], inputs: {from: a}, prompt: '${ITEM}<${INPUTS}>'}\n",
    );
    let found: Vec<_> = prompts(&plan, "given\n")
        .unwrap()
        .into_iter()
        .map(|filled| (filled.stage, filled.iteration, filled.perspective, filled.prompt))
        .collect();
    let filled = |stage, iteration, perspective: Option<&str>, prompt: &str| {
        (stage, iteration, perspective.map(str::to_owned), prompt.to_owned())
    };
    let expected = [
        filled(1, 1, Some("x"), "x<given>"),
        filled(1, 2, Some("y"), "y<given>"),
        filled(2, 1, None, "i<[last output of stage a]>"),
    ];
    assert_eq!(found, expected);
}
