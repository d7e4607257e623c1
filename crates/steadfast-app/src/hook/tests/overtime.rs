//! Turns that go on although their goal does not run any more.

use super::*;
use steadfast_model::goal::wait::WaitFor;
use steadfast_model::limit::{Axis, Limits};

impl World {
    fn ask(&self, agent_type: Option<&str>, now: Millis) -> HookReply {
        self.hook("PreToolUse", HookEvent::ToolAsked { agent_type: agent_type.map(str::to_owned) }, now)
    }

    fn spend(&self, id: &str, seconds: i64) {
        self.write(&reply(id, at(seconds), [1_000, 0, 0, 0]));
    }

    fn apply(&mut self, verb: fn(&Goal) -> Result<change::Change, change::Refusal>) {
        action::apply(&mut self.store, SESSION, USER, at(5), verb).unwrap();
    }
}

fn limited_to(tokens: i64) -> World {
    running_goal_within(Budget { limits: Limits::default().with(Axis::Tokens, tokens), ..Budget::default() })
}

/// Hole: after `wait_goal` or `blocked`, no limit stopped the running turn.
#[test]
fn a_turn_that_waits_or_is_blocked_is_asked_to_end_refused_and_ended() {
    for verb in [(|goal| change::wait(goal, WaitFor::Time, Some(at(9_000)), at(5))) as fn(&Goal) -> _, |goal| {
        change::block(goal, "no key", at(5))
    }] {
        let mut world = limited_to(10_000);
        world.apply(verb);
        let state = world.goal().state();
        assert_eq!(world.batch(at(6)), HookReply::default(), "its own call");
        world.spend("m1", 7);
        assert_eq!(world.ask(None, at(7)), HookReply::default());
        assert!(world.batch(at(7)).context.unwrap().starts_with("End your turn now: the goal "));
        let refused = world.ask(None, at(8)).refuse_tool.unwrap();
        assert!(refused.contains("get_goal and update_goal still work"), "{refused}");
        assert!(world.batch(at(8)).block.unwrap().starts_with("◎ the turn is ended: "));
        let goal = world.goal();
        assert_eq!((goal.state(), goal.tokens_used, goal.overtime), (state, 1_000, None));
        // The user's next turn is the user's own.
        world.prompt(true, at(20));
        world.spend("m2", 21);
        assert_eq!((world.ask(None, at(21)), world.batch(at(21))), (HookReply::default(), HookReply::default()));
        assert_eq!(world.goal().tokens_used, 1_000);
    }
}

#[test]
fn a_pause_in_mid_turn_ends_the_turn_and_one_at_the_prompt_does_not_touch_the_next() {
    let mut world = running_goal();
    world.apply(|goal| change::pause(goal, at(5)));
    assert_eq!(world.ask(None, at(6)), HookReply::default(), "it is asked first");
    let asked = world.batch(at(6)).context.unwrap();
    assert!(asked.starts_with("End your turn now: the user has paused the goal."), "{asked}");
    assert!(world.ask(None, at(7)).refuse_tool.is_some() && world.ask(Some("helper"), at(7)).refuse_tool.is_some());
    // A prompt that the client makes itself changes nothing, one of the user does.
    world.prompt(false, at(8));
    assert!(world.ask(None, at(8)).refuse_tool.is_some());
    world.prompt(true, at(9));
    assert_eq!((world.ask(None, at(9)), world.batch(at(9))), (HookReply::default(), HookReply::default()));

    let mut world = running_goal();
    world.apply(|goal| change::pause(goal, at(5)));
    world.stop(at(6));
    assert_eq!((world.ask(None, at(7)), world.batch(at(7))), (HookReply::default(), HookReply::default()));
}

#[test]
fn a_codex_turn_at_its_limit_is_refused_counted_and_closed_by_its_end() {
    let mut world = limited_to(1_000);
    world
        .store
        .write(|db| {
            let goal = db.goal(SESSION)?.unwrap();
            let after = Goal { host: Host::Codex, ..goal.clone() };
            db.save(&goal, change::Change { goal: after, events: Vec::new(), span: change::Span::Keep }, USER)
        })
        .unwrap();
    let codex = |world: &World, name: &str, event: HookEvent, now: Millis| {
        handle(&HookInput { host: Host::Codex, transcript: None, ..world.input(name, event) }, &world.paths(), now)
    };
    let batch = |world: &World, now| codex(world, "PostToolUse", HookEvent::ToolBatch { agent: None }, now);
    let ask = |world: &World, now| codex(world, "PreToolUse", HookEvent::ToolAsked { agent_type: None }, now);
    let charge = |world: &mut World| {
        world
            .store
            .write(|db| {
                let goal = db.goal(SESSION)?.unwrap();
                let add = steadfast_model::goal::turn::Charge { worker_tokens: 1_000, ..Default::default() };
                db.save(&goal, steadfast_model::goal::turn::charge(&goal, add, at(6)).unwrap(), USER)
            })
            .unwrap();
    };
    charge(&mut world);
    assert!(batch(&world, at(7)).context.unwrap().contains("This is the last turn it gets"));
    (0..3).for_each(|_| assert_eq!(batch(&world, at(8)), HookReply::default()));
    let told = batch(&world, at(9));
    assert!(
        told.block.is_none() && told.context.unwrap().starts_with("End your turn now: the goal's limit is reached")
    );
    let endings: Vec<bool> = (0..6).map(|_| ask(&world, at(10)).end_turn.is_some()).collect();
    assert_eq!(endings, [false, false, false, true, false, false]);
    let refused = ask(&world, at(11)).refuse_tool.unwrap();
    assert!(
        refused.starts_with("End your turn now: the goal's limit is reached. This tool call was refused"),
        "{refused}"
    );
    charge(&mut world);
    assert_eq!((world.goal().tokens_used, world.goal().state()), (2_000, "budget_limited".into()));
    codex(&world, "Stop", stop_event(true), at(12));
    assert_eq!(
        (world.goal().overtime, world.store.read().has_open_span(&world.goal().goal_id).unwrap()),
        (None, false)
    );
    assert_eq!(ask(&world, at(13)), HookReply::default());
}

/// Asked before every call of every tool: nothing is written.
#[test]
fn a_tool_that_may_run_writes_nothing() {
    let world = running_goal();
    let before = (world.goal(), world.event_kinds());
    world.spend("m1", 1);
    assert_eq!(
        (world.ask(None, at(2)), world.ask(Some("helper"), at(2))),
        (HookReply::default(), HookReply::default())
    );
    assert_eq!((world.goal(), world.event_kinds()), before);
}

#[test]
fn a_subagent_is_refused_at_the_limit_of_the_goal() {
    let world = limited_to(1_000);
    world.spend("m1", 1);
    world.batch(at(2));
    assert_eq!(world.ask(None, at(3)), HookReply::default());
    assert_eq!(world.ask(Some("steadfast:goal-evaluator"), at(3)), HookReply::default());
    let refused = world.ask(Some("helper"), at(3)).refuse_tool.unwrap();
    assert!(refused.starts_with("End now and report what you have"), "{refused}");
}
