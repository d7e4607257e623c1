//! Each segment in the documented form, and empty where there is nothing to say.

use steadfast_model::host::Host;
use steadfast_model::limit::{Cap, Limits};
use steadfast_model::reading::{Reading, Response, Tokens};
use steadfast_store::Source;

use super::goal as goal_line;
use super::*;
use crate::testing::{HOUR, MINUTE, SESSION, START, World, goal};

#[test]
fn the_status_line_matches_the_documentation() {
    let running = Goal {
        tokens_used: 1_000_000,
        subagent_tokens: 200_000,
        limits: Limits::default().with(Axis::Tokens, 10_000_000),
        continuations_used: 14,
        ..goal()
    };
    let now = START + 42 * MINUTE;
    assert_eq!(goal_line(&running, Next::TurnEnds, now), "◎ goal active 1.2M/10M · 14 turns · 0:42");
    let paused = Goal {
        status: GoalStatus::Paused,
        paused_reason: Some(PausedReason::WallClockCap),
        resume_at_ms: None,
        time_used_seconds: 42 * 60,
        ..running
    };
    assert_eq!(goal_line(&paused, Next::NeedsUser, now), "◎ goal paused (wall clock cap) 1.2M/10M · 14 turns · 0:42");
}

#[test]
fn a_bar_shows_the_limit_that_comes_first() {
    let used = |tokens, turns| Goal {
        tokens_used: tokens,
        continuations_used: turns,
        limits: Limits::default().with(Axis::Tokens, 1_000).with(Axis::Turns, 10),
        ..goal()
    };
    for (tokens, turns, expected) in [
        (0, 0, "░░░░░░░ 0 %"),
        (10, 0, "▓░░░░░░ 1 %"),
        (420, 1, "▓▓▓░░░░ 42 %"),
        (420, 9, "▓▓▓▓▓▓░ 90 %"),
        (999, 0, "▓▓▓▓▓▓░ 99 %"),
        (1_000, 0, "▓▓▓▓▓▓▓ 100 %"),
        (i64::MAX, 0, "▓▓▓▓▓▓▓ 922337203685477580 %"),
    ] {
        assert_eq!(bar(&used(tokens, turns), START), expected);
    }
    assert_eq!(bar(&goal(), START), "", "no limit");
    assert_eq!(bar(&Goal { status: GoalStatus::Complete, ..used(420, 1) }, START), "");
}

#[test]
fn the_plan_shows_the_windows_whose_numbers_hold() {
    let quota = |window, used_percent, seen_at_ms| Quota { window, used_percent, resets_at_ms: None, seen_at_ms };
    let (short, long) = (quota(Window::FiveHour, 42, START), quota(Window::Weekly, 13, START));
    assert_eq!(plan(&[long, short], START), "plan 5h 42 % week 13 %");
    assert_eq!(plan(&[long], START), "plan week 13 %");
    assert_eq!(plan(&[short, long], START + 7 * HOUR), "", "seen too long ago");
    assert_eq!(plan(&[], START), "");
}

#[test]
fn today_shows_the_money_of_the_day_and_its_cap() {
    let mut world = World::new();
    let caps = |caps: &[Cap]| LimitsConfig { caps: caps.to_vec(), ..LimitsConfig::default() };
    let cap = |scope, most| Cap { scope, axis: Axis::Usd, most };
    let daily = caps(&[cap(CapScope::Session, 1), cap(CapScope::Machine(Period::Daily), 20_000_000)]);
    assert_eq!(today(world.store.read(), &caps(&[]), START).unwrap(), "today $0.00");
    let mut spend = |id: &str, model: &str| {
        let tokens = Tokens { input: 1_000_000, ..Tokens::default() };
        let mut reading = Reading::default();
        reading.add(Response { id: id.into(), model: model.into(), tokens, at_ms: START, ..Response::default() });
        let path = world.transcript.clone();
        let source = Source { host: Host::Claude, session_id: SESSION, agent_id: "", agent_type: "", path: &path };
        world.store.write(|db| db.record(source, &reading, None, START)).unwrap();
        today(world.store.read(), &daily, START).unwrap()
    };
    assert_eq!(spend("m1", "claude-opus-4-8"), "today $5.00 of $20.00");
    assert_eq!(spend("m2", "a-model-without-price"), "today $5.00+ of $20.00");
}
