//! Keys of stages: what they become in a plan, and their faults.

use steadfast_model::run::{EnvVariable, MergePlan, Then, condition};

use super::*;

/// A pipeline whose last stage has these keys.
fn last_of(keys: &str) -> String {
    let keys = keys.replace('\n', "\n    ");
    format!(
        "stages:\n  - {{name: a, prompt: x}}\n  - {{name: b, prompt: x, parallel: true, runs: 2}}\n  - name: c\n    prompt: x\n    {keys}\n"
    )
}

fn last(keys: &str) -> StagePlan {
    World::new().pipeline(&last_of(keys)).stages.remove(2)
}

fn env(name: &str, from: &str) -> EnvVariable {
    EnvVariable { name: name.into(), from: from.into() }
}

#[test]
fn stages_without_the_new_keys_are_as_they_were() {
    let stage = last("runs: 1");
    let plain = StagePlan { prompt: "x".into(), ..StagePlan::new("c", Rule::FixedN, 1) };
    assert_eq!(stage, plain);
}

#[test]
fn needs_are_numbers_of_stages_in_any_order() {
    let world = World::new();
    let plan = world.pipeline(
        "stages:\n  - {name: ship, prompt: x, needs: [lint, test], inputs: [build]}\n  - {name: build, prompt: x, needs: []}\n  \
         - {name: lint, prompt: x, needs: build}\n  - {name: test, prompt: 'x ${INPUTS.build}', needs: [build, build]}\n",
    );
    let needs: Vec<Option<Vec<u32>>> = plan.stages.iter().map(|stage| stage.needs.clone()).collect();
    assert_eq!(needs, [Some(vec![3, 4]), Some(vec![]), Some(vec![2]), Some(vec![2])]);
    assert_eq!(plan.stages[0].inputs, ["build"]);
    assert_eq!(last("needs: ~").needs, None);
}

#[test]
fn conditions_approvals_and_what_follows_are_in_the_plan() {
    let stage = last(
        "when: a.exit_code == 0 and not exists('x.md')\napprove: true\nretries: 0\non_max: continue\non_fail: continue",
    );
    assert_eq!(stage.when, Some(condition::parse("a.exit_code == 0 and not exists(\"x.md\")").unwrap()));
    assert_eq!(stage.approve.as_deref(), Some("Start stage c?"));
    assert_eq!((stage.retries, stage.on_max, stage.on_fail), (Some(0), Some(Then::Continue), Then::Continue));
    let stage = last("approve: ' Ship it? '\non_max: stop\noutput_parse: risk:RISK");
    assert_eq!((stage.approve.as_deref(), stage.on_max), (Some("Ship it?"), Some(Then::Stop)));
    assert_eq!(last("approve: false").approve, None);
}

#[test]
fn limits_of_a_stage_are_its_own_and_else_those_of_its_loop_type() {
    let world = World::new();
    world.add_loop("capped", "limits: {tokens: 1M, usd: 5, errors: 9}\n");
    let plan = world.pipeline(
        "limits: {hours: 3}\nstages:\n  - {name: a, loop: capped}\n  - {name: b, loop: capped, limits: {usd: 2, hours: 1}}\n  \
         - {name: c, prompt: x}\n  - {name: d, loop: capped, limits: ~}\n",
    );
    let amounts = |stage: usize| {
        let limits = &plan.stages[stage].limits;
        [Axis::Tokens, Axis::Usd, Axis::Hours].map(|axis| limits.get(axis))
    };
    let usd = |amount: &str| Axis::Usd.parse(amount, 0).ok();
    assert_eq!(amounts(0), [Some(1_000_000), usd("5"), None]);
    assert_eq!(amounts(1), [Some(1_000_000), usd("2"), Axis::Hours.parse("1", 0).ok()]);
    assert_eq!((amounts(2), amounts(3)), ([None; 3], [None; 3]));
    assert_eq!(plan.limits.errors, RunLimits::default().errors);
    let alone = plan_loop(&world.catalogue, "capped", None, &Overrides::default()).unwrap().plan;
    assert_eq!((alone.limits.limits.get(Axis::Tokens), alone.limits.errors), (Some(1_000_000), 9));
    assert_eq!(alone.stages[0].limits, Limits::default());
}

#[test]
fn variables_of_the_environment_are_names_only() {
    assert_eq!(last("env: [API_KEY, _x1]").env, [env("API_KEY", "API_KEY"), env("_x1", "_x1")]);
    assert_eq!(last("env: API_KEY").env, [env("API_KEY", "API_KEY")]);
    assert_eq!(last("env:\n  TOKEN: $GH_TOKEN\n  B: ${C}").env, [env("TOKEN", "GH_TOKEN"), env("B", "C")]);
}

#[test]
fn a_matrix_is_all_combinations_in_their_order() {
    let stage = last("matrix: {os: [linux, mac], db: [pg, 8.0]}\nartifacts: {log: out/x.log}");
    let cells: Vec<String> = stage.matrix.iter().map(|cell| format!("{} {}", cell["os"], cell["db"])).collect();
    assert_eq!(cells, ["linux pg", "linux 8.0", "mac pg", "mac 8.0"]);
    assert_eq!((stage.runs, stage.parallel), (4, true));
    assert_eq!(stage.artifacts.get("log").map(String::as_str), Some("out/x.log"));
    let stage = last("matrix: {os: [linux, mac]}\nparallel: false\nruns: 2");
    assert_eq!((stage.runs, stage.parallel), (2, false));
}

#[test]
fn agents_stand_side_by_side() {
    let stage = last("agents: [claude, {agent: codex, model: gpt-5}, './cmd.sh -x']\nmodel: opus");
    let kinds: Vec<_> = stage.agents.iter().map(|agent| (agent.kind.clone(), agent.model.as_deref())).collect();
    let command = AgentKind::Command(vec!["./cmd.sh".into(), "-x".into()]);
    let expected = [
        (AgentKind::Host(Host::Claude), Some("opus")),
        (AgentKind::Host(Host::Codex), Some("gpt-5")),
        (command.clone(), None),
    ];
    assert_eq!(kinds, expected);
    assert_eq!((stage.runs, stage.parallel), (3, true));
    let stage = last("agents: [claude, codex]\nruns: 4\nparallel: false");
    assert_eq!((stage.runs, stage.parallel, stage.agents.len()), (4, false, 2));
    // An agent of the command line replaces all of them.
    let world = World::new();
    world.write("project/p.yaml", last_of("agents: [claude, {agent: codex, model: gpt-5}]"));
    let flags = Overrides { agent: Some(command.clone()), ..Overrides::default() };
    let plan = plan_pipeline(&world.catalogue, "p.yaml", Some("n"), &flags, 0).unwrap().plan;
    assert_eq!(plan.stages[2].agents, vec![AgentPlan::new(command); 2]);
}

#[test]
fn a_stage_can_merge_the_branches_of_a_parallel_one() {
    let world = World::new();
    let plan = |keys: &str| {
        let yaml = format!(
            "stages:\n  - {{name: try, prompt: x, runs: 3, parallel: true}}\n  - {{name: judge, prompt: x}}\n  - name: m\n    {keys}\n"
        );
        world.pipeline(&yaml).stages.remove(2)
    };
    let stage = plan("merge: try");
    assert_eq!(stage.merge, Some(MergePlan { from: "try".into(), chosen_by: None }));
    assert_eq!((&stage.completion, stage.runs, stage.check_before), (&Rule::Merged, 10, true));
    assert!(stage.prompt.contains("${MERGE_BRANCH}") && stage.prompt.contains("${MERGE_CONFLICTS}"));
    let stage = plan(
        "merge: {from: try, chosen_by: judge}\n    prompt: Resolve ${MERGE_CONFLICTS}\n    runs: 2\n    verify: make",
    );
    assert_eq!(stage.merge, Some(MergePlan { from: "try".into(), chosen_by: Some("judge".into()) }));
    assert_eq!((stage.prompt.as_str(), stage.runs), ("Resolve ${MERGE_CONFLICTS}", 2));
    assert_eq!(stage.completion, Rule::All(vec![Rule::Merged, Rule::Verify(vec!["make".into()])]));
}

#[test]
fn items_without_a_rule_are_worked_on_once_each() {
    let world = World::new();
    let stage = world.stage_of_loop("items: [a, b, c]\n");
    assert_eq!((stage.completion, stage.runs), (Rule::AllItems, 3));
    let flags = Overrides { items: vec!["a".into(), "b".into()], ..Overrides::default() };
    world.add_loop("plain", "description: x\n");
    let plan = plan_loop(&world.catalogue, "plain", None, &flags).unwrap().plan;
    assert_eq!((&plan.stages[0].completion, plan.stages[0].runs), (&Rule::AllItems, 2));
    // Another rule stays.
    assert_eq!(world.stage_of_loop("items: [a, b]\npromise: X\n").completion, Rule::Promise("X".into()));
    assert_eq!(world.stage_of_loop("items: [a, b]\ncompletion: fixed-n\n").completion, Rule::FixedN);
    let stage = world.stage_of_loop("items: [a, b]\nverify: make\n");
    assert_eq!((stage.completion.leaves().count(), stage.runs), (2, 2));
}

#[test]
fn faults_of_the_keys_have_their_line_and_fix() {
    let world = World::new();
    let at_6 = |keys: &str| last_of(keys);
    for (yaml, what, fix) in [
        (at_6("needs: [a, bb]"), "6: there is no stage `bb`", "Other stages are a, b"),
        (at_6("needs: c"), "6: the stage `c` cannot need itself", "remove it"),
        (at_6("needs: [b]\ninputs: [d]"), "7: there is no stage `d`", "It needs a, b"),
        (at_6("needs: []\ninputs: [a]"), "7: the stage `c` does not need `a`", "add it to `needs`"),
        (at_6("needs: []\nwhen: a.status == 'failed'"), "7: the stage `c` does not need `a`", "add it to `needs`"),
        (at_6("when: c.exit_code == 0"), "6: the stage `c` cannot depend on itself", "Earlier stages are a, b"),
        (at_6("when: z.exit_code == 0"), "6: there is no stage `z`", "Earlier stages are a, b"),
        (at_6("when: a.fields.risk > 3"), "6: the stage `a` has no field `risk`", "output_parse: risk:MARKER"),
        (
            at_6("when: a.status == 'done'"),
            "6: `when`: `a.status` is never \"done\" (at character 1)",
            "completed, failed, skipped",
        ),
        (at_6("when: true"), "6: `when` has to be a condition", "when: tests.exit_code == 0"),
        (at_6("approve: [a]"), "6: `approve` has to be true or a question", "approve: true"),
        (at_6("retries: 101"), "6: 101 retries", "at most 100"),
        (at_6("retries: -1"), "6: `retries` has to be a whole number from 0", "retries: 5"),
        (at_6("on_max: contine"), "6: there is no `on_max: contine`", "did you mean `continue`? Write `on_max: stop`"),
        (at_6("on_fail: skip"), "6: there is no `on_fail: skip`", "on_fail: continue"),
        (at_6("limits: {errors: 3}"), "6: a stage has no limit `errors` of its own", "`retries:`"),
        (at_6("limits: {idle: 3}"), "6: a stage has no limit `idle` of its own", "`limits` of the pipeline"),
        (at_6("limits: {token: 3}"), "6: `limits` of a stage has no key `token`", "did you mean `tokens`?"),
        (
            at_6("env: {A: secret}"),
            "6: `A` has a value",
            "values are never written into a definition: write `A: $NAME`",
        ),
        (at_6("env: {A: 5}"), "6: `A` has a value", "write `A: $NAME`"),
        (at_6("env: [A=secret]"), "6: `A` is not the name of a variable", "never written into a definition"),
        (at_6("env: [1x]"), "6: `1x` is not the name of a variable", "API_KEY"),
        (at_6("env: [STEADFAST_HOME]"), "6: `STEADFAST_HOME` is set by Steadfast itself", "another"),
        (at_6("env: {A: $STEADFAST_HOME}"), "6: `STEADFAST_HOME` is set by Steadfast itself", "another"),
        (at_6("env: []"), "6: `env` is empty", "remove it"),
        (at_6("matrix: [a]"), "6: `matrix` has to be axes with values", "matrix: {os: [linux, mac]}"),
        (at_6("matrix: {os: []}"), "6: the axis `os` has no values", "os: [one, two]"),
        (at_6("matrix: {o-s: [a]}"), "6: `o-s` is not the name of an axis", "letters"),
        (
            at_6("matrix: {a: [1,2,3,4,5,6,7,8,9], b: [1,2,3,4,5,6,7,8]}"),
            "6: the matrix has 72 combinations",
            "at most 64",
        ),
        (at_6("matrix: {a: [1, 2]}\nruns: 3"), "4: `runs` is 3, but the matrix has 2 combinations", "remove `runs`"),
        (at_6("matrix: {a: [1, 2]}\nitems: [x]"), "4: `items` and `matrix` both", "axis"),
        (at_6("agents: claude"), "6: `agents` has to be a list", "agents: [claude, codex]"),
        (at_6("agents: []"), "6: 0 agents", "1 to 64"),
        (at_6("agents: [cluade]"), "6: there is no agent `cluade`", "claude"),
        (at_6("merge: a"), "6: the stage `a` is not parallel", "parallel: true"),
        (at_6("merge: d"), "6: there is no stage `d`", "Earlier stages are a, b"),
        (at_6("merge: {from: b, chosen_by: c}"), "6: the stage `c` cannot choose for itself", "Earlier"),
        (at_6("merge: {chosen_by: a}"), "6: `merge` does not name a stage", "`from:`"),
        (at_6("merge: b\ncompletion: plateau"), "4: `completion` and `merge` do not go together", "stage of its own"),
        (at_6("merge: b\npromise: X"), "4: `completion` and `merge` do not go together", "stage of its own"),
        (at_6("merge: b\nparallel: true"), "4: `parallel` and `merge` do not go together", "stage of its own"),
        (at_6("merge: b\nmatrix: {a: [1]}"), "4: `matrix` and `merge` do not go together", "stage of its own"),
        (at_6("merge: b\nagents: [claude]"), "4: `agents` and `merge` do not go together", "stage of its own"),
        (at_6("completion: merged"), "6: there is no completion rule `merged`", "Known are"),
        (at_6("artifacts: {a: ../x}"), "6: the artifact `a` has to be in the project", "out/a.md"),
        (at_6("artifacts: {a: /etc/x}"), "6: the artifact `a` has to be in the project", "out/a.md"),
        (at_6("artifacts: {'a b': x}"), "6: the name `a b` contains a space", "letters"),
        (at_6("artifacts: {a: }"), "6: the artifact `a` has no path", "report"),
        (at_6("artifacts: x"), "6: `artifacts` has to be names with paths", "report"),
        (at_6("if: x"), "6: a stage has no key `if`", "the key is `when` here"),
        (at_6("depends_on: [a]"), "6: a stage has no key `depends_on`", "the key is `needs` here"),
    ] {
        let faults = world.faults(&yaml);
        assert_eq!(faults.len(), 1, "{yaml}\n{faults:#?}");
        assert!(faults[0].starts_with(what), "{yaml}\n{faults:?}");
        assert!(faults[0].split_once(" | ").unwrap().1.contains(fix), "{yaml}\n{faults:?}");
    }
}

#[test]
fn stages_that_wait_for_each_other_are_named() {
    let world = World::new();
    let faults = world.faults(
        "stages:\n  - name: a\n    prompt: x\n    needs: c\n  - {name: b, prompt: x}\n  - {name: c, prompt: x, needs: [b]}\n",
    );
    let what = "4: the stages wait for each other: a needs c needs b needs a | remove one of these needs; a stage \
                without `needs` needs the one before it";
    assert_eq!(faults, [what]);
}

#[test]
fn variables_of_matrix_artifacts_and_merges_are_checked() {
    let world = World::new();
    let stage = |keys: &str, prompt: &str| {
        format!(
            "stages:\n  - {{name: a, prompt: x, needs: [], artifacts: {{report: r.md}}}}\n  - {{name: b, prompt: x, needs: [], artifacts: {{log: l.md}}}}\n  \
             - name: c\n    needs: [a]\n    {keys}\n    prompt: {prompt}\n"
        )
    };
    let good = stage("matrix: {os: [linux, mac]}", "'${MATRIX.os} ${ARTIFACTS.report}'");
    assert_eq!(world.faults(&good), [""; 0]);
    for (keys, prompt, what) in [
        (
            "matrix: {os: [linux, mac]}",
            "'${MATRIX.so}'",
            "7: the matrix of the stage has no axis `so` | did you mean `os`?",
        ),
        ("runs: 1", "'${MATRIX.os}'", "7: the matrix of the stage has no axis `os` | add `matrix:"),
        ("runs: 1", "'${ARTIFACTS.reprot}'", "7: there is no artifact `reprot` | did you mean `report`?"),
        ("runs: 1", "'${ARTIFACTS.log}'", "7: `log` is made by the stage `b`, which `c` does not need | add `b` to"),
        ("artifacts: {own: o.md}", "'${ARTIFACTS.own}'", "7: the artifact `own` is made by this stage"),
        ("runs: 1", "'${MERGE_BRANCH}'", "7: `${MERGE_BRANCH}` has a value only in a stage with `merge`"),
        ("artifacts: {log: z.md}", "x", "6: two artifacts are named `log`"),
    ] {
        let faults = world.faults(&stage(keys, prompt));
        assert_eq!(faults.len(), 1, "{prompt}\n{faults:?}");
        assert!(faults[0].starts_with(what), "{prompt}\n{faults:?}");
    }
    world.write("project/.claude/loops/mine/loop.yaml", "matrix: {os: [linux]}\nartifacts: {r: r.md}\n");
    world.write("project/.claude/loops/mine/prompt.md", "${MATRIX.os} ${ARTIFACTS.r} ${MATRIX.no}");
    let faults = validate_loop(&world.catalogue, "mine").unwrap();
    assert_eq!(faults.len(), 2, "{faults:?}");
}

#[test]
fn inputs_that_no_prompt_names_are_noted_and_shown() {
    let world = World::new();
    let yaml = "stages:\n  - {name: a, prompt: x}\n  - {name: b, prompt: Go on., inputs: [a]}\n";
    world.write("project/p.yaml", yaml);
    let faults = validate_pipeline(&world.catalogue, "p.yaml").unwrap();
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert_eq!((faults[0].level, faults[0].line), (Level::Note, 3));
    assert_eq!(faults[0].what, "the prompt does not name its inputs: they are added at its end");
    let plan = world.pipeline(yaml);
    let shown = dry_run::dry_run(&plan, "given text").unwrap();
    assert!(shown.contains("| Go on.\n    | \n    | Inputs:\n    | \n    | [output of stage a]"), "{shown}");
    assert!(shown.contains("| x\n    | \n    | Inputs:\n    | \n    | given text"), "{shown}");
    assert_eq!(shown.matches("added at its end").count(), 2, "{shown}");
    assert!(
        !dry_run::dry_run(&world.pipeline(&yaml.replace("inputs: [a]", "runs: 1")), "").unwrap().contains("Inputs:")
    );
}

#[test]
fn a_fault_inside_a_loop_type_has_its_own_line() {
    let world = World::new();
    world.add_loop("mine", "runs: 3\ncompletion: plateau\ncommand: make check\nmodel: opus\neffort: silly\n");
    world.write("project/p.yaml", "stages:\n  - {name: a, loop: mine}\n");
    let faults = validate_pipeline(&world.catalogue, "p.yaml").unwrap();
    let found: Vec<_> = faults.iter().map(|it| (it.file.rsplit('/').next().unwrap(), it.line)).collect();
    assert_eq!(found, [("loop.yaml", 3), ("loop.yaml", 5)], "{faults:?}");
}

#[test]
fn a_dry_run_shows_what_decides_about_a_stage() {
    let world = World::new();
    let plan = world.pipeline(
        "stages:\n  - {name: a, prompt: x, needs: []}\n  - name: b\n    prompt: x\n    needs: [a]\n    when: a.exit_code == 0\n    \
         approve: Really?\n    retries: 2\n    on_max: continue\n    on_fail: continue\n    limits: {usd: 2, tokens: 5k}\n    \
         env: {T: $GH}\n    matrix: {os: [linux, mac]}\n    agents: [claude, ./c.sh]\n    artifacts: {log: out/l.txt}\n",
    );
    let shown = dry_run::dry_run(&plan, "").unwrap();
    for line in [
        "needs      a",
        "when       a.exit_code == 0",
        "approval   Really?",
        "agents     claude; ./c.sh",
        "matrix     os=linux; os=mac",
        "retries    2 for an iteration that failed",
        "at maximum continue",
        "on failure continue",
        "env        T from $GH",
        "artifacts  log: out/l.txt",
    ] {
        assert!(shown.contains(line), "{line}\n{shown}");
    }
    assert!(shown.contains("limits     5,000 tokens, $2"), "{shown}");
    assert!(shown.contains("needs      no other stage"), "{shown}");
}
