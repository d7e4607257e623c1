-- Prompts with our commands, and each of the commands, for hosts that name turns. A repeated call of the same hook finds
-- the reply here and carries nothing out again; the reply is NULL while the first call is at work. Esc makes the client
-- send a prompt again whose hook it cut off: `interrupted_at_ms` is when that happened to the turn.
CREATE TABLE typed_commands (
  session_id TEXT NOT NULL,
  turn_id TEXT NOT NULL,
  text_hash TEXT NOT NULL,
  reply TEXT,
  created_at_ms INTEGER NOT NULL,
  replied_at_ms INTEGER,
  interrupted_at_ms INTEGER,
  PRIMARY KEY (session_id, turn_id, text_hash)
) WITHOUT ROWID;
