//! Random plans with random failures: agents that fail, vanish, reach limits and vote; engines that die before saving,
//! between saving and acting, or while acting; users who stop and reopen. The result of an agent or a command depends
//! only on stage and iteration, so a disturbed run must end like an undisturbed one.

mod world;

use proptest::prelude::*;

use super::*;
use crate::run::{Condition, Then};
use world::{Disturbance, World};

fn any_rule() -> impl Strategy<Value = Rule> {
    let leaf = prop_oneof![
        Just(Rule::FixedN),
        Just(Rule::AllItems),
        (1_u32..4).prop_map(Rule::Plateau),
        Just(beads_rule()),
        Just(Rule::Command("test -f ok".into())),
        Just(Rule::Promise("DONE".into())),
        Just(Rule::Verify(vec!["make test".into()])),
        Just(Rule::Checklist("TODO.md".into())),
    ];
    leaf.prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Rule::Any),
            prop::collection::vec(inner, 0..3).prop_map(Rule::All),
        ]
    })
}

prop_compose! {
    fn any_stage()(
        completion in any_rule(),
        (runs, min_iterations, items) in (0_u32..7, 0_u32..4, 0_usize..5),
        (check_before, parallel, is_judged) in any::<(bool, bool, bool)>(),
        delay_ms in prop_oneof![Just(0), Just(5 * SECOND)],
    ) -> StagePlan {
        let items = vec!["item".to_owned(); items];
        let judge = is_judged.then(agent);
        StagePlan { min_iterations, check_before, delay_ms, items, parallel, judge, ..stage(completion, runs) }
    }
}

prop_compose! {
    fn any_plan()(stages in prop::collection::vec(any_stage(), 1..4), parallel in 0_u32..4, idle in 0_u32..4) -> Plan {
        // Crashes of the engine must not count as failures of the agent.
        let limits = RunLimits { errors: 10_000, idle, parallel, ..RunLimits::default() };
        match <[StagePlan; 1]>::try_from(stages) {
            Ok([stage]) => Plan { limits, ..loop_of(stage) },
            Err(stages) => Plan { limits, ..pipeline_of(stages) },
        }
    }
}

prop_compose! {
    /// Stages that need any of those before them. Nothing in it ends the run early, as then it would depend on chance how
    /// far the other stages are.
    fn any_graph()(
        stages in prop::collection::vec((any_stage(), any::<u8>(), any::<[bool; 4]>()), 1..6),
        parallel in 0_u32..5,
    ) -> Plan {
        let with_needs = |(number, (stage, mask, [is_chained, when, asks, parallel])): (u32, (StagePlan, u8, [bool; 4]))| {
            let chosen = (1..number).filter(|need| mask & (1 << need) != 0).collect();
            StagePlan {
                name: format!("s{number}"),
                needs: (!is_chained).then_some(chosen),
                when: when.then(|| Condition::Exists("file".into())),
                approve: asks.then(|| "Go?".into()),
                on_max: Some(Then::Continue),
                on_fail: Then::Continue,
                parallel: parallel && stage.parallel,
                ..stage
            }
        };
        let stages = (1..).zip(stages).map(with_needs).collect();
        let limits = RunLimits { errors: 10_000, idle: 0, parallel, ..RunLimits::default() };
        Plan { limits, ..pipeline_of(stages) }
    }
}

prop_compose! {
    fn any_limits()(
        tokens in prop::option::of(0_i64..2_000),
        cost_micros in prop::option::of(0_i64..40_000),
        wall_ms in prop::option::of(0..2 * HOUR),
        (errors, idle, parallel) in (0_u32..4, 0_u32..4, 0_u32..4),
    ) -> RunLimits {
        let mut limits = Limits::default();
        limits.set(Axis::Tokens, tokens);
        limits.set(Axis::Usd, cost_micros);
        limits.set(Axis::Hours, wall_ms);
        RunLimits { limits, errors, idle, parallel, ..RunLimits::default() }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn crashes_change_nothing_that_is_committed(plan in any_plan(), script in any::<u64>(), fate in any::<u64>()) {
        let mut calm = World::new(plan.clone(), script, fate, Disturbance::default());
        calm.live();
        let mut stormy = World::new(plan, script, fate, Disturbance { crashes: 30, ..Disturbance::default() });
        stormy.live();
        prop_assert_eq!(stormy.ends(), calm.ends());
        prop_assert_eq!(stormy.committed(), calm.committed());
    }

    #[test]
    fn crashes_and_stops_change_nothing_in_a_graph(plan in any_graph(), script in any::<u64>(), fate in any::<u64>()) {
        let mut calm = World::new(plan.clone(), script, fate, Disturbance::default());
        calm.live();
        let disturbance = Disturbance { crashes: 20, stops: 4, orphans: 3, reopenings: 50, only_cut_short: true };
        let mut stormy = World::new(plan, script, fate, disturbance);
        stormy.live();
        prop_assert_eq!(stormy.ends(), calm.ends());
        prop_assert_eq!(stormy.committed(), calm.committed());
    }

    #[test]
    fn a_graph_with_limits_always_ends(
        plan in any_graph(),
        limits in any_limits(),
        (on_max, on_fail) in any::<(bool, bool)>(),
        script in any::<u64>(),
        fate in any::<u64>(),
    ) {
        let then = |goes_on: bool| if goes_on { Then::Continue } else { Then::Stop };
        let stages = plan.stages.into_iter();
        let stages = stages.map(|stage| StagePlan { on_max: Some(then(on_max)), on_fail: then(on_fail), ..stage });
        let plan = Plan { limits, stages: stages.collect(), ..pipeline_of(Vec::new()) };
        let disturbance = Disturbance { crashes: 10, stops: 3, orphans: 2, reopenings: 6, ..Disturbance::default() };
        World::new(plan, script, fate, disturbance).live();
    }

    #[test]
    fn with_any_user_action_nothing_is_committed_twice_and_the_run_ends(
        plan in any_plan(),
        limits in any_limits(),
        script in any::<u64>(),
        fate in any::<u64>(),
    ) {
        let disturbance = Disturbance { crashes: 10, stops: 3, orphans: 2, reopenings: 6, ..Disturbance::default() };
        World::new(Plan { limits, ..plan }, script, fate, disturbance).live();
    }

    /// Killed at any moment and reopened until it is done, a run does the same work.
    #[test]
    fn a_run_that_is_stopped_and_reopened_commits_every_iteration_once(
        runs in 0_u32..6,
        parallel in any::<bool>(),
        script in any::<u64>(),
        fate in any::<u64>(),
    ) {
        let mut plan = loop_of(StagePlan { parallel, ..stage(Rule::FixedN, runs) });
        plan.limits = RunLimits { errors: 10_000, parallel: 3, ..RunLimits::default() };
        let disturbance = Disturbance { crashes: 5, stops: 5, orphans: 5, reopenings: 10, ..Disturbance::default() };
        let mut world = World::new(plan, script, fate, disturbance);
        world.live();
        prop_assert_eq!(world.run.reason.as_deref(), Some("fixed-n"));
        prop_assert_eq!(world.committed(), (1..=runs).map(|iteration| (1, iteration)).collect::<Vec<_>>());
    }

    /// Stopped during agents and checks, a run ends by the same rule after the same iterations.
    #[test]
    fn stop_and_resume_do_not_change_decisions(plan in any_plan(), script in any::<u64>(), fate in any::<u64>()) {
        // Resuming resets the idle count, which would be a difference.
        let plan = Plan { limits: RunLimits { idle: 0, ..plan.limits }, ..plan };
        let mut calm = World::new(plan.clone(), script, fate, Disturbance::default());
        calm.live();
        let disturbance = Disturbance { crashes: 5, stops: 8, orphans: 3, reopenings: 50, only_cut_short: true };
        let mut stormy = World::new(plan, script, fate, disturbance);
        stormy.live();
        prop_assert_eq!(stormy.ends(), calm.ends());
        prop_assert_eq!(stormy.committed(), calm.committed());
    }

    #[test]
    fn no_event_in_any_state_panics(
        plan in any_plan(),
        limits in any_limits(),
        events in prop::collection::vec((0_u8..9, 0_u32..4, 0_u32..4, 0_u32..3), 0..60),
    ) {
        let mut drive = Drive::new(Plan { limits, ..plan });
        for (kind, stage, iteration, attempt) in events {
            let id = AttemptId { stage, iteration, attempt };
            drive.now += i64::from(kind) * SECOND;
            let event = match kind {
                0 => RunEvent::Started,
                1 => RunEvent::Ended { id, outcome: Outcome::Succeeded(Box::new(success("same"))) },
                2 => RunEvent::Ended { id, outcome: failure(FailureKind::Exit) },
                3 => RunEvent::Ended { id, outcome: failure(FailureKind::UsageLimit { until_ms: None }) },
                4 => RunEvent::Checked { id, facts: Vec::new() },
                5 => RunEvent::Woke,
                6 => RunEvent::StopRequested(killed()),
                7 => RunEvent::CapReached,
                _ => {
                    drive.reopen(Some(iteration));
                    continue;
                }
            };
            drive.send(event);
        }
    }
}
