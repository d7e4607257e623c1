//! A used-up plan during a run: the run waits for the reset that the client reports, then repeats the iteration.

use super::lab::{Lab, no_claude, no_codex};
use crate::codex;
use crate::model::ScriptedModel;
use crate::reply::{Reply, Usage};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicI64, Ordering};
use steadfast_model::clock;

/// A few seconds from now, in the format of the clients' services.
const AHEAD_SECONDS: i64 = 5;

/// The time of the plan reset, for the first request of the second step; `reset` is 0 until then. Panics if a request
/// comes before the reset.
fn refused(reset: &AtomicI64, prompt: &str) -> Option<u64> {
    let now = clock::now() / 1_000;
    match reset.load(Ordering::SeqCst) {
        0 if prompt.starts_with("Step 2.") => {
            reset.store(now + AHEAD_SECONDS, Ordering::SeqCst);
            Some(u64::try_from(now + AHEAD_SECONDS).expect("now"))
        }
        resets_at => {
            assert!(now >= resets_at, "asked {} s too early", resets_at - now);
            None
        }
    }
}

/// Runs three steps and checks their records.
fn walk(lab: &Lab, agent: &str) {
    lab.loop_type("steps", "name: steps\ncompletion: fixed-n\ndelay: 0\n", "Step ${ITERATION}.\n");
    let printed = lab.expect(0, &["loop", "run", "steps", "walk", "--agent", agent, "--max", "3"]);
    assert!(printed.stderr.contains("iteration 2/3 failed (usage_limit): You"), "{printed:?}");

    let status = lab.json(&["loop", "status", "walk"]);
    let rows = status["history"].as_array().expect("history").iter();
    let seen: Vec<Value> =
        rows.map(|row| json!([row["iteration"], row["attempts"], row["summary"], row["tokens"]])).collect();
    let expected = json!([[1, 1, "Did step 1.", 111], [2, 2, "Did step 2.", 111], [3, 1, "Did step 3.", 111]]);
    assert_eq!(json!(seen), expected, "{status:#}");
}

fn answer(prompt: &str) -> String {
    let step = prompt.strip_prefix("Step ").and_then(|rest| rest.split('.').next()).expect("the prompt");
    format!("Did step {step}.")
}

#[test]
fn claude_waits_for_its_plan_reset_and_repeats_the_iteration() {
    let reset = AtomicI64::default();
    let model = ScriptedModel::start(move |request| match refused(&reset, &request.last_user_text()) {
        Some(resets_at) => Reply::usage_limit(resets_at),
        None => Reply::text(answer(&request.last_user_text())).usage(Usage::new(100, 10, 1, 7)),
    });
    let codex = no_codex();
    // Plan limits need a login to a plan; an empty key is not one.
    let lab = Lab::new(&model, &codex)
        .env("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-not-a-token-000000000000000000000000000000")
        .env("ANTHROPIC_API_KEY", "");
    walk(&lab, "claude");
    model.check_script();
}

#[test]
fn codex_waits_for_its_plan_reset_and_repeats_the_iteration() {
    let reset = AtomicI64::default();
    let claude = no_claude();
    let model = codex::ScriptedResponses::start(move |request| match refused(&reset, &request.last_user_text()) {
        Some(resets_at) => codex::Reply::usage_limit(resets_at),
        None => codex::Reply::text(answer(&request.last_user_text())).usage(codex::Usage::new(107, 7, 11, 0)),
    });
    let lab = Lab::new(&claude, &model);
    walk(&lab, "codex");
    model.check_script();
}
