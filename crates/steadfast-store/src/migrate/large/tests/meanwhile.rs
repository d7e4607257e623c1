//! What other programs find in a half-copied file, and what they may change in it.

use super::*;

#[test]
fn a_column_that_is_added_during_the_copy_survives() {
    let columns = ["note TEXT DEFAULT 'none'", "day AS (created_at_ms / 86400000)"];
    for column in columns {
        let (_directory, path) = plugin_file();
        begin_to_copy(&path, &LARGE_TABLES[0].copy());
        let db = read_write(&path);
        db.execute_batch(&format!("ALTER TABLE goal_events ADD COLUMN {column}")).unwrap();
        let name = column.split(' ').next().unwrap();
        if name == "note" {
            db.execute("UPDATE goal_events SET note = 'mine' WHERE id IN (7, 59000)", []).unwrap();
        }
        let of_user = format!("SELECT id, {name} FROM goal_events ORDER BY id");
        let before = rows(&db, &of_user);
        drop(db);
        let store = Store::open_existing(&path).unwrap();
        assert!(migrate::is_complete(&store.db).unwrap());
        assert!(rows(&store.db, &of_user) == before, "{column}");
    }
}

#[test]
fn a_column_that_is_renamed_during_the_copy_blocks_nothing() {
    let (_directory, path) = plugin_file();
    read_write(&path).execute_batch("ALTER TABLE goal_events ADD COLUMN note TEXT DEFAULT 'none'").unwrap();
    begin_to_copy(&path, &LARGE_TABLES[0].copy());
    read_write(&path).execute_batch("ALTER TABLE goal_events RENAME COLUMN note TO remark").unwrap();
    let store = Store::open_existing(&path).unwrap();
    assert!(migrate::is_complete(&store.db).unwrap());
    assert_eq!(rows(&store.db, "SELECT remark FROM goal_events WHERE id = 7"), [["none".to_owned().into()]]);
}

/// The indexes of a table, without those that SQLite makes for itself.
fn indexes(db: &Connection, table: &str) -> Vec<Vec<Value>> {
    let sql = format!(
        "SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL AND tbl_name = '{table}' ORDER BY name"
    );
    rows(db, &sql)
}

#[test]
fn a_half_copied_table_keeps_its_indexes() {
    for (table, made) in LARGE_TABLES.iter().zip([plugin_file as fn() -> (TempDir, PathBuf), earlier_store]) {
        let (_directory, path) = made();
        let before = indexes(&read_write(&path), table.name);
        assert!(!before.is_empty());
        begin_to_copy(&path, &table.copy());
        assert_eq!(indexes(&read_write(&path), table.name), before);
        assert_eq!(damage(&path).unwrap(), None);

        // A program that had it open before uses the indexes of the new table.
        let other = read_write(&path);
        let _ = rows(&other, &format!("SELECT count(*) FROM {}", table.name));
        let mut store = Store::open_existing(&path).unwrap();
        assert_whole(&store);
        let expected =
            rows(&other, &format!("SELECT name FROM pragma_index_list('{}') WHERE origin = 'c'", table.name));
        assert_eq!(expected.len(), table.indexes.len());
        let details = RetentionConfig { goal_events_days: 0, ..RetentionConfig::default() };
        store.upkeep_all(&Keep { details: &details, memory_days: 0 }, START).unwrap();
        assert_whole(&store);
        let left = "SELECT name FROM sqlite_schema WHERE name LIKE 'steadfast%'";
        assert_eq!(rows(&store.db, left), Vec::<Vec<Value>>::new());
    }
}
