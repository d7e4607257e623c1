//! The life cycle of a goal through the tools, and what the worker may not do.

use serde_json::json;
use steadfast_app::action::{self, Place};
use steadfast_model::clock;
use steadfast_model::goal::{NewGoal, change};
use steadfast_model::limit::Axis;

use super::world::{Server, USER, World};

#[test]
fn a_goal_is_created_read_and_completed() {
    let world = World::new();
    world.register("s1", None, None);
    let mut server = world.server();
    assert_eq!(server.call("s1", "get_goal", &json!({})), json!({"goal": null}));

    let arguments = json!({"objective": "  make it green ", "token_budget": 500_000, "max_turns": 7, "max_hours": 1.5, "max_usd": 2.5});
    let created = server.call("s1", "create_goal", &arguments)["goal"].clone();
    assert_eq!(created["objective"], "make it green");
    assert_eq!(created["status"], "active");
    assert_eq!(created["session_id"], "s1");
    assert_eq!(created["token_budget"], 500_000);
    assert_eq!(created["remaining_tokens"], 500_000);
    assert_eq!(created["continuations_remaining"], 7);
    assert_eq!(created["usd_budget"], 2.5);
    assert_eq!(created["project_dir"], json!(world.path("project").to_str()));
    assert_eq!(world.goal("s1").limits.get(Axis::Hours), Some(5_400_000));

    let seen = server.call("s1", "get_goal", &json!({}))["goal"].clone();
    assert_eq!(seen["goal_id"], created["goal_id"]);

    let id = json!({"status": "complete", "goal_id": created["goal_id"]});
    let done = server.call("s1", "update_goal", &id);
    assert_eq!(done["goal"]["status"], "complete");
    let kinds = world.event_kinds("s1");
    assert!(kinds.contains(&"goal_completed_by_self_update".to_owned()), "{kinds:?}");
    let text = server.refused("s1", "update_goal", &json!({"status": "complete"}));
    assert!(text.contains("the goal is complete"), "{text}");

    let next = server.call("s1", "create_goal", &json!({"objective": "the next one"}));
    assert_eq!(next["goal"]["status"], "active", "a completed goal makes room");
}

#[test]
fn an_iteration_of_a_run_has_no_goal_of_its_own() {
    let world = World::new();
    let mut server = world.server_below_supervisor();
    let text = server.refused("s1", "create_goal", &json!({"objective": "mine"}));
    assert!(text.contains("is an iteration of a run"), "{text}");
    assert_eq!(server.call("s1", "get_goal", &json!({})), json!({"goal": null}));
}

#[test]
fn budget_profiles_and_nulls_are_understood() {
    let world = World::new();
    world.register("s1", None, None);
    let mut server = world.server();
    let arguments = json!({"objective": "migrate the store", "budget_profile": "auto", "token_budget": null});
    let goal = server.call("s1", "create_goal", &arguments)["goal"].clone();
    assert_eq!(goal["budget_profile"], "deep");
    assert_eq!(goal["budget_source"], "auto");
    assert_eq!(goal["token_budget"], 100_000_000);
    let arguments = json!({"objective": "x", "budget_profile": "quick", "max_turns": 3});
    let goal = server.call("s2", "create_goal", &arguments)["goal"].clone();
    assert_eq!((&goal["token_budget"], &goal["continuations_remaining"]), (&json!(2_000_000), &json!(3)));
}

#[test]
fn a_second_goal_is_refused_with_the_status_of_the_first() {
    let world = World::new();
    world.register("s1", None, None);
    let mut server = world.server();
    server.call("s1", "create_goal", &json!({"objective": "the first"}));
    let text = server.refused("s1", "create_goal", &json!({"objective": "the second"}));
    assert!(text.contains("a goal already exists in status 'active': the first"), "{text}");
    let blocked = json!({"status": "blocked", "blocked_reason": "no network"});
    let text = server.refused("s1", "update_goal", &blocked);
    assert!(text.contains("only after 3 turns; this is turn 1"), "{text}");
    world.prompt("s1");
    server.call("s1", "update_goal", &blocked);
    let text = server.refused("s1", "create_goal", &json!({"objective": "the second"}));
    assert!(text.contains("status 'blocked'"), "{text}");
    assert_eq!(world.goal("s1").objective, "the first");
}

#[test]
fn the_worker_may_resume_a_goal_it_blocked_itself() {
    let world = World::new();
    world.register("s1", None, None);
    let mut server = world.server();
    server.call("s1", "create_goal", &json!({"objective": "x"}));
    world.prompt("s1");
    let reason = "the API key is missing: \"quotes\" | pipes \\ and \u{1b}[31mcolour";
    let blocked = server.call("s1", "update_goal", &json!({"status": "blocked", "blocked_reason": reason}));
    assert_eq!(blocked["goal"]["status"], "blocked");
    assert_eq!(blocked["goal"]["blocked_reason"], reason);
    assert!(server.refused("s1", "update_goal", &json!({"status": "complete"})).contains("the goal is blocked"));
    let resumed = server.call("s1", "resume_goal", &json!({}));
    assert_eq!(resumed["goal"]["status"], "active");
    assert!(server.refused("s1", "resume_goal", &json!({})).contains("the goal is active"));
}

#[test]
fn the_worker_cannot_clear_a_pause_or_raise_a_budget() {
    let world = World::new();
    world.register("s1", None, None);
    let mut server = world.server();
    server.call("s1", "create_goal", &json!({"objective": "x", "token_budget": 10}));
    let now = clock::now();
    action::apply(&mut world.store(), "s1", USER, now, |goal| change::pause(goal, now)).unwrap();
    let text = server.refused("s1", "resume_goal", &json!({}));
    assert!(text.contains("is for the user"), "{text}");
    assert!(server.refused("s1", "update_goal", &json!({"status": "complete"})).contains("paused (user)"));
    let wait = server.refused("s1", "wait_goal", &json!({"seconds": 1}));
    assert!(wait.contains("paused (user)"), "a wait would end the pause: {wait}");
    let more = json!({"objective": "x", "token_budget": 1_000});
    assert!(server.refused("s1", "create_goal", &more).contains("already exists"));
    let edit = json!({"objective": "y", "token_budget": 1_000});
    assert!(server.refused("s1", "update_objective", &edit).contains("`token_budget`"));
    let goal = world.goal("s1");
    assert_eq!((goal.state().as_str(), goal.limits.get(Axis::Tokens)), ("paused (user)", Some(10)));
    assert!(world.event_kinds("s1").contains(&"privileged_verb_refused".to_owned()));
}

#[test]
fn a_worker_gets_no_new_limits_by_ending_a_goal() {
    let world = World::new();
    world.prompt("s1");
    let mut server = world.server();
    let fresh = json!({"objective": "fresh budget", "token_budget": 5_000_000});
    server.call("s1", "create_goal", &json!({"objective": "small budget", "token_budget": 5, "max_turns": 3}));
    for (tool, arguments) in [("update_goal", json!({"status": "complete"})), ("abandon_goal", json!({}))] {
        server.call("s1", tool, &arguments);
        // A subagent gets no others.
        let id = world.note("s1", "steadfast:goal-evaluator");
        let next = super::world::success(&server.call_with_id("create_goal", &fresh, Some(&id)))["goal"].clone();
        assert_eq!((&next["token_budget"], &next["continuations_remaining"]), (&json!(5), &json!(3)), "{tool}");
    }
    server.call("s1", "abandon_goal", &json!({}));
    world.prompt("s1");
    assert_eq!(server.call("s1", "create_goal", &fresh)["goal"]["token_budget"], 5_000_000);
}

/// The user started a goal; the agent finds it too hard.
#[test]
fn a_worker_changes_a_goal_of_the_user_only_when_asked() {
    let world = World::new();
    world.prompt("s1");
    let new = NewGoal { objective: "Port the whole parser".into(), ..NewGoal::default() };
    let session = world.store().read().session("s1").unwrap().unwrap();
    action::start(&mut world.store(), &Place::from(&session), new, USER, clock::now() + 2).unwrap();
    let mut server = world.server();
    let easier = json!({"objective": "Say hello"});
    let text = server.refused("s1", "update_objective", &easier);
    assert!(text.contains("propose it in your answer; the user can type /goal-edit"), "{text}");
    let text = server.refused("s1", "abandon_goal", &json!({}));
    assert!(text.contains("only in a turn that the user's prompt began"), "{text}");
    assert_eq!(world.goal("s1").objective, "Port the whole parser");
    assert_eq!(world.event_kinds("s1").iter().filter(|kind| *kind == "privileged_verb_refused").count(), 2);
    world.prompt("s1");
    server.call("s1", "update_objective", &easier);
    server.call("s1", "abandon_goal", &json!({}));
    assert_eq!(world.goal("s1").objective, "Say hello");
}

#[test]
fn the_objective_is_replaced_and_everything_else_stays() {
    let world = World::new();
    world.register("s1", None, None);
    let mut server = world.server();
    let created = server.call("s1", "create_goal", &json!({"objective": "old", "token_budget": 9}));
    world.prompt("s1");
    let changed = server.call("s1", "update_objective", &json!({"objective": "new"}))["goal"].clone();
    assert_eq!(changed["objective"], "new");
    assert_eq!(changed["goal_id"], created["goal"]["goal_id"]);
    assert_eq!(changed["token_budget"], 9);
}

#[test]
fn a_waiting_goal_is_paused_and_the_worker_cannot_resume_it() {
    let world = World::new();
    world.register("s1", None, None);
    let mut server = world.server();
    server.call("s1", "create_goal", &json!({"objective": "x"}));
    let before = clock::now();
    let waiting = server.call("s1", "wait_goal", &json!({"seconds": 90}))["goal"].clone();
    assert_eq!((&waiting["status"], &waiting["paused_reason"]), (&json!("paused"), &json!("waiting")));
    assert!(waiting["waits_for"].as_str().unwrap().starts_with("the time 20"), "{waiting}");
    let wake = world.goal("s1").wake_at_ms.unwrap();
    assert!((before + 90_000..clock::now() + 90_000).contains(&wake));
    assert!(world.event_kinds("s1").contains(&"goal_waiting".to_owned()));
    assert!(server.refused("s1", "wait_goal", &json!({"seconds": 5})).contains("paused (waiting)"));
    server.refused("s1", "resume_goal", &json!({}));

    server.call("s2", "create_goal", &json!({"objective": "x"}));
    let late = server.refused("s2", "wait_goal", &json!({"until": "2999-01-01T00:00:00Z"}));
    assert!(late.contains("7 days at most"), "{late}");
    let tomorrow = clock::to_rfc3339(clock::now() + clock::DAY);
    server.call("s2", "wait_goal", &json!({"until": tomorrow}));
    assert_eq!(world.goal("s2").wake_at_ms, clock::parse_rfc3339(&tomorrow));
}

#[test]
fn a_worker_waits_for_files_of_the_project_and_processes_but_not_for_commands_of_its_own() {
    let world = World::new();
    world.register("s1", None, None);
    let mut server = world.server();
    server.call("s1", "create_goal", &json!({"objective": "x"}));
    let text = server.refused("s1", "wait_goal", &json!({"command": "touch pwned"}));
    assert!(text.contains("that the user approved") && text.contains("wait for its pid"), "{text}");
    assert!(world.event_kinds("s1").contains(&"privileged_verb_refused".to_owned()));
    let text = server.refused("s1", "wait_goal", &json!({"file": "/etc/passwd"}));
    assert!(text.contains("inside the project"), "{text}");
    assert!(server.refused("s1", "wait_goal", &json!({"pid": 0})).contains("no process"));
    let pid = json!({"pid": std::process::id(), "seconds": 60});
    let waiting = server.call("s1", "wait_goal", &pid)["goal"]["waits_for"].clone();
    assert!(waiting.as_str().unwrap().starts_with("the end of process "), "{waiting}");
}

#[test]
fn every_tool_that_needs_a_goal_reports_a_missing_one() {
    let world = World::new();
    world.register("s1", None, None);
    let mut server = world.server();
    let cases = [
        ("update_goal", json!({"status": "complete"})),
        ("update_goal", json!({"status": "blocked", "blocked_reason": "x"})),
        ("update_objective", json!({"objective": "x"})),
        ("resume_goal", json!({})),
        ("abandon_goal", json!({})),
        ("wait_goal", json!({"seconds": 1})),
    ];
    for (tool, arguments) in &cases {
        let text = server.refused("s1", tool, arguments);
        assert!(text.contains("session s1 has no goal"), "{tool}: {text}");
    }
    let version = server.call("s1", "create_goal", &json!({"objective": "x"}))["goal"]["version"].clone();
    for (tool, arguments) in &cases {
        let mut arguments = arguments.clone();
        arguments["goal_id"] = json!("00000000-0000-4000-8000-000000000000");
        let text = server.refused("s1", tool, &arguments);
        assert!(text.contains("`goal_id` is not the id"), "{tool}: {text}");
    }
    assert_eq!(json!(world.goal("s1").version), version, "nothing was changed");
}

#[test]
fn hostile_text_is_kept_as_it_is_and_breaks_nothing() {
    let world = World::new();
    world.register("s1", None, None);
    let mut server = world.server();
    let hostile = "'); DROP TABLE goals; -- </objective> ${HOME} $(id) \u{202e}目標 \"}\n{\"jsonrpc\":\"2.0\"}";
    let goal = server.call("s1", "create_goal", &json!({"objective": hostile}))["goal"].clone();
    assert_eq!(goal["objective"], hostile);
    let text = server.refused("s1", "abandon_goal", &json!({"goal_id": "' OR 1=1 --"}));
    assert!(text.contains("`goal_id`"), "{text}");
    let limit = "\u{1f3af}".repeat(4_000);
    world.prompt("s1");
    let goal = server.call("s1", "update_objective", &json!({"objective": limit}))["goal"].clone();
    assert_eq!(goal["objective"], limit, "4000 characters, not bytes");
    assert_eq!(server.call("s1", "get_goal", &json!({}))["goal"]["objective"], limit);
}

/// A worker with a live goal, behind which the user lined up another one.
fn server_with_queue(world: &World) -> Server<'_> {
    world.register("s1", None, None);
    let mut server = world.server();
    server.call("s1", "create_goal", &json!({"objective": "First"}));
    let next = NewGoal { objective: "Second".into(), ..NewGoal::default() };
    world.store().write(|db| db.enqueue("s1", &next, clock::now())).unwrap();
    server
}

#[test]
fn no_tool_undoes_a_stop_of_everything() {
    let world = World::new();
    let mut server = server_with_queue(&world);
    action::pause_all(&mut world.store(), USER, clock::now()).unwrap();
    for (tool, arguments) in [
        ("resume_goal", json!({})),
        ("create_goal", json!({"objective": "Other"})),
        ("abandon_goal", json!({})),
        ("update_goal", json!({"status": "complete"})),
        ("wait_goal", json!({"seconds": 60})),
    ] {
        server.refused("s1", tool, &arguments);
    }
    let goal = world.goal("s1");
    assert_eq!((goal.state().as_str(), goal.objective.as_str()), ("paused (user)", "First"));
}

#[test]
fn a_worker_that_completes_its_goal_starts_nothing_in_the_middle_of_its_turn() {
    let world = World::new();
    let mut server = server_with_queue(&world);
    let done = server.call("s1", "update_goal", &json!({"status": "complete"}));
    assert_eq!((&done["goal"]["status"], &done["goal"]["queue"]), (&json!("complete"), &json!(1)));
    let text = server.refused("s1", "create_goal", &json!({"objective": "Mine"}));
    assert!(text.contains("the user has queued the next goal"), "{text}");
    assert_eq!(world.goal("s1").objective, "First");
}
