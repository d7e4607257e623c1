//! Messages to deliver. A process marks one as taken before it delivers it, so that only one process does.

use rusqlite::params;
use steadfast_model::clock::{DAY, Millis};
use steadfast_model::outbox::Message;

use crate::column::word;
use crate::{Db, Store, StoreError};

/// Delivered messages are kept this long, for users who query the table.
const KEPT_MS: Millis = 7 * DAY;

impl Db<'_> {
    /// Adds a message in the caller's transaction.
    pub(crate) fn add_message(self, message: &Message) -> Result<(), StoreError> {
        let kind: &str = message.kind.into();
        self.execute(
            "INSERT INTO outbox (kind, subject_id, title, body, created_at_ms) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![kind, message.subject_id, message.title, message.body, message.created_at_ms],
        )?;
        self.1.set(true);
        Ok(())
    }

    fn take_all(self, now: Millis) -> Result<Vec<Message>, StoreError> {
        self.execute("DELETE FROM outbox WHERE taken_at_ms < ?1", [now - KEPT_MS])?;
        let sql = "UPDATE outbox SET taken_at_ms = ?1 WHERE taken_at_ms IS NULL
                   RETURNING kind, subject_id, title, body, created_at_ms";
        let mut statement = self.0.prepare_cached(sql)?;
        let rows = statement.query_map([now], |row| {
            Ok(Message {
                kind: word(row, "kind")?,
                subject_id: row.get("subject_id")?,
                title: row.get("title")?,
                body: row.get("body")?,
                created_at_ms: row.get("created_at_ms")?,
            })
        })?;
        // A kind that only a newer binary knows is not delivered, but marked.
        Ok(rows.filter_map(Result::ok).collect())
    }
}

impl Store {
    /// Whether this process added a message that it has not taken.
    pub fn added_message(&self) -> bool {
        self.added_message.get()
    }

    /// Takes all waiting messages, to deliver them.
    pub fn take_messages(&mut self, now: Millis) -> Result<Vec<Message>, StoreError> {
        self.added_message.set(false);
        let waiting = "SELECT 1 FROM outbox WHERE taken_at_ms IS NULL LIMIT 1";
        if self.read().first(waiting, [], |_| Ok(()))?.is_none() {
            return Ok(Vec::new());
        }
        self.write(|db| db.take_all(now))
    }
}

#[cfg(test)]
mod tests {
    use steadfast_model::goal::budget::Budget;
    use steadfast_model::goal::change;
    use steadfast_model::goal::proof::Proof;

    use crate::Store;
    use crate::testing::{START, WORKER, World};

    fn finished() -> World {
        let mut world = World::new();
        let goal = world.add_goal(Budget::default(), START);
        let done = change::complete(&goal, &Proof::from_worker(&goal).unwrap(), START + 1).unwrap();
        world.store.write(|db| db.save(&goal, done, WORKER)).unwrap();
        world
    }

    #[test]
    fn a_message_is_written_with_its_change_and_taken_once() {
        let mut world = finished();
        assert!(world.store.added_message());
        let mut other = Store::open(world.store.path()).unwrap();
        let taken = other.take_messages(START + 2).unwrap();
        assert_eq!(taken.iter().map(|message| &*message.title).collect::<Vec<_>>(), ["Goal complete"]);
        assert_eq!(world.store.take_messages(START + 2).unwrap(), []);
        assert!(!world.store.added_message());
    }

    #[test]
    fn a_change_that_is_rolled_back_leaves_no_message() {
        let mut world = World::new();
        let goal = world.add_goal(Budget::default(), START);
        let done = change::complete(&goal, &Proof::from_worker(&goal).unwrap(), START + 1).unwrap();
        let failed = world.store.write(|db| {
            db.save(&goal, done, WORKER)?;
            Err::<(), _>(crate::StoreError::Stale)
        });
        assert!(failed.is_err());
        assert_eq!(world.store.take_messages(START + 2).unwrap(), []);
    }

    #[test]
    fn many_processes_deliver_each_message_once() {
        let world = finished();
        let path = world.store.path().to_owned();
        let takers: Vec<_> = (0..8)
            .map(|_| {
                let path = path.clone();
                std::thread::spawn(move || Store::open(&path).unwrap().take_messages(START + 2).unwrap().len())
            })
            .collect();
        assert_eq!(takers.into_iter().map(|taker| taker.join().unwrap()).sum::<usize>(), 1);
    }
}
