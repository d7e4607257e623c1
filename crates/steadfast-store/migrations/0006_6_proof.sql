-- What counts as done. `items_json` lists the acceptance items with their proof, `judge` and `sign_off` say who must
-- agree, `completed_by` who said that the objective is met, `evaluator_tokens` is the evaluator's part of
-- `subagent_tokens`, and `recent_calls_json` identifies the last tool calls with their results.
ALTER TABLE goals ADD COLUMN items_json TEXT NOT NULL DEFAULT '[]';
ALTER TABLE goals ADD COLUMN judge INTEGER NOT NULL DEFAULT 0;
ALTER TABLE goals ADD COLUMN sign_off INTEGER NOT NULL DEFAULT 0;
ALTER TABLE goals ADD COLUMN completed_by TEXT;
ALTER TABLE goals ADD COLUMN evaluator_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE goals ADD COLUMN recent_calls_json TEXT NOT NULL DEFAULT '[]';
ALTER TABLE goal_history ADD COLUMN items_json TEXT NOT NULL DEFAULT '[]';
ALTER TABLE goal_history ADD COLUMN judge INTEGER NOT NULL DEFAULT 0;
ALTER TABLE goal_history ADD COLUMN sign_off INTEGER NOT NULL DEFAULT 0;
ALTER TABLE goal_history ADD COLUMN completed_by TEXT;
ALTER TABLE goal_history ADD COLUMN evaluator_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE goal_history ADD COLUMN recent_calls_json TEXT NOT NULL DEFAULT '[]';

-- The environment in which a goal was started, for its verification commands. Most variables are kept as a hash only.
CREATE TABLE goal_environments (
  goal_id TEXT PRIMARY KEY NOT NULL,
  environment_json TEXT NOT NULL
) WITHOUT ROWID;

-- What kind of subagent a response is of; empty for the worker itself.
ALTER TABLE responses ADD COLUMN agent_type TEXT NOT NULL DEFAULT '';
-- Caps are summed at every batch of tool calls: these indexes have all that the sums need. They also count what no goal
-- is charged with.
DROP INDEX IF EXISTS idx_responses_spent;
CREATE INDEX IF NOT EXISTS idx_responses_spend ON responses
  (at_ms, model, input_tokens, cache_creation_tokens, output_tokens, cost_micros);
CREATE INDEX IF NOT EXISTS idx_responses_session ON responses
  (session_id, input_tokens, cache_creation_tokens, output_tokens, cost_micros);

-- Which caps the user was told about, once for each period and amount.
CREATE TABLE cap_notices (
  cap TEXT NOT NULL,
  -- Empty unless the cap is one of a session.
  session_id TEXT NOT NULL,
  from_ms INTEGER NOT NULL,
  most INTEGER NOT NULL,
  -- 0: near, 1: reached.
  reached INTEGER NOT NULL CHECK (reached IN (0, 1)),
  told_at_ms INTEGER NOT NULL,
  PRIMARY KEY (cap, session_id, from_ms, most, reached)
) WITHOUT ROWID;

-- How much of the user's plan is used, as a client last reported it.
CREATE TABLE plan_usage (
  host TEXT NOT NULL,
  -- Such as `five_hour` and `weekly`.
  window TEXT NOT NULL,
  used_percent REAL NOT NULL,
  resets_at_ms INTEGER,
  seen_at_ms INTEGER NOT NULL,
  -- The reset of the window that the user was warned about.
  warned_reset_ms INTEGER,
  PRIMARY KEY (host, window)
) WITHOUT ROWID;

-- The goal of the agent that started a run: what the run spends counts to it.
ALTER TABLE runs ADD COLUMN charged_goal_id TEXT;

-- Subagents that a hook saw begin: what proves that a call inside of one is its own.
CREATE TABLE subagents (
  session_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  agent_type TEXT NOT NULL,
  started_at_ms INTEGER NOT NULL,
  PRIMARY KEY (session_id, agent_id)
) WITHOUT ROWID;

-- A random secret. The supervisors of a run get tokens made from it and seal their records with them, so that a record
-- that an agent wrote is not believed.
ALTER TABLE runs ADD COLUMN supervisor_key TEXT;

-- The run whose agent started this one, and how many runs are above it, the session of its goal included.
ALTER TABLE runs ADD COLUMN parent_run_id TEXT;
ALTER TABLE runs ADD COLUMN nesting INTEGER NOT NULL DEFAULT 0;
CREATE INDEX idx_runs_parent ON runs (parent_run_id) WHERE parent_run_id IS NOT NULL;

-- Limits inside one turn. `overtime` counts what a turn did after its goal stopped running, and `repeats_told` is the
-- number of repeated tool calls that the model was last told of.
ALTER TABLE goals ADD COLUMN overtime INTEGER;
ALTER TABLE goals ADD COLUMN repeats_told INTEGER NOT NULL DEFAULT 0;
ALTER TABLE goal_history ADD COLUMN overtime INTEGER;
ALTER TABLE goal_history ADD COLUMN repeats_told INTEGER NOT NULL DEFAULT 0;

-- The speed or service tier of a response, which decides its price.
ALTER TABLE responses ADD COLUMN tier TEXT NOT NULL DEFAULT 'standard';

-- Whether a part of the cost is not known. Until now an unknown cost was 0.
ALTER TABLE runs ADD COLUMN cost_unknown INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run_iterations ADD COLUMN cost_unknown INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run_attempts ADD COLUMN cost_unknown INTEGER NOT NULL DEFAULT 0;
UPDATE run_attempts SET cost_unknown = 1
  WHERE cost_micros = 0 AND input_tokens + output_tokens + cache_creation_tokens + cache_read_tokens > 0;
UPDATE run_iterations SET cost_unknown = 1 WHERE cost_micros = 0 AND tokens > 0;
UPDATE runs SET cost_unknown = 1 WHERE cost_micros = 0 AND tokens > 0;

-- When a person last typed a prompt that is more than commands of ours: `last_prompt_ms` counts those too. It decides
-- what the worker may do to a goal.
ALTER TABLE sessions ADD COLUMN user_prompt_ms INTEGER;

-- What each model used in an attempt of a run, for the caps of models. Only written while there are such caps.
CREATE TABLE run_models (
  run_id TEXT NOT NULL,
  stage INTEGER NOT NULL,
  iteration INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  model TEXT NOT NULL,
  tokens INTEGER NOT NULL,
  cost_micros INTEGER NOT NULL,
  ended_at_ms INTEGER NOT NULL,
  PRIMARY KEY (run_id, stage, iteration, attempt, model)
) WITHOUT ROWID;
CREATE INDEX idx_run_models_ended ON run_models (ended_at_ms);

-- A file that defines an agent of the evaluator's name: what that agent says does not count in the session.
ALTER TABLE sessions ADD COLUMN evaluator_hidden_by TEXT;
