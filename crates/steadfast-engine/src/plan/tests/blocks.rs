//! Parallel blocks, inputs and the other keys of pipelines that other tools wrote.

use steadfast_model::limit::Axis;
use steadfast_model::run::{AgentKind, StagePlan, Then};

use super::*;

const DUEL: &str = "
name: duel
commands: {test: make test}
nodes:
  - {id: before, prompt: x}
  - id: ideas
    parallel:
      providers:
        - claude
        - {name: other, agent: ./other.sh}
      failure_mode: best_effort
      stages:
        - {id: think, prompt: 'a ${COMMANDS.test}', termination: {type: fixed, iterations: 2}}
        - {id: rate, prompt: b, inputs: {from: think}}
  - id: cross
    parallel:
      providers:
        - {name: claude, model: opus, inputs: {from_parallel: {stage: rate, providers: [other]}}}
        - {name: codex, model: 'gpt-5:high', inputs: {from_parallel: [{stage: think, select: history}, {block: ideas}]}}
      stages:
        - {id: answer, prompt: c}
  - {id: sum, prompt: d, inputs: {from_parallel: answer, from_initial: true}}
  - {id: end, prompt: e}
";

fn names(stages: &[StagePlan]) -> Vec<&str> {
    stages.iter().map(|stage| stage.name.as_str()).collect()
}

#[test]
fn a_block_becomes_one_lane_for_each_provider() {
    let stages = World::new().pipeline(DUEL).stages;
    let expected = [
        "before",
        "ideas-claude-think",
        "ideas-claude-rate",
        "ideas-other-think",
        "ideas-other-rate",
        "cross-claude-answer",
        "cross-codex-answer",
        "sum",
        "end",
    ];
    assert_eq!(names(&stages), expected);
    let needs: Vec<Option<Vec<u32>>> = stages.iter().map(|stage| stage.needs.clone()).collect();
    let both = Some(vec![3, 5]);
    let expected = [None, Some(vec![1]), Some(vec![2]), Some(vec![1]), Some(vec![4]), both.clone(), both];
    assert_eq!(needs, [&expected[..], &[Some(vec![6, 7]), None]].concat());
    let lanes: Vec<Option<&str>> = stages.iter().map(|stage| stage.lane.as_deref()).collect();
    let (claude, other) = (Some("ideas-claude"), Some("ideas-other"));
    let expected = [None, claude, claude, other, other, Some("cross-claude"), Some("cross-codex"), None, None];
    assert_eq!(lanes, expected);
    let on_fail: Vec<Then> = stages.iter().map(|stage| stage.on_fail).collect();
    assert_eq!(on_fail.iter().filter(|then| **then == Then::Continue).count(), 4);
    assert_eq!(stages[3].agent.kind, AgentKind::Command(vec!["./other.sh".into()]));
    assert_eq!((stages[6].agent.model.as_deref(), stages[6].agent.effort.as_deref()), (Some("gpt-5"), Some("high")));
    assert_eq!((stages[1].runs, stages[2].short_name(), stages[7].short_name()), (2, "rate", "sum"));
    assert_eq!(stages[8].commands["test"], "make test");
}

#[test]
fn lanes_and_later_stages_get_the_outputs_that_they_name() {
    let stages = World::new().pipeline(DUEL).stages;
    assert_eq!(stages[2].inputs, ["ideas-claude-think"]);
    assert_eq!(stages[4].inputs, ["ideas-other-think"]);
    assert_eq!(stages[5].inputs, ["ideas-other-rate"]);
    assert_eq!(stages[5].parallel_inputs[0].lanes.keys().collect::<Vec<_>>(), ["other"]);
    let of_codex: Vec<(&str, bool)> =
        stages[6].parallel_inputs.iter().map(|input| (input.stage.as_str(), input.history)).collect();
    assert_eq!(of_codex, [("think", true), ("rate", false)], "a block stands for its last stage");
    assert_eq!(stages[7].inputs, ["cross-claude-answer", "cross-codex-answer"]);
    assert!(stages[7].initial_inputs && stages[7].latest_inputs);
}

#[test]
fn what_a_block_cannot_have_is_refused_with_a_reason() {
    let block = |parts: &str| format!("nodes:\n  - id: two\n    parallel: {{{parts}}}\n");
    for (yaml, what, fix) in [
        (
            block("providers: [claude], stages: [{id: a, prompt: x, provider: codex}]"),
            "cannot have an agent or model of its own",
            "write it in `providers`",
        ),
        (block("providers: [claude]"), "needs providers and stages", "stages: [{id: review"),
        (
            block("providers: [claude, claude], stages: [{id: a, prompt: x}]"),
            "two providers are named `claude`",
            "another `name`",
        ),
        (block("providers: [cluade], stages: [{id: a, prompt: x}]"), "there is no agent `cluade`", "`claude`"),
        (
            block("providers: [claude], stages: [{id: a, parallel: {providers: [codex], stages: [{prompt: y}]}}]"),
            "cannot be inside of another",
            "move it out",
        ),
        (
            block("providers: [claude], stages: [{id: a, prompt: x}], failure_mode: sometimes"),
            "there is no `failure_mode: sometimes`",
            "best_effort",
        ),
        ("nodes:\n  - {id: a, pipeline: other.yaml}\n".into(), "inside a pipeline is not supported", "copy the stages"),
        (
            "nodes:\n  - {id: a, prompt: x, inputs: {from_parallel: b}}\n".into(),
            "no parallel block comes before",
            "use `from:`",
        ),
        ("nodes:\n  - {id: a, stage: robot}\n".into(), "there is no loop type `robot`", ".claude/loops/robot"),
        ("inputs: [../secret]\nnodes:\n  - {id: a, prompt: x}\n".into(), "outside of the project", "--input"),
        ("nodes:\n  - {id: a, prompt: x, output_path: /etc/x}\n".into(), "has to be in the project", "docs/ideas.md"),
    ] {
        let faults = World::new().faults(&yaml);
        let says =
            |fault: &String| fault.split_once(" | ").is_some_and(|(is, then)| is.contains(what) && then.contains(fix));
        let found = faults.iter().any(says);
        assert!(found, "{yaml}\n{faults:#?}");
    }
    let unknown = format!("{DUEL}  - {{id: last, prompt: x, inputs: {{from_parallel: {{stage: nothing}}}}}}\n");
    let faults = World::new().faults(&unknown);
    let names_blocks = |fault: &String| fault.contains("`ideas` (think, rate); `cross` (answer)");
    assert!(faults.iter().any(names_blocks), "{faults:#?}");
}

#[test]
fn context_commands_output_and_guardrails_reach_the_plan() {
    let yaml = "
context: for all
commands: {test: make test, lint: make lint}
nodes:
  - {id: a, prompt: '${CONTEXT} ${OUTPUT_PATH} ${CTX} ${STATUS}', output_path: 'docs/${SESSION}.md'}
  - id: b
    prompt: x
    context: for b
    commands: {test: cargo test}
    guardrails: {max_runtime_seconds: 90}
";
    let stages = World::new().pipeline(yaml).stages;
    assert_eq!((stages[0].context.as_str(), stages[1].context.as_str()), ("for all", "for b"));
    assert_eq!(stages[0].output_path.as_deref(), Some("docs/auth.md"));
    assert_eq!((&*stages[1].commands["test"], &*stages[1].commands["lint"]), ("cargo test", "make lint"));
    assert_eq!(stages[1].limits.get(Axis::Hours), Some(90_000));
    assert_eq!(stages[0].limits.get(Axis::Hours), None);
}
