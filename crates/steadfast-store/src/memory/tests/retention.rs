//! What is forgotten, and what never is.

use super::*;
use crate::testing::HOUR;
use steadfast_model::goal::budget::Budget;
use steadfast_model::memory::stated::StatedChange;

const DAY: Millis = 24 * HOUR;

fn ended(id: &str, at: Millis) -> Session {
    Session { ended_at_ms: Some(at), last_seen_ms: at, ..session(id, at) }
}

impl World {
    /// Forgets what is old, and returns which sessions lost their memory.
    fn forget(&mut self, now: Millis, days: u32) -> Vec<String> {
        let known = self.store.read().remembered_before(Millis::MAX).unwrap();
        let details = steadfast_system::config::RetentionConfig::default();
        self.store.upkeep_all(&crate::Keep { details: &details, memory_days: days }, now).unwrap();
        // Each walk rests for a day when it is through.
        self.store.db.execute("DELETE FROM upkeep", []).unwrap();
        let left = self.store.read().remembered_before(Millis::MAX).unwrap();
        known.into_iter().filter(|id| !left.contains(id)).collect()
    }
}

#[test]
fn the_last_activity_decides_not_the_start() {
    let mut world = World::new();
    for id in ["silent", "seen", "spoke"] {
        world.put(&ended(id, START));
        world.remember_in(id, vec![prompt(id)], START);
    }
    world.put(&Session { last_seen_ms: START + 20 * DAY, ..ended("seen", START) });
    world.remember_in("spoke", vec![prompt("again")], START + 20 * DAY);
    world.remember_in("no session row", vec![prompt("x")], START + DAY);
    let now = START + 31 * DAY + 1;
    assert_eq!(world.forget(now, 0), Vec::<String>::new(), "0 keeps everything");
    assert_eq!(world.forget(now, 30), ["silent", "no session row"]);
    assert_eq!(world.forget(now, 30), Vec::<String>::new());
    let left = world.store.read().known_sessions().unwrap();
    let left: Vec<&str> = left.iter().map(|known| known.session_id.as_str()).collect();
    assert_eq!(left, ["seen", "spoke", "silent"], "hooks' own record of a session is not memory");
    assert_eq!(world.count("SELECT count(*) FROM session_events"), 3);
}

#[test]
fn what_may_still_be_needed_stays() {
    let mut world = World::new();
    let me = steadfast_system::process::client_of_hook();
    let live = Session { client: me, ended_at_ms: None, ..ended("alive", START) };
    // Whether a session without a known process runs cannot be told; silence for a month tells.
    let open = Session { ended_at_ms: None, ..ended("never ended", START) };
    for session in [&live, &open, &ended("stated", START), &ended(SESSION, START), &ended("over", START)] {
        world.put(session);
        world.remember_in(&session.session_id, vec![prompt("x")], START);
    }
    world.add_goal(Budget::default(), START);
    for id in ["stated", "over"] {
        let change = StatedChange::Set("ship".into());
        world.store.write(|db| db.apply_stated(id, &change, None, START)).unwrap();
    }
    let done = StatedChange::Move(steadfast_model::memory::stated::StatedStatus::Done);
    world.store.write(|db| db.apply_stated("over", &done, None, START)).unwrap();
    let mut gone = world.forget(START + 400 * DAY, 30);
    gone.sort();
    assert_eq!(gone, ["never ended", "over"]);
    assert_eq!(world.store.read().expired_sessions(START + 1, START + DAY).unwrap(), Vec::<String>::new());
}

#[test]
fn a_stated_goal_stays_when_the_rest_of_its_session_is_forgotten() {
    let mut world = World::new();
    for (id, ended) in [("a", ended("a", START)), ("b", Session { ended_at_ms: Some(START), ..fork("b", "a", START) })]
    {
        world.put(&ended);
        world.remember_in(id, vec![prompt("x")], START);
        world.store.write(|db| db.put_snapshot(id, "x", START)).unwrap();
    }
    for objective in ["first", "second"] {
        let change = StatedChange::Set(objective.into());
        world.store.write(|db| db.apply_stated("b", &change, None, START)).unwrap();
    }
    let now = START + 2_000 * DAY;
    assert_eq!(world.forget(now, 30), ["a"]);
    for table in ["session_events", "session_tasks", "session_snapshots"] {
        assert_eq!(world.count(&format!("SELECT count(*) FROM {table}")), 0, "{table}");
    }
    let read = world.store.read();
    assert_eq!(read.stated_goal("b").unwrap().map(|goal| goal.objective).as_deref(), Some("second"));
    assert_eq!(read.stated_history("b").unwrap().len(), 2);
    assert_eq!(read.expired_sessions(now, now).unwrap(), Vec::<String>::new(), "only the user removes it");
}

#[test]
fn the_ancestors_of_a_fork_that_stays_stay_too() {
    let mut world = World::new();
    world.put(&ended("a", START));
    world.put(&Session { ended_at_ms: Some(START), ..fork("b", "a", START) });
    let seen = START + 40 * DAY;
    world.put(&Session { last_seen_ms: seen, ended_at_ms: Some(seen), ..fork("c", "b", START) });
    world.put(&Session { ended_at_ms: Some(START), ..fork("d", "a", START) });
    for id in ["a", "b", "d"] {
        world.remember_in(id, vec![prompt(id)], START);
    }
    let now = START + 41 * DAY;
    assert_eq!(world.forget(now, 30), ["d"], "c has no memory of its own, and lives on that of a and b");
    let now = START + 90 * DAY;
    assert_eq!(world.forget(now, 30), ["a", "b"]);
}

#[test]
fn forks_of_each_other_come_to_an_end() {
    let mut world = World::new();
    for (id, parent) in [("a", "b"), ("b", "a"), ("c", "c")] {
        world.put(&Session { ended_at_ms: Some(START), ..fork(id, parent, START) });
        world.remember_in(id, vec![prompt(id)], START);
    }
    assert_eq!(world.forget(START + 40 * DAY, 30), ["a", "b", "c"]);
}

#[test]
fn a_purge_of_everything_spares_goals_and_what_they_need() {
    let mut world = World::new();
    world.put(&ended(SESSION, START));
    world.put(&ended("other", START));
    world.remember(vec![prompt("x")]);
    world.remember_in("other", vec![prompt("x")], START + 5);
    let goal = world.add_goal(Budget::default(), START);
    let all =
        world.store.read().known_sessions().unwrap().into_iter().map(|known| known.session_id).collect::<Vec<_>>();
    let gone = world.store.purge(&all, &mut |_, _, _| {}).unwrap();
    assert_eq!(gone.iter().map(|gone| &gone.session_id).collect::<Vec<_>>(), all.iter().collect::<Vec<_>>());
    assert_eq!(world.count("SELECT count(*) FROM session_events"), 0);
    assert_eq!(world.goal(), goal);
    let left = world.store.read().known_sessions().unwrap();
    assert_eq!(left.into_iter().map(|known| known.session_id).collect::<Vec<_>>(), [SESSION]);
}

#[test]
fn ids_are_found_by_their_beginning() {
    let mut world = World::new();
    world.put(&session("abc1", START));
    world.remember_in("abc2", vec![prompt("x")], START);
    world.remember_in("ab", vec![prompt("x")], START);
    world.store.write(|db| db.put_snapshot("../told/only", "x", START)).unwrap();
    world.add_goal(Budget::default(), START);
    let find = |id: &str| world.store.read().sessions_by_id(id).unwrap();
    assert_eq!(find("abc"), ["abc1", "abc2"]);
    assert_eq!(find("abc2"), ["abc2"]);
    assert_eq!(find("ab"), ["ab"], "an exact id is the only one");
    assert_eq!(find("6dd8"), [SESSION], "a session known by its goal only");
    assert_eq!(find("%"), Vec::<String>::new());
    assert_eq!(find("../t"), ["../told/only"], "an id is a key, whatever it looks like");
    assert_eq!(find("").len(), 5);
}
