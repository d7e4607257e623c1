//! Which session's goal a call is about.

use serde_json::json;
use steadfast_model::clock;

use super::world::{World, refusal, success};

#[test]
fn two_sessions_of_one_server_never_change_each_others_goal() {
    let world = World::new();
    let mut server = world.server_with(&[("CLAUDE_CODE_SESSION_ID", "stale")]);
    for session in ["s1", "s2"] {
        world.register(session, None, None);
        let objective = format!("goal of {session}");
        server.call(session, "create_goal", &json!({"objective": objective}));
    }
    let first = world.goal("s1").goal_id;
    for (tool, arguments) in [
        ("abandon_goal", json!({"goal_id": first})),
        ("update_goal", json!({"status": "complete", "goal_id": first})),
        ("update_objective", json!({"objective": "taken over", "goal_id": first})),
    ] {
        assert!(server.refused("s2", tool, &arguments).contains("`goal_id`"), "{tool}");
    }
    server.call("s2", "abandon_goal", &json!({}));
    let (one, two) = (world.goal("s1"), world.goal("s2"));
    assert_eq!((one.status.to_string().as_str(), one.objective.as_str()), ("active", "goal of s1"));
    assert_eq!(two.status.to_string(), "abandoned");
    let seen = server.call("s1", "get_goal", &json!({}))["goal"].clone();
    assert_eq!(seen["objective"], "goal of s1");
    assert!(world.store().read().goal("stale").unwrap().is_none());
}

#[test]
fn a_late_note_is_waited_for() {
    let world = World::new();
    world.register("s1", None, None);
    let mut server = world.server_with(&[("CLAUDE_CODE_SESSION_ID", "stale")]);
    let answer = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(100));
            world.note_as("toolu_late", "s1", "");
        });
        server.call_with_id("create_goal", &json!({"objective": "x"}), Some("toolu_late"))
    });
    assert_eq!(success(&answer)["goal"]["session_id"], "s1");
}

#[test]
fn without_a_note_the_clients_own_file_comes_before_the_environment() {
    let world = World::new();
    let file = world.path(&format!("claude/sessions/{}.json", world.client_pid()));
    let mut server = world.server_with(&[("CLAUDE_CODE_SESSION_ID", "from-environment")]);
    fs_err::write(&file, r#"{"pid": 1, "sessionId": "from-file", "cwd": "/"}"#).unwrap();
    let answer = server.call_with_id("create_goal", &json!({"objective": "x"}), None);
    let goal = success(&answer)["goal"].clone();
    assert_eq!(goal["session_id"], "from-file");
    let here = fs_err::canonicalize(world.path("project")).unwrap();
    assert_eq!(goal["project_dir"], json!(here.to_str()), "an unregistered session lives where the server runs");

    for useless in ["{\"pid\": 1}", "not json", ""] {
        fs_err::write(&file, useless).unwrap();
        let answer = success(&server.call_with_id("get_goal", &json!({}), None));
        assert_eq!(answer, json!({"goal": null}), "{useless}");
    }
    let answer = server.call_with_id("create_goal", &json!({"objective": "x"}), Some("toolu_unknown"));
    assert_eq!(success(&answer)["goal"]["session_id"], "from-environment");
    fs_err::write(&file, r#"{"sessionId": "../../etc/passwd"}"#).unwrap();
    let text = refusal(&server.call_with_id("get_goal", &json!({}), None));
    assert!(text.contains("not a session id"), "{text}");
}

#[test]
fn a_session_that_has_ended_is_not_taken_from_the_environment() {
    let world = World::new();
    world.register("old", None, Some(clock::now()));
    let mut server = world.server_with(&[("CLAUDE_CODE_SESSION_ID", "old")]);
    for tool in ["get_goal", "resume_goal"] {
        let text = refusal(&server.call_with_id(tool, &json!({}), None));
        assert!(text.starts_with("unknown session"), "{text}");
        assert!(text.contains("steadfast doctor"), "{text}");
    }
}

#[test]
fn a_call_without_a_session_is_refused() {
    let world = World::new();
    let mut server = world.server();
    let text = refusal(&server.call_with_id("create_goal", &json!({"objective": "x"}), None));
    assert!(text.starts_with("unknown session"), "{text}");
    assert!(!world.path("goals.db").exists());
}
