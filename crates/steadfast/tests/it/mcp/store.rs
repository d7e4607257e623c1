//! A missing, unusable or replaced store while the server runs.

use serde_json::json;
use steadfast_store::Store;

use super::world::{World, refusal, success};

const SESSION: &[(&str, &str)] = &[("CLAUDE_CODE_SESSION_ID", "s1")];

#[test]
fn the_store_is_created_by_the_first_goal_and_not_before() {
    let world = World::new();
    let mut server = world.server_with(SESSION);
    server.request("tools/list", &json!({}));
    assert_eq!(success(&server.call_with_id("get_goal", &json!({}), Some("toolu_x"))), json!({"goal": null}));
    let text = refusal(&server.call_with_id("abandon_goal", &json!({}), None));
    assert!(text.contains("does not exist"), "{text}");
    assert!(!world.path("goals.db").exists());
    success(&server.call_with_id("create_goal", &json!({"objective": "x"}), None));
    assert_eq!(world.goal("s1").objective, "x");
}

#[test]
fn a_corrupt_store_is_left_alone_and_used_again_after_repair() {
    let world = World::new();
    let garbage =
        b"this is not a database, and long enough to have a header of its own ........................".repeat(20);
    fs_err::write(world.path("goals.db"), &garbage).unwrap();
    let mut server = world.server_with(SESSION);
    for (tool, arguments) in [("get_goal", json!({})), ("create_goal", json!({"objective": "x"}))] {
        let text = refusal(&server.call_with_id(tool, &arguments, Some("toolu_x")));
        assert!(text.contains("is not a usable database"), "{tool}: {text}");
    }
    assert_eq!(fs_err::read(world.path("goals.db")).unwrap(), garbage);
    fs_err::remove_file(world.path("goals.db")).unwrap();
    success(&server.call_with_id("create_goal", &json!({"objective": "x"}), None));
    assert_eq!(server.end().0, 0);
}

#[test]
fn every_call_reports_a_store_that_cannot_be_created() {
    let world = World::new();
    let database = world.path("project/file/goals.db");
    fs_err::write(world.path("project/file"), "a file where a directory should be").unwrap();
    let variables = [SESSION[0], ("STEADFAST_DB", database.to_str().unwrap())];
    let mut server = world.server_with(&variables);
    for _ in 0..2 {
        let text = refusal(&server.call_with_id("create_goal", &json!({"objective": "x"}), None));
        assert!(text.contains("not a directory: "), "{text}");
    }
    fs_err::remove_file(world.path("project/file")).unwrap();
    success(&server.call_with_id("create_goal", &json!({"objective": "x"}), None));
}

#[test]
fn a_replaced_store_is_reopened() {
    let world = World::new();
    let mut server = world.server_with(SESSION);
    success(&server.call_with_id("create_goal", &json!({"objective": "the first"}), None));
    for suffix in ["", "-wal", "-shm", ".begun"] {
        let _ = fs_err::rename(world.path(&format!("goals.db{suffix}")), world.path(&format!("moved.db{suffix}")));
    }
    success(&server.call_with_id("create_goal", &json!({"objective": "the second"}), None));
    assert_eq!(world.goal("s1").objective, "the second");
}

/// `setup` does that while a session of the plugin is open.
#[test]
fn a_running_server_follows_the_hooks_to_another_store() {
    let world = World::new();
    let plugin = world.path("plugin");
    let mut server = world.server_with(&[SESSION[0], ("CLAUDE_PLUGIN_DATA", plugin.to_str().unwrap())]);
    success(&server.call_with_id("create_goal", &json!({"objective": "in the plugin"}), None));
    fs_err::write(world.path("config.toml"), format!("db = \"{}\"\n", world.path("goals.db").display())).unwrap();
    success(&server.call_with_id("create_goal", &json!({"objective": "in the home"}), None));
    assert_eq!(world.goal("s1").objective, "in the home");
    let left = Store::open(&plugin.join("goals.db")).unwrap();
    assert_eq!(left.read().goal("s1").unwrap().unwrap().objective, "in the plugin");
}

#[test]
fn a_server_whose_program_was_replaced_restarts_after_a_panic() {
    let world = World::new();
    let program = world.path("steadfast");
    fs_err::copy(env!("CARGO_BIN_EXE_steadfast"), &program).unwrap();
    let mut server = world.server_of(&program, &[SESSION[0], ("STEADFAST_CRASH_AT", "mcp.tool")]);
    fs_err::remove_file(&program).unwrap();
    refusal(&server.call_with_id("create_goal", &json!({"objective": "x"}), None));
    success(&server.call_with_id("create_goal", &json!({"objective": "x"}), None));
    assert_eq!(server.end().0, 0);
}

#[test]
fn a_panic_in_a_tool_is_its_answer_and_the_server_restarts() {
    let world = World::new();
    let mut server = world.server_with(&[SESSION[0], ("STEADFAST_CRASH_AT", "mcp.tool")]);
    let text = refusal(&server.call_with_id("create_goal", &json!({"objective": "x"}), None));
    assert!(text.contains("internal error"), "{text}");
    success(&server.call_with_id("create_goal", &json!({"objective": "x"}), None));
    assert_eq!(world.goal("s1").objective, "x");
    assert_eq!(server.end().0, 0);
}

#[test]
fn a_read_that_fails_after_the_change_does_not_undo_the_answer() {
    let world = World::new();
    let mut server = world.server_with(SESSION);
    success(&server.call_with_id("create_goal", &json!({"objective": "x"}), None));
    let rename = |sql: &str| rusqlite::Connection::open(world.path("goals.db")).unwrap().execute_batch(sql).unwrap();
    rename("ALTER TABLE verifications RENAME TO away");
    assert!(refusal(&server.call_with_id("get_goal", &json!({}), None)).contains("verifications"));
    let calls = [
        ("update_goal", json!({"status": "complete"}), "complete"),
        ("create_goal", json!({"objective": "y"}), "active"),
        ("abandon_goal", json!({}), "abandoned"),
    ];
    for (tool, arguments, status) in calls {
        let saved = success(&server.call_with_id(tool, &arguments, None));
        assert_eq!(saved["goal"]["status"], status, "{tool}: {saved}");
        assert!(saved["incomplete"].as_str().unwrap().contains("the change is saved"), "{tool}: {saved}");
    }
    rename("ALTER TABLE away RENAME TO verifications");
    assert_eq!(world.goal("s1").objective, "y");
}
