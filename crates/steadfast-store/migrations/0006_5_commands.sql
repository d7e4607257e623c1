-- Prompts with our commands that a hook answers, for hosts that name turns. A repeated call of the same hook finds the
-- reply here and carries nothing out again; the reply is NULL while the first call is at work.
CREATE TABLE typed_commands (
  session_id TEXT NOT NULL,
  turn_id TEXT NOT NULL,
  text_hash TEXT NOT NULL,
  reply_json TEXT,
  created_at_ms INTEGER NOT NULL,
  PRIMARY KEY (session_id, turn_id, text_hash)
) WITHOUT ROWID;
