-- Runs: loops and pipelines. `state_json` is the machine's state and small; what is over is a row of its own.
CREATE TABLE runs (
  run_id TEXT PRIMARY KEY NOT NULL,
  name TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('loop','pipeline')),
  title TEXT NOT NULL,
  -- The directory whose `.claude` shows the run; with its kind and name it is the run's address.
  project_dir TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('running','completed','failed','killed','unknown_termination')),
  reason TEXT,
  -- The stage under way, from 1.
  stage INTEGER NOT NULL,
  plan_json TEXT NOT NULL,
  state_json TEXT NOT NULL,
  tokens INTEGER NOT NULL DEFAULT 0,
  cost_micros INTEGER NOT NULL DEFAULT 0,
  -- Who drives it now, if anyone; the lock file is the truth, this is for people.
  engine_pid INTEGER,
  engine_pid_started INTEGER,
  -- Set by `kill` from another process, as JSON: status and reason; the engine obeys.
  stop_requested TEXT,
  version INTEGER NOT NULL DEFAULT 0,
  started_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL,
  completed_at_ms INTEGER
) WITHOUT ROWID;
-- An earlier run of the same name stays as history; the newest is the one that is meant.
CREATE INDEX idx_runs_name ON runs (project_dir, kind, name, started_at_ms);
CREATE INDEX idx_runs_status ON runs (status);
-- Two live runs of one address would write the same files.
CREATE UNIQUE INDEX idx_runs_live ON runs (project_dir, kind, name) WHERE status = 'running';

CREATE TABLE run_stages (
  run_id TEXT NOT NULL,
  stage INTEGER NOT NULL,
  name TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('pending','running','completed','failed')),
  reason TEXT,
  -- Iterations committed, and the most there may be.
  iterations INTEGER NOT NULL DEFAULT 0,
  max_iterations INTEGER NOT NULL,
  started_at_ms INTEGER,
  completed_at_ms INTEGER,
  PRIMARY KEY (run_id, stage)
) WITHOUT ROWID;

-- A committed iteration. The key makes it impossible to count one twice.
CREATE TABLE run_iterations (
  run_id TEXT NOT NULL,
  stage INTEGER NOT NULL,
  iteration INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  plateau INTEGER CHECK (plateau IN (0, 1) OR plateau IS NULL),
  decision TEXT,
  summary TEXT,
  reasoning TEXT,
  fields_json TEXT NOT NULL DEFAULT '[]',
  facts_json TEXT NOT NULL DEFAULT '[]',
  exit_code INTEGER NOT NULL DEFAULT 0,
  -- Of all attempts of the iteration.
  tokens INTEGER NOT NULL DEFAULT 0,
  cost_micros INTEGER NOT NULL DEFAULT 0,
  started_at_ms INTEGER NOT NULL,
  committed_at_ms INTEGER NOT NULL,
  PRIMARY KEY (run_id, stage, iteration)
) WITHOUT ROWID;

CREATE TABLE run_attempts (
  run_id TEXT NOT NULL,
  stage INTEGER NOT NULL,
  iteration INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('starting','succeeded','failed')),
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
-- What runs spend counts for the caps of the day and the week.
CREATE INDEX idx_run_attempts_ended ON run_attempts (ended_at_ms);
