-- Session memory. Events of a session are bounded; what the user stated as the goal and the client's tasks are records
-- of their own, so that no number of events can push them out.
CREATE TABLE session_events (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  session_id TEXT NOT NULL,
  category TEXT NOT NULL,
  kind TEXT NOT NULL,
  -- 0 low, 1 normal, 2 high, 3 critical: the lowest are dropped first.
  importance INTEGER NOT NULL CHECK (importance BETWEEN 0 AND 3),
  subject TEXT NOT NULL DEFAULT '',
  text TEXT NOT NULL,
  repeats INTEGER NOT NULL DEFAULT 1,
  resolved INTEGER NOT NULL DEFAULT 0 CHECK (resolved IN (0, 1)),
  created_at_ms INTEGER NOT NULL
);
CREATE INDEX idx_session_events_session ON session_events (session_id, id);
-- Who goes first when a session has too many.
CREATE INDEX idx_session_events_eviction ON session_events (session_id, importance, id);
-- The newest of a category: they are kept longest, and a repetition of the very last is not stored again.
CREATE INDEX idx_session_events_category ON session_events (session_id, category, id);
-- Errors that wait for the same thing to work.
CREATE INDEX idx_session_events_unresolved ON session_events (session_id, id) WHERE category = 'error' AND resolved = 0;
CREATE INDEX idx_session_events_failing ON session_events (session_id, subject, id)
  WHERE category = 'error' AND resolved = 0;

CREATE VIRTUAL TABLE session_events_fts USING fts5 (
  text, subject, content = 'session_events', content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 2'
);
CREATE TRIGGER session_events_added AFTER INSERT ON session_events BEGIN
  INSERT INTO session_events_fts (rowid, text, subject) VALUES (new.id, new.text, new.subject);
END;
CREATE TRIGGER session_events_dropped AFTER DELETE ON session_events BEGIN
  INSERT INTO session_events_fts (session_events_fts, rowid, text, subject)
  VALUES ('delete', old.id, old.text, old.subject);
END;

CREATE TRIGGER session_events_rewritten AFTER UPDATE OF text, subject ON session_events BEGIN
  INSERT INTO session_events_fts (session_events_fts, rowid, text, subject)
  VALUES ('delete', old.id, old.text, old.subject);
  INSERT INTO session_events_fts (rowid, text, subject) VALUES (new.id, new.text, new.subject);
END;

CREATE TABLE stated_goals (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  session_id TEXT NOT NULL,
  objective TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('active','paused','replaced','cleared','done')),
  goal_id TEXT,
  set_at_ms INTEGER NOT NULL,
  changed_at_ms INTEGER NOT NULL
);
CREATE UNIQUE INDEX idx_stated_goals_holding ON stated_goals (session_id) WHERE status IN ('active','paused');
CREATE INDEX idx_stated_goals_session ON stated_goals (session_id, id);

CREATE TABLE session_tasks (
  session_id TEXT NOT NULL,
  task_id TEXT NOT NULL,
  position INTEGER NOT NULL,
  subject TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('pending','in_progress','completed','deleted')),
  changed_at_ms INTEGER NOT NULL,
  PRIMARY KEY (session_id, task_id)
) WITHOUT ROWID;

-- What was told, or would be told, to a model that lost its context.
CREATE TABLE session_snapshots (
  session_id TEXT PRIMARY KEY NOT NULL,
  text TEXT NOT NULL,
  compactions INTEGER NOT NULL DEFAULT 0,
  written_at_ms INTEGER NOT NULL,
  -- When it last reached a model, and by which kind of start.
  injected_at_ms INTEGER,
  injected_by TEXT,
  -- The last compaction that announced itself: when, and how long the session's file was.
  compacting_at_ms INTEGER,
  compacting_bytes INTEGER
) WITHOUT ROWID;

-- How a session came from its parent: a fork continues it, `/clear` only follows it.
ALTER TABLE sessions ADD COLUMN parent_link TEXT CHECK (parent_link IN ('fork','clear') OR parent_link IS NULL);
