//! What a purge leaves in the files, and whom it lets through.

use rusqlite::OpenFlags;
use steadfast_model::memory::stated::StatedChange;
use steadfast_model::memory::{Category, Finding, Findings, Importance};
use steadfast_model::testing::{SESSION, START};

use super::*;
use crate::testing::World;
use crate::{Scope, Session, connect};

const SECRET: &str = "hunter2secretword";

fn prompt(text: &str) -> Finding {
    Finding {
        category: Category::Prompt,
        kind: "typed",
        importance: Importance::High,
        subject: String::new(),
        text: text.to_owned(),
    }
}

/// A store as earlier versions made it: free pages stay in the file, and deleted text stays in them.
fn old_world() -> World {
    let mut world = World::new();
    let path = world.root.path().join("home/old.db");
    fs_err::write(&path, "").unwrap();
    let db = connect(&path, OpenFlags::SQLITE_OPEN_READ_WRITE).unwrap();
    db.execute_batch("CREATE TABLE x (y); DROP TABLE x").unwrap();
    drop(db);
    world.store = Store::open(&path).unwrap();
    assert!(!world.store.returns_pages().unwrap());
    world
}

impl World {
    /// Remembers more in a session than stays, so that some was deleted before.
    fn fill(&mut self, id: &str, text: &str) {
        let session =
            Session { ended_at_ms: Some(START), started_at_ms: START, last_seen_ms: START, ..Session::default() };
        let session = Session { session_id: id.to_owned(), ..session };
        self.store.write(|db| db.put_session(&session)).unwrap();
        let change = StatedChange::Set(text.into());
        self.store.write(|db| db.apply_stated(id, &change, None, START)).unwrap();
        // Long texts have pages of their own, and a shorter one leaves them behind.
        for length in [400, 200, 1] {
            let snapshot = format!("{text} {length} ").repeat(length);
            self.store.write(|db| db.put_snapshot(id, &snapshot, START)).unwrap();
        }
        for part in 0..12 {
            let findings = (0..100).map(|number| prompt(&format!("{text} {part} {number} {}", "x".repeat(300))));
            let found = Findings { findings: findings.collect(), ..Findings::default() };
            self.store.write(|db| db.remember(id, &found, START)).unwrap();
        }
    }

    fn occurrences(&self, word: &str) -> usize {
        let folder = self.store.path().parent().unwrap();
        let files = fs_err::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let bytes: Vec<u8> = files.flat_map(|path| fs_err::read(path).unwrap()).collect();
        bytes.windows(word.len()).filter(|window| *window == word.as_bytes()).count()
    }
}

fn no_word_is_left(mut world: World) -> bool {
    world.fill("a", SECRET);
    world.fill("b", "harmless");
    assert!(world.occurrences(SECRET) > 0 && world.store.size().unwrap() > 0);
    let gone = world.store.purge(&["a".to_owned()], &mut |_, _, _| {}).unwrap().remove(0);
    assert_eq!((gone.session_id.as_str(), gone.events, gone.stated_goals), ("a", 1_000, 1));
    let is_whole = world.store.erase_deleted(&mut |_, _, _| {}).unwrap();
    let read = world.store.read();
    assert_eq!(read.sessions_by_id("a").unwrap(), Vec::<String>::new());
    assert_eq!(read.counts_by_category("b").unwrap(), [(Category::Prompt, 1_000)]);
    assert_eq!(read.search("harmless", Scope::All, None, 9).unwrap().len(), 9);
    assert_eq!(
        world.store.db.query_row("SELECT count(*) FROM wiped_pages", [], |row| row.get::<_, i64>(0)).unwrap(),
        0
    );
    assert_eq!(fs_err::metadata(format!("{}-wal", world.store.path().display())).unwrap().len(), 0);
    assert_eq!(world.occurrences(SECRET), 0, "the word is still in a file");
    assert!(world.occurrences("harmless") > 0);
    assert_eq!(world.store.integrity_faults().unwrap(), Vec::<String>::new());
    is_whole
}

#[test]
fn a_purge_leaves_no_word_in_any_file_and_no_other_session_harmed() {
    let world = World::new();
    assert!(world.store.returns_pages().unwrap());
    assert!(no_word_is_left(world));
}

#[test]
fn a_small_store_of_an_earlier_version_is_converted() {
    assert!(no_word_is_left(old_world()));
}

#[test]
fn a_large_store_of_an_earlier_version_is_wiped_where_it_is() {
    let world = old_world();
    // Text that an earlier version deleted, in free pages.
    world.store.set_secure_delete("OFF").unwrap();
    world.store.db.execute_batch("CREATE TABLE bulk (text TEXT)").unwrap();
    for _ in 0..9 {
        let sql = "INSERT INTO bulk VALUES (replace(hex(zeroblob(30000)), '00', ?1))";
        world.store.db.execute(sql, [SECRET]).unwrap();
    }
    let sql = "CREATE TABLE ballast AS SELECT zeroblob(4000000); DROP TABLE bulk";
    world.store.db.execute_batch(sql).unwrap();
    world.store.set_secure_delete("FAST").unwrap();
    assert!(world.store.size().unwrap() > SMALL && world.store.free_size().unwrap() > 3_000_000);
    assert!(!no_word_is_left(world), "the user must hear of `db compact`");
}

#[test]
fn space_is_given_back_and_a_compaction_gives_all_of_it() {
    let mut world = World::new();
    world.fill("a", SECRET);
    let before = world.store.size().unwrap();
    world.store.purge(&["a".to_owned()], &mut |_, _, _| {}).unwrap();
    world.store.erase_deleted(&mut |_, _, _| {}).unwrap();
    assert_eq!(world.store.free_size().unwrap(), 0);
    assert!(world.store.size().unwrap() * 2 < before);

    let old = old_world();
    old.store.rewrite().unwrap();
    assert!(old.store.returns_pages().unwrap());
}

#[test]
fn others_write_between_any_two_steps() {
    let mut world = World::new();
    world.fill("a", SECRET);
    world.fill("b", "harmless");
    let mut other = Store::open(world.store.path()).unwrap();
    other.db.busy_timeout(Duration::ZERO).unwrap();
    let mut parts = Vec::new();
    let mut write = |part: PurgePart, done: u64, total: u64| {
        assert!(done <= total, "{part:?}: {done} of {total}");
        parts.push(part);
        let found = Findings { findings: vec![prompt("in between")], ..Findings::default() };
        other.write(|db| db.remember(SESSION, &found, START)).unwrap();
    };
    world.store.purge(&["a".to_owned()], &mut write).unwrap();
    world.store.erase_deleted(&mut write).unwrap();
    for part in [PurgePart::Rows, PurgePart::SearchIndex, PurgePart::FreePages] {
        assert!(parts.iter().filter(|done| **done == part).count() > 1, "{part:?} in one step");
    }
    assert_eq!(world.store.read().counts_by_category(SESSION).unwrap(), [(Category::Prompt, 1)]);
    assert_eq!(world.occurrences(SECRET), 0);
}

/// A merge would read all that was deleted in one step.
#[test]
fn the_search_index_is_made_anew_when_few_rows_are_left() {
    let mut world = World::new();
    world.fill("a", SECRET);
    let found = Findings { findings: vec![prompt("harmless")], ..Findings::default() };
    world.store.write(|db| db.remember(SESSION, &found, START)).unwrap();
    world.store.purge(&["a".to_owned()], &mut |_, _, _| {}).unwrap();
    let mut parts = Vec::new();
    assert!(world.store.erase_deleted(&mut |part, _, _| parts.push(part)).unwrap());
    assert!(!parts.contains(&PurgePart::SearchIndex), "{parts:?}");
    assert_eq!(world.occurrences(SECRET), 0);
    assert_eq!(world.store.read().search("harmless", Scope::All, None, 9).unwrap().len(), 1);
    assert_eq!(world.store.integrity_faults().unwrap(), Vec::<String>::new());
}

#[test]
fn a_purge_that_was_cut_short_is_continued() {
    let mut world = World::new();
    world.fill("a", SECRET);
    world.store.write(|db| db.delete_events_of("a", 300)).unwrap();
    assert_eq!(world.store.purge(&["a".to_owned()], &mut |_, _, _| {}).unwrap()[0].events, 700);
    assert!(world.store.erase_deleted(&mut |_, _, _| {}).unwrap());
    assert_eq!(world.occurrences(SECRET), 0);
}

#[test]
fn a_reader_that_holds_the_log_is_reported() {
    let mut world = World::new();
    world.fill("a", SECRET);
    let other = Store::open(world.store.path()).unwrap();
    let reader = other.db.unchecked_transaction().unwrap();
    assert_eq!(reader.query_row("SELECT count(*) FROM session_events", [], |row| row.get::<_, i64>(0)).unwrap(), 1_000);
    world.store.purge(&["a".to_owned()], &mut |_, _, _| {}).unwrap();
    assert!(matches!(world.store.erase_deleted(&mut |_, _, _| {}), Err(StoreError::Busy(_))));
    drop(reader);
    world.store.erase_deleted(&mut |_, _, _| {}).unwrap();
    assert_eq!(world.occurrences(SECRET), 0);
}
