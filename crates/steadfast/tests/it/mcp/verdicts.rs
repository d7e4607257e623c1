//! Verdicts: which caller may record one, and which one counts.

use serde_json::json;

use super::world::{World, refusal, success};

const EVALUATED: fn() -> serde_json::Value = || json!({"status": "complete", "completed_by": "evaluator"});

#[test]
fn only_a_call_that_the_hook_saw_from_the_evaluator_records_a_verdict() {
    let world = World::new();
    world.register("s1", None, None);
    let mut server = world.server_with(&[("CLAUDE_CODE_SESSION_ID", "s1")]);
    server.call("s1", "create_goal", &json!({"objective": "x"}));
    let verdict = json!({"verdict": "complete", "reason": "I say so"});
    for agent in ["", "general-purpose", "my-goal-evaluator", "Goal-Evaluator", "evil:goal-evaluator"] {
        let id = world.note("s1", agent);
        let text = refusal(&server.call_with_id("record_verdict", &verdict, Some(&id)));
        assert!(text.contains("only the goal-evaluator subagent"), "{agent}: {text}");
    }
    for id in [None, Some("toolu_never_announced")] {
        let text = refusal(&server.call_with_id("record_verdict", &verdict, id));
        assert!(text.contains("only the goal-evaluator subagent"), "{text}");
    }
    let kinds = world.event_kinds("s1");
    assert!(!kinds.contains(&"evaluator_verdict".to_owned()), "{kinds:?}");
    assert!(kinds.contains(&"privileged_verb_refused".to_owned()), "{kinds:?}");
    let text = server.refused("s1", "update_goal", &EVALUATED());
    assert!(text.contains("no verdict"), "{text}");
}

#[test]
fn a_complete_verdict_of_the_evaluator_lets_the_goal_be_completed() {
    let world = World::new();
    world.register("s1", None, None);
    let mut server = world.server();
    let goal = server.call("s1", "create_goal", &json!({"objective": "x"}))["goal"].clone();
    let long = "é".repeat(600);
    let verdict = json!({"verdict": "complete", "reason": "all green", "evidence": ["tests pass", long], "goal_id": goal["goal_id"]});
    let answer = success(&server.judge("s1", &verdict));
    assert_eq!(answer["ok"], true);
    let last = &answer["goal"]["last_verdict"];
    assert_eq!((&last["verdict"], &last["for_current_objective"]), (&json!("complete"), &json!(true)));
    assert_eq!(last["evidence"][1].as_str().unwrap().chars().count(), 500);
    let done = server.call("s1", "update_goal", &EVALUATED());
    assert_eq!(done["goal"]["status"], "complete");
    let kinds = world.event_kinds("s1");
    assert!(kinds.contains(&"goal_completed_by_evaluator".to_owned()), "{kinds:?}");
    let late = refusal(&server.judge("s1", &json!({"verdict": "incomplete"})));
    assert!(late.contains("the goal is complete"), "{late}");
}

#[test]
fn the_newest_verdict_counts() {
    let world = World::new();
    world.register("s1", None, None);
    let mut server = world.server();
    server.call("s1", "create_goal", &json!({"objective": "x"}));
    success(&server.judge("s1", &json!({"verdict": "complete"})));
    for verdict in ["incomplete", "unverifiable", "impossible"] {
        success(&server.judge("s1", &json!({"verdict": verdict})));
        let text = server.refused("s1", "update_goal", &EVALUATED());
        assert!(text.contains(&format!("the newest verdict is '{verdict}'")), "{text}");
    }
    success(&server.judge("s1", &json!({"verdict": "complete"})));
    server.call("s1", "update_goal", &EVALUATED());
}

#[test]
fn a_verdict_on_an_older_objective_does_not_count() {
    let world = World::new();
    world.register("s1", None, None);
    let mut server = world.server();
    server.call("s1", "create_goal", &json!({"objective": "the easy thing"}));
    success(&server.judge("s1", &json!({"verdict": "complete"})));
    world.prompt("s1");
    server.call("s1", "update_objective", &json!({"objective": "the hard thing"}));
    let text = server.refused("s1", "update_goal", &EVALUATED());
    assert!(text.contains("an earlier text of the objective"), "{text}");
    assert_eq!(world.goal("s1").status.to_string(), "active");
}

#[test]
fn a_verdict_on_an_earlier_goal_does_not_count() {
    let world = World::new();
    world.register("s1", None, None);
    let mut server = world.server();
    server.call("s1", "create_goal", &json!({"objective": "x"}));
    success(&server.judge("s1", &json!({"verdict": "complete"})));
    server.call("s1", "update_goal", &EVALUATED());
    server.call("s1", "create_goal", &json!({"objective": "x"}));
    let text = server.refused("s1", "update_goal", &EVALUATED());
    assert!(text.contains("no verdict"), "{text}");
    let other = json!({"verdict": "complete", "goal_id": "another"});
    assert!(refusal(&server.judge("s1", &other)).contains("`goal_id`"));
}
