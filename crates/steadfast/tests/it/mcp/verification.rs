//! Goals with verification commands.

use serde_json::json;
use steadfast_app::action::{self, Place};
use steadfast_model::clock;
use steadfast_model::goal::{NewGoal, change};

use super::world::{USER, World, success};

fn start(world: &World, session_id: &str, verify: &[&str]) {
    world.register(session_id, None, None);
    let mut store = world.store();
    let session = store.read().session(session_id).unwrap().unwrap();
    let new = NewGoal {
        objective: "x".into(),
        verify: verify.iter().map(|&command| command.into()).collect(),
        ..NewGoal::default()
    };
    action::start(&mut store, &Place::from(&session), new, USER, clock::now()).unwrap();
}

#[test]
fn completion_is_refused_with_the_output_of_a_failing_check() {
    let world = World::new();
    let checks = ["echo first check", "echo on stdout; echo it is broken >&2; test -e mended"];
    start(&world, "s1", &checks);
    let mut server = world.server();
    let text = server.refused("s1", "update_goal", &json!({"status": "complete"}));
    assert!(text.contains("verification failed"), "{text}");
    assert!(text.contains("exited with 1") && text.contains("it is broken"), "{text}");
    assert_eq!(world.goal("s1").status.to_string(), "active");

    success(&server.judge("s1", &json!({"verdict": "complete"})));
    let evaluated = json!({"status": "complete", "completed_by": "evaluator"});
    let text = server.refused("s1", "update_goal", &evaluated);
    assert!(text.contains("it is broken"), "a verdict does not replace the user's checks: {text}");

    fs_err::write(world.path("project/mended"), "").unwrap();
    let done = server.call("s1", "update_goal", &json!({"status": "complete"}))["goal"].clone();
    assert_eq!(done["status"], "complete");
    assert_eq!(done["last_verification"]["exit_code"], 0);
}

#[test]
fn a_goal_that_cannot_be_completed_now_runs_no_checks() {
    let world = World::new();
    start(&world, "s1", &["touch ran"]);
    let now = clock::now();
    action::apply(&mut world.store(), "s1", USER, now, |goal| change::pause(goal, now)).unwrap();
    let text = world.server().refused("s1", "update_goal", &json!({"status": "complete"}));
    assert!(text.contains("paused (user)"), "{text}");
    assert!(!world.path("project/ran").exists());
}

#[test]
fn the_server_answers_while_checks_run() {
    let world = World::new();
    start(&world, "s1", &["touch started; until test -e go; do sleep 0.02; done"]);
    let mut server = world.server();
    let note = world.note("s1", "");
    let meta = json!({"claudecode/toolUseId": note});
    let slow =
        server.ask("tools/call", &json!({"name": "update_goal", "arguments": {"status": "complete"}, "_meta": meta}));
    while !world.path("project/started").exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert_eq!(server.request("ping", &json!({}))["result"], json!({}));
    assert_eq!(server.call("s1", "get_goal", &json!({}))["goal"]["status"], "active");
    fs_err::write(world.path("project/go"), "").unwrap();
    let answer = server.receive();
    assert_eq!(answer["id"], json!(slow));
    assert_eq!(success(&answer)["goal"]["status"], "complete");
}
