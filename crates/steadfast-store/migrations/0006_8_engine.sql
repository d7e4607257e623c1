-- A random secret. The supervisors of a run get tokens made from it and seal their records with them, so that a record
-- that an agent wrote is not believed.
ALTER TABLE runs ADD COLUMN supervisor_key TEXT;
