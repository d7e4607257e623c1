//! The page of a goal, from a real store.

use super::*;
use crate::testing::{HOOK, HOUR, MINUTE, START, World};
use steadfast_model::goal::budget::Budget;
use steadfast_model::goal::change;
use steadfast_model::goal::turn::{self, Charge};

fn charge(world: &mut World, tokens: i64, at: Millis) {
    let goal = world.goal();
    let add = Charge { worker_tokens: tokens, ..Charge::default() };
    let change = turn::charge(&goal, add, at).unwrap();
    world.store.write(|db| db.save(&goal, change, HOOK)).unwrap();
}

fn page(world: &World, at: Millis) -> GoalPage {
    goal_page(world.store.read(), &world.goal(), &world.paths(), at).unwrap()
}

#[test]
fn accounting_passes_in_a_row_are_one_line() {
    let mut world = World::new();
    world.start(Budget::default(), START);
    charge(&mut world, 10, START + MINUTE);
    charge(&mut world, 20, START + 2 * MINUTE);
    world.apply(|goal| change::pause(goal, START + 3 * MINUTE));
    let page = page(&world, START + HOUR);
    let rows: Vec<(&str, usize, i64)> =
        page.timeline.iter().map(|row| (row.kind.as_str(), row.count, row.tokens)).collect();
    assert_eq!(rows, [("goal_paused", 1, 0), ("tokens_accounted", 2, 30), ("goal_created", 1, 0)]);
    assert_eq!(page.burn.iter().map(|point| point.tokens).collect::<Vec<_>>(), [0, 10, 30]);
    assert_eq!(page.timeline.first().and_then(|row| row.status_after.as_deref()), Some("paused"));
}

#[test]
fn pauses_begin_and_end_and_the_last_one_may_be_open() {
    let mut world = World::new();
    world.start(Budget::default(), START);
    world.apply(|goal| change::pause(goal, START + MINUTE));
    let open = page(&world, START + HOUR).pauses;
    assert_eq!(open.iter().map(|pause| (pause.from_ms, pause.to_ms)).collect::<Vec<_>>(), [(START + MINUTE, None)]);
    world.apply(|goal| change::resume(goal, START + 5 * MINUTE));
    let closed = page(&world, START + HOUR).pauses;
    assert_eq!(closed.first().and_then(|pause| pause.to_ms), Some(START + 5 * MINUTE));
}

#[test]
fn what_a_person_can_do_depends_on_the_state() {
    let mut world = World::new();
    world.start(Budget::default(), START);
    assert!(page(&world, START).actions.contains(&Action::Pause));
    world.apply(|goal| change::pause(goal, START + MINUTE));
    let paused = page(&world, START + HOUR).actions;
    assert!(paused.contains(&Action::Resume) && !paused.contains(&Action::Pause));
    world.apply(|goal| change::abandon(goal, START + 2 * MINUTE));
    assert_eq!(page(&world, START + HOUR).actions, []);
}
