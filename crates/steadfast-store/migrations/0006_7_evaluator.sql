-- Subagents that a hook saw begin: what proves that a call inside of one is its own.
CREATE TABLE subagents (
  session_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  agent_type TEXT NOT NULL,
  started_at_ms INTEGER NOT NULL,
  PRIMARY KEY (session_id, agent_id)
) WITHOUT ROWID;
