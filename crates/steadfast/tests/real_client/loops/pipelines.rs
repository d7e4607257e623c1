//! A pipeline with both clients: the second stage reads the output of the first. One of `examples/` with each of them.

use super::lab::{Lab, no_claude, no_codex};
use crate::codex;
use crate::model::ScriptedModel;
use crate::reply::{Reply, Usage};
use crate::request::Kind;
use serde_json::{Value, json};
use std::fs;

const RELAY: &str = "\
name: relay
defaults: {delay: 0}
stages:
  - name: draft
    agent: claude
    prompt: |
      Draft a note for ${SESSION}.
  - name: review
    agent: codex
    prompt: |
      Review this draft:
      ${INPUTS}
      (from ${INPUTS.draft})
";
/// Text that a careless substitution would replace.
const DRAFT: &str = "Dear <all> & none,\n${INPUTS} and ${SESSION} cost $1.\n\"Yours\"";

#[test]
fn codex_reviews_what_claude_drafts() {
    let claude = ScriptedModel::start(|request| {
        assert!(request.last_user_text().starts_with("Draft a note for baton."), "{request:?}");
        Reply::text(DRAFT).usage(Usage::new(1_001, 102, 13, 7))
    });
    let codex = codex::ScriptedResponses::start(|_| {
        codex::Reply::text("The draft is fine.").usage(codex::Usage::new(2_000, 500, 30, 10))
    });
    let lab = Lab::new(&claude, &codex);
    let folder = lab.project().join(".claude/pipelines");
    fs::create_dir_all(&folder).expect("folder");
    fs::write(folder.join("relay.yaml"), RELAY).expect("pipeline");

    lab.expect(0, &["pipeline", "run", "relay", "baton"]);

    claude.check_script();
    codex.check_script();
    let [asked] = &codex.requests_of(Kind::Main)[..] else { panic!("{:?}", codex.requests()) };
    let expected = format!("Review this draft:\n{DRAFT}\n(from {DRAFT})\n\n---");
    assert!(asked.last_user_text().starts_with(&expected), "{}", asked.last_user_text());

    let status = lab.json(&["pipeline", "status", "baton"]);
    let rows = status["history"].as_array().expect("history").iter();
    let seen: Vec<Value> = rows.map(|row| json!([row["stage_name"], row["iteration"], row["tokens"]])).collect();
    assert_eq!(json!(seen), json!([["draft", 1, 1_116], ["review", 1, 1_530]]), "{status:#}");
    assert_eq!((&status["status"], &status["tokens"]), (&json!("completed"), &json!(2_646)), "{status:#}");
    let output = |stage: &str| {
        let run = lab.project().join(".claude/pipeline-runs/baton");
        fs::read_to_string(run.join(stage).join("output.md")).expect("output.md")
    };
    assert_eq!(output("stage-1-draft").trim_end(), DRAFT);
    assert_eq!(output("stage-2-review").trim_end(), "The draft is fine.");
}

/// What the model does for a prompt of the checklist example.
fn work_for(prompt: &str) -> &'static str {
    if prompt.starts_with("Read PLAN.md.") {
        return "sed -i '0,/- \\[ \\]/s//- [x]/' PLAN.md";
    }
    assert!(prompt.starts_with("All items of PLAN.md are done."), "{prompt}");
    "echo 'two things' > CHANGES.md"
}

/// Runs the checklist example in a project with two open items.
fn run_checklist(lab: &Lab, flags: &[&str]) {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/checklist/pipeline.yaml");
    fs::copy(example, lab.project().join("pipeline.yaml")).expect("pipeline");
    fs::write(lab.project().join("PLAN.md"), "- [ ] one\n- [ ] two\n").expect("plan");
    let check = lab.project().join("check.sh");
    fs::write(&check, "#!/bin/sh\ngrep -q x PLAN.md\n").expect("checks");
    fs::set_permissions(&check, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("permissions");

    lab.expect(0, &[&["pipeline", "run", "./pipeline.yaml", "list"], flags].concat());

    let status = lab.json(&["pipeline", "status", "list"]);
    let stages = status["stages"].as_array().expect("stages").iter();
    let seen: Vec<Value> =
        stages.map(|stage| json!([stage["name"], stage["status"], stage["iterations_run"]])).collect();
    assert_eq!(json!(seen), json!([["work", "completed", 2], ["summary", "completed", 1]]), "{status:#}");
    let kept = lab.project().join(".claude/pipeline-runs/list/artifacts/changes");
    assert_eq!(fs::read_to_string(kept).expect("artifact"), "two things\n");
    assert!(status["cost_usd"].as_f64().is_some_and(|cost| cost > 0.0), "{status:#}");
}

#[test]
fn claude_works_through_the_checklist_of_the_example() {
    let claude = ScriptedModel::start(|request| {
        if request.has_tool_result("toolu_work") {
            return Reply::text("Done.").usage(Usage::new(100, 10, 1, 7));
        }
        let input = json!({"command": work_for(&request.last_user_text()), "description": "Work on the next item"});
        Reply::text("Working.").and_tool_with_id("toolu_work", "Bash", input).usage(Usage::new(100, 10, 1, 7))
    });
    let codex = no_codex();
    run_checklist(&Lab::new(&claude, &codex), &[]);
    claude.check_script();
}

#[test]
fn codex_works_through_the_checklist_of_the_example() {
    let codex = codex::ScriptedResponses::start(|request| {
        let reply = if request.has_tool_result("call_work") {
            codex::Reply::text("Done.")
        } else {
            codex::Reply::shell("call_work", work_for(&request.last_user_text()))
        };
        reply.usage(codex::Usage::new(100, 50, 10, 3))
    });
    let claude = no_claude();
    // A model that has a price, because the example has a limit in dollars.
    run_checklist(&Lab::new(&claude, &codex), &["--agent", "codex", "--model", "gpt-5"]);
    codex.check_script();
    assert_eq!(codex.requests_of(Kind::Main).len(), 6, "each iteration works and says so");
}
