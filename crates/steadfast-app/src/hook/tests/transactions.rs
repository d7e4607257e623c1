//! Transactions of a hook: one per call, and none if there is nothing to write.

use super::*;
use steadfast_model::memory::Category;
use steadfast_model::memory::observation::Observation;
use steadfast_store::MemoryFilter;

/// The number of transactions in the WAL file, which exists while a connection is open. The last frame of a transaction
/// has the size of the database; the other frames have 0.
fn commits(world: &World) -> usize {
    const HEADER: usize = 32;
    const FRAME_HEADER: usize = 24;
    let log = fs_err::read(world.store.path().with_extension("db-wal")).unwrap();
    let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
    let page = usize::try_from(number(&log[8..12])).unwrap();
    let frames = log[HEADER..].chunks_exact(FRAME_HEADER + page);
    frames.filter(|frame| frame[8..16] == log[16..24] && number(&frame[4..8]) != 0).count()
}

/// The number of transactions of a hook that stores an event.
fn commits_of(world: &World, name: &str, event: HookEvent, seen: Observation, now: Millis) -> usize {
    let before = commits(world);
    let input = HookInput { observations: vec![seen], ..world.input(name, event) };
    handle(&input, &world.paths(), now);
    commits(world) - before
}

fn skill() -> Observation {
    Observation::Skill { name: "review".into() }
}

#[test]
fn a_tool_call_of_a_subagent_uses_one_transaction() {
    let world = running_goal();
    let file = world.subagent("a1");
    append(&file, &reply("m1", at(1), [100, 0, 0, 0]));
    let agent = Agent { id: "a1".into(), agent_type: "default".into(), transcript: Some(file.clone()) };
    let started = HookEvent::SubagentStart { agent: agent.clone() };
    assert_eq!(commits_of(&world, "SubagentStart", started, skill(), at(1)), 1);
    let worked = HookEvent::ToolBatch { agent: Some(agent) };
    assert_eq!(commits_of(&world, "PostToolBatch", worked.clone(), skill(), at(2)), 1);
    assert_eq!(world.goal().subagent_tokens, 100);
    let filter = MemoryFilter { category: Some(Category::Skill), after: None };
    assert_eq!(world.store.read().events_of(SESSION, filter, 9).unwrap().len(), 1);
    let silent = World::new();
    assert_eq!(silent.hook("PostToolBatch", worked, at(2)), HookReply::default());
    assert_eq!(silent.store.read().session(SESSION).unwrap(), None, "nothing seen, nothing written");
}

#[test]
fn a_prompt_uses_one_transaction() {
    let world = running_goal();
    world.write(&reply("m1", at(1), [100, 0, 0, 0]));
    world.stop(at(2));
    assert_eq!(world.goal().blocks_in_row, 1);
    world.write(&reply("m2", at(3), [10, 0, 0, 0]));
    let prompt = |text: &str| Observation::Prompt(text.into());
    let typed = HookEvent::Prompt { typed: true };
    assert_eq!(commits_of(&world, "UserPromptSubmit", typed, prompt("goal: ship it"), at(4)), 1);
    let goal = world.goal();
    assert_eq!((goal.total_tokens(), goal.blocks_in_row), (110, 0), "what was read is charged, counters start anew");
    assert_eq!(world.store.read().stated_goal(SESSION).unwrap().unwrap().objective, "ship it");
}

#[test]
fn a_prompt_after_the_final_turn_uses_one_transaction() {
    let mut world = running_goal();
    world.complete_by_worker(at(1));
    world.write(&reply("m1", at(2), [100, 0, 0, 0]));
    let before = commits(&world);
    world.prompt(true, at(3));
    assert_eq!(commits(&world) - before, 1);
    assert_eq!(world.goal().total_tokens(), 100);
    assert_eq!(world.last_event().kind, "final_turn_accounted");
}

/// Half of the lines were written before the pause, and charged to the goal only now.
#[test]
fn what_a_session_did_while_its_goal_was_paused_is_entered_in_several_transactions() {
    let mut world = running_goal();
    world.session_start(StartSource::Startup, at(1));
    action::apply(&mut world.store, SESSION, USER, at(100), |goal| change::pause(goal, at(100))).unwrap();
    for number in 0..1_200 {
        let time = if number % 2 == 0 { at(50) } else { at(200) };
        append(&world.transcript, &reply(&format!("m{number}"), time, [7, 0, 0, 0]));
    }
    let before = commits(&world);
    action::resume(&mut world.store, SESSION, USER, at(300)).unwrap();
    let made = commits(&world) - before;
    assert!(made >= 4, "{made} transactions");
    assert_eq!(world.goal().total_tokens(), 600 * 7);
    let days = world.store.read().usage_by_day().unwrap();
    assert_eq!(days.values().map(|day| day.responses).sum::<i64>(), 1_200);
    action::apply(&mut world.store, SESSION, USER, at(400), |goal| change::pause(goal, at(400))).unwrap();
    assert_eq!(world.goal().total_tokens(), 600 * 7, "nothing is charged twice");
}

#[test]
fn a_session_start_deletes_old_memory_in_transactions_of_its_own() {
    let mut world = World::new();
    let found = extract::findings(&[skill()]);
    world.store.write(|db| db.remember("old", &found, START)).unwrap();
    let before = commits(&world);
    world.session_start(StartSource::Startup, START + 365 * 24 * HOUR);
    let made = commits(&world) - before;
    assert!((2..=9).contains(&made), "its own and a few steps of upkeep, not {made}");
    assert_eq!(world.store.read().events_of("old", MemoryFilter::default(), 9).unwrap(), []);
}
