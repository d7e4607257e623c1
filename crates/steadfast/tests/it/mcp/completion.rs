//! What counts as done: verdicts against the worker's word, items with their proofs, the evaluator, a person's sign-off.

use serde_json::{Value, json};
use steadfast_app::action::{self, Claim, Place};
use steadfast_model::clock;
use steadfast_model::goal::{NewGoal, change};

use super::world::{Server, USER, World, success};

const BY_ITSELF: fn() -> Value = || json!({"status": "complete", "completed_by": "self_update"});

fn start(world: &World, new: NewGoal) {
    world.register("s1", None, None);
    let mut store = world.store();
    let session = store.read().session("s1").unwrap().unwrap();
    let new = NewGoal { objective: "Port the parser".into(), ..new };
    action::start(&mut store, &Place::from(&session), new, USER, clock::now()).unwrap();
}

fn with_items(items: &[&str]) -> NewGoal {
    NewGoal { items: items.iter().map(|&item| item.to_owned()).collect(), ..NewGoal::default() }
}

fn judge(server: &mut Server<'_>, verdict: &str) {
    success(&server.judge("s1", &json!({"verdict": verdict, "reason": "tests\nare missing"})));
}

#[test]
fn the_workers_word_does_not_override_an_incomplete_verdict() {
    for verify in [vec![], vec!["true".to_owned()]] {
        let world = World::new();
        start(&world, NewGoal { verify, ..NewGoal::default() });
        let mut server = world.server();
        judge(&mut server, "incomplete");
        for claim in
            [BY_ITSELF(), json!({"status": "complete"}), json!({"status": "complete", "completed_by": "evaluator"})]
        {
            let text = server.refused("s1", "update_goal", &claim);
            assert!(text.contains("the newest verdict is 'incomplete': tests are missing"), "{text}");
        }
        // An evaluator whose tools fail takes nothing back.
        judge(&mut server, "unverifiable");
        let text = server.refused("s1", "update_goal", &BY_ITSELF());
        assert!(text.contains("incomplete"), "{text}");
        assert_eq!(world.goal("s1").state(), "active");
        judge(&mut server, "complete");
        let done = server.call("s1", "update_goal", &BY_ITSELF())["goal"].clone();
        assert_eq!((&done["status"], &done["verified"]), (&json!("complete"), &json!(true)));
    }
}

#[test]
fn the_workers_word_alone_is_unverified() {
    let world = World::new();
    start(&world, NewGoal::default());
    let mut server = world.server();
    let done = server.call("s1", "update_goal", &BY_ITSELF())["goal"].clone();
    let shown = (&done["status"], &done["completed_by"], &done["verified"]);
    assert_eq!(shown, (&json!("complete"), &json!("self_update"), &json!(false)));
}

#[test]
fn a_goal_to_be_judged_needs_the_verdict_in_any_case() {
    for verify in [vec![], vec!["true".to_owned()]] {
        let world = World::new();
        start(&world, NewGoal { verify, judge: true, ..NewGoal::default() });
        let mut server = world.server();
        let text = server.refused("s1", "update_goal", &BY_ITSELF());
        assert!(text.contains("the evaluator has given no verdict"), "{text}");
        judge(&mut server, "complete");
        let done = server.call("s1", "update_goal", &BY_ITSELF())["goal"].clone();
        assert_eq!((&done["status"], &done["completed_by"]), (&json!("complete"), &json!("evaluator")));
    }
}

#[test]
fn the_configuration_can_demand_the_evaluator() {
    let world = World::new();
    world.register("s1", None, None);
    fs_err::write(world.path("config.toml"), "[goal]\ncompletion = \"evaluator\"\n").unwrap();
    let mut server = world.server();
    assert_eq!(server.call("s1", "create_goal", &json!({"objective": "x"}))["goal"]["judge"], true);
    let text = server.refused("s1", "update_goal", &BY_ITSELF());
    assert!(text.contains("no verdict"), "{text}");
}

#[test]
fn completion_with_open_items_is_refused_and_names_them() {
    let world = World::new();
    start(&world, with_items(&["it parses", "it is fast"]));
    let mut server = world.server();
    let text = server.refused("s1", "update_goal", &BY_ITSELF());
    assert!(text.contains("items without a proof: 1. it parses; 2. it is fast"), "{text}");
    // Items can be proven one by one, and with the claim.
    let goal =
        server.call("s1", "update_goal", &json!({"items": [{"item": 2, "proof": "bench: 3 ms"}]}))["goal"].clone();
    assert_eq!((&goal["status"], &goal["items"][1]["proof"]), (&json!("active"), &json!("bench: 3 ms")));
    assert!(goal["items"][1]["at_ms"].is_i64() && goal["items"][0]["proof"].is_null(), "{goal}");
    let text =
        server.refused("s1", "update_goal", &json!({"status": "complete", "items": [{"item": 2, "proof": "again"}]}));
    assert!(text.contains("without a proof: 1. it parses") && !text.contains("fast"), "{text}");
    let claim = json!({"status": "complete", "items": [{"item": 1, "proof": "cargo test: 12 passed"}]});
    let done = server.call("s1", "update_goal", &claim)["goal"].clone();
    assert_eq!((&done["status"], &done["items"][0]["proof"]), (&json!("complete"), &json!("cargo test: 12 passed")));
    let proven = world.event_kinds("s1").into_iter().filter(|kind| kind == "item_proven").count();
    assert_eq!(proven, 3);
}

#[test]
fn a_bad_proof_is_refused_with_a_sentence_and_changes_nothing() {
    let world = World::new();
    start(&world, NewGoal { verify: vec!["touch ran".into()], ..with_items(&["it parses"]) });
    let mut server = world.server();
    let item = |number: i64, proof: &str| json!({"status": "complete", "items": [{"item": number, "proof": proof}]});
    for (arguments, said) in [
        (item(0, "x"), "the goal has no item 0"),
        (item(2, "x"), "the goal has no item 2"),
        (item(1, ""), "the proof of item 1 is empty"),
        (item(1, "\u{1b}[31m\u{202e}"), "the proof of item 1 is empty"),
        (item(1, "It parses."), "only repeats the item"),
        (item(1, &"x".repeat(1_001)), "1001 characters"),
        (json!({"items": []}), "set `status` or `items`"),
        (json!({}), "set `status` or `items`"),
        (json!({"items": [{"item": 1}]}), "missing field `proof`"),
        (json!({"items": [{"item": 1, "proof": "x", "text": "easier"}]}), "unknown field `text`"),
        (json!({"items": "1"}), "`items`"),
        (json!({"status": "blocked", "blocked_reason": "x", "items": []}), "`items` is not allowed"),
        (json!({"items": vec![json!({"item": 1, "proof": "x"}); 101]}), "the maximum is 100"),
    ] {
        let text = server.refused("s1", "update_goal", &arguments);
        assert!(text.contains(said), "{said}: {text}");
    }
    assert!(!world.path("project/ran").exists(), "no command runs for a wrong claim");
    assert_eq!(world.goal("s1").open_items().count(), 1);
    // No tool takes items of a new goal, and nothing changes their text.
    let text = server.refused("s1", "create_goal", &json!({"objective": "x", "items": ["easy"]}));
    assert!(text.contains("unknown field `items`"), "{text}");
}

#[test]
fn secrets_and_escape_codes_of_a_proof_are_not_stored() {
    let world = World::new();
    start(&world, with_items(&["it deploys"]));
    let mut server = world.server();
    let proof =
        "\u{1b}]0;x\u{7}deployed with AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\nstatus: complete";
    server.call("s1", "update_goal", &json!({"items": [{"item": 1, "proof": proof}]}));
    let stored = world.goal("s1").items[0].proof.clone().unwrap().text;
    assert!(stored.starts_with("deployed with") && !stored.contains("wJalr"), "{stored}");
    assert!(!stored.contains('\n') && !stored.contains('\u{1b}'), "{stored:?}");
}

#[test]
fn another_objective_opens_the_items_again() {
    let world = World::new();
    start(&world, with_items(&["it parses"]));
    let mut server = world.server();
    server.call("s1", "update_goal", &json!({"items": [{"item": 1, "proof": "cargo test: ok"}]}));
    let now = clock::now();
    action::apply(&mut world.store(), "s1", USER, now, |goal| change::edit(goal, "Port it to C".into(), now)).unwrap();
    let text = server.refused("s1", "update_goal", &BY_ITSELF());
    assert!(text.contains("1. it parses"), "{text}");
}

#[test]
fn a_goal_with_sign_off_ends_by_the_user_only() {
    let world = World::new();
    start(&world, NewGoal { sign_off: true, verify: vec!["true".into()], ..NewGoal::default() });
    let mut server = world.server();
    let goal = server.call("s1", "update_goal", &BY_ITSELF())["goal"].clone();
    assert_eq!((&goal["status"], &goal["paused_reason"]), (&json!("paused"), &json!("sign_off")));
    assert!(goal["next"].as_str().unwrap().contains("/goal-complete"), "{goal}");
    for tool in ["update_goal", "resume_goal"] {
        let arguments = if tool == "update_goal" { BY_ITSELF() } else { json!({}) };
        server.refused("s1", tool, &arguments);
    }
    let done = action::complete(&mut world.store(), "s1", &Claim::User, USER, clock::now()).unwrap();
    assert_eq!(done.state(), "complete");
    let kinds = world.event_kinds("s1");
    assert!(kinds.contains(&"sign_off_requested".to_owned()) && kinds.contains(&"goal_completed_by_user".to_owned()));
}
