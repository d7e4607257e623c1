//! Definitions as people write them, in a real project: the plans made of them, and their faults.

use proptest::prelude::*;
use steadfast_model::limit::{Axis, Limits};
use steadfast_model::run::{AgentPlan, Rule, RunLimits, StagePlan};
use tempfile::TempDir;

use super::*;
use steadfast_model::host::Host;

mod blocks;
mod built_in;
mod documented;
mod faults;
mod language;
mod places;
mod used;

pub(super) struct World {
    directory: TempDir,
    pub(super) catalogue: Catalogue,
}

impl World {
    pub(super) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let [project, home] = ["project", "home"].map(|name| directory.path().join(name));
        for path in [&project, &home] {
            fs_err::create_dir(path).unwrap();
        }
        Self { directory, catalogue: Catalogue { project, home } }
    }

    pub(super) fn write(&self, path: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.directory.path().join(path);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(&path, text).unwrap();
        path
    }

    /// A loop type of the project.
    pub(super) fn add_loop(&self, name: &str, yaml: &str) {
        self.write(&format!("project/.claude/loops/{name}/loop.yaml"), yaml);
        self.write(&format!("project/.claude/loops/{name}/prompt.md"), "Do it.");
    }

    pub(super) fn stage_of_loop(&self, yaml: &str) -> StagePlan {
        self.add_loop("mine", yaml);
        let planned = plan_loop(&self.catalogue, "mine", Some("auth"), &Overrides::default());
        planned.unwrap_or_else(|error| panic!("{yaml}\n{error}")).plan.stages.remove(0)
    }

    pub(super) fn pipeline(&self, yaml: &str) -> Plan {
        self.write("project/p.yaml", yaml);
        let planned = plan_pipeline(&self.catalogue, "p.yaml", Some("auth"), &Overrides::default(), 0);
        planned.unwrap_or_else(|error| panic!("{yaml}\n{error}")).plan
    }

    /// Faults as `line level what | fix`, of a pipeline.
    pub(super) fn faults(&self, yaml: &str) -> Vec<String> {
        self.write("project/p.yaml", yaml);
        let faults = validate_pipeline(&self.catalogue, "p.yaml").unwrap();
        faults.iter().map(|fault| format!("{}: {} | {}", fault.line, fault.what, fault.fix)).collect()
    }
}

fn claude() -> AgentPlan {
    AgentPlan::new(AgentKind::Host(Host::Claude))
}

#[test]
fn a_loop_type_without_keys_has_the_documented_defaults() {
    let expected = StagePlan {
        name: "mine".into(),
        loop_type: Some("mine".into()),
        prompt: "Do it.".into(),
        runs: 25,
        min_iterations: 1,
        completion: Rule::FixedN,
        check_before: false,
        delay_ms: 3_000,
        agent: claude(),
        timeout_ms: 7_200_000,
        perspectives: vec![],
        items: vec![],
        parallel: false,
        output_parse: vec![],
        inputs: vec![],
        latest_inputs: false,
        judge: None,
        stop_is_promise: false,
        ..StagePlan::default()
    };
    assert_eq!(World::new().stage_of_loop("description: x"), expected);
}

#[test]
fn every_key_of_a_loop_type_is_read() {
    let yaml = "name: mine\ndescription: x\ncompletion: all-items\nmodel: claude-opus\neffort: high\ndelay: 0.5\n\
                check_before: yes\noutput_parse: \"risk:RISK plateau:PLATEAU\"\nmin_iterations: 2\nitems: a b c\n\
                prompt: other\ntimeout: 90m\nuser_hooks: true\njudge: {agent: codex, model: \"gpt-5:low\"}\n\
                limits: {tokens: 5M, usd: 2.5, hours: 8, errors: 2, idle: 0, parallel: 3}\n";
    let world = World::new();
    world.write("project/.claude/loops/mine/prompts/other.md", "Other.");
    world.add_loop("mine", yaml);
    let planned = plan_loop(&world.catalogue, "mine", None, &Overrides::default()).unwrap();
    let pairs = [("risk", "RISK"), ("plateau", "PLATEAU")].map(|(a, b)| (a.to_owned(), b.to_owned()));
    let stage = StagePlan {
        loop_type: Some("mine".into()),
        prompt: "Other.".into(),
        min_iterations: 2,
        check_before: true,
        delay_ms: 500,
        agent: AgentPlan { model: Some("opus".into()), effort: Some("high".into()), user_hooks: true, ..claude() },
        timeout_ms: 5_400_000,
        items: ["a", "b", "c"].map(str::to_owned).to_vec(),
        output_parse: pairs.to_vec(),
        judge: Some(AgentPlan {
            model: Some("gpt-5".into()),
            effort: Some("low".into()),
            ..AgentPlan::new(AgentKind::Host(Host::Codex))
        }),
        ..StagePlan::new("mine", Rule::AllItems, 3)
    };
    let limits = RunLimits {
        limits: Limits::default()
            .with(Axis::Tokens, 5_000_000)
            .with(Axis::Usd, 2_500_000)
            .with(Axis::Hours, 28_800_000),
        errors: 2,
        idle: 0,
        parallel: 3,
        ..RunLimits::default()
    };
    let plan = Plan {
        name: "mine".into(),
        kind: RunKind::Loop,
        title: "mine".into(),
        pipeline_file: None,
        stages: vec![stage],
        limits,
        purpose: RunPurpose::Definition,
    };
    assert_eq!(planned.plan, plan);
    assert_eq!(planned.warnings.len(), 1, "the judge is unused: {:?}", planned.warnings);
}

#[test]
fn completion_rules_as_people_write_them() {
    let world = World::new();
    let promise = |text: &str| Rule::Promise(text.into());
    let verify = |commands: &[&str]| Rule::Verify(commands.iter().map(|it| (*it).to_owned()).collect());
    for (yaml, rule) in [
        ("completion: fixed-n", Rule::FixedN),
        ("completion: plateau", Rule::Plateau(2)),
        ("completion: plateau\nconsensus: 3", Rule::Plateau(3)),
        ("completion: {plateau: 4}", Rule::Plateau(4)),
        ("completion: beads-empty", Rule::BeadsEmpty("loop/auth".into())),
        ("completion: {beads-empty: \"team/${SESSION}\"}", Rule::BeadsEmpty("team/auth".into())),
        ("completion: beads-empty\nlabel: x", Rule::BeadsEmpty("x".into())),
        ("completion: promise", promise("COMPLETE")),
        ("completion: {promise: ALL DONE}", promise("ALL DONE")),
        ("promise: DONE", promise("DONE")),
        ("completion: command\ncommand: make check", Rule::Command("make check".into())),
        ("completion: {command: \"make check\"}", Rule::Command("make check".into())),
        ("command: make check", Rule::Command("make check".into())),
        ("completion: {checklist: docs/PLAN.md}", Rule::Checklist("docs/PLAN.md".into())),
        ("verify: npm test", verify(&["npm test"])),
        ("verify: [npm test, npm run lint]", verify(&["npm test", "npm run lint"])),
        ("completion: {verify: [a, b]}", verify(&["a", "b"])),
        ("completion: plateau\nverify: a", Rule::All(vec![Rule::Plateau(2), verify(&["a"])])),
        ("completion: {any: [plateau, verify]}\nverify: a", Rule::Any(vec![Rule::Plateau(2), verify(&["a"])])),
        (
            "completion:\n  any:\n    - plateau\n    - all: [{promise: X}, {command: c}]",
            Rule::Any(vec![Rule::Plateau(2), Rule::All(vec![promise("X"), Rule::Command("c".into())])]),
        ),
        ("completion: false", Rule::FixedN),
        ("completion: null", Rule::FixedN),
        ("completion: ~\nverify: false", Rule::FixedN),
        ("completion: false\nverify: a", Rule::All(vec![Rule::FixedN, verify(&["a"])])),
        ("termination: {type: judgment, consensus: 3, min_iterations: 2}", Rule::Plateau(3)),
        ("termination: {type: queue}", Rule::BeadsEmpty("loop/auth".into())),
        ("termination:\n  type: fixed\n  iterations: 7", Rule::FixedN),
        ("termination: {type: command, command: c}", Rule::Command("c".into())),
    ] {
        assert_eq!(world.stage_of_loop(yaml).completion, rule, "{yaml}");
    }
    assert_eq!(world.stage_of_loop("termination: {type: fixed, iterations: 7}").runs, 7);
    assert_eq!(world.stage_of_loop("timeout: 0").timeout_ms, 365 * 86_400_000);
    assert!(!world.stage_of_loop("check_before: false").check_before);
}

#[test]
fn a_stage_says_only_what_differs_from_its_loop_type() {
    let world = World::new();
    world.add_loop("mine", "completion: plateau\nmodel: haiku\ndelay: 9\njudge: true\nverify: t");
    let plan = world.pipeline(
        "name: full\ndefaults: {model: sonnet, timeout: 10m}\nstages:\n  - name: one\n    loop: mine\n    runs: 5\n\
         \x20 - name: two\n    stage: mine\n    completion: false\n    verify: null\n    model: null\n    judge: false\n\
         \x20 - name: three\n    agent: codex\n    prompt: \"Look at ${INPUTS.one} and ${INPUTS}\"\n\
         \x20   inputs: [one, two]\n    perspectives: [a, b, c]\n    parallel: true\n",
    );
    assert_eq!((plan.title.as_str(), plan.pipeline_file.as_deref()), ("full", Some("p.yaml")));
    let [one, two, three] = plan.stages.as_slice() else { panic!("{plan:?}") };
    let plateau = Rule::All(vec![Rule::Plateau(2), Rule::Verify(vec!["t".into()])]);
    assert_eq!((one.runs, &one.completion, one.delay_ms, one.timeout_ms), (5, &plateau, 9_000, 600_000));
    assert_eq!(one.agent.model.as_deref(), Some("sonnet"));
    assert_eq!(one.judge.as_ref().and_then(|judge| judge.model.as_deref()), Some("haiku"));
    assert_eq!((two.runs, &two.completion, &two.agent, &two.judge), (1, &Rule::FixedN, &claude(), &None));
    assert_eq!((three.runs, three.parallel, three.inputs.len()), (3, true, 2));
    assert_eq!(
        (&three.agent.kind, &three.agent.model),
        (&AgentKind::Host(Host::Codex), &None),
        "sonnet is no model of Codex"
    );
    assert_eq!(three.loop_type, None);
}

#[test]
fn a_rule_that_replaces_another_does_not_inherit_its_argument() {
    let world = World::new();
    world.add_loop("mine", "completion: command\ncommand: make\nverify: t");
    let rule = |keys: &str| {
        let yaml = format!("stages:\n  - {{name: a, loop: mine, {keys}}}\n");
        world.pipeline(&yaml).stages.remove(0).completion
    };
    let and_verified = |rule: Rule| Rule::All(vec![rule, Rule::Verify(vec!["t".into()])]);
    assert_eq!(rule("runs: 1"), and_verified(Rule::Command("make".into())));
    assert_eq!(rule("completion: plateau"), and_verified(Rule::Plateau(2)));
    assert_eq!(rule("completion: false"), and_verified(Rule::FixedN));
    assert_eq!(rule("completion: false, verify: false"), Rule::FixedN);
    let any = Rule::Any(vec![Rule::Command("make".into()), Rule::Plateau(2)]);
    assert_eq!(rule("completion: {any: [command, plateau]}"), and_verified(any));
    let faults = world.faults("stages:\n  - {name: a, loop: mine, promise: X}\n");
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(faults[0].starts_with("2: `promise` is given, but `completion` does not use it"), "{faults:?}");
}

#[test]
fn older_and_newer_ways_to_write_pipelines_are_understood() {
    let world = World::new();
    let names = |yaml: &str| {
        let stages = world.pipeline(yaml).stages;
        stages.into_iter().map(|stage| (stage.name, stage.runs)).collect::<Vec<_>>()
    };
    let both = [("improve-plan".to_owned(), 5), ("improve-plan-2".to_owned(), 3)];
    assert_eq!(names("steps:\n  - loop: improve-plan\n    max: 5\n  - loop: improve-plan\n    max: 3\n"), both);
    assert_eq!(names("loops:\n  - loop: improve-plan\n    runs: 5\n"), both[..1]);
    let nodes = "nodes:\n  - id: improve-plan\n    stage: improve-plan\n    runs: {max: 5}\n  - id: next\n    prompt: '${INPUTS}'\n    inputs: {from: improve-plan, select: latest}\n";
    assert_eq!(names(nodes), [both[0].clone(), ("next".into(), 1)]);
    let next = |yaml: &str| world.pipeline(yaml).stages.remove(1);
    assert_eq!((next(nodes).inputs, next(nodes).latest_inputs), (vec!["improve-plan".to_owned()], true));
    for (inputs, latest) in [
        ("{from: improve-plan}", true),
        ("{from: [improve-plan], select: all}", false),
        ("{select: latest}", true),
        ("[improve-plan]", false),
        ("improve-plan", false),
        ("null", false),
    ] {
        let yaml = nodes.replace("{from: improve-plan, select: latest}", inputs);
        assert_eq!(next(&yaml).latest_inputs, latest, "{inputs}");
        assert_eq!(world.faults(&yaml), [""; 0], "{inputs}");
    }
}

#[test]
fn flags_win_over_definitions() {
    let world = World::new();
    let flags = Overrides {
        max: Some(2),
        agent: Some(AgentKind::Command(vec!["./agent".into()])),
        model: Some("m".into()),
        verify: vec!["make test".into()],
        items: vec!["x".into()],
        timeout_ms: Some(5),
        delay_ms: Some(0),
        limits: Limits::default().with(Axis::Tokens, 9),
        errors: Some(1),
        ..Overrides::default()
    };
    let planned = plan_loop(&world.catalogue, "improve-plan", Some("n"), &flags).unwrap().plan;
    let stage = &planned.stages[0];
    let verify = Rule::Verify(vec!["make test".into()]);
    assert_eq!((stage.runs, stage.timeout_ms, stage.delay_ms, &stage.items), (2, 5, 0, &vec!["x".to_owned()]));
    assert_eq!(stage.completion, Rule::All(vec![Rule::Plateau(2), verify.clone()]));
    let agent = AgentPlan { kind: AgentKind::Command(vec!["./agent".into()]), model: Some("m".into()), ..claude() };
    assert_eq!(stage.agent, agent);
    assert_eq!(planned.limits, RunLimits { limits: flags.limits, errors: 1, ..RunLimits::default() });

    let planned = plan_pipeline(&world.catalogue, "full-refine", None, &flags, 1_736_503_200_000).unwrap();
    assert_eq!(planned.plan.name, "full-refine-20250110-100000");
    assert_eq!(planned.plan.pipeline_file.as_deref(), Some("full-refine.yaml"));
    let rules: Vec<_> = planned.plan.stages.iter().map(|stage| (stage.runs, stage.completion.clone())).collect();
    assert_eq!(rules, [(2, Rule::Plateau(2)), (2, Rule::All(vec![Rule::Plateau(2), verify]))]);
    assert!(planned.definition.unwrap().starts_with("name: full-refine\n"));
}

#[test]
fn a_model_of_the_command_line_is_for_its_own_program() {
    let world = World::new();
    let models = |yaml: &str, agent: Option<AgentKind>| {
        world.write("project/p.yaml", yaml);
        let flags = Overrides { model: Some("m".into()), agent, ..Overrides::default() };
        let plan = plan_pipeline(&world.catalogue, "p.yaml", Some("n"), &flags, 0).unwrap().plan;
        plan.stages.into_iter().map(|stage| stage.agent.model.unwrap_or_default()).collect::<Vec<_>>()
    };
    let mixed = "stages:\n- {name: a, prompt: x, model: own}\n- {name: b, prompt: x, agent: codex}\n\
                 - {name: c, prompt: x, agent: codex, model: gpt}\n";
    assert_eq!(models(mixed, None), ["m", "", "gpt"]);
    assert_eq!(models(mixed, Some(AgentKind::Host(Host::Codex))), ["m", "m", "m"]);
    assert_eq!(models(&format!("defaults: {{agent: codex}}\n{mixed}"), None), ["m", "m", "m"]);
    let named = mixed.replace("model: own", "agent: ./own.sh");
    assert_eq!(models(&named, None), ["m", "", "gpt"]);
    assert_eq!(models("stages:\n- {name: b, prompt: x, agent: codex}\n", None), ["m"]);
    world.add_loop("mine", "agent: codex");
    let flags = Overrides { model: Some("m".into()), ..Overrides::default() };
    let planned = plan_loop(&world.catalogue, "mine", None, &flags).unwrap().plan;
    assert_eq!(planned.stages[0].agent.model.as_deref(), Some("m"));
}

#[test]
fn a_profiles_turns_limit_iterations_and_never_add_any() {
    let world = World::new();
    world.add_loop("open", "completion: plateau");
    world.add_loop("counting", "completion: fixed-n");
    world.add_loop("long", "completion: fixed-n\nruns: 60");
    let runs = |name: &str, turns: Option<i64>, max| {
        let mut limits = Limits::default();
        limits.set(Axis::Turns, turns);
        let flags = Overrides { max, limits, ..Overrides::default() };
        plan_loop(&world.catalogue, name, Some("n"), &flags).unwrap().plan.stages[0].runs
    };
    for (name, turns, max, expected) in [
        ("idea-wizard", Some(5_000), None, 5),
        ("open", Some(5_000), None, 5_000),
        ("open", Some(5_000), Some(7), 7),
        ("open", Some(50), Some(70), 70),
        ("counting", Some(5_000), None, 25),
        ("long", Some(50), None, 50),
        ("long", Some(5_000), None, 60),
    ] {
        assert_eq!(runs(name, turns, max), expected, "{name} {turns:?} {max:?}");
    }
    world.write(
        "project/p.yaml",
        "stages:\n- {name: a, prompt: x, runs: 60}\n- {name: b, loop: open}\n- {name: c, prompt: x, runs: 3}\n",
    );
    let flags = Overrides { limits: Limits::default().with(Axis::Turns, 50), ..Overrides::default() };
    let plan = plan_pipeline(&world.catalogue, "p.yaml", Some("n"), &flags, 0).unwrap().plan;
    assert_eq!(plan.stages.iter().map(|stage| stage.runs).collect::<Vec<_>>(), [50, 1, 3]);
}

proptest! {
    #[test]
    fn no_definition_makes_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let world = World::new();
        world.write("project/p.yaml", &bytes);
        let _ = validate_pipeline(&world.catalogue, "p.yaml");
    }

    #[test]
    fn no_pipeline_of_known_keys_makes_it_panic(
        parts in proptest::collection::vec((
            prop_oneof![Just("name"), Just("loop"), Just("runs"), Just("completion"), Just("inputs"), Just("judge"),
                Just("parallel"), Just("items"), Just("agent"), Just("timeout"), Just("termination"), Just("output_parse")],
            prop_oneof![Just("x"), Just("work"), Just("-1"), Just("1e99"), Just("null"), Just("{a: b}"), Just("[]"),
                Just("[plateau]"), Just("{any: []}"), Just("true"), Just("'${INPUTS.a}'"), Just("{type: queue}")],
        ), 0..8)
    ) {
        let mut yaml = String::from("stages:\n  - prompt: x\n");
        for (key, value) in parts {
            let _ = std::fmt::Write::write_fmt(&mut yaml, format_args!("    {key}: {value}\n"));
        }
        let world = World::new();
        world.write("project/p.yaml", &yaml);
        let _ = validate_pipeline(&world.catalogue, "p.yaml");
    }
}
