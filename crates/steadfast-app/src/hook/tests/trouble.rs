//! Failures in hooks never stop the user's turn.

use super::*;
use steadfast_store::EventFilter;

#[test]
fn a_corrupt_store_never_blocks_a_turn_and_is_left_alone() {
    let world = World::new();
    let bytes = b"this was a database once\n".repeat(400);
    let paths = Paths { store: world.root.path().join("home/corrupt \"quoted\".db"), ..world.paths() };
    fs_err::write(&paths.store, &bytes).unwrap();
    let mut events = every_event();
    events.push(("SessionStart", HookEvent::SessionStart(StartSource::Startup)));
    events.push(("UserPromptSubmit", HookEvent::Prompt { typed: true }));
    let count = events.len();
    for (name, event) in events {
        forget_told_of_damage(&paths);
        let is_heard = !matches!(event, HookEvent::SessionEnd { .. });
        let said = handle(&world.input(name, event), &paths, START);
        let Some(message) = said.message.clone() else {
            assert!(!is_heard, "{name}");
            continue;
        };
        assert!(message.contains("not a usable database"), "{message}");
        assert_eq!((said.block.as_ref(), said.context.as_ref()), (None, None), "{name}");
        // Bug 33 of the plugin: a path in the message broke the JSON.
        let printed = (steadfast_hosts::adapter(Host::Claude).write_reply)(name, &said).unwrap();
        let read: serde_json::Value = serde_json::from_str(&printed).unwrap();
        assert_eq!(read, json!({"systemMessage": message}));
    }
    assert!(fs_err::read(&paths.store).unwrap() == bytes);
    let log = fs_err::read_to_string(paths.log_file()).unwrap();
    assert_eq!(log.lines().count(), count, "{log}");
    assert!(log.contains(&format!("Stop {SESSION}: the store")));
}

#[test]
fn a_store_from_the_future_is_named_as_such() {
    let world = World::new();
    let path = world.root.path().join("future.db");
    world.store.backup_to(&path).unwrap();
    steadfast_store::testing::set_schema_version(&path, 7);
    let paths = Paths { store: path, ..world.paths() };
    let message = handle(&world.input("Stop", stop_event(false)), &paths, START).message.unwrap();
    assert!(message.contains("schema version 7"), "{message}");
}

#[test]
fn an_internal_failure_pauses_the_goal_as_degraded_with_a_message() {
    let world = running_goal();
    // A directory where the session file should be cannot be read.
    fs_err::create_dir(&world.transcript).unwrap();
    let said = world.stop(at(5));
    assert_eq!(said.block, None);
    assert!(said.message.unwrap().contains("/goal-resume"));
    assert_eq!(world.goal().state(), "paused (degraded)");
    let event = world.last_event();
    assert_eq!((&*event.kind, event.status_before.as_deref()), ("paused_degraded", Some("active")));
    assert!(event.payload["cause"].as_str().is_some_and(|cause| !cause.is_empty()));
}

#[test]
fn a_prompt_is_kept_if_the_session_file_cannot_be_read() {
    let world = running_goal();
    fs_err::create_dir(&world.transcript).unwrap();
    let observations = vec![steadfast_model::memory::observation::Observation::Prompt("goal: ship it".into())];
    let input = HookInput { observations, ..world.input("UserPromptSubmit", HookEvent::Prompt { typed: true }) };
    assert!(handle(&input, &world.paths(), at(5)).message.unwrap().contains("/goal-resume"));
    assert_eq!(world.goal().state(), "paused (degraded)");
    assert_eq!(world.store.read().stated_goal(SESSION).unwrap().unwrap().objective, "ship it");
}

#[test]
fn a_malformed_number_pauses_the_goal_with_a_hint() {
    type Call = fn(&World) -> HookReply;
    let calls: [(&str, Call); 4] = [
        ("Stop", |world| world.stop(at(2))),
        ("PostToolBatch", |world| world.batch(at(2))),
        ("UserPromptSubmit", |world| world.prompt(true, at(2))),
        ("SessionStart", |world| world.session_start(StartSource::Compact, at(2))),
    ];
    for (name, call) in calls {
        let world = running_goal();
        let usage = json!({"input_tokens": -5, "output_tokens": 1});
        world.write(&crate::testing::reply_with_usage("m1", at(1), &usage));
        let said = call(&world);
        assert_eq!(said.block, None, "{name}");
        let message = said.message.unwrap_or_default();
        let told = message.contains("input_tokens") && message.contains("/goal-reconcile --accept-reset");
        assert!(told, "{name}: {message}");
        assert_eq!(world.goal().state(), "paused (accounting_error)", "{name}");
    }
}

#[test]
fn a_malformed_number_of_a_subagent_is_reported_too() {
    let world = running_goal();
    let file = world.subagent("a1");
    append(&file, &crate::testing::reply_with_usage("s1", at(1), &json!({"output_tokens": 0.5})));
    let agent = Agent { id: "a1".into(), agent_type: "default".into(), transcript: Some(file) };
    let said = world.hook("SubagentStop", HookEvent::SubagentStop { agent }, at(2));
    assert!(said.message.unwrap().contains("output_tokens"));
    assert_eq!(world.goal().state(), "paused (accounting_error)");
}

/// Bug 24 of the plugin: an agent id or a path with a quote made the payload invalid JSON.
#[test]
fn hostile_ids_paths_and_texts_stay_data() {
    let hostile = "a\"b'); DROP TABLE goals; -- \\ \u{1F600}";
    let mut world = running_goal();
    let file = world.root.path().join("it's \"here\".jsonl");
    append(&file, &reply("s1", at(1), [100, 0, 0, 0]));
    let agent = Agent { id: hostile.into(), agent_type: "default".into(), transcript: Some(file.clone()) };
    assert_eq!(world.hook("SubagentStop", HookEvent::SubagentStop { agent }, at(2)), HookReply::default());
    let cursors = steadfast_store::testing::subagent_cursors(&world.store);
    assert_eq!(cursors, [(hostile.to_owned(), file.to_string_lossy().into_owned(), 100)]);

    let failure = HookEvent::StopFailure { error: hostile.into(), message: format!("{hostile}\u{1b}[2J\0") };
    world.hook("StopFailure", failure, at(3));
    let bad = json!({"input_tokens": hostile});
    world.write(&crate::testing::reply_with_usage(hostile, at(4), &bad));
    world.stop(at(5));
    action::reconcile(&mut world.store, SESSION, USER, at(6)).unwrap();
    action::apply(&mut world.store, SESSION, WORKER, at(7), |goal| change::block(goal, hostile, at(7))).unwrap();
    world.hook("SessionEnd", HookEvent::SessionEnd { reason: hostile.into() }, at(8));

    let kinds = world.event_kinds();
    for kind in ["turn_failed", "invalid_usage_field", "goal_blocked"] {
        assert!(kinds.contains(&kind.to_owned()), "{kind} in {kinds:?}");
    }
    assert_eq!(steadfast_store::testing::invalid_payloads(&world.store), 0);
    let goal_events = world.store.read().events(EventFilter::Session(SESSION), 100).unwrap();
    assert_eq!(goal_events.len(), kinds.len());
}
