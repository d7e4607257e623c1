//! A fork remembers what its ancestors knew when it was made.

use super::*;
use steadfast_model::memory::{GoalSummary, SessionMemory, Task, TaskChange, TaskStatus};

impl World {
    fn tells(&self, session_id: &str) -> Vec<String> {
        let known = self.store.read().session_memory(session_id, Host::Claude, None).unwrap();
        known.events.into_iter().map(|event| event.text).collect()
    }

    fn say(&mut self, session_id: &str, text: &str, at: Millis) {
        self.remember_in(session_id, vec![prompt(text)], at);
    }
}

#[test]
fn a_fork_tells_its_ancestors_story_up_to_the_fork_then_its_own() {
    let mut world = World::new();
    world.put(&session("a", START));
    world.say("a", "a1", START + 1);
    world.put(&fork("b", "a", START + 10));
    world.say("b", "b1", START + 11);
    world.say("a", "a2, after the fork", START + 12);
    world.put(&fork("c", "b", START + 20));
    world.say("b", "b2, after the fork", START + 21);
    world.say("c", "c1", START + 22);
    assert_eq!(world.tells("a"), ["a1", "a2, after the fork"]);
    assert_eq!(world.tells("c"), ["a1", "b1", "c1"]);
}

#[test]
fn a_session_memory_contains_everything() {
    let mut world = World::new();
    world.put(&session("a", START));
    let list = |subjects: &[&str]| {
        TaskChange::Replace(subjects.iter().map(|text| ((*text).to_owned(), TaskStatus::Pending)).collect())
    };
    let own = TaskChange::Put { id: "7".into(), subject: Some("seven".into()), status: Some(TaskStatus::Pending) };
    let done = TaskChange::Put { id: "7".into(), subject: None, status: Some(TaskStatus::Completed) };
    let named = TaskChange::Put { id: "7".into(), subject: Some("seven".into()), status: None };
    for (session, tasks, at) in
        [("a", vec![list(&["one", "two", "three"]), own], 1), ("b", vec![list(&["four"]), named, done], 11)]
    {
        if session == "b" {
            world.put(&fork("b", "a", START + 10));
        }
        let found = Findings { tasks, ..Findings::default() };
        world.store.write(|db| db.remember(session, &found, START + at)).unwrap();
    }
    let goal = GoalSummary { objective: "ship".into(), standing: "active".into(), active: true, set_at_ms: 1 };
    let known = world.store.read().session_memory("b", Host::Claude, Some(goal.clone())).unwrap();
    let task = |id: &str, subject: &str, status| Task { id: id.into(), subject: subject.into(), status };
    let expected = SessionMemory {
        session_id: "b".into(),
        host: Host::Codex,
        goal: Some(goal),
        stated: None,
        events: vec![],
        tasks: vec![task("list-1", "four", TaskStatus::Pending), task("7", "seven", TaskStatus::Completed)],
        compactions: 0,
    };
    assert_eq!(known, expected);
}

#[test]
fn a_circle_of_parents_ends() {
    let mut world = World::new();
    for (id, parent) in [("a", "b"), ("b", "c"), ("c", "a"), ("self", "self")] {
        world.put(&fork(id, parent, START));
        world.say(id, id, START);
    }
    assert_eq!(world.tells("a"), ["c", "b", "a"]);
    assert_eq!(world.tells("self"), ["self"]);
}

#[test]
fn a_lineage_has_at_most_eight_generations_before_the_session() {
    let mut world = World::new();
    for number in 0..12 {
        world.put(&fork(&number.to_string(), &(number - 1).to_string(), START + number));
        world.say(&number.to_string(), &number.to_string(), START + number);
    }
    let expected: Vec<String> = (3..=11).map(|number| number.to_string()).collect();
    assert_eq!(world.tells("11"), expected);
}

#[test]
fn a_parent_that_is_not_known_any_more_is_the_end() {
    let mut world = World::new();
    world.put(&fork("b", "gone", START));
    world.say("gone", "still remembered", START);
    world.say("b", "b1", START);
    assert_eq!(world.tells("b"), ["still remembered", "b1"]);
    assert_eq!(world.tells("nobody"), Vec::<String>::new());
}

#[test]
fn a_hook_that_knows_no_parent_leaves_the_link_alone() {
    let mut world = World::new();
    world.put(&fork("b", "a", START));
    world.put(&Session { last_seen_ms: START + 5, ..session("b", START + 5) });
    let expected = Session { last_seen_ms: START + 5, ..fork("b", "a", START) };
    assert_eq!(world.store.read().session("b").unwrap(), Some(expected));
}
