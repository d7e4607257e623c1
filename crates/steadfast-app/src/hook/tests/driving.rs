//! The loop: when a turn is continued, when it winds down, and what may end it.

use super::*;
use steadfast_model::limit::{Axis, Limits};

#[test]
fn an_active_goal_is_continued_with_its_objective() {
    let world = running_goal();
    world.write(&reply("m1", at(1), [10, 1, 0, 0]));
    let said = world.stop(at(2));
    let prompt = said.block.unwrap();
    assert!(prompt.contains("Make every test pass"), "{prompt}");
    assert!(prompt.contains("11 tokens"), "{prompt}");
    assert_eq!((said.message, said.context), (None, None));
    let goal = world.goal();
    assert_eq!((goal.tokens_used, goal.continuations_used), (11, 1));
    assert_eq!(world.event_kinds(), ["goal_created", "tokens_accounted", "continuation_injected"]);
}

#[test]
fn the_last_message_of_the_turn_is_charged_to_it() {
    let world = running_goal();
    world.write(&reply("m1", at(1), [10, 1, 0, 0]));
    let event = HookEvent::Stop {
        after_continuation: false,
        last_message: Some("first part\ntext of m1".into()),
        background_work: false,
    };
    assert!(world.hook("Stop", event, at(2)).block.is_some());
    assert_eq!(world.goal().tokens_used, 11);
}

/// The hook at the prompt can give up on a busy store. The turn that the block continues runs all the same.
#[test]
fn a_turn_whose_beginning_no_hook_recorded_is_recorded_when_it_is_continued() {
    let mut world = World::new();
    world.start(Budget::default(), START);
    assert!(world.stop(at(5)).block.is_some());
    let session = world.store.read().session(SESSION).unwrap().unwrap();
    assert_eq!(session.activity.turn_since_ms, Some(at(5)));
    let goal = world.goal();
    assert_eq!((goal.resume_at_ms, goal.wake_at_ms), (Some(at(5)), None));
}

/// Bugs 9 and 10 of the plugin: it looked for `update_goal` in the transcript, so a refused or a foreign call of
/// that name ended the loop.
#[test]
fn update_goal_calls_in_the_transcript_end_nothing() {
    for tool in [
        "mcp__plugin_steadfast_steadfast__update_goal",
        "mcp__plugin_claude-goal_goal__update_goal",
        "mcp__other__update_goal",
    ] {
        let world = running_goal();
        let refused = json!({"type": "user", "message": {"content": [
            {"type": "tool_result", "tool_use_id": "toolu-m1", "is_error": true, "content": "not allowed"},
        ]}, "toolUseResult": "{\"goal\":{\"status\":\"complete\"}}"});
        world.write(&format!("{}{refused}\n", tool_call("m1", at(1), tool)));
        world.write(&reply("m2", at(1), [1, 1, 0, 0]));
        assert!(world.stop(at(2)).block.is_some(), "{tool}");
        assert_eq!(world.goal().status, GoalStatus::Active);
    }
}

/// Bug 11 of the plugin.
#[test]
fn a_broken_line_does_not_stop_the_loop() {
    let world = running_goal();
    world.write("{\"type\":\"assistant\",\"message\":{\"usage\":{\"inp\n");
    world.write(&reply("m1", at(1), [10, 1, 0, 0]));
    assert!(world.stop(at(2)).block.is_some());
    assert_eq!(world.goal().tokens_used, 11);
}

#[test]
fn the_turn_that_completed_the_goal_is_charged_and_no_later_one() {
    let mut world = running_goal();
    world.write(&reply("m1", at(1), [10, 0, 0, 0]));
    world.complete_by_worker(at(2));
    world.write(&reply("m2", at(3), [5, 0, 0, 0]));
    assert_eq!(world.stop(at(4)), HookReply::default());
    assert_eq!((world.goal().tokens_used, world.goal().status), (15, GoalStatus::Complete));
    let event = world.last_event();
    assert_eq!((&*event.kind, event.tokens_delta), ("final_turn_accounted", Some(5)));

    world.write(&reply("m3", at(5), [5_000, 0, 0, 0]));
    let before = (world.goal(), world.event_kinds());
    assert_eq!(world.stop(at(6)), HookReply::default());
    assert_eq!((world.goal(), world.event_kinds()), before);
}

#[test]
fn a_prompt_after_the_completing_turn_was_interrupted_is_not_charged() {
    let mut world = running_goal();
    world.complete_by_worker(at(2));
    world.write(&reply("m1", at(3), [5, 0, 0, 0]));
    // Esc: no Stop follows. The user continues with something else.
    world.prompt(true, at(60));
    world.write(&reply("m2", at(61), [5_000, 0, 0, 0]));
    world.stop(at(62));
    assert_eq!(world.goal().tokens_used, 5);
}

#[test]
fn a_spent_budget_is_reported_wound_down_and_then_silent() {
    let world = running_goal_within(Budget::parse("100", "").unwrap());
    world.write(&reply("m1", at(1), [100, 0, 0, 0]));
    let first = world.stop(at(2));
    assert!(first.block.unwrap().contains("This is the last turn it gets"));
    assert!(first.message.unwrap().contains("100 of 100 tokens"));
    assert_eq!(world.goal().status, GoalStatus::BudgetLimited);

    world.write(&reply("m2", at(3), [7, 0, 0, 0]));
    let second = world.stop(at(4));
    assert_eq!(second.block, None);
    let message = second.message.unwrap();
    assert!(message.contains("budget_limited") && message.contains("--add-tokens"), "{message}");
    assert_eq!(world.goal().tokens_used, 107, "the wind-down turn is the goal's own");

    world.write(&reply("m3", at(5), [500, 0, 0, 0]));
    assert_eq!(world.stop(at(6)), HookReply::default());
    assert_eq!(world.goal().tokens_used, 107);
}

/// Bug 29 of the plugin: caps stopped the goal without a message.
#[test]
fn a_cap_is_reported_by_name() {
    let world =
        running_goal_within(Budget { limits: Limits::default().with(Axis::Hours, 60_000), ..Budget::default() });
    assert!(world.stop(at(60)).block.is_some());
    let message = world.stop(at(61)).message.unwrap();
    assert!(message.contains("wall_clock_cap") && message.contains("--add-hours"), "{message}");
    assert_eq!(world.goal().state(), "paused (wall_clock_cap)");
}

#[test]
fn a_near_limit_gives_the_model_and_the_user_one_warning() {
    let world = running_goal_within(Budget::parse("100", "").unwrap());
    world.write(&reply("m1", at(1), [80, 0, 0, 0]));
    let said = world.stop(at(2));
    assert!(said.block.unwrap().contains("80 %"));
    assert!(said.message.unwrap().contains("80 %"));
    world.write(&tool_call("m2", at(3), "Bash"));
    let again = world.stop(at(4));
    assert_eq!(again.message, None);
    assert!(!again.block.unwrap().contains('%'));
}

/// Bug 30 of the plugin: no hook enforced the budget within one long turn.
#[test]
fn one_long_turn_is_warned_and_then_ended() {
    let world = running_goal_within(Budget::parse("100", "").unwrap());
    assert_eq!(world.batch(at(1)), HookReply::default());
    world.write(&reply("m1", at(2), [120, 0, 0, 0]));
    let told = world.batch(at(3));
    assert!(told.context.unwrap().contains("This is the last turn it gets"));
    assert_eq!(told.block, None);
    for second in 4..7 {
        assert_eq!(world.batch(at(second)), HookReply::default());
    }
    assert!(world.batch(at(8)).block.unwrap().contains("budget_limited"));
    assert_eq!(world.stop(at(9)), HookReply::default());
}

#[test]
fn idle_continuations_pause_the_goal_with_a_message() {
    let world = running_goal();
    let mut last = world.stop(at(1));
    for second in 2..5 {
        assert!(last.block.is_some());
        world.write(&reply(&format!("m{second}"), at(second), [1, 1, 0, 0]));
        last = world.hook("Stop", stop_event(true), at(second));
    }
    assert_eq!(last.block, None);
    assert!(last.message.unwrap().contains("no_progress"));
    assert_eq!(world.goal().state(), "paused (no_progress)");
}

#[test]
fn the_user_and_background_work_come_first() {
    let world = running_goal();
    let waiting = "{\"type\":\"queue-operation\",\"operation\":\"enqueue\",\"content\":\"wait!\"}\n";
    world.write(waiting);
    assert_eq!(world.stop(at(1)), HookReply { wake_at_ms: Some(at(3)), ..HookReply::default() });
    world.write(&waiting.replace("enqueue", "dequeue"));
    let busy = HookEvent::Stop { after_continuation: false, last_message: None, background_work: true };
    let waits = world.hook("Stop", busy, at(2));
    assert_eq!(waits.block, None);
    assert!(waits.message.unwrap().contains("background tasks"));
    assert_eq!((world.goal().continuations_used, world.goal().wake_at_ms), (0, Some(at(302))));
    assert!(world.stop(at(3)).block.is_some());
}

#[test]
fn the_clients_own_goal_is_not_driven_twice() {
    let world = running_goal();
    let status = |met: bool| {
        let line = json!({"type": "attachment", "attachment": {"type": "goal_status", "met": met, "condition": "x"}});
        format!("{line}\n")
    };
    world.write(&status(false));
    let said = world.stop(at(1));
    assert_eq!(said.block, None);
    assert!(said.message.unwrap().contains("/goal clear"));
    world.write(&status(true));
    assert!(world.stop(at(2)).block.is_some());
}

/// Bug 17 of the plugin.
#[test]
fn a_subagents_end_charges_its_last_responses() {
    let world = running_goal();
    let file = world.subagent("a1");
    append(&file, &reply("s1", at(1), [100, 0, 0, 0]));
    let agent = |transcript: Option<PathBuf>| Agent { id: "a1".into(), agent_type: "default".into(), transcript };
    world.hook("PostToolBatch", HookEvent::ToolBatch { agent: Some(agent(None)) }, at(2));
    assert_eq!(world.goal().subagent_tokens, 100);
    append(&file, &reply("s2", at(3), [11, 0, 0, 0]));
    let stop = HookEvent::SubagentStop { agent: agent(Some(file)) };
    assert_eq!(world.hook("SubagentStop", stop, at(4)), HookReply::default());
    assert_eq!(world.goal().subagent_tokens, 111);
}
