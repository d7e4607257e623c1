//! Faults of definitions.

use super::*;

#[test]
fn all_faults_are_reported_at_once_with_line_and_fix() {
    let world = World::new();
    let yaml = "name: x\nstags: 1\nstages:\n  - name: plan\n    loop: improve-pln\n  - name: Build It\n    prompt: b\n\
                \x20   completion: platau\n  - name: check\n    prompt: see ${INPUTS.later} and ${INPUTS.plam}\n\
                \x20   inputs: [plan, check, missing]\n    runs: many\n    modle: opus\n  - name: later\n    prompt: |\n\
                \x20     one\n      two ${PERSPECTVE} $${KEPT}\n  - name: plan\n    agent: cluade\n";
    let known = "improve-plan, idea-wizard, refine-beads, work";
    let expected = [
        "2: a pipeline has no key `stags` | did you mean `stages`? Otherwise remove it".to_owned(),
        format!(
            "5: there is no loop type `improve-pln` | did you mean `improve-plan`? Put its folder, with loop.yaml or \
             stage.yaml, into `.claude/loops/improve-pln`, or remove the stage. Known are {known}"
        ),
        "6: the name `Build It` contains a space; it becomes the name of a folder | write `name: build-it`".to_owned(),
        "8: there is no completion rule `platau` | did you mean `plateau`? Known are fixed-n, all-items, plateau, \
         beads-empty, command, promise, verify, checklist, `any` and `all`"
            .to_owned(),
        "10: the stage `later` comes later: it has no output yet | Earlier stages are plan".to_owned(),
        "10: there is no stage `plam` | did you mean `plan`? Earlier stages are plan".to_owned(),
        "11: the stage `check` cannot be its own input | Earlier stages are plan".to_owned(),
        "11: there is no stage `missing` | Earlier stages are plan".to_owned(),
        "12: `runs` has to be a whole number from 1 to 1000000 | write for example `runs: 5`".to_owned(),
        "13: a stage has no key `modle` | did you mean `model`? Otherwise remove it".to_owned(),
        "17: there is no variable `${PERSPECTVE}`: it stays as it is | did you mean `PERSPECTIVE`? Write \
         `$${PERSPECTVE}` if it is meant to stay as it is"
            .to_owned(),
        "18: two stages are named `plan` | choose another name".to_owned(),
        "18: `plan` has no prompt | add `prompt:`, or name a loop type with `loop:`".to_owned(),
        "19: there is no agent `cluade` | did you mean `claude`?".to_owned(),
    ];
    let mut found = world.faults(yaml);
    for text in &mut found {
        // The order of names is the catalogue's.
        *text = text.replace("work, improve-plan, refine-beads, idea-wizard", known);
    }
    assert_eq!(found, expected);
    let error = plan_pipeline(&world.catalogue, "p.yaml", None, &Overrides::default(), 0).unwrap_err();
    let first = error.to_string().lines().next().unwrap().to_owned();
    assert!(first.ends_with("p.yaml:2: error: a pipeline has no key `stags`"), "{first}");
}

#[test]
fn single_faults() {
    let world = World::new();
    let of_stage = |keys: &str| format!("stages:\n  - name: a\n    prompt: x\n    {}\n", keys.replace('\n', "\n    "));
    for (yaml, what) in [
        (String::new(), "1: a pipeline has to be keys with values"),
        ("just text".into(), "1: a pipeline has to be keys with values"),
        ("name: x".into(), "1: the pipeline has no stages"),
        ("stages: []".into(), "1: the pipeline has no stages"),
        ("stages: {a: b}".into(), "1: the pipeline has no stages"),
        ("stages:\n  - x".into(), "2: a stage has to be keys with values"),
        ("stages:\n  - prompt: x".into(), "2: a stage has no name"),
        ("stages:\n  - name: a\n    pipeline: b\n    prompt: x".into(), "3: a pipeline inside a pipeline"),
        ("stages:\n  - name: a\n    prompt: ''".into(), "3: the prompt is empty"),
        ("stages:\n  - name: ../../etc\n    prompt: x".into(), "2: the name `../../etc` contains `/`"),
        ("nodes:\n  - id: a\n    prompt: x\nstages: []".into(), "4: `nodes` and `stages` are the same key"),
        (of_stage("runs: 0"), "4: `runs` has to be a whole number"),
        (of_stage("inputs: {select: newest}"), "4: there is no `select: newest`"),
        (of_stage("output_parse: stage:TOK"), "4: `stage` is a field that every iteration has: the marker `TOK`"),
        (of_stage("runs: 2.5"), "4: `runs` has to be a whole number"),
        (of_stage("completion: [plateau, promise]"), "4: a list of rules needs `any` or `all`"),
        (of_stage("completion: {any: []}"), "4: `any` is empty"),
        (of_stage("completion: {plateau: 2, promise: x}"), "4: a rule is one name"),
        (of_stage("completion: command"), "4: the rule `command` has no command"),
        (of_stage("completion: checklist"), "4: the rule `checklist` has no file"),
        (of_stage("completion: {checklist: ../PLAN.md}"), "4: the checklist has to be in the project"),
        (of_stage("completion: {checklist: /etc/passwd}"), "4: the checklist has to be in the project"),
        (of_stage("completion: verify"), "4: the rule `verify` has no commands"),
        (of_stage("completion: all-items"), "4: the rule `all-items` has no items"),
        (of_stage("completion: {fixed-n: 3}"), "4: the rule `fixed-n` takes no argument"),
        (of_stage("completion: plateau\npromise: X"), "5: `promise` is given, but `completion` does not use it"),
        (of_stage("completion: plateau\ntermination: {type: fixed}"), "4: `completion` and `termination` are"),
        (of_stage("timeout: soon"), "4: `timeout` has to be a number of seconds or a duration"),
        (of_stage("check_before: maybe"), "4: `check_before` has to be true or false"),
        (of_stage("parallel: true\nruns: 65"), "2: 65 agents in one parallel stage"),
        (of_stage("parallel: true\ncompletion: plateau"), "2: the completion rule of a parallel stage"),
        (of_stage("parallel: true\nverify: make"), "2: the stage `a` is parallel, and nothing verifies"),
        (of_stage("parallel: true\ncompletion: {any: [plateau, {verify: [make]}]}"), "2: the stage `a` is parallel"),
        (of_stage("min_iterations: 5\ncompletion: plateau"), "2: `min_iterations` is 5, but `runs` is 1"),
        (of_stage("output_parse: RISK"), "4: `RISK` is not `key:MARKER`"),
        (of_stage("output_parse: {'$x': RISK}"), "4: `$x:RISK` is not a field and its marker"),
        (of_stage("agent: \"sh -c 'x\""), "4: the agent's command"),
        (of_stage("agent: []"), "4: the agent's command is empty"),
        (of_stage("effort: hihg"), "4: there is no effort `hihg`"),
        (of_stage("inputs: a"), "4: the stage `a` cannot be its own input"),
        ("limits: {tokens: lots}\nstages:\n  - {name: a, prompt: x}".into(), "1: `tokens` is not an amount"),
        ("stages:\n  - name: a\n    prompt: plan.md".into(), "3: `plan.md` is taken as the prompt"),
        ("a: 1\na: 2".into(), "2: not valid YAML: duplicate mapping key: a"),
    ] {
        let faults = world.faults(&yaml);
        assert_eq!(faults.len(), 1, "{yaml}\n{faults:#?}");
        assert!(faults[0].starts_with(what), "{yaml}\n{faults:?}");
        assert!(!faults[0].ends_with("| "), "there is no fix: {faults:?}");
    }
}

#[test]
fn a_broken_loop_type_is_reported_once_with_its_own_file() {
    let world = World::new();
    world.write("project/.claude/loops/bad/loop.yaml", "completion: nope\nprompt: missing\n");
    world.write("project/p.yaml", "stages:\n  - {name: a, loop: bad}\n  - {name: b, loop: bad}\n");
    let faults = validate_pipeline(&world.catalogue, "p.yaml").unwrap();
    let found: Vec<_> = faults.iter().map(|fault| (fault.file.rsplit('/').next(), fault.line)).collect();
    assert_eq!(found, [(Some("loop.yaml"), 1), (Some("loop.yaml"), 2)], "{faults:?}");
}

#[test]
fn a_loop_alone_gets_a_warning_for_inputs() {
    let world = World::new();
    world.add_loop("mine", "name: other\n");
    world.write("project/.claude/loops/mine/prompt.md", "x\n${INPUTS.plan}");
    let faults = validate_loop(&world.catalogue, "mine").unwrap();
    let found: Vec<_> = faults.iter().map(|it| (it.file.rsplit('/').next(), it.line, it.level)).collect();
    let expected = [(Some("loop.yaml"), 1, Level::Warning), (Some("prompt.md"), 2, Level::Warning)];
    assert_eq!(found, expected, "{faults:?}");
}

#[test]
fn a_verification_is_never_dropped_from_a_parallel_stage() {
    let world = World::new();
    let flags = Overrides { verify: vec!["make".into()], ..Overrides::default() };
    let plan = |flags: &Overrides| plan_pipeline(&world.catalogue, "p.yaml", Some("n"), flags, 0);
    let apart = "stages:\n  - {name: apart, prompt: x, parallel: true, completion: all-items, items: [a, b]}\n";
    world.write("project/p.yaml", apart);
    let refused = plan(&flags).unwrap_err();
    assert!(matches!(&refused, PlanError::VerifiesParallel { stage } if stage == "apart"), "{refused:?}");
    assert_eq!(refused.hint(), "put verify on a stage of its own after it, or leave --verify out");
    // Counting items is what parallel runs do, so that rule stays.
    let planned = plan(&Overrides::default()).unwrap();
    assert_eq!((&planned.plan.stages[0].completion, planned.plan.stages[0].runs), (&Rule::AllItems, 2));
    assert_eq!(planned.warnings, []);
    world.write("project/p.yaml", format!("{apart}  - {{name: check, prompt: x}}\n"));
    assert_eq!(plan(&flags).unwrap().plan.stages[1].completion, Rule::Verify(flags.verify.clone()));
}
