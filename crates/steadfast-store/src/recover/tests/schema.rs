//! Damaged definitions of tables: found, and repaired without the loss of a row.

use super::*;

/// A store without a backup, closed, and its bytes.
fn store_alone() -> (World, PathBuf, Vec<u8>) {
    let (world, path) = store_with_backup();
    fs_err::remove_dir_all(backups_dir(&path)).unwrap();
    let bytes = fs_err::read(&path).unwrap();
    (world, path, bytes)
}

/// Where a text is in the file, the last of its places: the definitions grow from the end of a page.
fn places(bytes: &[u8], text: &str) -> Vec<usize> {
    let windows = bytes.windows(text.len()).enumerate();
    windows.filter(|(_, window)| *window == text.as_bytes()).map(|(at, _)| at).collect()
}

/// Writes the file with one bit flipped.
fn flip(path: &Path, bytes: &[u8], at: usize) {
    for end in ["-wal", "-shm"] {
        let _ = fs_err::remove_file(path.with_file_name(format!("goals.db{end}")));
    }
    let mut damaged = bytes.to_vec();
    damaged[at] ^= 1;
    fs_err::write(path, damaged).unwrap();
}

#[test]
fn a_flipped_byte_in_a_definition_is_found_and_costs_no_row() {
    let (world, path, bytes) = store_alone();
    drop(world.store);
    for text in ["tokens_used INTEGER NOT NULL", "continuations_remaining >= 0", "idx_goals_status", "response_id TEXT"]
    {
        let at = *places(&bytes, text).last().unwrap();
        flip(&path, &bytes, at);
        assert_eq!(damage(&path).unwrap(), Some(Damage::File), "{text}");
        let report = rebuilt(&path);
        assert_eq!(report.unreadable, None, "{text}");
        assert!(report.tables.iter().all(|table| !table.is_incomplete()), "{text}: {report:?}");
        assert_eq!(sessions(&path).len(), GOALS, "{text}");
        let goals = Store::open_existing(&path).unwrap().read().goals().unwrap();
        assert!(goals.iter().all(|goal| goal.objective.len() == 1_500), "{text}");
        assert_eq!(run(&path).unwrap(), Recovery::NotNeeded, "{text}");
    }
}

#[test]
fn any_byte_of_the_definitions_that_matters_is_found() {
    let (world, path, bytes) = store_alone();
    drop(world.store);
    // Bytes that became a blob by the flip are read as text, as SQLite does.
    let definitions = "SELECT CAST(type AS TEXT), CAST(name AS TEXT), CAST(tbl_name AS TEXT), CAST(sql AS TEXT)
                       FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY 1, 2";
    let read = |path: &Path| -> Vec<String> {
        let db = connect_read_only(path).unwrap();
        let mut statement = db.prepare(definitions).unwrap();
        let row = |row: &rusqlite::Row<'_>| (0..4).map(|at| row.get::<_, String>(at)).collect::<Result<Vec<_>, _>>();
        let rows = statement.query_map([], row).unwrap().map(|row| row.unwrap().join(" "));
        rows.map(|row| row.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    };
    let sound = read(&path);
    let schema = pages(&path, "sqlite_schema");
    assert!(schema.len() > 5, "{schema:?}");
    let mut found = 0;
    for page in schema {
        let start = usize::try_from(page - 1).unwrap() * 4_096;
        for at in (start..start + 4_096).step_by(271) {
            flip(&path, &bytes, at);
            match damage(&path) {
                Ok(None) => assert!(read(&path) == sound, "byte {at}"),
                Ok(Some(_)) => found += 1,
                // The header names another format or a later version.
                Err(error) => assert!(at < 200, "byte {at}: {error}"),
            }
        }
    }
    assert!(found > 20, "{found}");
}

#[test]
fn a_wrong_number_of_additions_or_a_wrong_version_is_damage() {
    let (world, path, bytes) = store_alone();
    drop(world.store);
    for statement in ["PRAGMA user_version = 2", "UPDATE schema_version SET version = 4"] {
        fs_err::write(&path, &bytes).unwrap();
        let db = read_write(&path);
        db.execute_batch(statement).unwrap();
        drop(db);
        let refused = Store::open_existing(&path);
        assert!(matches!(&refused, Err(StoreError::Corrupt { .. })), "{statement}: {refused:?}");
        let report = rebuilt(&path);
        assert!(report.tables.iter().all(|table| !table.is_incomplete()), "{statement}: {report:?}");
        assert_eq!(sessions(&path).len(), GOALS, "{statement}");
    }
}

#[test]
fn what_the_user_or_the_plugin_wrote_otherwise_is_no_damage() {
    let (world, path, _) = store_alone();
    world
        .store
        .db
        .execute_batch("CREATE INDEX mine ON goals (host); CREATE TABLE notes (text); CREATE VIEW v AS SELECT 1")
        .unwrap();
    drop(world.store);
    let db = read_write(&path);
    db.execute_batch(
        "PRAGMA writable_schema = ON;
         UPDATE sqlite_schema SET sql = replace(sql, 'goal_id TEXT', 'goal_id  text') WHERE name = 'goal_events';
         PRAGMA writable_schema = RESET",
    )
    .unwrap();
    drop(db);
    assert_eq!(run(&path).unwrap(), Recovery::NotNeeded);
    let store = Store::open_existing(&path).unwrap();
    assert_eq!((store.integrity_faults().unwrap(), store.quick_faults().unwrap()), (vec![], vec![]));
}
