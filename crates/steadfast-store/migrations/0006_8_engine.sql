-- A random secret. The supervisors of a run get tokens made from it and seal their records with them, so that a record
-- that an agent wrote is not believed.
ALTER TABLE runs ADD COLUMN supervisor_key TEXT;

-- The run whose agent started this one, and how many runs are above it, the session of its goal included.
ALTER TABLE runs ADD COLUMN parent_run_id TEXT;
ALTER TABLE runs ADD COLUMN nesting INTEGER NOT NULL DEFAULT 0;
CREATE INDEX idx_runs_parent ON runs (parent_run_id) WHERE parent_run_id IS NOT NULL;
