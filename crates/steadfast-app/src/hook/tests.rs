//! Hooks as the client calls them, against a store and session files in a directory of their own.

use std::path::PathBuf;

use serde_json::json;

use super::*;
use crate::testing::{HOUR, MINUTE, SECOND, SESSION, START, USER, WORKER, World, append, reply, tool_call};
use steadfast_model::goal::budget::Budget;
use steadfast_model::goal::change;
use steadfast_model::goal::proof::Proof;
use steadfast_model::goal::{GoalStatus, PausedReason};
use steadfast_model::hook::{Agent, OwnToolDone, StartSource};
use steadfast_system::process;

mod announcing;
mod driving;
mod overtime;
mod session;
mod transactions;
mod trouble;

/// Handles a call of the client that runs these tests.
fn handle(input: &HookInput, paths: &Paths, now: Millis) -> HookReply {
    handle_call(input, paths, process::client_of_hook(), now).unwrap()
}

impl World {
    fn input(&self, event_name: &str, event: HookEvent) -> HookInput {
        HookInput {
            host: Host::Claude,
            turn_id: None,
            event_name: event_name.into(),
            session_id: SESSION.into(),
            transcript: Some(self.transcript.clone()),
            cwd: "/p".into(),
            project_dir: "/p".into(),
            event,
            observations: Vec::new(),
        }
    }

    fn hook(&self, event_name: &str, event: HookEvent, now: Millis) -> HookReply {
        handle(&self.input(event_name, event), &self.paths(), now)
    }

    /// The end of a turn without its last message, so that the hook does not wait for it.
    /// What the client gets from a Stop; no process delivers messages here, so they always wait.
    fn stop(&self, now: Millis) -> HookReply {
        HookReply { has_news: false, ..self.hook("Stop", stop_event(false), now) }
    }

    fn batch(&self, now: Millis) -> HookReply {
        self.hook("PostToolBatch", HookEvent::ToolBatch { agent: None }, now)
    }

    fn prompt(&self, typed: bool, now: Millis) -> HookReply {
        self.hook("UserPromptSubmit", HookEvent::Prompt { typed }, now)
    }

    fn session_start(&self, source: StartSource, now: Millis) -> HookReply {
        self.hook("SessionStart", HookEvent::SessionStart(source), now)
    }

    fn complete_by_worker(&mut self, now: Millis) {
        action::complete(
            &mut self.store,
            SESSION,
            &action::Claim::Agent { judged: false, verified: None },
            WORKER,
            now,
        )
        .unwrap();
    }
}

fn stop_event(after_continuation: bool) -> HookEvent {
    HookEvent::Stop { after_continuation, last_message: None, background_work: false }
}

fn at(seconds: i64) -> Millis {
    START + seconds * SECOND
}

fn running_goal() -> World {
    running_goal_within(Budget::default())
}

fn running_goal_within(budget: Budget) -> World {
    let mut world = World::new();
    world.prompt(true, START);
    world.start(budget, START);
    world.prompt(true, START);
    world
}

fn every_event() -> Vec<(&'static str, HookEvent)> {
    let agent = Agent { id: "a1".into(), agent_type: "default".into(), transcript: None };
    vec![
        ("SessionEnd", HookEvent::SessionEnd { reason: "other".into() }),
        ("Stop", stop_event(false)),
        ("PostToolBatch", HookEvent::ToolBatch { agent: None }),
        ("PostToolBatch", HookEvent::ToolBatch { agent: Some(agent.clone()) }),
        ("SubagentStop", HookEvent::SubagentStop { agent }),
        ("StopFailure", HookEvent::StopFailure { error: "rate_limit".into(), message: "limit reached".into() }),
        ("PreCompact", HookEvent::PreCompact),
        ("PostToolUse", HookEvent::OwnToolDone(OwnToolDone { is_batch: true, ..OwnToolDone::default() })),
    ]
}

/// Bug 31 of the plugin: sessions without a goal paid for every turn.
#[test]
fn hooks_do_not_create_a_store() {
    let world = World::new();
    let home = world.root.path().join("elsewhere");
    let paths = Paths { store: home.join("goals.db"), home: home.clone(), ..world.paths() };
    for (name, event) in every_event() {
        let reply = handle(&world.input(name, event), &paths, START);
        assert_eq!(reply, HookReply::default(), "{name}");
    }
    assert!(!home.exists());
}

#[test]
fn a_session_without_a_goal_gets_empty_replies_and_leaves_no_events() {
    let world = World::new();
    for (name, event) in every_event() {
        assert_eq!(world.hook(name, event, START), HookReply::default(), "{name}");
    }
    for source in [StartSource::Startup, StartSource::Resume, StartSource::Compact] {
        assert_eq!(world.session_start(source, START), HookReply::default(), "{source:?}");
    }
    assert_eq!(world.prompt(true, START), HookReply::default());
    assert_eq!(world.event_kinds(), Vec::<String>::new());
}

#[test]
fn a_goal_that_is_not_running_is_neither_driven_nor_changed() {
    type Verb = fn(&Goal) -> Result<change::Change, change::Refusal>;
    let verbs: [Verb; 3] = [
        |goal| change::pause(&Goal { resume_at_ms: None, ..goal.clone() }, at(5)),
        |goal| change::abandon(goal, at(5)),
        |goal| change::complete(goal, &Proof::from_user(goal, Actor::User).unwrap(), at(5)),
    ];
    for verb in verbs {
        let mut world = running_goal();
        action::apply(&mut world.store, SESSION, USER, at(5), verb).unwrap();
        world.write(&reply("m1", at(6), [1_000, 0, 0, 0]));
        let before = (world.goal(), world.event_kinds());
        for (name, event) in every_event() {
            assert_eq!(world.hook(name, event, at(7)), HookReply::default(), "{name}");
        }
        assert_eq!(world.prompt(true, at(8)), HookReply::default());
        assert_eq!((world.goal(), world.event_kinds()), before);
    }
}

#[test]
fn calls_of_our_own_tools_are_noted_and_allowed() {
    let world = World::new();
    let event = HookEvent::OwnTool {
        tool_use_id: "toolu_1".into(),
        tool_name: "record_verdict".into(),
        agent_id: "a1".into(),
        agent_type: "steadfast:goal-evaluator".into(),
    };
    let reply = world.hook("PreToolUse", event, START);
    let expected = HookReply { allow_tool: true, ..HookReply::default() };
    assert_eq!(reply, expected);
    let noted = world.store.read().tool_call("toolu_1").unwrap().unwrap();
    assert_eq!(
        (&*noted.session_id, &*noted.agent_type, &*noted.tool_name),
        (SESSION, "steadfast:goal-evaluator", "record_verdict")
    );
}
