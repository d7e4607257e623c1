//! `steadfast run "OBJECTIVE"` with the real client: a claim to be done is not enough.

use super::lab::{Lab, no_codex};
use crate::model::ScriptedModel;
use crate::reply::{Reply, Usage};
use crate::request::Kind;
use serde_json::{Value, json};

#[test]
fn a_goal_is_met_when_its_checks_pass_not_when_an_agent_claims_it() {
    let model = ScriptedModel::start(|request| {
        let prompt = request.last_user_text();
        assert!(prompt.contains("<objective>\nThere is a file done.txt &amp; it lasts\n</objective>"), "{prompt}");
        let reply = if prompt.starts_with("You are iteration 1 of") {
            Reply::text("Everything is done, believe me.")
        } else if request.has_tool_result("toolu_touch") {
            Reply::text("Now it is there.")
        } else {
            let input = json!({"command": "touch done.txt", "description": "Make the file"});
            Reply::default().and_tool_with_id("toolu_touch", "Bash", input)
        };
        reply.usage(Usage::new(1_000, 100, 10, 5))
    });
    let codex = no_codex();
    let lab = Lab::new(&model, &codex);
    let objective = "There is a file done.txt & it lasts";

    lab.expect(0, &["run", objective, "--verify", "test -f done.txt", "--agent", "claude"]);

    model.check_script();
    assert_eq!(model.requests_of(Kind::Main).len(), 3);
    let history = lab.json(&["goal", "history", "--all"]);
    let [goal] = &history["goals"].as_array().expect("goals")[..] else { panic!("{history:#}") };
    assert_eq!(
        json!([goal["objective"], goal["status"], goal["total_tokens"], goal["continuations_used"], goal["verify"]]),
        json!([objective, "complete", 3 * 1_110, 2, ["test -f done.txt"]]),
        "{goal:#}"
    );
    assert_eq!(goal["last_verification"]["exit_code"], 0, "{goal:#}");
    let events = history["events"].as_array().expect("events");
    let about = |start: &str| -> Vec<&Value> {
        events.iter().filter(|event| event["kind"].as_str().is_some_and(|kind| kind.starts_with(start))).collect()
    };
    let checks: Vec<&Value> = about("verification_").iter().map(|event| &event["kind"]).collect();
    assert_eq!(checks, ["verification_failed", "verification_passed"]);
    let [completed] = about("goal_completed")[..] else { panic!("{events:#?}") };
    assert_eq!(completed["payload"]["completed_by"], "verification", "{completed:#}");
    let tokens: i64 = events.iter().filter_map(|event| event["tokens_delta"].as_i64()).sum();
    assert_eq!(tokens, 3 * 1_110, "{events:#?}");
}
