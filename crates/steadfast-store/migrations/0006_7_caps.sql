-- Caps are summed at every batch of tool calls: these indexes have all that the sums need.
DROP INDEX idx_responses_at;
CREATE INDEX idx_responses_spend ON responses
  (at_ms, model, input_tokens, cache_creation_tokens, output_tokens, cost_micros);
CREATE INDEX idx_responses_session ON responses
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
