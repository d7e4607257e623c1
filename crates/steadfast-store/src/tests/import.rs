//! Import of another store: complete, once, and read-only.

use super::*;
use steadfast_model::goal::Actor;
use steadfast_model::goal::budget::Budget;
use steadfast_model::goal::change;
use steadfast_model::goal::proof::Proof;
use steadfast_model::goal::{GoalStatus, NewGoal};
use steadfast_model::host::Host;
use steadfast_model::reading::{Reading, Response, Tokens};

use crate::testing::{USER, new_goal};
use crate::{EventFilter, Source, goals_missing};

/// Another store with two goals of one session, the first of them replaced.
fn other() -> World {
    let mut other = World::new();
    other.add_goal(Budget::default(), START);
    other.apply(|goal| change::complete(goal, &Proof::from_user(goal, Actor::User).unwrap(), START + 1));
    other.add_goal(Budget::parse("5k", "").unwrap(), START + 2);
    other
}

/// The events without their ids, which differ between stores.
fn history(store: &Store) -> Vec<(String, String, serde_json::Value, i64)> {
    let events = store.read().events(EventFilter::All, usize::MAX).unwrap();
    events.into_iter().map(|event| (event.goal_id, event.kind, event.payload, event.created_at_ms)).collect()
}

#[test]
fn an_import_brings_no_secret() {
    let key = concat!("ghp_", "0123456789abcdefghijABCDEFGHIJ012345");
    let other = other();
    other.store.db.execute("UPDATE goals SET objective = 'use ' || ?1", [key]).unwrap();
    let payload = serde_json::json!({"text": format!("use {key}"), "n": 1}).to_string();
    other.store.db.execute("UPDATE goal_events SET payload_json = ?1 WHERE id = 1", [payload]).unwrap();
    let mut world = World::new();
    world.store.import(other.store.path()).unwrap();
    assert_eq!(world.store.read().goals().unwrap()[0].objective, "use [redacted]");
    let first = history(&world.store).into_iter().map(|(_, _, payload, _)| payload).find(|payload| payload["n"] == 1);
    assert_eq!(first.unwrap()["text"], "use [redacted]");
    assert_eq!(world.store.import(other.store.path()).unwrap().events, 0, "a second import finds them here");
}

#[test]
fn import_is_idempotent_and_leaves_the_original_unchanged() {
    let other = other();
    let path = other.store.path().to_owned();
    let (goals, replaced, events) =
        (other.store.read().goals().unwrap(), other.store.read().replaced_goals(None).unwrap(), history(&other.store));
    drop(other.store);
    let before = files(path.parent().unwrap());

    let mut world = World::new();
    let first = world.store.import(&path).unwrap();
    let expected = ImportReport {
        from_version: SCHEMA_VERSION,
        goals: 1,
        already_here: 0,
        to_history: 1,
        ended: 0,
        events: events.len(),
    };
    assert_eq!(first, expected);
    let imported = |world: &World| {
        let read = world.store.read();
        (read.goals().unwrap(), read.replaced_goals(None).unwrap(), history(&world.store))
    };
    assert_eq!(imported(&world), (goals, replaced, events));

    let once = imported(&world);
    let again = world.store.import(&path).unwrap();
    assert_eq!((again.goals, again.to_history, again.events, again.already_here), (0, 0, 0, 1));
    assert_eq!(imported(&world), once);
    assert_eq!(files(path.parent().unwrap()), before, "the original and its directory");
}

#[test]
fn goals_that_are_not_here_are_counted_without_a_change() {
    let other = other();
    let path = other.store.path().to_owned();
    drop(other.store);
    let before = files(path.parent().unwrap());
    let mut world = World::new();
    let here = world.store.path().to_owned();
    assert_eq!(goals_missing(&here, &path).unwrap(), 2, "the replaced one too");
    assert_eq!(goals_missing(&here.with_file_name("none.db"), &path).unwrap(), 2);
    world.store.import(&path).unwrap();
    assert_eq!(goals_missing(&here, &path).unwrap(), 0);
    assert_eq!(files(path.parent().unwrap()), before);

    let (_directory, old) = file_with(b"");
    let db = read_write(&old);
    migrate::build(&db, 1);
    db.execute_batch(
        "INSERT INTO goals (session_id, goal_id, objective, status, version, created_at_ms, updated_at_ms)
           VALUES ('s', 'g', 'old work', 'complete', 4, 1, 2);",
    )
    .unwrap();
    drop(db);
    assert_eq!(goals_missing(&here, &old).unwrap(), 1, "of the first version");
    let (_directory, broken) = file_with(&b"no database, but long enough to look at".repeat(50));
    assert!(matches!(goals_missing(&here, &broken), Err(StoreError::Corrupt { .. })));
}

#[test]
fn a_database_of_every_plugin_version_can_be_imported() {
    for version in 1..=5 {
        let (directory, path) = file_with(b"");
        let db = read_write(&path);
        migrate::build(&db, usize::try_from(version).unwrap());
        db.execute_batch(
            "INSERT INTO goals (session_id, goal_id, objective, status, tokens_used, version, created_at_ms, updated_at_ms)
               VALUES ('s', 'g', 'old work', 'complete', 9, 4, 1, 2);
             INSERT INTO goal_events (session_id, goal_id, event_type, payload_json, created_at_ms)
               VALUES ('s', 'g', 'goal_created', NULL, 1), ('s', 'g', 'goal_created', NULL, 1);",
        )
        .unwrap();
        drop(db);
        let before = files(directory.path());
        let mut world = World::new();
        let report = world.store.import(&path).unwrap();
        assert_eq!((report.from_version, report.goals, report.events), (version, 1, 2));
        assert_eq!(world.store.import(&path).unwrap().events, 0);
        let goal = world.store.read().goal("s").unwrap().unwrap();
        assert_eq!((&*goal.objective, goal.tokens_used, goal.version), ("old work", 9, 4));
        assert_eq!(files(directory.path()), before, "version {version}");
    }
}

#[test]
fn the_copy_of_an_import_that_was_killed_is_removed_by_the_next() {
    let (mut world, mut other) = (World::new(), World::new());
    other.add_goal(Budget::default(), START);
    let home = world.store.path().parent().unwrap().to_owned();
    for name in [".steadfast-backupaB3xY9", ".steadfast-backupaB3xY9-wal"] {
        fs_err::write(home.join(name), "half").unwrap();
    }
    world.store.import(other.store.path()).unwrap();
    let names = fs_err::read_dir(&home).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let strange: Vec<String> = names.filter(|name| !name.starts_with("goals.db")).collect();
    assert_eq!(strange, [] as [String; 0], "and it makes no backup of its copy");
}

#[test]
fn a_store_in_use_at_an_odd_path_is_imported_with_its_newest_rows() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("a?b#c %41 ä/goals.db");
    let mut other = Store::open(&path).unwrap();
    other.write(|db| db.start_goal(&goal(), None, USER)).unwrap();
    let mut world = World::new();
    // Its log holds the goal; the file itself does not yet.
    assert_eq!(world.store.import(&path).unwrap().goals, 1);
    drop(other);
    let mut world = World::new();
    assert_eq!(world.store.import(&path).unwrap().goals, 1);
}

#[test]
fn an_imported_goal_whose_session_has_one_goes_to_the_history() {
    let other = other();
    let theirs = other.goal();
    let mut world = World::new();
    let ours = world.add_goal(Budget::default(), START + 9);
    let report = world.store.import(other.store.path()).unwrap();
    assert_eq!((report.goals, report.to_history), (0, 2));
    assert_eq!(world.goal(), ours);
    assert!(world.store.read().replaced_goals(None).unwrap().contains(&theirs));
}

#[test]
fn an_imported_goal_takes_the_place_of_one_that_is_over() {
    let other = other();
    let theirs = other.goal();
    let mut world = World::new();
    world.add_goal(Budget::default(), START + 9);
    let over = world.apply(|goal| change::complete(goal, &Proof::from_user(goal, Actor::User).unwrap(), START + 10));
    let report = world.store.import(other.store.path()).unwrap();
    assert_eq!((report.goals, report.to_history), (1, 1));
    assert_eq!(world.goal(), theirs);
    assert!(world.store.read().replaced_goals(None).unwrap().contains(&over));
}

/// After an uninstall, the plugin alone works on with its own store.
#[test]
fn a_goal_that_ended_in_the_other_store_ends_here() {
    let mut other = World::new();
    let first = other.add_goal(Budget::default(), START);
    let mut world = World::new();
    world.store.import(other.store.path()).unwrap();
    let here = world.apply(|goal| change::pause(goal, START + 1));
    other.apply(|goal| change::complete(goal, &Proof::from_user(goal, Actor::User).unwrap(), START + 3));
    let missing = |world: &World, other: &World| goals_missing(world.store.path(), other.store.path()).unwrap();
    assert_eq!(missing(&world, &other), 1, "its end");
    let second = other.add_goal(Budget::default(), START + 4);

    let report = world.store.import(other.store.path()).unwrap();
    assert_eq!((report.goals, report.ended, missing(&world, &other)), (1, 1, 0));
    assert_eq!(world.goal(), second);
    let replaced = world.store.read().replaced_goals(None).unwrap();
    let ended = replaced.iter().find(|goal| goal.goal_id == first.goal_id).unwrap();
    assert_eq!(ended.status, GoalStatus::Complete);
    assert!(ended.version > here.version, "{} after {}", ended.version, here.version);
    assert_eq!(world.count("SELECT count(*) FROM goal_spans WHERE to_ms IS NULL"), 1, "of the second");

    // What changed here later stays.
    let mut late = World::new();
    let again = late.add_goal(Budget::default(), START);
    let mut world = World::new();
    world.store.import(late.store.path()).unwrap();
    late.apply(|goal| change::abandon(goal, START + 1));
    world.apply(|goal| change::pause(goal, START + 2));
    world.store.import(late.store.path()).unwrap();
    assert_eq!((world.goal().goal_id, world.goal().status), (again.goal_id, GoalStatus::Paused));
}

#[test]
fn an_imported_goal_is_not_charged_again() {
    let tokens = Tokens { input: 1_000, ..Tokens::default() };
    let response = |id: &str, at_ms| Response { id: id.into(), tokens, at_ms, ..Response::default() };
    let record = |world: &mut World, responses: Vec<Response>| {
        let path = world.transcript.clone();
        let source = Source { host: Host::Claude, session_id: SESSION, agent_id: "", agent_type: "", path: &path };
        let mut reading = Reading::default();
        reading.responses = responses;
        let recorded = world.store.write(|db| db.record(source, &reading, None, START + 50)).unwrap();
        recorded.charges.values().map(|charge| charge.worker_tokens).sum::<i64>()
    };
    let mut other = World::new();
    other.add_goal(Budget::default(), START);
    assert_eq!(record(&mut other, vec![response("one", START + 1)]), 1_000);
    let mut world = World::new();
    world.store.import(other.store.path()).unwrap();
    let both = vec![response("one", START + 1), response("two", START + 2)];
    assert_eq!(record(&mut world, both), 1_000, "only the new one");

    // What a goal that is here was charged for in the other store since is charged here, by its own hooks.
    record(&mut other, vec![response("three", START + 3)]);
    world.store.import(other.store.path()).unwrap();
    assert_eq!(record(&mut world, vec![response("three", START + 3)]), 1_000);
}

#[test]
fn goals_that_wait_are_imported_once() {
    let mut other = World::new();
    other.add_goal(Budget::default(), START);
    for (objective, at) in [("second", START + 1), ("third", START + 2)] {
        let waiting = NewGoal { objective: objective.into(), ..new_goal(Budget::default()) };
        other.store.write(|db| db.enqueue(SESSION, &waiting, at)).unwrap();
    }
    let mut world = World::new();
    world.store.import(other.store.path()).unwrap();
    let waiting = |world: &World| {
        let queue = world.store.read().queue(SESSION).unwrap();
        queue.into_iter().map(|entry| entry.goal.objective).collect::<Vec<_>>()
    };
    assert_eq!(waiting(&world), ["second", "third"]);
    // The next goal starts in the other store.
    other.apply(|goal| change::complete(goal, &Proof::from_user(goal, Actor::User).unwrap(), START + 3));
    let next = other.store.read().queue(SESSION).unwrap().remove(0);
    other.store.write(|db| db.drop_queued(next.id)).unwrap();
    other.start_goal(next.goal, START + 4);
    world.store.import(other.store.path()).unwrap();
    assert_eq!(world.goal().objective, "second");
    assert_eq!(waiting(&world), ["third"]);
}

/// The user moved it to another session here.
#[test]
fn an_adopted_goal_is_left_alone_when_it_ends_in_the_other_store() {
    let mut other = World::new();
    let first = other.add_goal(Budget::default(), START);
    let mut world = World::new();
    world.store.import(other.store.path()).unwrap();
    world.store.db.execute("UPDATE goals SET session_id = 'elsewhere', version = version + 1", []).unwrap();
    world.add_goal(Budget::default(), START + 1);
    other.apply(|goal| change::complete(goal, &Proof::from_user(goal, Actor::User).unwrap(), START + 3));
    world.store.import(other.store.path()).unwrap();
    let adopted = world.store.read().goal("elsewhere").unwrap().unwrap();
    assert_eq!((adopted.goal_id, adopted.status), (first.goal_id, GoalStatus::Active));
}

#[test]
fn files_that_cannot_be_imported_are_refused_and_change_nothing() {
    let mut world = World::new();
    let missing = world.root.path().join("nowhere.db");
    assert!(matches!(world.store.import(&missing), Err(StoreError::Missing(_))));
    for bytes in [b"".to_vec(), b"no database, but long enough to look at".repeat(50)] {
        let (directory, path) = file_with(&bytes);
        let refused = world.store.import(&path);
        assert!(matches!(&refused, Err(StoreError::Corrupt { .. })), "{refused:?}");
        assert_eq!(files(directory.path()).into_values().collect::<Vec<_>>(), [fingerprint(&bytes)]);
    }
    let (_directory, future) = file_with(b"");
    drop(Store::open(&future).unwrap());
    read_write(&future).execute("UPDATE schema_version SET version = 99", []).unwrap();
    assert!(matches!(world.store.import(&future), Err(StoreError::FromTheFuture { found: 99, .. })));
    assert_eq!(world.event_kinds(), Vec::<String>::new());
}

/// Deletes a goal and its events here, as `goal cleanup --delete` and the retention do.
fn delete_here(world: &World, goal_id: &str) {
    for table in ["goals", "goal_history", "goal_events"] {
        world.store.db.execute(&format!("DELETE FROM {table} WHERE goal_id = ?1"), [goal_id]).unwrap();
    }
}

#[test]
fn a_goal_that_was_deleted_here_comes_back_only_on_request() {
    let mut other = other();
    let path = other.store.path().to_owned();
    let deleted = other.goal().goal_id;
    let mut world = World::new();
    let here = world.store.path().to_owned();
    assert_eq!(world.store.import_new(&path).unwrap().goals, 1, "a new goal");
    assert_eq!(goals_missing(&here, &path).unwrap(), 2, "the import is not over");
    world.store.end_import(&path).unwrap();
    let whole = world.event_kinds().len();
    delete_here(&world, &deleted);
    assert_eq!(goals_missing(&here, &path).unwrap(), 0);

    let kept = world.event_kinds().len();
    let again = world.store.import_new(&path).unwrap();
    world.store.end_import(&path).unwrap();
    assert_eq!((again.goals, again.to_history, again.events), (0, 0, 0));
    assert_eq!((world.store.read().goals().unwrap(), world.event_kinds().len()), (Vec::new(), kept));

    // A goal that is new there, and one that was replaced there meanwhile.
    other.apply(|goal| change::complete(goal, &Proof::from_user(goal, Actor::User).unwrap(), START + 3));
    let added = other.add_goal(Budget::default(), START + 4).goal_id;
    assert_eq!(goals_missing(&here, &path).unwrap(), 1);
    assert_eq!(world.store.import_new(&path).unwrap().goals, 1);
    let goals = world.store.read().goals().unwrap();
    assert_eq!(goals.iter().map(|goal| &goal.goal_id).collect::<Vec<_>>(), [&added]);

    let asked = world.store.import(&path).unwrap();
    assert_eq!(asked.to_history, 1);
    assert!(asked.events >= whole - kept, "with its events");
    assert!(world.store.read().replaced_goals(None).unwrap().iter().any(|goal| goal.goal_id == deleted));
}

#[test]
fn what_came_from_elsewhere_is_only_what_an_import_took() {
    let mut other = other();
    let path = other.store.path().to_owned();
    let mut world = World::new();
    world.store.import_new(&path).unwrap();
    // The plugin works on; a goal that is here still gets its later events.
    let known = world.event_kinds().len();
    other.apply(|goal| change::abandon(goal, START + 5));
    assert_eq!(world.store.import_new(&path).unwrap().events, 1);
    assert_eq!(world.event_kinds().len(), known + 1);
}

#[test]
fn a_damaged_store_here_is_not_a_fault_of_the_other_one() {
    let other = other();
    let (_directory, damaged) = file_with(&b"no database, but long enough to look at".repeat(50));
    assert_eq!(goals_missing(&damaged, other.store.path()).unwrap(), 0);
    assert!(goals_missing(other.store.path(), &damaged).is_err());
}
