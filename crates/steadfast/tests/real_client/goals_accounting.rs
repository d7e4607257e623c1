//! Exact accounting in the real client: after two compactions, a resume and a fork, the goal's count equals the tokens
//! billed by the scripted model.

use crate::client::Client;
use crate::model::ScriptedModel;
use crate::reply::{Reply, Usage};
use crate::request::{Kind, Request};
use crate::tui::Tui;
use crate::with_steadfast::{client, event_kinds, steadfast, wait_for_goal, work};
use serde_json::{Value, json};
use std::time::Duration;

const TOOLS: &[&str] = &["--allowedTools", "Bash", "Agent"];
const LIMIT: Duration = Duration::from_mins(1);

/// Odd amounts of every kind, so that nothing can add up by accident. The first turn delegates to a subagent.
fn spender(request: &Request) -> Reply {
    let amount = u64::from(u32::try_from(request.json["messages"].as_array().map_or(1, Vec::len)).unwrap_or(1));
    let usage = Usage::new(1_000 + amount, 10 + amount, 100 + amount, 5_000);
    if request.is_subagent("COUNT FILES") {
        let reply = if request.has_tool_result("toolu_ls") { Reply::text("None.") } else { work("toolu_ls") };
        return reply.usage(Usage::new(17, 3, 1, 0));
    }
    let id = format!("toolu_{}", request.seq);
    let reply = match request.seq {
        1 => {
            let input = json!({"description": "Count", "prompt": "COUNT FILES", "subagent_type": "general-purpose"});
            Reply::text("I delegate.").and_tool_with_id(&id, "Agent", input)
        }
        seq if seq % 3 == 0 => {
            Reply::text("Two blocks.").and_tool_with_id(&id, "Bash", json!({"command": "true", "description": "Work"}))
        }
        seq => Reply::text(format!("Step {seq}.")),
    };
    reply.usage(usage)
}

/// Tokens that count against a budget, of one session's main or subagent requests.
fn handed(model: &ScriptedModel, kind: Kind, session: &Value) -> u64 {
    model
        .handed_out()
        .iter()
        .filter(|handed| handed.kind == kind && handed.session_id.as_deref() == session.as_str())
        .map(|handed| handed.usage.total() - handed.usage.cache_read)
        .sum()
}

fn wait_for_cap(client: &Client) -> Value {
    wait_for_goal(client, "its cap", |goal| goal["paused_reason"] == "continuation_cap")
}

fn one_more_turn(client: &Client, session: &Value) {
    let session = session.as_str().expect("session");
    let (code, said) = steadfast(client, &["goal", "extend", "--add-turns", "1", "--session", session]);
    assert_eq!(code, 0, "{said}");
}

#[test]
fn counts_are_exact_after_two_compactions_a_resume_and_a_fork() {
    let model = ScriptedModel::start(spender);
    let client = client(&model);
    let tui = Tui::start(&client, TOOLS);
    tui.submit("/steadfast:goal-start \"Count every token\" --max-turns 1 --budget 100M");
    let session = wait_for_cap(&client)["session_id"].clone();
    for round in 1..=2 {
        tui.wait_for("the end of the turn", LIMIT, |screen| !screen.contains("esc to interrupt"));
        tui.submit("/compact");
        model.wait_for_request("the compaction", LIMIT, |_| {
            model.requests().iter().filter(|r| r.is_compaction()).count() == round
        });
        tui.wait_for("the end of the compaction", LIMIT, |screen| {
            screen.contains("Compacted (ctrl+o") && !screen.contains("esc to interrupt")
        });
        one_more_turn(&client, &session);
        tui.submit("Go on.");
        wait_for_cap(&client);
    }
    tui.wait_for("the end of the turn", LIMIT, |screen| !screen.contains("esc to interrupt"));
    tui.exit();

    one_more_turn(&client, &session);
    let id = session.as_str().expect("session").to_owned();
    client.print(&[&["--resume", &id], TOOLS].concat(), "Go on after the resume.");
    let before_fork = wait_for_cap(&client);
    let fork = client
        .print(&[&["--output-format", "json", "--resume", &id, "--fork-session"], TOOLS].concat(), "In the fork.");
    assert_ne!(fork.session_id(), id);

    let goal = wait_for_cap(&client);
    model.check_script();
    assert_eq!(goal["tokens_used"], handed(&model, Kind::Main, &session), "{goal:#}");
    assert_eq!(goal["subagent_tokens"], handed(&model, Kind::Subagent, &session), "{goal:#}");
    assert_ne!(goal["subagent_tokens"], 0);
    assert_eq!(goal["evaluator_tokens"], 0, "{goal:#}");
    assert_eq!(goal["tokens_used"], before_fork["tokens_used"]);
    let kinds = event_kinds(&client);
    assert!(!kinds.contains(&"accounting_uncertain_set".to_owned()), "{kinds:?}");
    let (_, spent) = steadfast(&client, &["goal", "status", "--session", &id]);
    assert!(spent.contains("status: paused"), "{spent}");
}
