-- Lists of words that grow are in Rust only, where one enum names them: a new reason to pause, limit or run state no
-- longer rebuilds a table. Words that never change (status, budget profile and source) keep their CHECK.
-- No comment stands inside of a table: SQLite keeps its text and reads it again each time the file is opened.
-- `wind_down` is the axis of the limit whose wind-down turn was granted, `wind_down_batches` counts batches of tool calls
-- since then, `warned_json` lists axes whose 80 % warning was given, and `limits_json` has limits, and what was used of
-- them, on axes without a column of their own.
CREATE TABLE goals_new (
  session_id TEXT PRIMARY KEY NOT NULL,
  goal_id TEXT NOT NULL,
  id TEXT GENERATED ALWAYS AS (goal_id) VIRTUAL,
  host TEXT NOT NULL DEFAULT 'claude',
  project_dir TEXT,
  objective TEXT NOT NULL CHECK (length(objective) BETWEEN 1 AND 4000),
  status TEXT NOT NULL CHECK (status IN ('active','paused','blocked','budget_limited','complete','abandoned')),
  paused_reason TEXT,
  token_budget INTEGER CHECK (token_budget IS NULL OR token_budget > 0),
  budget_profile TEXT CHECK (budget_profile IN ('quick','standard','deep','overnight') OR budget_profile IS NULL),
  budget_source TEXT NOT NULL DEFAULT 'none' CHECK (budget_source IN ('none','tokens','profile','auto')),
  usd_budget_micros INTEGER CHECK (usd_budget_micros IS NULL OR usd_budget_micros > 0),
  tokens_used INTEGER NOT NULL DEFAULT 0 CHECK (tokens_used >= 0),
  subagent_tokens INTEGER NOT NULL DEFAULT 0 CHECK (subagent_tokens >= 0),
  cache_read_tokens INTEGER NOT NULL DEFAULT 0 CHECK (cache_read_tokens >= 0),
  cost_micros INTEGER NOT NULL DEFAULT 0 CHECK (cost_micros >= 0),
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
  limits_json TEXT NOT NULL DEFAULT '{}',
  budget_limit_reported INTEGER NOT NULL DEFAULT 0 CHECK (budget_limit_reported IN (0, 1)),
  wind_down TEXT,
  wind_down_batches INTEGER NOT NULL DEFAULT 0 CHECK (wind_down_batches >= 0),
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
INSERT INTO goals_new (
  session_id, goal_id, host, project_dir, objective, status, paused_reason, token_budget, budget_profile,
  budget_source, usd_budget_micros, tokens_used, subagent_tokens, cache_read_tokens, cost_micros,
  unpriced_tokens, time_used_seconds, resume_at_ms, last_accounted_byte_offset, last_accounted_uuid,
  accounting_uncertain, last_continuation_at_ms, continuations_used, continuations_remaining,
  max_wall_clock_seconds, deadline_ms, budget_limit_reported, wind_down, wind_down_batches, warned_json,
  worked_since_continuation, idle_continuations, blocks_in_row, last_message_hash, failures_in_row, wake_at_ms,
  verify_json, version, created_at_ms, updated_at_ms
) SELECT
  session_id, goal_id, host, project_dir, objective, status, paused_reason, token_budget, budget_profile,
  budget_source, usd_budget_micros, tokens_used, subagent_tokens, cache_read_tokens, cost_micros,
  unpriced_tokens, time_used_seconds, resume_at_ms, last_accounted_byte_offset, last_accounted_uuid,
  accounting_uncertain, last_continuation_at_ms, continuations_used, continuations_remaining,
  max_wall_clock_seconds, deadline_ms, budget_limit_reported, wind_down, wind_down_batches, warned_json,
  worked_since_continuation, idle_continuations, blocks_in_row, last_message_hash, failures_in_row, wake_at_ms,
  verify_json, version, created_at_ms, updated_at_ms
FROM goals;
DROP TABLE goals;
ALTER TABLE goals_new RENAME TO goals;
CREATE INDEX idx_goals_status ON goals (status);

CREATE TABLE goal_history_new (
  session_id TEXT NOT NULL,
  goal_id TEXT PRIMARY KEY NOT NULL,
  id TEXT GENERATED ALWAYS AS (goal_id) VIRTUAL,
  host TEXT NOT NULL DEFAULT 'claude',
  project_dir TEXT,
  objective TEXT NOT NULL CHECK (length(objective) BETWEEN 1 AND 4000),
  status TEXT NOT NULL CHECK (status IN ('active','paused','blocked','budget_limited','complete','abandoned')),
  paused_reason TEXT,
  token_budget INTEGER CHECK (token_budget IS NULL OR token_budget > 0),
  budget_profile TEXT CHECK (budget_profile IN ('quick','standard','deep','overnight') OR budget_profile IS NULL),
  budget_source TEXT NOT NULL DEFAULT 'none' CHECK (budget_source IN ('none','tokens','profile','auto')),
  usd_budget_micros INTEGER CHECK (usd_budget_micros IS NULL OR usd_budget_micros > 0),
  tokens_used INTEGER NOT NULL DEFAULT 0 CHECK (tokens_used >= 0),
  subagent_tokens INTEGER NOT NULL DEFAULT 0 CHECK (subagent_tokens >= 0),
  cache_read_tokens INTEGER NOT NULL DEFAULT 0 CHECK (cache_read_tokens >= 0),
  cost_micros INTEGER NOT NULL DEFAULT 0 CHECK (cost_micros >= 0),
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
  limits_json TEXT NOT NULL DEFAULT '{}',
  budget_limit_reported INTEGER NOT NULL DEFAULT 0 CHECK (budget_limit_reported IN (0, 1)),
  wind_down TEXT,
  wind_down_batches INTEGER NOT NULL DEFAULT 0 CHECK (wind_down_batches >= 0),
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
INSERT INTO goal_history_new (
  session_id, goal_id, host, project_dir, objective, status, paused_reason, token_budget, budget_profile,
  budget_source, usd_budget_micros, tokens_used, subagent_tokens, cache_read_tokens, cost_micros,
  unpriced_tokens, time_used_seconds, resume_at_ms, last_accounted_byte_offset, last_accounted_uuid,
  accounting_uncertain, last_continuation_at_ms, continuations_used, continuations_remaining,
  max_wall_clock_seconds, deadline_ms, budget_limit_reported, wind_down, wind_down_batches, warned_json,
  worked_since_continuation, idle_continuations, blocks_in_row, last_message_hash, failures_in_row, wake_at_ms,
  verify_json, version, created_at_ms, updated_at_ms
) SELECT
  session_id, goal_id, host, project_dir, objective, status, paused_reason, token_budget, budget_profile,
  budget_source, usd_budget_micros, tokens_used, subagent_tokens, cache_read_tokens, cost_micros,
  unpriced_tokens, time_used_seconds, resume_at_ms, last_accounted_byte_offset, last_accounted_uuid,
  accounting_uncertain, last_continuation_at_ms, continuations_used, continuations_remaining,
  max_wall_clock_seconds, deadline_ms, budget_limit_reported, wind_down, wind_down_batches, warned_json,
  worked_since_continuation, idle_continuations, blocks_in_row, last_message_hash, failures_in_row, wake_at_ms,
  verify_json, version, created_at_ms, updated_at_ms
FROM goal_history;
DROP TABLE goal_history;
ALTER TABLE goal_history_new RENAME TO goal_history;
CREATE INDEX idx_goal_history_session ON goal_history (session_id);

CREATE TABLE runs_new (
  run_id TEXT PRIMARY KEY NOT NULL,
  name TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('loop','pipeline')),
  title TEXT NOT NULL,
  project_dir TEXT NOT NULL,
  status TEXT NOT NULL,
  reason TEXT,
  stage INTEGER NOT NULL,
  plan_json TEXT NOT NULL,
  state_json TEXT NOT NULL,
  tokens INTEGER NOT NULL DEFAULT 0,
  cost_micros INTEGER NOT NULL DEFAULT 0,
  engine_pid INTEGER,
  engine_pid_started INTEGER,
  stop_requested TEXT,
  version INTEGER NOT NULL DEFAULT 0,
  started_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL,
  completed_at_ms INTEGER
) WITHOUT ROWID;
INSERT INTO runs_new SELECT * FROM runs;
DROP TABLE runs;
ALTER TABLE runs_new RENAME TO runs;
CREATE INDEX idx_runs_name ON runs (project_dir, kind, name, started_at_ms);
CREATE INDEX idx_runs_status ON runs (status);
CREATE UNIQUE INDEX idx_runs_live ON runs (project_dir, kind, name) WHERE status = 'running';

CREATE TABLE run_stages_new (
  run_id TEXT NOT NULL,
  stage INTEGER NOT NULL,
  name TEXT NOT NULL,
  status TEXT NOT NULL,
  reason TEXT,
  iterations INTEGER NOT NULL DEFAULT 0,
  max_iterations INTEGER NOT NULL,
  started_at_ms INTEGER,
  completed_at_ms INTEGER,
  PRIMARY KEY (run_id, stage)
) WITHOUT ROWID;
INSERT INTO run_stages_new SELECT * FROM run_stages;
DROP TABLE run_stages;
ALTER TABLE run_stages_new RENAME TO run_stages;

CREATE TABLE run_attempts_new (
  run_id TEXT NOT NULL,
  stage INTEGER NOT NULL,
  iteration INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  status TEXT NOT NULL,
  failure TEXT,
  message TEXT,
  exit_code INTEGER,
  input_tokens INTEGER NOT NULL DEFAULT 0,
  output_tokens INTEGER NOT NULL DEFAULT 0,
  cache_creation_tokens INTEGER NOT NULL DEFAULT 0,
  cache_read_tokens INTEGER NOT NULL DEFAULT 0,
  cost_micros INTEGER NOT NULL DEFAULT 0,
  started_at_ms INTEGER NOT NULL,
  ended_at_ms INTEGER,
  PRIMARY KEY (run_id, stage, iteration, attempt)
) WITHOUT ROWID;
INSERT INTO run_attempts_new SELECT * FROM run_attempts;
DROP TABLE run_attempts;
ALTER TABLE run_attempts_new RENAME TO run_attempts;
CREATE INDEX idx_run_attempts_ended ON run_attempts (ended_at_ms);

-- What people should hear about a goal or run (`subject_id`), written in the transaction that decides it. A process that
-- delivers a message marks it first, so that it is delivered once.
CREATE TABLE outbox (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  kind TEXT NOT NULL,
  subject_id TEXT NOT NULL,
  title TEXT NOT NULL,
  body TEXT NOT NULL,
  created_at_ms INTEGER NOT NULL,
  taken_at_ms INTEGER
);
