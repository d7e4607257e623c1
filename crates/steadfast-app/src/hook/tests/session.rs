//! Sessions that start, end, resume, compact and clear.

use super::*;
use steadfast_store::Session;
use steadfast_system::config::OnCompact;

fn end(world: &World, reason: &str, now: Millis) -> HookReply {
    world.hook("SessionEnd", HookEvent::SessionEnd { reason: reason.into() }, now)
}

fn interrupt(at: Millis) -> String {
    let line = json!({"type": "user", "timestamp": clock::to_rfc3339(at),
        "message": {"content": [{"type": "text", "text": "[Request interrupted by user]"}]}});
    format!("{line}\n")
}

#[test]
fn the_first_prompt_registers_the_session() {
    let world = World::new();
    world.prompt(true, START);
    let session = world.store.read().session(SESSION).unwrap().unwrap();
    let expected = Session {
        session_id: SESSION.into(),
        host: Host::Claude,
        cwd: "/p".into(),
        project_dir: "/p".into(),
        transcript_path: world.transcript.to_string_lossy().into_owned(),
        client: session.client,
        parent_session_id: None,
        parent_link: None,
        last_prompt_ms: Some(START),
        user_prompt_ms: Some(START),
        started_at_ms: START,
        last_seen_ms: START,
        ended_at_ms: None,
        end_reason: None,
        ..Session::default()
    };
    assert_eq!(session, expected);
}

/// Bug 14 of the plugin, end to end.
#[test]
fn a_resumed_session_keeps_its_time_and_goal() {
    let world = running_goal();
    world.session_start(StartSource::Startup, START);
    world.stop(at(100));
    // The laptop died; no SessionEnd was seen.
    let said = world.session_start(StartSource::Resume, at(100) + 8 * HOUR);
    assert!(said.context.unwrap().contains("Make every test pass"));
    let goal = world.goal();
    assert_eq!(goal.active_seconds(at(100) + 8 * HOUR), 100);
    assert_eq!(goal.active_seconds(at(110) + 8 * HOUR), 100, "no turn runs yet");

    world.prompt(false, at(100) + 8 * HOUR);
    end(&world, "other", at(130) + 8 * HOUR);
    world.session_start(StartSource::Resume, START + 20 * HOUR);
    assert_eq!(world.goal().active_seconds(START + 20 * HOUR), 130);
}

/// Bug 15 of the plugin for a database it wrote itself: the goal's session is not known here.
#[test]
fn a_goal_from_before_the_upgrade_is_not_charged_for_its_absence() {
    let mut world = World::new();
    world.start(Budget::default(), START);
    world.batch(START);
    world.stop(at(100));
    world.session_start(StartSource::Resume, START + 50 * HOUR);
    assert_eq!(world.goal().active_seconds(START + 50 * HOUR), 100);
}

#[test]
fn spending_after_the_end_of_a_session_is_charged_when_it_resumes() {
    let world = running_goal();
    world.session_start(StartSource::Startup, START);
    world.write(&reply("m1", at(1), [10, 0, 0, 0]));
    end(&world, "prompt_input_exit", at(2));
    assert_eq!((world.goal().tokens_used, world.goal().status), (10, GoalStatus::Active));
    world.session_start(StartSource::Resume, at(60));
    world.write(&reply("m2", at(61), [7, 0, 0, 0]));
    world.stop(at(62));
    assert_eq!(world.goal().tokens_used, 17);
}

#[cfg(target_os = "linux")]
#[test]
fn a_cleared_sessions_goal_is_orphaned_noted_and_offered() {
    let mut world = running_goal();
    world.session_start(StartSource::Startup, START);
    assert_eq!(end(&world, "clear", at(5)), HookReply { wake_at_ms: Some(at(5)), ..HookReply::default() });
    let orphan = world.goal();
    assert_eq!(orphan.status, GoalStatus::Active, "never abandoned unasked");
    let event = world.last_event();
    assert_eq!((&*event.kind, event.payload), ("goal_orphaned", json!({"cause": "clear"})));

    let input = HookInput {
        session_id: "after-clear".into(),
        transcript: None,
        ..world.input("SessionStart", HookEvent::SessionStart(StartSource::Clear))
    };
    let said = handle(&input, &world.paths(), at(6));
    let id = &orphan.goal_id[..8];
    assert!(said.message.unwrap().contains(&format!("/goal-adopt {id}")));
    let context = said.context.unwrap();
    assert!(
        context.contains("an offer, not an order") && context.contains("do not work on it unless asked"),
        "{context}"
    );
    assert_eq!(world.goal(), orphan, "an offer changes nothing");

    let place = action::Place { session_id: "after-clear".into(), ..world.place() };
    let adopted = action::adopt(&mut world.store, id, &place, USER, at(9)).unwrap();
    assert_eq!((&*adopted.session_id, adopted.resume_at_ms), ("after-clear", None));
    assert!(adopted.wake_at_ms.is_some(), "it is woken if no prompt follows");
    assert_eq!(world.store.read().goal(SESSION).unwrap(), None);
}

/// Claude Code starts a fork under its parent's id; the fork's own comes with its first prompt.
#[test]
fn a_fork_gets_one_note_that_the_goal_is_not_its_own() {
    let world = running_goal();
    world.session_start(StartSource::Resume, START);
    let prompt = || HookInput {
        session_id: "fork".into(),
        ..world.input("UserPromptSubmit", HookEvent::Prompt { typed: true })
    };
    let said = handle(&prompt(), &world.paths(), at(6));
    let context = said.context.unwrap();
    let adopt = format!("/goal-adopt {}", &world.goal().goal_id[..8]);
    assert!(context.contains("not to this one") && context.contains(&adopt), "{context}");
    assert!(!context.contains("Make every test pass"), "it is in the conversation: {context}");
    assert!(said.message.unwrap().contains(&adopt));
    assert_eq!(handle(&prompt(), &world.paths(), at(7)), HookReply::default());
}

#[test]
fn the_next_prompt_continues_an_interrupted_goal() {
    let world = running_goal();
    world.write(&interrupt(at(5)));
    assert_eq!(world.prompt(true, at(9)).message, None, "the prompt is obeyed, not refused");
    let goal = world.goal();
    assert_eq!(
        (goal.status, goal.active_seconds(at(10))),
        (GoalStatus::Active, 6),
        "five seconds, and one of this turn"
    );
    assert!(world.stop(at(12)).block.is_some());

    // The client may write its line after the prompt's hook has run.
    let world = running_goal();
    world.prompt(true, at(9));
    world.write(&interrupt(at(5)));
    assert!(world.stop(at(10)).block.is_some());
    assert_eq!(world.goal().active_seconds(at(10)), 6);
}

#[test]
fn an_interrupted_goal_stays_stopped_when_a_background_task_wakes_the_client() {
    let world = running_goal();
    world.write(&interrupt(at(5)));
    assert!(world.prompt(false, at(9)).message.unwrap().contains("goal interrupted"));
    world.write(&reply("m1", at(10), [1, 1, 0, 0]));
    assert_eq!(world.stop(at(11)).block, None);
    assert_eq!((world.goal().state(), world.goal().active_seconds(at(12))), ("paused (interrupted)".into(), 5));

    // Tool calls in between make no difference.
    let world = running_goal();
    world.write(&interrupt(at(5)));
    assert!(world.batch(at(9)).message.unwrap().contains("goal interrupted"));
    assert_eq!(world.stop(at(10)), HookReply::default());
}

#[test]
fn an_interrupt_from_before_the_goal_does_not_pause_it() {
    let mut world = World::new();
    world.write(&interrupt(at(-5)));
    let place = action::Place { transcript: None, ..world.place() };
    let new = crate::testing::new_goal(Budget::default());
    action::start(&mut world.store, &place, new, USER, START).unwrap();
    assert_eq!(world.prompt(true, at(1)), HookReply::default());
    assert!(world.stop(at(2)).block.is_some());
}

#[test]
fn a_prompt_restarts_an_idle_goal() {
    let world = running_goal();
    world.stop(at(1));
    world.hook("Stop", stop_event(true), at(2));
    assert_eq!(world.goal().idle_continuations, 1);
    world.prompt(true, at(3));
    assert_eq!((world.goal().idle_continuations, world.goal().blocks_in_row), (0, 0));
}

fn compact(world: &World, paths: &Paths, now: Millis) -> HookReply {
    let before = world.input("PreCompact", HookEvent::PreCompact);
    assert_eq!(handle(&before, paths, now), HookReply::default());
    let after = world.input("SessionStart", HookEvent::SessionStart(StartSource::Compact));
    handle(&after, paths, now + SECOND)
}

/// Bug 8 of the plugin, first way: every byte was seen, so nothing is uncertain.
#[test]
fn a_goal_continues_through_a_compaction() {
    let world = running_goal_within(Budget::parse("1M", "").unwrap());
    world.write(&reply("m1", at(1), [10, 0, 0, 0]));
    let said = compact(&world, &world.paths(), at(2));
    assert_eq!(said.message, None);
    assert!(said.context.unwrap().contains("just compacted"));
    world.write("{\"type\":\"system\",\"subtype\":\"compact_boundary\"}\n");
    world.write(&reply("m2", at(4), [7, 0, 0, 0]));
    assert!(world.stop(at(5)).block.is_some());
    assert_eq!((world.goal().tokens_used, world.goal().accounting_uncertain), (17, false));
}

/// Bug 8, second way: bytes vanished unseen.
#[test]
fn a_goal_whose_tokens_vanished_is_flagged_and_paused_at_the_next_stop() {
    let world = running_goal_within(Budget::parse("1M", "").unwrap());
    world.write(&reply("m1", at(1), [10, 0, 0, 0]));
    world.batch(at(2));
    fs_err::write(&world.transcript, "{\"type\":\"summary\"}\n").unwrap();
    let said = world.session_start(StartSource::Compact, at(3));
    assert!(said.message.unwrap().contains("/goal-reconcile --accept-reset"));
    assert!(world.event_kinds().contains(&"accounting_uncertain_set".to_owned()));
    let stopped = world.stop(at(4));
    assert_eq!(stopped.block, None);
    assert!(stopped.message.unwrap().contains("accounting_uncertain"));
    assert_eq!(world.goal().state(), "paused (accounting_uncertain)");
}

#[test]
fn every_compaction_pauses_if_configured() {
    for budget in ["1M", ""] {
        let budget = Budget::parse(budget, "").unwrap_or_default();
        let world = running_goal_within(budget);
        let mut paths = world.paths();
        paths.config.accounting.on_compact = OnCompact::Pause;
        world.write(&reply("m1", at(1), [10, 0, 0, 0]));
        let said = compact(&world, &paths, at(2));
        assert!(said.message.unwrap().contains("/goal-reconcile --accept-reset"));
        let stop = world.input("Stop", stop_event(false));
        assert_eq!(handle(&stop, &paths, at(5)).block, None);
        assert_eq!(world.goal().state(), "paused (accounting_uncertain)");
    }
}

#[test]
fn a_usage_limit_pauses_until_its_reset_and_the_session_wakes_after_it() {
    let world = running_goal();
    let reset = (START + HOUR) / 1_000;
    let event = HookEvent::StopFailure {
        error: "rate_limit".into(),
        message: format!("Claude AI usage limit reached|{reset}"),
    };
    let reply = world.hook("StopFailure", event, at(5));
    let wake_at_ms = Some(START + HOUR);
    assert_eq!(reply, HookReply { has_news: true, wake_at_ms, ..HookReply::default() });
    let goal = world.goal();
    assert_eq!((goal.paused_reason, goal.wake_at_ms), (Some(PausedReason::UsageLimit), Some(START + HOUR)));
    assert_eq!(world.stop(at(6)), HookReply::default());
    world.session_start(StartSource::Resume, START + 30 * MINUTE);
    assert_eq!(world.goal().status, GoalStatus::Paused);
    world.session_start(StartSource::Resume, START + 61 * MINUTE);
    let goal = world.goal();
    assert_eq!((goal.status, goal.resume_at_ms, goal.wake_at_ms.is_some()), (GoalStatus::Active, None, true));
}
