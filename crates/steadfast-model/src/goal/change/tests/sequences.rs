//! Invariants that hold after any sequence of changes.

use super::*;
use crate::limit::SharedSpend;

#[derive(Debug, Clone)]
enum Step {
    Verb(usize),
    Extend(Limits),
    SessionEnded,
    SessionResumed,
    Prompted,
    Charge(Charge),
    Stop(TurnEnd),
    Batch,
    Warn,
}

fn amount() -> impl Strategy<Value = Option<i64>> {
    proptest::option::of(1..5_000_i64)
}

fn step() -> impl Strategy<Value = Step> {
    let extension = (amount(), amount(), amount(), amount()).prop_map(|(turns, seconds, tokens, usd_micros)| {
        let mut add = Limits::default();
        add.set(Axis::Turns, turns);
        add.set(Axis::Hours, seconds.map(|seconds| seconds * SECOND));
        add.set(Axis::Tokens, tokens);
        add.set(Axis::Usd, usd_micros);
        Step::Extend(add)
    });
    let charge = (0..400_i64, 0..400_i64).prop_map(|(worker_tokens, subagent_tokens)| {
        Step::Charge(Charge { worker_tokens, subagent_tokens, cost_micros: worker_tokens, ..Charge::default() })
    });
    let stop = (any::<[bool; 4]>(), 0..3_u8).prop_map(|(facts, message)| {
        Step::Stop(TurnEnd {
            after_continuation: facts[0],
            message: Some(message.to_string()),
            worked: facts[1],
            user_waits: facts[2] && facts[3],
            block_cap: Some(8),
            ..TurnEnd::default()
        })
    });
    prop_oneof![
        3 => (0..VERBS.len()).prop_map(Step::Verb),
        1 => extension,
        1 => Just(Step::SessionEnded),
        1 => Just(Step::SessionResumed),
        1 => Just(Step::Prompted),
        4 => charge,
        6 => stop,
        3 => Just(Step::Batch),
        1 => Just(Step::Warn),
    ]
}

fn take(step: &Step, goal: &Goal, now: Millis) -> Option<Change> {
    match step {
        Step::Verb(at) => VERBS[*at].1(goal, now).ok(),
        Step::Extend(add) => extend(goal, *add, now).ok(),
        Step::SessionEnded => session_ended(goal, now, now),
        Step::SessionResumed => session_resumed(goal, now, now),
        Step::Prompted => turn_began(goal, true, now),
        Step::Charge(charge) => turn::charge(goal, *charge, now),
        Step::Stop(end) => turn::at_stop(goal, end, crate::testing::rules(3), now).0,
        Step::Batch => turn::at_batch(goal, SharedSpend::Free, now).0,
        Step::Warn => turn::warn(goal, SharedSpend::Free, now).map(|(change, _)| change),
    }
}

proptest! {
    #[test]
    fn no_sequence_of_changes_breaks_the_invariants(steps in proptest::collection::vec((step(), 0..20 * SECOND), 0..60)) {
        let limits = Limits::default().with(Axis::Tokens, 3_000).with(Axis::Usd, 2_500).with(Axis::Turns, 8).with(Axis::Hours, 10 * MINUTE);
        let mut goal = goal_with(limits);
        let mut now = NOW;
        for (step, pause) in steps {
            now += pause;
            let Some(change) = take(&step, &goal, now) else { continue };
            let after = change.goal;
            prop_assert!(after.tokens_used >= goal.tokens_used && after.subagent_tokens >= goal.subagent_tokens);
            prop_assert!(after.active_seconds(now) >= goal.active_seconds(now), "{:?} lost time", step);
            prop_assert!(after.continuations_used <= after.limits.get(Axis::Turns).unwrap() && after.continuations_used >= goal.continuations_used);
            if !goal.status.is_live() {
                prop_assert_eq!(after.status, goal.status, "{:?} revived a goal", step);
            }
            prop_assert_eq!(after.paused_reason.is_some(), after.status == GoalStatus::Paused, "{:?}", step);
            if after.status != GoalStatus::Active {
                prop_assert_eq!(after.resume_at_ms, None, "the clock of a stopped goal runs after {:?}", step);
            }
            if let Step::Charge(_) = step && after.status == GoalStatus::Active {
                prop_assert!(after.remaining_tokens() > Some(0), "active above its budget");
            }
            prop_assert_eq!((&after.session_id, &after.goal_id, after.version), (&goal.session_id, &goal.goal_id, goal.version));
            goal = after;
        }
    }
}
