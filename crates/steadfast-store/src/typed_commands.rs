//! Commands that a person typed into a client, so that each is carried out once.

use rusqlite::params;
use steadfast_model::clock::{DAY, Millis};

use crate::{Db, StoreError};

/// A call with the same text in the same turn is the same call for this long. After that the person typed it again: a
/// turn of a driven goal can last for hours.
const SAME_CALL_FOR: Millis = 10_000;
/// A client sends what an interrupt cut off again within this time.
const SENT_AGAIN_WITHIN: Millis = 5_000;
/// A reply that was given this long before an interrupt had reached the client.
const REPLY_ARRIVES_WITHIN: Millis = 1_000;

/// Identifies a prompt, or a command in it. Hosts give prompts no id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedText {
    pub session_id: String,
    pub turn_id: String,
    pub text_hash: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextClaim {
    /// This call carries it out.
    First,
    /// Another call does, or did. Its reply, if there is one yet.
    Repeated(Option<String>),
}

/// A command of an interrupted turn that its client sent again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentAgain {
    pub reply: Option<String>,
    /// When it was begun.
    pub created_at_ms: Millis,
}

impl Db<'_> {
    /// Claims a prompt for this call.
    pub fn claim_text(self, text: &TypedText, now: Millis) -> Result<TextClaim, StoreError> {
        self.execute("DELETE FROM typed_commands WHERE created_at_ms < ?1", [self.aged_now(now)? - DAY])?;
        if let Some(reply) = self.reply_to(text, now)? {
            return Ok(TextClaim::Repeated(reply));
        }
        self.begin_text(text, now)?;
        Ok(TextClaim::First)
    }

    pub fn begin_text(self, text: &TypedText, now: Millis) -> Result<(), StoreError> {
        self.execute(
            "INSERT OR REPLACE INTO typed_commands (session_id, turn_id, text_hash, created_at_ms)
             VALUES (?1, ?2, ?3, ?4)",
            params![text.session_id, text.turn_id, text.text_hash, now],
        )?;
        Ok(())
    }

    /// The reply of the call that claimed the text, once there is one; `None` without a claim.
    pub fn reply_to(self, text: &TypedText, now: Millis) -> Result<Option<Option<String>>, StoreError> {
        self.first(
            "SELECT reply FROM typed_commands
             WHERE session_id = ?1 AND turn_id = ?2 AND text_hash = ?3 AND created_at_ms > ?4",
            params![text.session_id, text.turn_id, text.text_hash, now - SAME_CALL_FOR],
            |row| row.get(0),
        )
    }

    pub fn keep_reply(self, text: &TypedText, reply: &str, now: Millis) -> Result<(), StoreError> {
        self.execute(
            "UPDATE typed_commands SET reply = ?4, replied_at_ms = ?5
             WHERE session_id = ?1 AND turn_id = ?2 AND text_hash = ?3",
            params![text.session_id, text.turn_id, text.text_hash, reply, now],
        )?;
        Ok(())
    }

    /// The user interrupted a turn.
    pub fn interrupt_commands(self, session_id: &str, turn_id: &str, now: Millis) -> Result<(), StoreError> {
        self.execute(
            "UPDATE typed_commands SET interrupted_at_ms = ?3 WHERE session_id = ?1 AND turn_id = ?2",
            params![session_id, turn_id, now],
        )?;
        Ok(())
    }

    /// The same command in a turn that was interrupted before its client had the reply. It is found once.
    pub fn take_sent_again(self, text: &TypedText, now: Millis) -> Result<Option<SentAgain>, StoreError> {
        self.first(
            "UPDATE typed_commands SET interrupted_at_ms = NULL
             WHERE session_id = ?1 AND turn_id <> ?2 AND text_hash = ?3 AND interrupted_at_ms > ?4
               AND coalesce(replied_at_ms, interrupted_at_ms) > interrupted_at_ms - ?5
             RETURNING reply, created_at_ms",
            params![text.session_id, text.turn_id, text.text_hash, now - SENT_AGAIN_WITHIN, REPLY_ARRIVES_WITHIN],
            |row| Ok(SentAgain { reply: row.get(0)?, created_at_ms: row.get(1)? }),
        )
    }

    /// Whether a command changed a goal of the session since a moment.
    pub fn has_command_event(self, session_id: &str, place: &str, since: Millis) -> Result<bool, StoreError> {
        let sql = "SELECT 1 FROM goal_events WHERE session_id = ?1 AND hook_name = ?2 AND created_at_ms >= ?3 LIMIT 1";
        Ok(self.first(sql, params![session_id, place, since], |_| Ok(()))?.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;

    fn store() -> (tempfile::TempDir, Store) {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(&home.path().join("goals.db")).unwrap();
        (home, store)
    }

    fn typed(turn: &str) -> TypedText {
        TypedText { session_id: "s".into(), turn_id: turn.into(), text_hash: "extend".into() }
    }

    #[test]
    fn a_text_is_claimed_once_in_its_turn_until_it_can_have_been_typed_again() {
        let (_home, mut store) = store();
        let mut claim = |turn: &str, now| store.write(|db| db.claim_text(&typed(turn), now)).unwrap();
        assert_eq!(claim("t1", 1_000), TextClaim::First);
        assert_eq!(claim("t1", 1_001), TextClaim::Repeated(None));
        assert_eq!(claim("t2", 1_001), TextClaim::First);
        store.write(|db| db.keep_reply(&typed("t1"), "{}", 1_002)).unwrap();
        let mut claim = |turn: &str, now| store.write(|db| db.claim_text(&typed(turn), now)).unwrap();
        assert_eq!(claim("t1", 1_000 + SAME_CALL_FOR - 1), TextClaim::Repeated(Some("{}".into())));
        assert_eq!(claim("t1", 1_000 + SAME_CALL_FOR), TextClaim::First);
        assert_eq!(claim("t1", 1_000 + SAME_CALL_FOR), TextClaim::Repeated(None));
    }

    #[test]
    fn what_an_interrupt_cut_off_is_found_once_when_it_is_sent_again() {
        const INTERRUPT: Millis = 100_000;
        for (replied, sent, is_same) in [
            (None, INTERRUPT + 500, true),
            (None, INTERRUPT + SENT_AGAIN_WITHIN, false),
            (Some(INTERRUPT - 10), INTERRUPT + 500, true),
            (Some(INTERRUPT - REPLY_ARRIVES_WITHIN), INTERRUPT + 500, false),
        ] {
            let (_home, mut store) = store();
            let found = store.write(|db| {
                db.begin_text(&typed("t1"), 1_000)?;
                if let Some(at) = replied {
                    db.keep_reply(&typed("t1"), "done", at)?;
                }
                assert_eq!(db.take_sent_again(&typed("t2"), sent)?, None, "not interrupted");
                db.interrupt_commands("s", "t1", INTERRUPT)?;
                assert_eq!(db.take_sent_again(&typed("t1"), sent)?, None, "the same turn");
                let found = db.take_sent_again(&typed("t2"), sent)?;
                assert_eq!(db.take_sent_again(&typed("t2"), sent)?, None, "only once");
                Ok::<_, StoreError>(found)
            });
            let expected = SentAgain { reply: replied.map(|_| "done".to_owned()), created_at_ms: 1_000 };
            assert_eq!(found.unwrap(), is_same.then_some(expected), "{replied:?} {sent}");
        }
    }
}
