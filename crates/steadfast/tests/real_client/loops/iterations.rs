//! Three iterations of a loop with each client: their history and exact cost, and that neither the user's hooks and
//! plugins nor our own run in them.

use super::lab::{Lab, cost_usd, no_claude, no_codex, result_file};
use crate::codex;
use crate::model::ScriptedModel;
use crate::reply::{Reply, Usage};
use crate::request::{Kind, Request};
use crate::scripted::{Api, Scripted};
use serde_json::{Value, json};
use std::fs;

const POLISH: &str = "name: polish\ndescription: Polish it\ncompletion: plateau\nmin_iterations: 2\ndelay: 0\n";
/// In an interactive session such a prompt would state a goal.
const PROMPT: &str = "goal: Polish ${SESSION}. You are number ${ITERATION} of 3.\n";
/// A model that has a price and that Codex does not know.
const PRICED: &str = "gpt-5";

/// Which iteration a prompt is for.
fn number(prompt: &str) -> u64 {
    let (_, after) = prompt.split_once("Polish brass. You are number ").expect("the prompt of the loop type");
    after.split(' ').next().and_then(|word| word.parse().ok()).expect("a number")
}

/// The history of the three iterations, without times and costs.
fn expected_history(tokens: [u64; 3]) -> Vec<Value> {
    let row = |at: usize, summary: &str, plateau: bool, reasoning: &str| {
        json!({"iteration": at + 1, "summary": summary, "plateau": plateau, "reasoning": reasoning, "attempts": 1,
            "tokens": tokens[at], "decision": null})
    };
    vec![
        row(0, "polished once", false, "dull corners"),
        row(1, "REASONING: it shines\nPLATEAU: true", true, "it shines"),
        row(2, "nothing to do", true, "still shines"),
    ]
}

fn seen_history(status: &Value) -> Vec<Value> {
    let rows = status["history"].as_array().expect("history").iter();
    rows.map(|row| {
        json!({"iteration": row["iteration"], "summary": row["summary"], "plateau": row["plateau"],
            "reasoning": row["reasoning"], "attempts": row["attempts"], "tokens": row["tokens"],
            "decision": row["decision"]})
    })
    .collect()
}

/// The costs of the iterations and of the run, from the status of the run.
fn costs(status: &Value) -> (Vec<f64>, f64) {
    let rows = status["history"].as_array().expect("history").iter();
    (rows.map(|row| row["cost_usd"].as_f64().expect("cost")).collect(), status["cost_usd"].as_f64().expect("cost"))
}

fn polisher(request: &Request) -> Reply {
    let step = number(&request.last_user_text());
    let reply = match step {
        1 if request.has_tool_result("toolu_write") => Reply::text("Done for now."),
        1 if request.has_tool_result("toolu_polish") => {
            let result = json!({"summary": "polished once", "plateau": false, "reasoning": "dull corners"});
            let file = result_file(&request.last_user_text());
            let input = json!({"file_path": file, "content": result.to_string()});
            Reply::text("Leaving the result.").and_tool_with_id("toolu_write", "Write", input)
        }
        1 => {
            let input = json!({"command": "echo shiny > brass.txt", "description": "Polish"});
            Reply::text("Polishing.").and_tool_with_id("toolu_polish", "Bash", input)
        }
        2 => Reply::text("REASONING: it shines\nPLATEAU: true"),
        _ => Reply::text(json!({"summary": "nothing to do", "plateau": true, "reasoning": "still shines"}).to_string()),
    };
    reply.usage(Usage::new(1_000 * step + 1, 100 * step + 2, 10 * step + 3, 5_000 + step))
}

/// A user hook and the plugin installed for all projects, as on most machines with Steadfast.
fn install_users_things(lab: &Lab) -> std::path::PathBuf {
    let touched = lab.client().root().join("user-hook");
    let hook = json!([{"hooks": [{"type": "command", "command": format!("cat > '{}'", touched.display())}]}]);
    lab.client().write_user_settings(&json!({"hooks": {"Stop": hook}}));
    let claude = std::env::var_os("STEADFAST_CLAUDE").expect("STEADFAST_CLAUDE");
    let repo = crate::with_steadfast::repo();
    for arguments in [
        vec!["plugin", "marketplace", "add", repo.to_str().expect("path")],
        vec!["plugin", "install", "steadfast@steadfast"],
    ] {
        let output = lab.client().run_to_end(lab.client().command(&claude).args(&arguments), "claude plugin");
        assert!(output.status.success(), "{output:?}");
    }
    touched
}

/// No session of an agent is in the store, and there is no goal.
fn assert_no_trace<A: Api>(lab: &Lab, model: &Scripted<A>) {
    let store = lab.store();
    for handed in model.handed_out() {
        let session = store.read().session(&handed.session_id.expect("session")).expect("store");
        assert_eq!(session, None);
    }
    let history = lab.json(&["goal", "history", "--all"]);
    assert_eq!((&history["goals"], &history["events"]), (&json!([]), &json!([])), "{history:#}");
}

#[test]
fn claude_polishes_three_times_and_every_token_is_counted() {
    let model = ScriptedModel::start(polisher);
    let codex = no_codex();
    let lab = Lab::new(&model, &codex);
    let touched = install_users_things(&lab);
    lab.loop_type("polish", POLISH, PROMPT);

    lab.expect(0, &["loop", "run", "polish", "brass", "--agent", "claude", "--max", "3"]);

    model.check_script();
    assert_eq!(fs::read_to_string(lab.project().join("brass.txt")).expect("brass"), "shiny\n");
    let status = lab.json(&["loop", "status", "brass"]);
    assert_eq!((&status["status"], &status["reason"]), (&json!("completed"), &json!("plateau")), "{status:#}");
    // Three responses in the first iteration, then one each.
    assert_eq!(seen_history(&status), expected_history([3 * 1_116, 2_226, 3_336]), "{status:#}");
    let name = model.requests()[0].json["model"].as_str().expect("model").to_owned();
    let cost = |step: u64| cost_usd(&name, 1_000 * step + 1, 100 * step + 2, 10 * step + 3, 5_000 + step);
    let (each, all) = costs(&status);
    assert_eq!(each, [cost(1) * 3.0, cost(2), cost(3)]);
    assert!((all - each.iter().sum::<f64>()).abs() < 1e-9, "{all} {each:?}");

    let spent = model.handed_out_of(Kind::Main);
    let usage = lab.json(&["usage"]);
    let counts = ["responses", "input_tokens", "output_tokens", "cache_creation_tokens", "cache_read_tokens"];
    assert_eq!(
        counts.map(|count| usage["totals"][count].as_u64()),
        [5, spent.input, spent.output, spent.cache_creation, spent.cache_read].map(Some),
        "{usage:#}"
    );
    assert!((usage["totals"]["cost_usd"].as_f64().expect("cost") - all).abs() < 1e-9, "{usage:#} {all}");

    assert!(!touched.exists(), "the user's hook ran");
    assert_no_trace(&lab, &model);
    let offered = model.requests().iter().filter_map(|request| request.tool_named("update_goal")).count();
    assert_eq!(offered, 0, "the user's plugin was loaded");
}

#[test]
fn with_user_hooks_claude_runs_the_users_hooks_and_ours_do_nothing() {
    let model = ScriptedModel::start(polisher);
    let codex = no_codex();
    let lab = Lab::new(&model, &codex);
    let touched = install_users_things(&lab);
    lab.loop_type("polish", POLISH, PROMPT);

    lab.expect(5, &["loop", "run", "polish", "brass", "--agent", "claude", "--max", "1", "--user-hooks"]);

    model.check_script();
    assert!(touched.exists(), "the user's hook did not run");
    assert_no_trace(&lab, &model);
}

fn codex_polisher(request: &codex::Request) -> codex::Reply {
    let step = number(&request.last_user_text());
    let reply = match step {
        1 if request.has_tool_result("call_write") => codex::Reply::text("Done for now."),
        1 if request.has_tool_result("call_polish") => {
            let result = json!({"summary": "polished once", "plateau": false, "reasoning": "dull corners"});
            let file = result_file(&request.last_user_text());
            codex::Reply::shell("call_write", &format!("echo '{result}' > '{file}'"))
        }
        1 => codex::Reply::shell("call_polish", "echo shiny > brass.txt"),
        2 => codex::Reply::text("REASONING: it shines\nPLATEAU: true"),
        _ => codex::Reply::text(
            json!({"summary": "nothing to do", "plateau": true, "reasoning": "still shines"}).to_string(),
        ),
    };
    reply.usage(codex::Usage::new(1_000 * step + 1, 500 + step, 100 * step + 2, 3))
}

/// A user hook and those of `setup codex`, all trusted.
fn install_users_codex_things(lab: &Lab) -> std::path::PathBuf {
    let touched = lab.client().root().join("user-hook");
    let path = lab.codex().codex_home().join("hooks.json");
    let hook = json!([{"hooks": [{"type": "command", "command": format!("cat > '{}'", touched.display())}]}]);
    fs::write(&path, json!({"hooks": {"Stop": hook}}).to_string()).expect("hooks.json");
    lab.expect(0, &["setup", "codex", "--yes"]);
    let hooks: Value = serde_json::from_slice(&fs::read(&path).expect("hooks.json")).expect("JSON");
    lab.codex().trust_hooks(&path.to_string_lossy(), &hooks["hooks"]);
    touched
}

#[test]
fn codex_polishes_three_times_and_every_token_is_counted() {
    let claude = no_claude();
    let model = codex::ScriptedResponses::start(codex_polisher);
    let lab = Lab::new(&claude, &model);
    let touched = install_users_codex_things(&lab);
    lab.loop_type("polish", POLISH, PROMPT);

    lab.expect(0, &["loop", "run", "polish", "brass", "--agent", "codex", "--model", PRICED, "--max", "3"]);

    model.check_script();
    assert_eq!(fs::read_to_string(lab.project().join("brass.txt")).expect("brass"), "shiny\n");
    let status = lab.json(&["loop", "status", "brass"]);
    assert_eq!((&status["status"], &status["reason"]), (&json!("completed"), &json!("plateau")), "{status:#}");
    let tokens = |step: u64| 1_000 * step + 1 - (500 + step) + 100 * step + 2;
    assert_eq!(seen_history(&status), expected_history([3 * tokens(1), tokens(2), tokens(3)]), "{status:#}");
    let cost = |step: u64| cost_usd(PRICED, 1_000 * step + 1 - (500 + step), 100 * step + 2, 0, 500 + step);
    let (each, all) = costs(&status);
    assert_eq!(each, [cost(1) * 3.0, cost(2), cost(3)]);

    let spent = model.handed_out_of(Kind::Main);
    let usage = lab.json(&["usage"]);
    let counts = ["responses", "input_tokens", "output_tokens", "cache_creation_tokens", "cache_read_tokens"];
    assert_eq!(
        counts.map(|count| usage["totals"][count].as_u64()),
        [5, spent.input - spent.cached, spent.output, 0, spent.cached].map(Some),
        "{usage:#}"
    );
    assert!((usage["totals"]["cost_usd"].as_f64().expect("cost") - all).abs() < 1e-9, "{usage:#} {all}");

    assert!(!touched.exists(), "the user's hook ran");
    assert_no_trace(&lab, &model);
}

#[test]
fn with_user_hooks_codex_runs_the_users_hooks_and_ours_do_nothing() {
    let claude = no_claude();
    let model = codex::ScriptedResponses::start(|request| match request.tool_result("call_goal") {
        None => {
            let ours = |tool: &codex::Tool| tool.name == "create_goal" && tool.namespace.is_some();
            let tool = request.tools().into_iter().find(ours).expect("our tools are offered");
            codex::Reply::tool("call_goal", tool, json!({"objective": "Polish everything"}))
        }
        Some(result) => {
            assert!(result.contains("is an iteration of a run"), "{result}");
            codex_polisher(request)
        }
    });
    let lab = Lab::new(&claude, &model);
    let touched = install_users_codex_things(&lab);
    lab.loop_type("polish", POLISH, PROMPT);

    lab.expect(5, &["loop", "run", "polish", "brass", "--agent", "codex", "--max", "1", "--user-hooks"]);

    model.check_script();
    assert!(touched.exists(), "the user's hook did not run");
    assert_no_trace(&lab, &model);
}
