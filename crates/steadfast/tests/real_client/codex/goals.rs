//! A durable goal in the real Codex, set up by `steadfast setup codex` and trusted as a person would: started by
//! marker, skill and tool, driven, limited, paused from outside, compacted, resumed, forked.

use super::client::Codex;
use super::model::ScriptedResponses;
use super::reply::{Reply, Tool, Usage};
use super::request::{Kind, Request};
use crate::with_steadfast::binary;
use serde_json::{Value, json};
use std::fs;

/// Codex with Steadfast's hooks, tool server and skills; the hooks are not trusted yet.
fn set_up(codex: Codex) -> Codex {
    let home = codex.root().join("steadfast");
    let codex = codex.bin_dir(binary().parent().expect("directory")).env("STEADFAST_HOME", &home.to_string_lossy());
    let (code, said) = steadfast(&codex, &["setup", "codex", "--yes"]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("trust"), "the trust review is mentioned: {said}");
    codex
}

pub(crate) fn trusted(codex: Codex) -> Codex {
    trust_all(set_up(codex))
}

/// Trusts all hooks in `hooks.json`.
pub(super) fn trust_all(codex: Codex) -> Codex {
    let path = codex.codex_home().join("hooks.json");
    let hooks: Value = serde_json::from_slice(&fs::read(&path).expect("hooks.json")).expect("JSON");
    codex.trust_hooks(&path.to_string_lossy(), &hooks["hooks"]);
    codex
}

pub(crate) fn steadfast(codex: &Codex, args: &[&str]) -> (i32, String) {
    let output = codex.command(binary()).args(args).output().expect("run steadfast");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.code().unwrap_or(-1), text)
}

pub(crate) fn history(codex: &Codex) -> Value {
    let (_, text) = steadfast(codex, &["goal", "history", "--all", "--format=json"]);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

pub(crate) fn goal(codex: &Codex) -> Value {
    let history = history(codex);
    let goals = history["goals"].as_array().expect("goals");
    assert_eq!(goals.len(), 1, "{history:#}");
    goals[0].clone()
}

/// Tokens that count: input that was not cached, and output.
pub(crate) fn counted(model: &ScriptedResponses, kind: Kind) -> u64 {
    model
        .handed_out()
        .iter()
        .filter(|handed| handed.kind == kind)
        .map(|handed| handed.usage.input - handed.usage.cached + handed.usage.output)
        .sum()
}

fn call(request: &Request, tool: &str, id: &str, input: Value) -> Reply {
    let tool = request.tool_named(tool).unwrap_or_else(|| panic!("no {tool} in {:?}", request.tools()));
    Reply::tool(id, tool, input)
}

/// One of Steadfast's tools; the client's own goal tools have the same names.
pub(crate) fn call_ours(request: &Request, name: &str, id: &str, input: Value) -> Reply {
    let is_ours = |tool: &Tool| tool.namespace.as_deref() == Some("mcp__steadfast") && tool.name == name;
    let tool = request.tools().into_iter().find(is_ours);
    Reply::tool(id, tool.unwrap_or_else(|| panic!("no {name} in {:?}", request.tools())), input)
}

const USAGE: Usage = Usage { input: 1_000, cached: 400, output: 50, reasoning: 20 };

#[test]
fn a_goal_stated_by_marker_by_skill_or_by_tool_is_driven_to_completion() {
    for prompt in ["goal: Fix the <parser>", "$goal-start \"Fix the <parser>\"", "Please set a goal."] {
        let model = ScriptedResponses::start(|r| {
            let by_tool = r.all_text().contains("Please set a goal.");
            let reply = if by_tool && !r.has_tool_result("call_new") {
                call_ours(r, "create_goal", "call_new", json!({"objective": "Fix the <parser>"}))
            } else if let Some(result) = r.tool_result("call_done") {
                Reply::text(result)
            } else if r.last_user_text().contains("not finished") {
                call_ours(r, "update_goal", "call_done", json!({"status": "complete"}))
            } else {
                Reply::text("I would rather stop here.")
            };
            reply.usage(USAGE)
        });
        let codex = trusted(Codex::new(&model));
        let output = codex.exec(&[], prompt);
        model.check_script();
        let goal = goal(&codex);
        assert_eq!((&goal["status"], &goal["host"]), (&json!("complete"), &json!("codex")), "{output:?} {goal:#}");
        assert_eq!(goal["objective"], "Fix the <parser>", "{prompt}");
        // The response that called create_goal came before the goal.
        let before = if prompt.starts_with("Please") { 650 } else { 0 };
        assert_eq!(goal["tokens_used"], counted(&model, Kind::Main) - before, "{prompt} {goal:#}");
    }
}

#[test]
fn a_goal_started_by_skill_is_held_to_its_budget() {
    let model = ScriptedResponses::start(|r| {
        let id = format!("call_{}", r.seq);
        let reply = if r.seq <= 3 { Reply::shell(&id, "true") } else { Reply::text(format!("Text {}.", r.seq)) };
        reply.usage(Usage::new(300, 0, 10, 0))
    });
    let codex = trusted(Codex::new(&model));
    codex.exec(&[], "$goal-start \"Too much\" --budget 1000");
    model.check_script();
    let goal = goal(&codex);
    assert_eq!(goal["status"], "budget_limited", "{goal:#}");
    assert_eq!(goal["tokens_used"], counted(&model, Kind::Main));
    let last = model.requests().pop().expect("a request").all_text();
    assert_eq!(last.matches("This is the last turn it gets").count(), 1);
}

#[test]
fn a_goal_created_by_the_tool_and_status_without_a_model_call() {
    let model = ScriptedResponses::start(|r| match r.seq {
        1 => call_ours(r, "create_goal", "call_new", json!({"objective": "By tool", "max_turns": 1})),
        n => Reply::text(format!("Answer {n}.")),
    });
    let codex = trusted(Codex::new(&model));
    let output = codex.exec(&[], "Please set a goal.");
    model.check_script();
    let asked = model.requests().len();
    let status = codex.exec(&["resume", &output.thread_id()], "$goal-status");
    assert!(status.status.success(), "{status:?}");
    assert_eq!(model.requests().len(), asked, "status cost a model call");
    let goal = goal(&codex);
    assert_eq!(
        (&goal["objective"], &goal["paused_reason"]),
        (&json!("By tool"), &json!("continuation_cap")),
        "{goal:#}"
    );
}

#[test]
fn a_pause_from_outside_stops_the_loop() {
    let pause = std::sync::Mutex::new(None::<std::process::Command>);
    let pause = std::sync::Arc::new(pause);
    let inside = pause.clone();
    let model = ScriptedResponses::start(move |r| {
        if r.seq == 4 {
            let mut command = inside.lock().expect("lock").take().expect("command");
            let thread = r.thread_id().expect("thread");
            assert!(command.args(["goal", "pause", "--session", &thread]).status().expect("run").success());
        }
        if r.seq % 2 == 1 {
            Reply::shell(&format!("call_{}", r.seq), "true")
        } else {
            Reply::text(format!("Step {}.", r.seq))
        }
    });
    let codex = trusted(Codex::new(&model));
    *pause.lock().expect("lock") = Some(codex.command(binary()));
    codex.exec(&[], "goal: Run and run");
    model.check_script();
    assert_eq!(model.requests_of(Kind::Main).len(), 4, "nothing is driven after the pause");
    assert_eq!(goal(&codex)["paused_reason"], "user");
}

#[test]
fn the_objective_survives_a_compaction_in_mid_turn_a_resume_and_a_fork() {
    let model = ScriptedResponses::start(|r| match r.seq {
        1 => Reply::shell("call_big", "echo big").usage(Usage::new(60_000, 0, 10, 0)),
        2 => {
            let text = r.all_text();
            assert!(text.contains("SCRIPTED SUMMARY"), "{text}");
            let restored = text.split("<session_goal>").nth(1).unwrap_or_default();
            assert!(restored.contains("Outlive the summary"), "{text}");
            Reply::text("Step 2.").usage(Usage::new(100, 0, 10, 0))
        }
        n => Reply::text(format!("Step {n}.")).usage(Usage::new(100, 0, 10, 0)),
    });
    let codex = trusted(Codex::new(&model).setting("model_auto_compact_token_limit", "50000"));
    let first = codex.exec(&[], "$goal-start \"Outlive the summary\" --max-turns 1 --budget 10M");
    model.check_script();
    let before = goal(&codex);
    // The summariser's own request is in the rollout and so in the count.
    assert_eq!(before["tokens_used"], counted(&model, Kind::Main) + counted(&model, Kind::Compaction), "{before:#}");
    codex.exec(&["resume", &first.thread_id()], "And now?");
    let resumed = model.requests().pop().expect("a request").all_text();
    assert!(resumed.contains("Outlive the summary"), "{resumed}");
    let forked = codex.exec(&["fork", &first.thread_id()], "In the fork.");
    assert_ne!(forked.thread_id(), first.thread_id());
    assert_eq!(goal(&codex)["tokens_used"], before["tokens_used"], "a paused goal pays for no copy");
    model.check_script();
}

#[test]
fn subagents_are_counted_apart() {
    let model = ScriptedResponses::start(|r| {
        if r.is_subagent("CHILD TASK") {
            return Reply::text("child finished").usage(Usage::new(500, 0, 5, 0));
        }
        match (r.tool_result("call_spawn"), r.has_tool_result("call_wait")) {
            (None, _) => call(r, "spawn_agent", "call_spawn", json!({"message": "CHILD TASK"})),
            (Some(result), false) => {
                let made: Value = serde_json::from_str(&result).unwrap_or_else(|e| panic!("{e}: {result}"));
                call(r, "wait_agent", "call_wait", json!({"targets": [made["agent_id"]]}))
            }
            _ => Reply::text(format!("parent {}", r.seq)),
        }
        .usage(Usage::new(100, 0, 10, 0))
    });
    let codex = trusted(Codex::new(&model));
    codex.exec(&[], "$goal-start \"Delegate\" --max-turns 1");
    model.check_script();
    let goal = goal(&codex);
    assert_eq!(goal["subagent_tokens"], 505, "{goal:#}");
    assert_eq!(goal["tokens_used"], counted(&model, Kind::Main), "{goal:#}");
}

#[test]
fn doctor_reports_untrusted_hooks_and_uninstall_leaves_no_trace() {
    let model = ScriptedResponses::start(|_| Reply::text("ok"));
    let codex = Codex::new(&model);
    let before = fs::read(codex.config_path()).expect("config");
    let codex = set_up(codex);
    codex.exec(&[], "goal: Nobody hears this");
    assert_eq!(history(&codex)["goals"], json!([]));
    let (_, text) = steadfast(&codex, &["doctor", "--json"]);
    let doctor: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let checks = doctor["checks"].as_array().expect("checks");
    let hooks = checks.iter().find(|check| check["id"] == "codex_hooks").expect("codex_hooks");
    let evaluator = checks.iter().find(|check| check["id"] == "codex_evaluator").expect("codex_evaluator");
    assert_eq!(evaluator["status"], "ok", "{evaluator:#}");
    assert!(hooks["status"] != "ok" && hooks["detail"].to_string().to_lowercase().contains("trust"), "{hooks:#}");
    let (code, said) = steadfast(&codex, &["setup", "codex", "--uninstall"]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(String::from_utf8(fs::read(codex.config_path()).expect("config")), String::from_utf8(before));
    assert!(!codex.codex_home().join("hooks.json").exists());
    assert!(!codex.codex_home().join("agents").exists());
    assert!(!codex.codex_home().join("skills/goal-start").exists());
}

#[test]
fn a_closed_session_is_resumed_from_outside_with_its_own_hooks() {
    let model = ScriptedResponses::start(|r| Reply::text(format!("Step {}.", r.seq)).usage(USAGE));
    let codex = trusted(Codex::new(&model));
    let first = codex.exec(&[], "$goal-start \"Go on from outside\" --max-turns 1");
    let thread = first.thread_id();
    let before = goal(&codex);
    assert_eq!(before["paused_reason"], "continuation_cap", "{before:#}");
    // The user uninstalls Steadfast: nothing of it stays in the configuration.
    let (code, said) = steadfast(&codex, &["setup", "codex", "--uninstall"]);
    assert_eq!(code, 0, "{said}");
    let (code, said) = steadfast(&codex, &["goal", "extend", "--add-turns", "1", "--session", &thread]);
    assert_eq!(code, 0, "{said}");
    let config = fs::read(codex.config_path()).expect("config");

    let path = format!("{}:{}", codex.program().parent().expect("directory").display(), codex.environment()["PATH"]);
    let output = codex
        .command(binary())
        .env("PATH", path)
        .args(["goal", "resume", "--continue", "--session", &thread])
        .output()
        .expect("run steadfast");

    model.check_script();
    assert!(output.status.success(), "{output:?}");
    let after = goal(&codex);
    assert_eq!(after["continuations_used"], 2, "{after:#} {output:?}");
    assert_eq!(after["tokens_used"], counted(&model, Kind::Main), "{after:#}");
    assert_eq!(fs::read(codex.config_path()).expect("config"), config, "the user's configuration is left alone");
}
