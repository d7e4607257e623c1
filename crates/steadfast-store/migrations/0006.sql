-- Version 6: the first of our own. More reasons to pause, limits in money and time of day, history of
-- replaced goals, sessions, and a ledger of responses as the truth of all accounting.
CREATE TABLE goals_new (
  session_id TEXT PRIMARY KEY NOT NULL,
  goal_id TEXT NOT NULL,
  id TEXT GENERATED ALWAYS AS (goal_id) VIRTUAL,
  host TEXT NOT NULL DEFAULT 'claude',
  project_dir TEXT,
  objective TEXT NOT NULL CHECK (length(objective) BETWEEN 1 AND 4000),
  status TEXT NOT NULL CHECK (status IN ('active','paused','blocked','budget_limited','complete','abandoned')),
  paused_reason TEXT CHECK (paused_reason IN
    ('user','continuation_cap','wall_clock_cap','cleared','degraded','accounting_error','accounting_uncertain',
     'waiting','usage_limit','no_progress','cost_cap','deadline') OR paused_reason IS NULL),
  token_budget INTEGER CHECK (token_budget IS NULL OR token_budget > 0),
  budget_profile TEXT CHECK (budget_profile IN ('quick','standard','deep','overnight') OR budget_profile IS NULL),
  budget_source TEXT NOT NULL DEFAULT 'none' CHECK (budget_source IN ('none','tokens','profile','auto')),
  usd_budget_micros INTEGER CHECK (usd_budget_micros IS NULL OR usd_budget_micros > 0),
  tokens_used INTEGER NOT NULL DEFAULT 0 CHECK (tokens_used >= 0),
  subagent_tokens INTEGER NOT NULL DEFAULT 0 CHECK (subagent_tokens >= 0),
  cache_read_tokens INTEGER NOT NULL DEFAULT 0 CHECK (cache_read_tokens >= 0),
  cost_micros INTEGER NOT NULL DEFAULT 0 CHECK (cost_micros >= 0),
  -- Tokens of models that the price table does not know: the cost shown is then a lower bound.
  unpriced_tokens INTEGER NOT NULL DEFAULT 0 CHECK (unpriced_tokens >= 0),
  time_used_seconds INTEGER NOT NULL DEFAULT 0 CHECK (time_used_seconds >= 0),
  resume_at_ms INTEGER,
  last_accounted_byte_offset INTEGER NOT NULL DEFAULT 0,
  last_accounted_uuid TEXT,
  accounting_uncertain INTEGER NOT NULL DEFAULT 0 CHECK (accounting_uncertain IN (0, 1)),
  last_continuation_at_ms INTEGER,
  continuations_used INTEGER NOT NULL DEFAULT 0 CHECK (continuations_used >= 0),
  continuations_remaining INTEGER NOT NULL DEFAULT 1000000 CHECK (continuations_remaining >= 0),
  max_wall_clock_seconds INTEGER NOT NULL DEFAULT 315360000 CHECK (max_wall_clock_seconds > 0),
  deadline_ms INTEGER,
  budget_limit_reported INTEGER NOT NULL DEFAULT 0 CHECK (budget_limit_reported IN (0, 1)),
  -- The limit whose wind-down turn was handed out.
  wind_down TEXT CHECK (wind_down IN ('tokens','usd','turns','hours','deadline','shared') OR wind_down IS NULL),
  -- Batches of tool calls since that turn was told to wrap up.
  wind_down_batches INTEGER NOT NULL DEFAULT 0 CHECK (wind_down_batches >= 0),
  -- Limits whose 80 % warning was given, as a list of their names.
  warned_json TEXT NOT NULL DEFAULT '[]',
  worked_since_continuation INTEGER NOT NULL DEFAULT 0 CHECK (worked_since_continuation IN (0, 1)),
  idle_continuations INTEGER NOT NULL DEFAULT 0 CHECK (idle_continuations >= 0),
  blocks_in_row INTEGER NOT NULL DEFAULT 0 CHECK (blocks_in_row >= 0),
  last_message_hash TEXT,
  failures_in_row INTEGER NOT NULL DEFAULT 0 CHECK (failures_in_row >= 0),
  wake_at_ms INTEGER,
  verify_json TEXT NOT NULL DEFAULT '[]',
  version INTEGER NOT NULL DEFAULT 0,
  created_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL
);
INSERT INTO goals_new
  (session_id, goal_id, objective, status, paused_reason, token_budget, budget_profile, budget_source,
   tokens_used, subagent_tokens, time_used_seconds, resume_at_ms, last_accounted_byte_offset, last_accounted_uuid,
   accounting_uncertain, last_continuation_at_ms, continuations_remaining, max_wall_clock_seconds,
   budget_limit_reported, version, created_at_ms, updated_at_ms)
SELECT
   session_id, goal_id, objective, status, paused_reason, token_budget, budget_profile, budget_source,
   tokens_used, subagent_tokens, time_used_seconds, resume_at_ms, last_accounted_byte_offset, last_accounted_uuid,
   accounting_uncertain, last_continuation_at_ms, continuations_remaining, max_wall_clock_seconds,
   budget_limit_reported, version, created_at_ms, updated_at_ms
FROM goals;
DROP TABLE goals;
ALTER TABLE goals_new RENAME TO goals;
CREATE INDEX idx_goals_status ON goals (status);

-- A goal replaced by the next one of its session keeps its whole row here.
CREATE TABLE goal_history (
  session_id TEXT NOT NULL,
  goal_id TEXT PRIMARY KEY NOT NULL,
  id TEXT GENERATED ALWAYS AS (goal_id) VIRTUAL,
  host TEXT NOT NULL DEFAULT 'claude',
  project_dir TEXT,
  objective TEXT NOT NULL CHECK (length(objective) BETWEEN 1 AND 4000),
  status TEXT NOT NULL CHECK (status IN ('active','paused','blocked','budget_limited','complete','abandoned')),
  paused_reason TEXT CHECK (paused_reason IN
    ('user','continuation_cap','wall_clock_cap','cleared','degraded','accounting_error','accounting_uncertain',
     'waiting','usage_limit','no_progress','cost_cap','deadline') OR paused_reason IS NULL),
  token_budget INTEGER CHECK (token_budget IS NULL OR token_budget > 0),
  budget_profile TEXT CHECK (budget_profile IN ('quick','standard','deep','overnight') OR budget_profile IS NULL),
  budget_source TEXT NOT NULL DEFAULT 'none' CHECK (budget_source IN ('none','tokens','profile','auto')),
  usd_budget_micros INTEGER CHECK (usd_budget_micros IS NULL OR usd_budget_micros > 0),
  tokens_used INTEGER NOT NULL DEFAULT 0 CHECK (tokens_used >= 0),
  subagent_tokens INTEGER NOT NULL DEFAULT 0 CHECK (subagent_tokens >= 0),
  cache_read_tokens INTEGER NOT NULL DEFAULT 0 CHECK (cache_read_tokens >= 0),
  cost_micros INTEGER NOT NULL DEFAULT 0 CHECK (cost_micros >= 0),
  -- Tokens of models that the price table does not know: the cost shown is then a lower bound.
  unpriced_tokens INTEGER NOT NULL DEFAULT 0 CHECK (unpriced_tokens >= 0),
  time_used_seconds INTEGER NOT NULL DEFAULT 0 CHECK (time_used_seconds >= 0),
  resume_at_ms INTEGER,
  last_accounted_byte_offset INTEGER NOT NULL DEFAULT 0,
  last_accounted_uuid TEXT,
  accounting_uncertain INTEGER NOT NULL DEFAULT 0 CHECK (accounting_uncertain IN (0, 1)),
  last_continuation_at_ms INTEGER,
  continuations_used INTEGER NOT NULL DEFAULT 0 CHECK (continuations_used >= 0),
  continuations_remaining INTEGER NOT NULL DEFAULT 1000000 CHECK (continuations_remaining >= 0),
  max_wall_clock_seconds INTEGER NOT NULL DEFAULT 315360000 CHECK (max_wall_clock_seconds > 0),
  deadline_ms INTEGER,
  budget_limit_reported INTEGER NOT NULL DEFAULT 0 CHECK (budget_limit_reported IN (0, 1)),
  -- The limit whose wind-down turn was handed out.
  wind_down TEXT CHECK (wind_down IN ('tokens','usd','turns','hours','deadline','shared') OR wind_down IS NULL),
  -- Batches of tool calls since that turn was told to wrap up.
  wind_down_batches INTEGER NOT NULL DEFAULT 0 CHECK (wind_down_batches >= 0),
  -- Limits whose 80 % warning was given, as a list of their names.
  warned_json TEXT NOT NULL DEFAULT '[]',
  worked_since_continuation INTEGER NOT NULL DEFAULT 0 CHECK (worked_since_continuation IN (0, 1)),
  idle_continuations INTEGER NOT NULL DEFAULT 0 CHECK (idle_continuations >= 0),
  blocks_in_row INTEGER NOT NULL DEFAULT 0 CHECK (blocks_in_row >= 0),
  last_message_hash TEXT,
  failures_in_row INTEGER NOT NULL DEFAULT 0 CHECK (failures_in_row >= 0),
  wake_at_ms INTEGER,
  verify_json TEXT NOT NULL DEFAULT '[]',
  version INTEGER NOT NULL DEFAULT 0,
  created_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL
);
CREATE INDEX idx_goal_history_session ON goal_history (session_id);

-- Who did it, and the names that the documented queries use.
ALTER TABLE goal_events ADD COLUMN actor TEXT;
ALTER TABLE goal_events ADD COLUMN ts TEXT
  GENERATED ALWAYS AS (strftime('%Y-%m-%dT%H:%M:%fZ', created_at_ms / 1000.0, 'unixepoch')) VIRTUAL;
ALTER TABLE goal_events ADD COLUMN kind TEXT GENERATED ALWAYS AS (event_type) VIRTUAL;
ALTER TABLE goal_events ADD COLUMN payload TEXT GENERATED ALWAYS AS (payload_json) VIRTUAL;
CREATE INDEX IF NOT EXISTS idx_goal_events_goal ON goal_events (goal_id, id);

CREATE TABLE sessions (
  session_id TEXT PRIMARY KEY NOT NULL,
  host TEXT NOT NULL,
  cwd TEXT NOT NULL DEFAULT '',
  project_dir TEXT NOT NULL DEFAULT '',
  transcript_path TEXT NOT NULL DEFAULT '',
  -- The client's process, to tell a live session from one whose laptop died.
  host_pid INTEGER,
  host_pid_started INTEGER,
  parent_session_id TEXT,
  last_prompt_ms INTEGER,
  started_at_ms INTEGER NOT NULL,
  last_seen_ms INTEGER NOT NULL,
  ended_at_ms INTEGER,
  end_reason TEXT
) WITHOUT ROWID;

-- PreToolUse tells which session and which agent made a call to our own tools.
CREATE TABLE tool_calls (
  tool_use_id TEXT PRIMARY KEY NOT NULL,
  session_id TEXT NOT NULL,
  agent_id TEXT NOT NULL DEFAULT '',
  agent_type TEXT NOT NULL DEFAULT '',
  tool_name TEXT NOT NULL,
  created_at_ms INTEGER NOT NULL
) WITHOUT ROWID;

-- When a goal was driving a session: a response belongs to the goal whose span holds its time.
CREATE TABLE goal_spans (
  goal_id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  from_ms INTEGER NOT NULL,
  to_ms INTEGER,
  PRIMARY KEY (session_id, from_ms, goal_id)
) WITHOUT ROWID;
INSERT OR IGNORE INTO goal_spans (goal_id, session_id, from_ms)
  SELECT goal_id, session_id, updated_at_ms FROM goals WHERE status IN ('active', 'budget_limited');

-- The ledger: one row a response, whatever number of lines, files or reads it took to see it.
CREATE TABLE responses (
  host TEXT NOT NULL,
  response_id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  agent_id TEXT NOT NULL DEFAULT '',
  -- NULL: seen, and in no goal's time.
  goal_id TEXT,
  model TEXT NOT NULL,
  input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  cache_creation_tokens INTEGER NOT NULL,
  cache_creation_1h_tokens INTEGER NOT NULL,
  cache_read_tokens INTEGER NOT NULL,
  -- NULL: the price table does not know the model.
  cost_micros INTEGER,
  at_ms INTEGER NOT NULL,
  PRIMARY KEY (host, response_id)
) WITHOUT ROWID;
CREATE INDEX idx_responses_goal ON responses (goal_id) WHERE goal_id IS NOT NULL;
CREATE INDEX idx_responses_spent ON responses (at_ms) WHERE goal_id IS NOT NULL;

-- How far each file was read. The anchor is the text just before the offset: if it changed, the file is
-- read again from its start, which the ledger makes harmless.
CREATE TABLE transcript_cursors (
  path TEXT PRIMARY KEY NOT NULL,
  session_id TEXT NOT NULL,
  agent_id TEXT NOT NULL DEFAULT '',
  byte_offset INTEGER NOT NULL,
  anchor BLOB NOT NULL,
  -- What the host's reader remembers between two readings.
  carry TEXT NOT NULL DEFAULT '',
  broken_lines INTEGER NOT NULL DEFAULT 0,
  queued_prompts INTEGER NOT NULL DEFAULT 0,
  native_goal TEXT,
  -- Whether the last read was the one just before a compaction, so that nothing could vanish unseen.
  read_before_compaction INTEGER NOT NULL DEFAULT 0,
  updated_at_ms INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE verifications (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  goal_id TEXT NOT NULL,
  command TEXT NOT NULL,
  -- NULL: ended by a signal or by the time limit.
  exit_code INTEGER,
  timed_out INTEGER NOT NULL DEFAULT 0 CHECK (timed_out IN (0, 1)),
  duration_ms INTEGER NOT NULL,
  output_sha256 TEXT NOT NULL,
  output_tail TEXT NOT NULL,
  git_commit TEXT,
  git_dirty INTEGER,
  created_at_ms INTEGER NOT NULL
);
CREATE INDEX idx_verifications_goal ON verifications (goal_id, id);
UPDATE schema_version SET version = 6;
