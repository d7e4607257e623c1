//! Messages, and their deliveries to the channels that the user wants. A message is taken once: in the transaction that
//! marks it, each channel gets a row. A process claims a row for a short time before it tries, so that only one tries.

use rusqlite::{Row, params};
use steadfast_model::clock::{DAY, Millis};
use steadfast_model::outbox::delivery::{Channel, Delivery, Ending, LEASE};
use steadfast_model::outbox::{Message, MessageKind};
use steadfast_model::redact::redact;
use strum::IntoEnumIterator as _;

use crate::column::word;
use crate::{Db, Store, StoreError};

/// Messages are kept this long after they were taken, for users who query the table. What was not delivered until then
/// is given up.
const KEPT_MS: Millis = 7 * DAY;

/// The oldest delivery of a channel that is not over. Those after it wait for it, so that messages keep their order.
const FIRST: &str = "SELECT min(outbox_id) FROM deliveries WHERE channel = ?1 AND done_at_ms IS NULL";

impl Db<'_> {
    /// Adds a message in the caller's transaction.
    pub(crate) fn add_message(self, message: &Message) -> Result<(), StoreError> {
        if message.kind == MessageKind::Refused && self.is_repeated(message)? {
            return Ok(());
        }
        let kind: &str = message.kind.into();
        self.execute(
            "INSERT INTO outbox (kind, subject_id, title, body, created_at_ms) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![kind, message.subject_id, redact(&message.title), redact(&message.body), message.created_at_ms],
        )?;
        self.1.set(true);
        Ok(())
    }

    /// Whether the last message about the subject says the same: an agent may try to complete a goal again and again.
    fn is_repeated(self, message: &Message) -> Result<bool, StoreError> {
        let sql = "SELECT title, body FROM outbox WHERE subject_id = ?1 ORDER BY id DESC LIMIT 1";
        let last = self.first(sql, [&message.subject_id], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(last.is_some_and(|last: (String, String)| last == (message.title.clone(), message.body.clone())))
    }

    fn take_all(self, channels: impl Fn(MessageKind) -> Vec<Channel>, now: Millis) -> Result<(), StoreError> {
        self.execute("DELETE FROM outbox WHERE taken_at_ms < ?1", [self.aged_now(now)? - KEPT_MS])?;
        self.execute("DELETE FROM deliveries WHERE outbox_id NOT IN (SELECT id FROM outbox)", [])?;
        let sql = "UPDATE outbox SET taken_at_ms = ?1 WHERE taken_at_ms IS NULL RETURNING id, kind";
        let mut statement = self.0.prepare_cached(sql)?;
        let taken = statement.query_map([now], |row| Ok((row.get::<_, i64>(0)?, word(row, "kind")?)))?;
        // A kind that only a newer binary knows is not delivered, but marked.
        for (id, kind) in taken.filter_map(Result::ok) {
            for channel in channels(kind) {
                self.execute(
                    "INSERT INTO deliveries (outbox_id, channel, due_ms) VALUES (?1, ?2, ?3)",
                    params![id, <&str>::from(channel), now],
                )?;
            }
        }
        Ok(())
    }

    fn claim(self, channel: Channel, now: Millis) -> Result<Option<Delivery>, StoreError> {
        let sql = format!(
            "UPDATE deliveries SET due_ms = ?2 + {LEASE}, tries = tries + 1
             WHERE outbox_id = ({FIRST}) AND channel = ?1 AND due_ms <= ?2 RETURNING outbox_id, tries"
        );
        let claimed = self.first(&sql, params![<&str>::from(channel), now], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let Some((outbox_id, tries)) = claimed else { return Ok(None) };
        let read = |row: &Row<'_>| {
            Ok(Delivery {
                outbox_id,
                channel,
                tries,
                kind: row.get("kind")?,
                subject_id: row.get("subject_id")?,
                title: row.get("title")?,
                body: row.get("body")?,
                created_at_ms: row.get("created_at_ms")?,
            })
        };
        self.first("SELECT * FROM outbox WHERE id = ?1", [outbox_id], read)
    }
}

impl Store {
    /// Whether this process added a message.
    pub fn added_message(&self) -> bool {
        self.added_message.get()
    }

    /// Whether a message waits to be taken, or a delivery is due. Hooks ask this, so it is one statement.
    pub fn has_news(&self, now: Millis) -> Result<bool, StoreError> {
        let sql = "SELECT EXISTS (SELECT 1 FROM outbox WHERE taken_at_ms IS NULL)
                     OR EXISTS (SELECT 1 FROM deliveries WHERE done_at_ms IS NULL AND due_ms <= ?1)";
        Ok(self.read().first(sql, [now], |row| row.get(0))?.unwrap_or_default())
    }

    /// Takes all waiting messages: each is to be delivered to the channels of its kind, now.
    pub fn take_messages(
        &mut self,
        channels: impl Fn(MessageKind) -> Vec<Channel>,
        now: Millis,
    ) -> Result<(), StoreError> {
        self.added_message.set(false);
        if self.has_news(now)? { self.write(|db| db.take_all(channels, now)) } else { Ok(()) }
    }

    /// When the next delivery is due; `None` if all are over.
    pub fn next_delivery(&self) -> Result<Option<Millis>, StoreError> {
        let sql = format!("SELECT due_ms FROM deliveries WHERE outbox_id = ({FIRST}) AND channel = ?1");
        let mut next = None;
        for channel in Channel::iter() {
            let due: Option<Millis> = self.read().first(&sql, [<&str>::from(channel)], |row| row.get(0))?;
            next = next.into_iter().chain(due).min();
        }
        Ok(next)
    }

    /// Claims the next delivery of a channel if it is due. If this process dies, another one can claim it later.
    pub fn claim_delivery(&mut self, channel: Channel, now: Millis) -> Result<Option<Delivery>, StoreError> {
        self.write(|db| db.claim(channel, now))
    }

    /// Records how a try ended, unless a later one has begun.
    pub fn end_delivery(&mut self, delivery: &Delivery, ending: &Ending, now: Millis) -> Result<(), StoreError> {
        let (error, again_at) = match ending {
            Ending::Accepted => (None, None),
            Ending::Failed { error, again_at } => (Some(error), Some(*again_at)),
            Ending::GivenUp { error } => (Some(error), None),
        };
        let done_at = if again_at.is_some() { None } else { Some(now) };
        let sql = "UPDATE deliveries SET due_ms = coalesce(?4, due_ms), done_at_ms = ?5, error = ?6
                   WHERE outbox_id = ?1 AND channel = ?2 AND tries = ?3 AND done_at_ms IS NULL";
        let channel: &str = delivery.channel.into();
        self.write(|db| {
            db.execute(sql, params![delivery.outbox_id, channel, delivery.tries, again_at, done_at, error])?;
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests;
