//! Tables of the user beside ours, whatever their names.

use super::*;

const MINE: [(i64, &str); 2] = [(1, "a note"), (2, "another note")];

/// Makes a table of the user with two rows.
fn add_table(path: &Path, name: &str) {
    let db = read_write(path);
    db.execute_batch(&format!("CREATE TABLE {name} (id INTEGER PRIMARY KEY, host, response_id, note)")).unwrap();
    for (id, note) in MINE {
        db.execute(&format!("INSERT INTO {name} (id, host, note) VALUES (?1, 'h', ?2)"), (id, note)).unwrap();
    }
}

fn assert_is_there(path: &Path, name: &str) {
    let found = rows(&read_write(path), &format!("SELECT id, note FROM {name} ORDER BY id"));
    assert_eq!(found, MINE.map(|(id, note)| vec![id.into(), note.to_owned().into()]), "{name}");
}

/// Names that a user may pick for copies, and each name that a migration makes.
fn names() -> [Vec<String>; 3] {
    let table = &LARGE_TABLES[0];
    let picked = ["goal_events_old", "goal_events_next", "responses_old", "responses_next"].map(str::to_owned);
    [picked.to_vec(), vec![table.copy()], vec![table.replaced()]]
}

#[test]
fn tables_of_the_user_survive_upkeep_and_purges() {
    let (_directory, path) = file_with(b"");
    let mut store = Store::open(&path).unwrap();
    for name in names().concat() {
        add_table(&path, &name);
    }
    let details = RetentionConfig { goal_events_days: 0, ..RetentionConfig::default() };
    store.upkeep_all(&Keep { details: &details, memory_days: 0 }, START).unwrap();
    store.purge(&[], &mut |_, _, _| {}).unwrap();
    for name in names().concat() {
        assert_is_there(&path, &name);
    }
}

#[test]
fn a_large_file_with_tables_of_any_name_can_be_migrated() {
    for names in names() {
        let (_directory, path) = plugin_file();
        for name in &names {
            add_table(&path, name);
        }
        let before = rows(&read_write(&path), OF_EVENTS);
        let store = Store::open_existing(&path).unwrap_or_else(|error| panic!("{names:?}: {error}"));
        assert_whole(&store);
        assert!(rows(&store.db, OF_EVENTS) == before, "{names:?}");
        for name in &names {
            assert_is_there(&path, name);
        }
    }
}

#[test]
fn a_table_that_the_user_makes_during_the_copy_survives() {
    let (_directory, path) = plugin_file();
    let before = rows(&read_write(&path), OF_EVENTS);
    begin_to_copy(&path, &LARGE_TABLES[0].copy());
    add_table(&path, &LARGE_TABLES[0].replaced());
    let store = Store::open_existing(&path).unwrap();
    assert_whole(&store);
    assert!(rows(&store.db, OF_EVENTS) == before);
    assert_is_there(&path, &LARGE_TABLES[0].replaced());
}
