//! A run in the background: started with `--detach`, watched with `attach` and `logs -f`, read afterwards with `logs`.

use super::lab::{Gate, Lab, eventually, no_codex, wait};
use crate::model::ScriptedModel;
use crate::reply::Reply;
use crate::with_steadfast::work;
use serde_json::json;

#[test]
fn a_detached_run_is_watched_from_other_terminals() {
    let gate = Gate::default();
    let in_script = gate.clone();
    let model = ScriptedModel::start(move |request| {
        let prompt = request.last_user_text();
        if prompt.starts_with("Step 1.") {
            return Reply::text("Did step 1.");
        }
        if !request.has_tool_result("toolu_work") {
            return work("toolu_work").and_text("Looking around in step 2.");
        }
        in_script.pass();
        Reply::text("Did step 2.")
    });
    let codex = no_codex();
    let lab = Lab::new(&model, &codex);
    lab.loop_type("steps", "name: steps\ncompletion: fixed-n\ndelay: 0\n", "Step ${ITERATION}.\n");

    let started = lab.expect(0, &["loop", "run", "steps", "walk", "--agent", "claude", "--max", "2", "--detach"]);
    assert!(started.stdout.contains("steadfast loop attach walk"), "{started:?}");
    eventually("the second step", || lab.json(&["loop", "status", "walk"])["iteration"] == 1);
    let attached = lab.start("attach", &["loop", "attach", "walk"]);
    let following = lab.start("follow", &["loop", "logs", "walk", "-f"]);
    for terminal in ["attach", "follow"] {
        eventually(terminal, || lab.printed(terminal).contains("Looking around in step 2."));
    }
    let listed = lab.json(&["loop", "list"]);
    assert_eq!(json!([listed["runs"][0]["name"], listed["runs"][0]["live"]]), json!(["walk", true]), "{listed:#}");
    lab.expect(3, &["loop", "run", "steps", "walk", "--agent", "claude"]);
    gate.open();

    assert_eq!(wait(attached, "attach"), Some(0), "{}", lab.printed("attach"));
    assert_eq!(wait(following, "logs -f"), Some(0), "{}", lab.printed("follow"));
    model.check_script();
    let followed = lab.printed("follow");
    assert!(followed.ends_with("Looking around in step 2.\nDid step 2.\n"), "{followed}");
    let attached = lab.printed("attach");
    assert!(attached.contains("Did step 2.\nloop walk (steps): completed (fixed-n)\n"), "{attached}");
    let first = lab.expect(0, &["loop", "logs", "walk", "--iteration", "1"]);
    assert_eq!(first.stdout, "Did step 1.\n");
    lab.expect(3, &["loop", "attach", "walk"]);
}
