//! Iterations with subagents: their usage counts for the iteration.

use super::lab::{Lab, no_claude, no_codex};
use crate::codex;
use crate::model::ScriptedModel;
use crate::reply::{Reply, Usage};
use crate::request::Kind;
use serde_json::{Value, json};

/// Runs one iteration; returns its tokens from the run's status and from `usage`.
fn tokens_of_one_iteration(lab: &Lab, agent: &str) -> (Value, u64) {
    lab.loop_type("delegate", "name: delegate\ncompletion: fixed-n\n", "Delegate it.\n");
    lab.expect(0, &["loop", "run", "delegate", "--agent", agent, "--max", "1"]);
    let status = lab.json(&["loop", "status", "delegate"]);
    let usage = lab.json(&["usage"]);
    let count = |name: &str| usage["totals"][name].as_u64().expect("count");
    let charged = count("input_tokens") + count("output_tokens") + count("cache_creation_tokens");
    (status["history"][0]["tokens"].clone(), charged)
}

#[test]
fn the_subagents_of_claude_count_with_their_iteration() {
    let model = ScriptedModel::start(|request| {
        if request.is_subagent("CHILD TASK") {
            return Reply::text("None.").usage(Usage::new(500, 50, 5, 9));
        }
        if request.has_tool_result("toolu_child") {
            return Reply::text("Delegated.").usage(Usage::new(1_000, 100, 10, 9));
        }
        let input = json!({"description": "Count", "prompt": "CHILD TASK", "subagent_type": "general-purpose",
            "run_in_background": false});
        Reply::default().and_tool_with_id("toolu_child", "Agent", input).usage(Usage::new(1_000, 100, 10, 9))
    });
    let codex = no_codex();
    let lab = Lab::new(&model, &codex);

    let counted = tokens_of_one_iteration(&lab, "claude");

    model.check_script();
    assert_eq!(model.handed_out_of(Kind::Subagent), Usage::new(500, 50, 5, 9));
    assert_eq!(counted, (json!(2 * 1_110 + 555), 2 * 1_110 + 555));
}

#[test]
fn the_subagents_of_codex_count_with_their_iteration() {
    let claude = no_claude();
    let model = codex::ScriptedResponses::start(|request| {
        if request.is_subagent("CHILD TASK") {
            return codex::Reply::text("None.").usage(codex::Usage::new(507, 7, 55, 0));
        }
        let tool = |name: &str| request.tool_named(name).unwrap_or_else(|| panic!("no {name}"));
        let reply = match (request.tool_result("call_spawn"), request.has_tool_result("call_wait")) {
            (None, _) => codex::Reply::tool("call_spawn", tool("spawn_agent"), json!({"message": "CHILD TASK"})),
            (Some(made), false) => {
                let made: Value = serde_json::from_str(&made).unwrap_or_else(|error| panic!("{error}: {made}"));
                codex::Reply::tool("call_wait", tool("wait_agent"), json!({"targets": [made["agent_id"]]}))
            }
            _ => codex::Reply::text("Delegated."),
        };
        reply.usage(codex::Usage::new(1_007, 7, 110, 0))
    });
    let lab = Lab::new(&claude, &model);

    let counted = tokens_of_one_iteration(&lab, "codex");

    model.check_script();
    assert_eq!(model.handed_out_of(Kind::Subagent), codex::Usage::new(507, 7, 55, 0));
    assert_eq!(counted, (json!(3 * 1_110 + 555), 3 * 1_110 + 555));
}
