//! The state of a pipeline whose stages run side by side.

use super::*;
use StageStatus::{AwaitingApproval, Completed, Deciding, Failed, Pending, Running, Skipped};

const STATE: &str = "pipeline-runs/myrefine/state.json";

#[test]
fn stages_that_run_side_by_side_keep_their_places() {
    let mut world = World::a_pipeline();
    for name in ["c", "d", "e"] {
        world.plan.stages.push(stage(name, 5, Rule::Plateau(2)));
        world.run.stages.push(StageState::default());
    }
    let shown = |world: &World| {
        let state = world.json(STATE);
        let stages = state["stages"].as_array().unwrap().iter();
        let stages: Vec<_> = stages.map(|stage| stage["status"].as_str().unwrap().to_owned()).collect();
        (state["current_stage"].as_u64().unwrap(), stages.join(" "))
    };
    let mut files = world.open();
    let mut step = |world: &mut World, statuses: [StageStatus; 5], current: u32| {
        for (state, status) in world.run.stages.iter_mut().zip(statuses) {
            state.status = status;
        }
        world.run.stage = current;
        world.publish(&mut files);
        shown(world)
    };
    assert_eq!(step(&mut world, [Running, Deciding, Pending, Pending, Pending], 1), (1, "running".into()));
    let found = step(&mut world, [Running, Deciding, AwaitingApproval, Running, Deciding], 1);
    assert_eq!(found, (1, "running pending awaiting_approval running".into()));
    let found = step(&mut world, [Completed, Skipped, Running, Failed, Pending], 3);
    assert_eq!(found, (3, "completed skipped running failed".into()));
    assert_eq!(world.json(STATE).get("ended_by_stage"), None);

    world.run.ended_by = Some(4);
    world.end(RunStatus::Failed, "error");
    world.publish(&mut world.open());
    let state = world.json(STATE);
    assert_eq!((&state["ended_by_stage"], &state["reason"]), (&json!("d"), &json!("error")));
    world.run.ended_by = None;
    world.publish(&mut world.open());
    assert_eq!(world.json(STATE).get("ended_by_stage"), None);
}

#[test]
fn iterations_of_stages_side_by_side_are_listed_in_the_order_of_their_commits() {
    let mut world = World::a_pipeline();
    // A minute apart: the stages take turns, and an engine was killed before it published any of it.
    for stage in [2, 1, 2, 1] {
        world.run.stage = stage;
        world.commit(None, None);
    }
    world.publish(&mut world.open());
    let state = world.json(STATE);
    let order: Vec<_> =
        state["history"].as_array().unwrap().iter().map(|it| (&it["stage"], &it["iteration"])).collect();
    assert_eq!(json!(order), json!([[2, 1], [1, 1], [2, 2], [1, 2]]));
}
