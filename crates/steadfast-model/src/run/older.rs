//! What an earlier version wrote is read: plans, states, events and records are in stores, histories and repositories for
//! as long as a run lasts. A word that is not known is refused by its name, and never taken for another one.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;

fn read<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

#[test]
fn a_plan_with_the_first_fields_only_is_read() {
    let plan: Plan = read(json!({
        "name": "auth",
        "kind": "loop",
        "stages": [{"name": "work", "prompt": "Work", "runs": 3, "completion": {"plateau": 2},
            "agent": {"kind": {"command": ["sh"]}}}],
    }));
    let stage = plan.stage(1).unwrap();
    assert_eq!((plan.name.as_str(), stage.runs, &stage.completion), ("auth", 3, &Rule::Plateau(2)));
    assert_eq!(plan.limits, RunLimits::default());
    let limits: RunLimits = read(json!({"errors": 2, "tokens": 10}));
    assert_eq!((limits.errors, limits.idle, limits.back_off_ms), (2, 3, 2_000));
    assert_eq!(limits.limits.get(crate::limit::Axis::Tokens), Some(10));
}

#[test]
fn a_state_with_the_first_fields_only_is_read() {
    let run: Run = read(json!({
        "status": "running",
        "stage": 1,
        "stages": [{"status": "running", "iterations": 2}],
        "flights": [{"id": {"stage": 1, "iteration": 3, "attempt": 1}, "phase": "running"}],
        "tokens": 7,
    }));
    let id = AttemptId { stage: 1, iteration: 3, attempt: 1 };
    assert_eq!((run.stages[0].iterations, run.tokens), (2, 7));
    assert_eq!(run.active, [ActiveAttempt::new(id, Phase::Running)]);
}

#[test]
fn events_records_and_acts_with_the_first_fields_only_are_read() {
    let id = json!({"stage": 1, "iteration": 1, "attempt": 1});
    let success = json!({"result": {"summary": "done"}, "usage": {"input_tokens": 3}});
    let ended: RunEvent = read(json!({"ended": {"id": id, "outcome": {"succeeded": success}}}));
    let RunEvent::Ended { outcome: Outcome::Succeeded(success), .. } = ended else { panic!("{ended:?}") };
    assert_eq!((success.result.summary.as_deref(), success.usage.tokens.input), (Some("done"), 3));
    let failed: Outcome = read(json!({"failed": {"kind": "lost"}}));
    assert!(matches!(failed, Outcome::Failed(failure) if failure.kind == FailureKind::Lost));
    for (record, kind) in [
        (json!({"committed": {"id": id, "success": {}}}), "committed"),
        (json!({"stage_ended": {"stage": 1, "status": "completed"}}), "stage_ended"),
        (json!({"finished": {"status": "completed"}}), "finished"),
    ] {
        let read: Record = read(record);
        assert!(serde_json::to_string(&read).unwrap().contains(kind));
    }
    let _: RunEvent = read(json!({"checked": {"id": id}}));
    let _: RunEvent = read(json!({"decided": {"stage": 1}}));
    let _: Act = read(json!({"check": {"id": id}}));
    let step: Step = read(json!({"run": {}}));
    assert_eq!(step, Step { run: Run::default(), records: Vec::new(), acts: Vec::new() });
}

#[test]
fn every_value_is_read_as_it_was_written() {
    let step = machine::step(
        &crate::testing::runs::loop_of(crate::testing::runs::stage(Rule::FixedN, 2)),
        Run { stages: vec![StageState::default()], stage: 1, ..Run::default() },
        RunEvent::Started,
        1,
    );
    assert!(!step.acts.is_empty() && !step.records.is_empty());
    assert_eq!(read::<Step>(serde_json::to_value(&step).unwrap()), step);
}

#[test]
fn an_unknown_word_is_refused_by_its_name() {
    let refused = |value: Value| serde_json::from_value::<RunEvent>(value).unwrap_err().to_string();
    assert!(refused(json!({"teleported": {}})).contains("unknown variant `teleported`"));
    let id = json!({"stage": 1, "iteration": 1, "attempt": 1});
    let kind = refused(json!({"ended": {"id": id, "outcome": {"failed": {"kind": "bored"}}}}));
    assert!(kind.contains("unknown variant `bored`"), "{kind}");
}
