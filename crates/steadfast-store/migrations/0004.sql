-- Version 4: where a budget came from.
ALTER TABLE goals ADD COLUMN budget_profile TEXT
  CHECK (budget_profile IN ('quick','standard','deep','overnight') OR budget_profile IS NULL);
ALTER TABLE goals ADD COLUMN budget_source TEXT NOT NULL DEFAULT 'none'
  CHECK (budget_source IN ('none','tokens','profile','auto'));
UPDATE goals SET budget_source = 'tokens' WHERE token_budget IS NOT NULL;
UPDATE schema_version SET version = 4;
