//! The steady time of a process. Alone in its file: it sets the time of all tests that run in the same process.

use rusqlite::Connection;
use steadfast_model::clock::{self as times, MINUTE, SECOND};
use steadfast_store::{Store, StoreError};

#[test]
#[expect(clippy::disallowed_methods, reason = "it writes what an earlier process would have written")]
fn a_process_continues_the_time_of_the_store() {
    let home = tempfile::TempDir::new().unwrap();
    let path = home.path().join("goals.db");
    let mut store = Store::open(&path).unwrap();
    store.write(|_| Ok::<_, StoreError>(())).unwrap();
    drop(store);
    // The wall clock was ahead, in this boot.
    Connection::open(&path).unwrap().execute("UPDATE clock SET now_ms = now_ms + ?1", [30 * MINUTE]).unwrap();
    let _store = Store::open(&path).unwrap();
    let ahead = times::now() - times::wall();
    assert!((29 * MINUTE..=31 * MINUTE).contains(&ahead), "{ahead}");
    let wall = times::wall();
    assert!((times::from_wall(wall) - wall - ahead).abs() < 2 * SECOND);
    assert!((times::to_wall(times::now()) - wall).abs() < 2 * SECOND);
}
