-- Version 5: large-run defaults. Rows are lifted to the profiles' new envelopes. A goal that its old
-- budget had stopped becomes active again, but its clock stays off until its session comes back:
-- starting it at `updated_at_ms`, as the plugin did, charged days of absence at once.
CREATE TABLE goals_new (
  session_id TEXT PRIMARY KEY NOT NULL,
  goal_id TEXT NOT NULL,
  objective TEXT NOT NULL CHECK (length(objective) BETWEEN 1 AND 4000),
  status TEXT NOT NULL CHECK (status IN ('active','paused','blocked','budget_limited','complete','abandoned')),
  paused_reason TEXT CHECK (paused_reason IN
    ('user','continuation_cap','wall_clock_cap','cleared','degraded','accounting_error') OR paused_reason IS NULL),
  token_budget INTEGER CHECK (token_budget IS NULL OR token_budget > 0),
  tokens_used INTEGER NOT NULL DEFAULT 0 CHECK (tokens_used >= 0),
  time_used_seconds INTEGER NOT NULL DEFAULT 0 CHECK (time_used_seconds >= 0),
  resume_at_ms INTEGER,
  last_accounted_byte_offset INTEGER NOT NULL DEFAULT 0,
  last_accounted_uuid TEXT,
  accounting_uncertain INTEGER NOT NULL DEFAULT 0 CHECK (accounting_uncertain IN (0, 1)),
  last_continuation_at_ms INTEGER,
  continuations_remaining INTEGER NOT NULL DEFAULT 1000000 CHECK (continuations_remaining >= 0),
  max_wall_clock_seconds INTEGER NOT NULL DEFAULT 315360000 CHECK (max_wall_clock_seconds > 0),
  budget_limit_reported INTEGER NOT NULL DEFAULT 0 CHECK (budget_limit_reported IN (0, 1)),
  version INTEGER NOT NULL DEFAULT 0,
  created_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL,
  subagent_tokens INTEGER NOT NULL DEFAULT 0 CHECK (subagent_tokens >= 0),
  budget_profile TEXT CHECK (budget_profile IN ('quick','standard','deep','overnight') OR budget_profile IS NULL),
  budget_source TEXT NOT NULL DEFAULT 'none' CHECK (budget_source IN ('none','tokens','profile','auto'))
);
INSERT INTO goals_new
  SELECT session_id, goal_id, objective, status, paused_reason,
         CASE budget_profile WHEN 'quick' THEN max(token_budget, 2000000)
                             WHEN 'standard' THEN max(token_budget, 10000000)
                             WHEN 'deep' THEN max(token_budget, 100000000)
                             WHEN 'overnight' THEN max(token_budget, 1000000000)
                             ELSE token_budget END,
         tokens_used, time_used_seconds, resume_at_ms, last_accounted_byte_offset, last_accounted_uuid,
         accounting_uncertain, last_continuation_at_ms,
         CASE budget_profile WHEN 'quick' THEN max(continuations_remaining, 50)
                             WHEN 'standard' THEN max(continuations_remaining, 200)
                             WHEN 'deep' THEN max(continuations_remaining, 1000)
                             WHEN 'overnight' THEN max(continuations_remaining, 5000)
                             ELSE max(continuations_remaining, 1000000) END,
         CASE budget_profile WHEN 'quick' THEN max(max_wall_clock_seconds, 7200)
                             WHEN 'standard' THEN max(max_wall_clock_seconds, 28800)
                             WHEN 'deep' THEN max(max_wall_clock_seconds, 86400)
                             WHEN 'overnight' THEN max(max_wall_clock_seconds, 259200)
                             ELSE max(max_wall_clock_seconds, 315360000) END,
         budget_limit_reported, version, created_at_ms, updated_at_ms, subagent_tokens, budget_profile, budget_source
  FROM goals;
DROP TABLE goals;
ALTER TABLE goals_new RENAME TO goals;
UPDATE goals SET status = 'active', budget_limit_reported = 0
  WHERE status = 'budget_limited' AND token_budget IS NOT NULL AND tokens_used + subagent_tokens < token_budget;
UPDATE schema_version SET version = 5;
