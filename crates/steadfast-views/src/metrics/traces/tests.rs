//! What is sent of goals and runs, once, and with which names.

use serde_json::Value;
use steadfast_model::clock::{DAY, HOUR};
use steadfast_model::goal::change;
use steadfast_model::limit::Limits;
use steadfast_store::testing::{START, USER, World};

use super::*;
use crate::metrics::tests::{spend, start};

fn end(world: &mut World, session: &str, at: Millis) {
    let goal = world.store.read().goal(session).unwrap().unwrap();
    world.store.write(|db| db.save(&goal, change::abandon(&goal, at).unwrap(), USER)).unwrap();
}

fn pause(world: &mut World, session: &str, at: Millis) {
    let goal = world.store.read().goal(session).unwrap().unwrap();
    world.store.write(|db| db.save(&goal, change::pause(&goal, at).unwrap(), USER)).unwrap();
}

/// One export that succeeds: the spans that it sends.
fn export(world: &World, sent: &mut Sent, now: Millis) -> Vec<Value> {
    let pending = pending(world.store.read(), sent, TraceOptions::default(), now).unwrap();
    pending.traces.iter().for_each(|trace| sent.note(trace));
    sent.finish(&pending, now);
    pending.traces.into_iter().flat_map(|trace| trace.spans).collect()
}

fn attribute<'a>(span: &'a Value, key: &str) -> &'a Value {
    let all = span["attributes"].as_array().unwrap();
    all.iter().find(|attribute| attribute["key"] == key).map_or(&Value::Null, |attribute| &attribute["value"])
}

#[test]
fn a_turn_is_sent_when_it_ends_and_the_goal_at_its_end_each_once() {
    let mut world = World::new();
    let goal = start(&mut world, "s1", "/home/me/website", Limits::default());
    spend(&mut world, "s1", "r1", "claude-opus-4-8", 40, START + 10);
    let mut sent = Sent::nothing(START);
    assert_eq!(export(&world, &mut sent, START + 20), Vec::<Value>::new(), "the first turn runs");

    pause(&mut world, "s1", START + 1_000);
    let turns = export(&world, &mut sent, START + 2_000);
    assert_eq!(turns.len(), 1);
    let turn = &turns[0];
    assert_eq!(turn["name"], "invoke_agent Claude Code");
    assert_eq!(turn["startTimeUnixNano"], format!("{START}000000"));
    assert_eq!(turn["endTimeUnixNano"], format!("{}000000", START + 1_000));
    assert_eq!(attribute(turn, "gen_ai.operation.name")["stringValue"], "invoke_agent");
    assert_eq!(attribute(turn, "gen_ai.provider.name")["stringValue"], "anthropic");
    assert_eq!(attribute(turn, "gen_ai.request.model")["stringValue"], "claude-opus-4-8");
    assert_eq!(attribute(turn, "gen_ai.usage.input_tokens")["intValue"], "45");
    assert_eq!(attribute(turn, "gen_ai.usage.output_tokens")["intValue"], "1");
    assert_eq!(attribute(turn, "gen_ai.conversation.id")["stringValue"], "s1");
    assert_eq!(export(&world, &mut sent, START + 3_000), Vec::<Value>::new(), "nothing twice");

    end(&mut world, "s1", START + 5_000);
    let ended = export(&world, &mut sent, START + 6_000);
    assert_eq!(ended.len(), 1, "the goal was paused, so no turn ended");
    let root = &ended[0];
    assert_eq!((&root["name"], &root["traceId"]), (&Value::from("goal"), &turn["traceId"]));
    assert_eq!((&turn["parentSpanId"], root.get("parentSpanId")), (&root["spanId"], None));
    assert_eq!((root["traceId"].as_str().unwrap().len(), root["spanId"].as_str().unwrap().len()), (32, 16));
    assert_eq!(attribute(root, "steadfast.goal.id")["stringValue"], goal.goal_id);
    assert_eq!(attribute(root, "steadfast.goal.status")["stringValue"], "abandoned");
    assert_eq!(attribute(root, "steadfast.project")["stringValue"], "website");
    assert!(root["events"].as_array().unwrap().iter().any(|event| event["name"] == "goal_paused"), "{root}");
    assert_eq!(export(&world, &mut sent, START + 7_000), Vec::<Value>::new());
    // Also when it is forgotten that it was sent.
    assert_eq!(export(&world, &mut sent, START + 10 * HOUR), Vec::<Value>::new());
    assert_eq!(export(&world, &mut sent, START + 20 * HOUR), Vec::<Value>::new());
    assert!(sent.since_ms > START + 10 * HOUR);
}

#[test]
fn the_first_export_sends_the_last_day_and_failed_ones_are_sent_again() {
    let mut world = World::new();
    start(&mut world, "old", "/p", Limits::default());
    end(&mut world, "old", START);
    start(&mut world, "new", "/p", Limits::default());
    end(&mut world, "new", START + DAY);
    let now = START + DAY + HOUR;
    let sent = Sent::nothing(now);
    for _ in 0..2 {
        let pending = pending(world.store.read(), &sent, TraceOptions::default(), now).unwrap();
        assert_eq!(pending.traces.len(), 1, "nothing was noted as sent");
        let ids: Vec<&Value> = pending.traces[0].spans.iter().map(|span| &span["spanId"]).collect();
        assert_eq!(ids.len(), 2, "its only turn and the goal");
    }
    let stored: Sent = serde_json::from_str(&serde_json::to_string(&sent).unwrap()).unwrap();
    assert_eq!(stored, sent);
}

#[test]
fn texts_are_sent_only_if_asked_for() {
    let mut world = World::new();
    start(&mut world, "s1", "/home/me/website", Limits::default());
    end(&mut world, "s1", START + 1);
    let spans = |with_text| {
        let sent = Sent::nothing(START + 2);
        let pending = pending(world.store.read(), &sent, TraceOptions { with_text }, START + 2).unwrap();
        document(&pending.traces[0].spans, &Sender::default()).to_string()
    };
    assert!(!spans(false).contains("SESAME") && !spans(false).contains("/home/me"));
    assert!(spans(true).contains("SESAME"));
}
