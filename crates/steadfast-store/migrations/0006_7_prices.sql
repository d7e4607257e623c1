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
