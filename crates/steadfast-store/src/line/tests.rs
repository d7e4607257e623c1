use std::thread::JoinHandle;

use rusqlite::OpenFlags;

use super::*;
use crate::testing::World;
use crate::{Store, StoreError, connect};

/// A store with a table that shows the order of its writers.
fn world() -> World {
    let world = World::new();
    world.store.db.execute_batch("CREATE TABLE served (id INTEGER PRIMARY KEY, writer INTEGER)").unwrap();
    world
}

/// Keeps the write lock until it is dropped.
fn locked(world: &World) -> Connection {
    let other = connect(world.store.path(), OpenFlags::SQLITE_OPEN_READ_WRITE).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    other
}

fn write(store: &mut Store, writer: u32) -> Result<(), StoreError> {
    store.write(|db| db.execute("INSERT INTO served (writer) VALUES (?1)", [writer]).map(drop))
}

fn writer(world: &World, number: u32) -> JoinHandle<Result<(), StoreError>> {
    let path = world.store.path().to_owned();
    std::thread::spawn(move || write(&mut Store::open_existing_within(&path, Duration::from_mins(2))?, number))
}

fn served(world: &World) -> Vec<u32> {
    world.store.read().all("SELECT writer FROM served ORDER BY id", [], |row| row.get(0)).unwrap()
}

fn line_of(world: &World) -> PathBuf {
    directory(world.store.path())
}

fn wait_for(what: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(1);
    while !what() {
        assert!(Instant::now() < deadline, "it never happened");
        std::thread::sleep(PAUSE);
    }
}

/// Starts writers, each after the one before it is in line.
fn writers_in_line(world: &World, count: u32) -> Vec<JoinHandle<Result<(), StoreError>>> {
    let line = line_of(world);
    let waiting = || numbers(&line).map_or(0, |numbers| numbers.len());
    let before = waiting();
    (1..=count)
        .map(|number| {
            let writer = writer(world, number);
            wait_for(|| waiting() == before + usize::try_from(number).unwrap());
            writer
        })
        .collect()
}

fn finish(writers: Vec<JoinHandle<Result<(), StoreError>>>) {
    for writer in writers {
        writer.join().unwrap().unwrap();
    }
}

#[test]
fn writers_are_served_in_the_order_in_which_they_came() {
    let world = world();
    let lock = locked(&world);
    let writers = writers_in_line(&world, 12);
    drop(lock);
    finish(writers);
    assert_eq!(served(&world), (1..=12).collect::<Vec<_>>());
    assert!(!line_of(&world).exists(), "nothing is left behind");
}

#[test]
fn a_newcomer_waits_behind_those_in_line() {
    let mut world = world();
    let held = Ticket::draw(&line_of(&world)).unwrap();
    world.store.deadline = Some(Instant::now() + Duration::from_mins(2));
    let line = line_of(&world);
    let waiting = std::thread::spawn(move || {
        wait_for(|| numbers(&line).unwrap() == [1, 2]);
        drop(held);
    });
    write(&mut world.store, 1).unwrap();
    waiting.join().unwrap();
}

#[test]
fn tickets_of_dead_writers_are_removed() {
    let mut world = world();
    let line = line_of(&world);
    create(&line).unwrap();
    for number in [3, 7, 2_000_000_000_000_u64] {
        fs_err::write(line.join(number.to_string()), "").unwrap();
    }
    write(&mut world.store, 1).unwrap();
    assert!(!line.exists());
}

#[test]
fn a_stopped_writer_is_passed_over() {
    let mut world = world();
    let line = line_of(&world);
    // They wait without trying.
    let stopped = [Ticket::draw(&line).unwrap(), Ticket::draw(&line).unwrap()];
    write(&mut world.store, 1).unwrap();
    assert!(!line.exists(), "they were removed from the line");
    drop(stopped);
    finish(vec![writer(&world, 2)]);
    assert_eq!(served(&world), [1, 2]);
}

#[test]
fn a_writer_that_was_passed_over_returns_to_its_place() {
    let world = world();
    let line = line_of(&world);
    let waiter =
        || Waiter { ticket: Some(Ticket::draw(&line).unwrap()), directory: line.clone(), first: None, idle: None };
    let (mut first, mut second) = (waiter(), waiter());
    assert_eq!((first.look(), second.look()), (0, 1));
    fs_err::remove_file(line.join("1")).unwrap();
    assert_eq!((second.look(), first.look(), second.look()), (0, 0, 1));
    // Another writer has its number by now.
    fs_err::remove_file(line.join("1")).unwrap();
    let other = Ticket::take(&line, 1).unwrap();
    assert_eq!((first.look(), numbers(&line).unwrap()), (2, vec![1, 2, 3]));
    drop((first, second, other));
    assert!(!line.exists());
}

#[test]
fn writers_wait_without_tickets_where_none_can_be_drawn() {
    let world = world();
    fs_err::write(line_of(&world), "in the way").unwrap();
    let lock = locked(&world);
    let writers: Vec<_> = (1..=4).map(|number| writer(&world, number)).collect();
    drop(lock);
    finish(writers);
    assert_eq!(served(&world).len(), 4);
}

#[test]
fn the_wait_in_line_ends_at_the_deadline_and_leaves_nothing() {
    let mut world = world();
    let lock = locked(&world);
    world.store.deadline = Some(Instant::now() + Duration::from_millis(30));
    assert!(matches!(write(&mut world.store, 1), Err(StoreError::Busy(_))));
    assert!(!line_of(&world).exists());
    drop(lock);
    write(&mut world.store, 1).unwrap();
}

#[test]
fn only_the_owner_can_read_the_line() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = world();
    let ticket = Ticket::draw(&line_of(&world)).unwrap();
    let mode = |path: &Path| fs_err::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&line_of(&world)), mode(&ticket.path)), (0o700, 0o600));
}
