//! After `kill -9` of any process at any moment, the run can be resumed, and its rows, files and work end up as in an
//! undisturbed run. No iteration is lost or counted twice, and no second agent runs beside another.

mod person;
mod random;
mod trouble;
mod truth;
mod world;

use steadfast_engine::crash::CrashPoint;

use truth::Truth;
use world::{Scenario, Victims, World};

fn undisturbed(scenario: Scenario) -> Truth {
    let world = World::new(scenario);
    assert!(world.start("").wait().unwrap().success(), "{}", world.story());
    Truth::of(&world)
}

#[track_caller]
fn assert_same(truth: &Truth, found: &Truth, world: &World, what: &str) {
    assert!(truth == found, "{what}\n{}\n{}", truth.difference(found), world.story());
}

/// Kills at one point; returns whether it was reached.
fn kill_at(truth: &Truth, scenario: Scenario, point: CrashPoint, nth: u32, victims: Victims) -> bool {
    let what = format!("{scenario:?}, {victims:?} killed at {}:{nth}", point.name());
    let world = World::new(scenario);
    let crash_at = format!("{}:{nth}:hold", point.name());
    // Only an engine that finds another engine's attempt can abandon it.
    let mut engine = if point == CrashPoint::Abandoned {
        world.start("engine.prepared:2").wait().unwrap();
        world.spawn_resume(&crash_at)
    } else {
        world.start(&crash_at)
    };
    let is_held = world.is_held(&mut engine);
    if is_held {
        world.kill_victims(&mut engine, victims);
    }
    let ended = engine.wait().unwrap();
    assert!(ended.success() || is_held, "{what}: {ended}\n{}", world.story());
    let found = if ended.success() { Truth::of(&world) } else { world.to_its_end() };
    assert_same(truth, &found, &world, &what);
    is_held
}

/// Kills at every point, each time it is reached, between `least` and `most` times, with one victim after another.
fn kill_everywhere(scenario: Scenario, least: usize, most: u32) {
    let truth = undisturbed(scenario);
    for (at, point) in CrashPoint::ALL.iter().enumerate() {
        let is_of_worktrees = point.name().starts_with("engine.worktree");
        let least = if is_of_worktrees { Victims::EACH.len() } else { least };
        let mut often = 0;
        let mut nth = 1;
        for victims in Victims::EACH.iter().cycle().skip(at) {
            let is_reached = kill_at(&truth, scenario, *point, nth, *victims);
            often += usize::from(is_reached);
            if !is_reached && nth == 1 || !(is_reached && nth < most) && often >= least {
                break;
            }
            nth = if is_reached && nth < most { nth + 1 } else { 1 };
        }
        let is_possible = match point {
            CrashPoint::Checked => matches!(scenario, Scenario::Plateau | Scenario::Goal | Scenario::Graph),
            CrashPoint::Decided
            | CrashPoint::ArtifactsKept
            | CrashPoint::MergeBegun
            | CrashPoint::BranchMerged
            | CrashPoint::MergeConflict => scenario == Scenario::Graph,
            // No merge is given up; `engine/merging.rs` kills there.
            CrashPoint::MergeAborted => false,
            CrashPoint::EvidenceKept => scenario == Scenario::Goal,
            _ if is_of_worktrees => scenario.has_branches(),
            _ => true,
        };
        assert_eq!(often > 0, is_possible, "{scenario:?}: {} is reached or not", point.name());
    }
}

#[test]
fn a_loop_survives_every_crash_point() {
    kill_everywhere(Scenario::Fixed, 4, u32::MAX);
}

#[test]
fn a_loop_with_a_rule_survives_every_crash_point() {
    kill_everywhere(Scenario::Plateau, 4, 4);
}

#[test]
fn a_goal_survives_every_crash_point() {
    kill_everywhere(Scenario::Goal, 2, 4);
}

#[test]
fn a_pipeline_survives_every_crash_point() {
    kill_everywhere(Scenario::Pipeline, 2, 2);
}

#[test]
fn a_graph_with_a_merge_survives_every_crash_point() {
    kill_everywhere(Scenario::Graph, 2, 2);
}
