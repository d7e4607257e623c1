//! Commands that a person typed into a client, so that each is carried out once.

use rusqlite::params;
use steadfast_model::clock::{DAY, Millis};

use crate::{Db, StoreError};

/// A call with the same text in the same turn is the same call for this long. After that the person typed it again: a
/// turn of a driven goal can last for hours.
const SAME_CALL_FOR: Millis = 10_000;

/// Identifies a prompt. Hosts give prompts no id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedPrompt {
    pub session_id: String,
    pub turn_id: String,
    pub text_hash: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptClaim {
    /// This call carries the commands out.
    First,
    /// Another call does, or did. Its reply, if there is one yet.
    Repeated(Option<String>),
}

impl Db<'_> {
    pub fn claim_prompt(self, prompt: &TypedPrompt, now: Millis) -> Result<PromptClaim, StoreError> {
        self.execute("DELETE FROM typed_commands WHERE created_at_ms < ?1", [now - DAY])?;
        if let Some(reply) = self.reply_to(prompt, now)? {
            return Ok(PromptClaim::Repeated(reply));
        }
        self.execute(
            "INSERT OR REPLACE INTO typed_commands (session_id, turn_id, text_hash, created_at_ms)
             VALUES (?1, ?2, ?3, ?4)",
            params![prompt.session_id, prompt.turn_id, prompt.text_hash, now],
        )?;
        Ok(PromptClaim::First)
    }

    /// The reply of the call that claimed the prompt, once there is one; `None` without a claim.
    pub fn reply_to(self, prompt: &TypedPrompt, now: Millis) -> Result<Option<Option<String>>, StoreError> {
        self.first(
            "SELECT reply_json FROM typed_commands
             WHERE session_id = ?1 AND turn_id = ?2 AND text_hash = ?3 AND created_at_ms > ?4",
            params![prompt.session_id, prompt.turn_id, prompt.text_hash, now - SAME_CALL_FOR],
            |row| row.get(0),
        )
    }

    pub fn keep_reply(self, prompt: &TypedPrompt, reply_json: &str) -> Result<(), StoreError> {
        self.execute(
            "UPDATE typed_commands SET reply_json = ?4 WHERE session_id = ?1 AND turn_id = ?2 AND text_hash = ?3",
            params![prompt.session_id, prompt.turn_id, prompt.text_hash, reply_json],
        )?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;

    #[test]
    fn a_prompt_is_claimed_once_in_its_turn_until_it_can_have_been_typed_again() {
        let home = tempfile::tempdir().unwrap();
        let mut store = Store::open(&home.path().join("goals.db")).unwrap();
        let prompt =
            |turn: &str| TypedPrompt { session_id: "s".into(), turn_id: turn.into(), text_hash: "extend".into() };
        let mut claim = |turn: &str, now| store.write(|db| db.claim_prompt(&prompt(turn), now)).unwrap();
        assert_eq!(claim("t1", 1_000), PromptClaim::First);
        assert_eq!(claim("t1", 1_001), PromptClaim::Repeated(None));
        assert_eq!(claim("t2", 1_001), PromptClaim::First);
        store.write(|db| db.keep_reply(&prompt("t1"), "{}")).unwrap();
        let mut claim = |turn: &str, now| store.write(|db| db.claim_prompt(&prompt(turn), now)).unwrap();
        assert_eq!(claim("t1", 1_000 + SAME_CALL_FOR - 1), PromptClaim::Repeated(Some("{}".into())));
        assert_eq!(claim("t1", 1_000 + SAME_CALL_FOR), PromptClaim::First);
        assert_eq!(claim("t1", 1_000 + SAME_CALL_FOR), PromptClaim::Repeated(None));
    }
}
