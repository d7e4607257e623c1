-- The clock of the store, one row. `now_ms` is the time at the last look, `boot_ms` and `suspended_ms` the machine's
-- own counters at that moment, `wall_ms` what its clock showed, `aged_ms` the time by which old rows are deleted: it
-- never leaps ahead.
CREATE TABLE clock (
  id           INTEGER PRIMARY KEY CHECK (id = 1),
  boot_id      TEXT    NOT NULL,
  boot_ms      INTEGER NOT NULL,
  suspended_ms INTEGER NOT NULL,
  wall_ms      INTEGER NOT NULL,
  now_ms       INTEGER NOT NULL,
  aged_ms      INTEGER NOT NULL
);

-- Old rows age from the last sign of life on, so that a clock that is wrong at the first look deletes nothing.
INSERT INTO clock (id, boot_id, boot_ms, suspended_ms, wall_ms, now_ms, aged_ms)
SELECT 1, '', 0, 0, 0, 0, max(last_seen_ms) FROM sessions HAVING max(last_seen_ms) IS NOT NULL;

-- How far each task of upkeep has come. A task works in small steps and continues at `position`.
CREATE TABLE upkeep (
  task      TEXT    PRIMARY KEY NOT NULL,
  position  TEXT    NOT NULL DEFAULT '',
  due_at_ms INTEGER NOT NULL
) WITHOUT ROWID;

-- What the deleted rows of the ledger add up to, by local day.
CREATE TABLE usage_days (
  day                      TEXT    NOT NULL,
  host                     TEXT    NOT NULL,
  model                    TEXT    NOT NULL,
  in_goals                 INTEGER NOT NULL,
  responses                INTEGER NOT NULL,
  input_tokens             INTEGER NOT NULL,
  output_tokens            INTEGER NOT NULL,
  cache_creation_tokens    INTEGER NOT NULL,
  cache_creation_1h_tokens INTEGER NOT NULL,
  cache_read_tokens        INTEGER NOT NULL,
  cost_micros              INTEGER NOT NULL,
  unpriced_tokens          INTEGER NOT NULL,
  PRIMARY KEY (day, host, model, in_goals)
) WITHOUT ROWID;

-- Zeros that a purge writes over free pages. Empty otherwise.
CREATE TABLE wiped_pages (
  id    INTEGER PRIMARY KEY,
  zeros BLOB    NOT NULL
);

-- Responses before this moment were deleted from the ledger, except those of live goals. One row.
CREATE TABLE ledger_pruned (
  id        INTEGER PRIMARY KEY CHECK (id = 1),
  before_ms INTEGER NOT NULL
);

-- What the deleted responses of a session add up to, for the caps of sessions.
CREATE TABLE session_sums (
  session_id  TEXT    PRIMARY KEY NOT NULL,
  tokens      INTEGER NOT NULL,
  cost_micros INTEGER NOT NULL
) WITHOUT ROWID;

-- One row a goal or session: these tables are small even after years.
CREATE INDEX idx_goals_goal ON goals (goal_id);
CREATE INDEX idx_goals_created ON goals (created_at_ms);
CREATE INDEX idx_goal_history_created ON goal_history (created_at_ms);
CREATE INDEX idx_sessions_parent ON sessions (parent_session_id) WHERE parent_session_id IS NOT NULL;
CREATE INDEX idx_sessions_client ON sessions (host_pid, host_pid_started);
