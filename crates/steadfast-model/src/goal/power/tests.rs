//! When a turn is the user's, what the worker may do in it, and what a goal leaves to the next one.

use super::*;
use crate::testing::{HOUR, START, goal, goal_with};

fn at(seconds: i64) -> Millis {
    START + seconds * 1_000
}

#[test]
fn a_turn_is_the_users_if_their_prompt_is_the_newest_thing_that_moved_the_goal() {
    let continued = |seconds| Goal { last_continuation_at_ms: Some(at(seconds)), ..goal() };
    let woken = |seconds| Goal { woken_at_ms: Some(at(seconds)), ..goal() };
    let winds_down = Goal { wind_down: Some(Axis::Tokens), ..goal() };
    // What is shown, the goal, when its turn began, when a person prompted, whether the turn is theirs.
    let table = [
        ("no prompt", goal(), Some(5), None, false),
        ("no turn", goal(), None, Some(5), false),
        ("the prompt that began the turn", goal(), Some(5), Some(5), true),
        ("a prompt in the middle of a turn", goal(), Some(5), Some(7), true),
        ("the prompt before the goal", goal(), Some(-1), Some(-1), false),
        ("the prompt that started the goal", goal(), Some(0), Some(0), false),
        ("a turn that the client began later", goal(), Some(9), Some(5), false),
        ("a continuation since", continued(6), Some(5), Some(5), false),
        ("a continuation before", continued(4), Some(5), Some(5), true),
        ("a prompt in the middle of a continuation", continued(4), Some(4), Some(5), true),
        ("a wake-up since", woken(6), Some(5), Some(5), false),
        ("a wake-up at the same moment", woken(5), Some(5), Some(5), false),
        ("the turn that winds down", winds_down, Some(5), Some(5), false),
    ];
    for (case, goal, since, prompted_at, expected) in table {
        let turn = RunningTurn { since: since.map(at), prompted_at: prompted_at.map(at) };
        assert_eq!(is_users_turn(&goal, turn), expected, "{case}");
    }
}

#[test]
fn a_worker_may_change_a_goal_only_as_the_user_asked() {
    use Denial::{NotAsked, Paused, PausedByUser, TooEarly};
    let paused = |reason| Goal { status: GoalStatus::Paused, paused_reason: Some(reason), ..goal() };
    let (by_user, limited) = (paused(PausedReason::User), paused(PausedReason::UsageLimit));
    let in_turn = |turns: i64| Goal { continuations_used: turns - 1, ..goal() };
    let own = TurnFacts { is_workers_goal: true, ..TurnFacts::default() };
    let asked = TurnFacts { is_users_turn: true, ..TurnFacts::default() };
    let none = TurnFacts::default();
    let table = [
        (goal(), Verb::Edit, none, Err(NotAsked(Verb::Edit))),
        (goal(), Verb::Edit, own, Err(NotAsked(Verb::Edit))),
        (goal(), Verb::Edit, asked, Ok(())),
        (by_user.clone(), Verb::Edit, asked, Err(Paused)),
        (limited.clone(), Verb::Edit, asked, Err(Paused)),
        (goal(), Verb::Abandon, none, Err(NotAsked(Verb::Abandon))),
        (goal(), Verb::Abandon, own, Ok(())),
        (goal(), Verb::Abandon, asked, Ok(())),
        (limited, Verb::Abandon, asked, Ok(())),
        (by_user.clone(), Verb::Abandon, asked, Err(PausedByUser(Verb::Abandon))),
        (by_user.clone(), Verb::Abandon, own, Err(PausedByUser(Verb::Abandon))),
        (goal(), Verb::Pause, none, Err(NotAsked(Verb::Pause))),
        (goal(), Verb::Pause, asked, Ok(())),
        (by_user, Verb::Pause, asked, Err(PausedByUser(Verb::Pause))),
        (in_turn(1), Verb::Block, none, Err(TooEarly(1))),
        (in_turn(2), Verb::Block, own, Err(TooEarly(2))),
        (in_turn(3), Verb::Block, none, Ok(())),
        (in_turn(1), Verb::Block, asked, Ok(())),
    ];
    for (goal, verb, facts, expected) in table {
        assert_eq!(may(&goal, verb, facts), expected, "{verb} of {} with {facts:?}", goal.state());
    }
}

#[test]
fn the_next_goal_gets_at_most_what_the_last_one_left() {
    let limits = Limits::default()
        .with(Axis::Tokens, 1_000)
        .with(Axis::Usd, 5_000_000)
        .with(Axis::Turns, 10)
        .with(Axis::Hours, HOUR)
        .with(Axis::Deadline, at(7_200));
    let mut old = goal_with(limits);
    old.resume_at_ms = None;
    (old.tokens_used, old.subagent_tokens, old.cost_micros) = (300, 100, 2_000_000);
    (old.continuations_used, old.time_used_seconds) = (4, 600);
    let left = Limits::default()
        .with(Axis::Tokens, 600)
        .with(Axis::Usd, 3_000_000)
        .with(Axis::Turns, 6)
        .with(Axis::Hours, HOUR - 600_000)
        .with(Axis::Deadline, at(7_200));
    assert_eq!(inherited(&old, Limits::default(), at(60)), Ok(left));
    let asked = Limits::default().with(Axis::Tokens, 50).with(Axis::Turns, 99);
    assert_eq!(inherited(&old, asked, at(60)), Ok(left.with(Axis::Tokens, 50)));
    // What the old goal did not limit is as asked.
    assert_eq!(inherited(&goal(), asked, at(60)), Ok(asked));
    for (axis, spent) in [
        (Axis::Tokens, Goal { tokens_used: 900, ..old.clone() }),
        (Axis::Usd, Goal { cost_micros: 5_000_000, ..old.clone() }),
        (Axis::Turns, Goal { continuations_used: 10, ..old.clone() }),
        (Axis::Hours, Goal { time_used_seconds: 3_600, ..old.clone() }),
    ] {
        assert_eq!(inherited(&spent, asked, at(60)), Err(axis));
    }
    assert_eq!(inherited(&old, asked, at(7_200)), Err(Axis::Deadline));
}
