-- What moves a goal next. `sessions.turn_since_ms` is set while a turn runs, `turn_id` names it where the host does,
-- `asked_at_ms` is set while a permission dialog is open, `background_since_ms` while a turn left tasks running, and
-- `waker_*` is the background hook that will wake the client.
ALTER TABLE sessions ADD COLUMN turn_since_ms INTEGER;
ALTER TABLE sessions ADD COLUMN turn_id TEXT;
ALTER TABLE sessions ADD COLUMN asked_at_ms INTEGER;
ALTER TABLE sessions ADD COLUMN background_since_ms INTEGER;
ALTER TABLE sessions ADD COLUMN waker_pid INTEGER;
ALTER TABLE sessions ADD COLUMN waker_pid_started INTEGER;

-- `wait_json` is what a waiting goal waits for, `woken_at_ms` is set between a wake-up and the turn that it begins,
-- `briefed_hash` identifies the instructions that the model has in its context, `stall_told` is set when the user was
-- told that nothing moves the goal, `open_calls` are tool calls without a result, `same_calls` counts those that brought
-- nothing new, and `time_used_rest_ms` is what `time_used_seconds` lacks.
ALTER TABLE goals ADD COLUMN wait_json TEXT;
ALTER TABLE goals ADD COLUMN woken_at_ms INTEGER;
ALTER TABLE goals ADD COLUMN briefed_hash TEXT;
ALTER TABLE goals ADD COLUMN stall_told INTEGER NOT NULL DEFAULT 0;
ALTER TABLE goals ADD COLUMN open_calls TEXT;
ALTER TABLE goals ADD COLUMN same_calls INTEGER NOT NULL DEFAULT 0;
ALTER TABLE goals ADD COLUMN time_used_rest_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE goal_history ADD COLUMN wait_json TEXT;
ALTER TABLE goal_history ADD COLUMN woken_at_ms INTEGER;
ALTER TABLE goal_history ADD COLUMN briefed_hash TEXT;
ALTER TABLE goal_history ADD COLUMN stall_told INTEGER NOT NULL DEFAULT 0;
ALTER TABLE goal_history ADD COLUMN open_calls TEXT;
ALTER TABLE goal_history ADD COLUMN same_calls INTEGER NOT NULL DEFAULT 0;
ALTER TABLE goal_history ADD COLUMN time_used_rest_ms INTEGER NOT NULL DEFAULT 0;

-- Goals that start when the live one of their session ends, the lowest position first. `goal_json` has what
-- `goal start` was asked for.
CREATE TABLE goal_queue (
  queue_id INTEGER PRIMARY KEY AUTOINCREMENT,
  session_id TEXT NOT NULL,
  position INTEGER NOT NULL,
  goal_json TEXT NOT NULL,
  created_at_ms INTEGER NOT NULL
);
CREATE INDEX idx_goal_queue_session ON goal_queue (session_id, position);

-- One row for each message and channel that it goes to. A process moves `due_ms` on before it tries, so that only one
-- process delivers, and sets `done_at_ms` when the channel accepted it or was given up.
CREATE TABLE deliveries (
  outbox_id INTEGER NOT NULL,
  channel TEXT NOT NULL,
  due_ms INTEGER NOT NULL,
  tries INTEGER NOT NULL DEFAULT 0,
  done_at_ms INTEGER,
  error TEXT,
  PRIMARY KEY (outbox_id, channel)
) WITHOUT ROWID;
CREATE INDEX idx_deliveries_due ON deliveries (due_ms) WHERE done_at_ms IS NULL;
