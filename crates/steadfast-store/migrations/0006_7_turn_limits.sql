-- Limits inside one turn. `overtime` counts what a turn did after its goal stopped running, and `repeats_told` is the
-- number of repeated tool calls that the model was last told of.
ALTER TABLE goals ADD COLUMN overtime INTEGER;
ALTER TABLE goals ADD COLUMN repeats_told INTEGER NOT NULL DEFAULT 0;
ALTER TABLE goal_history ADD COLUMN overtime INTEGER;
ALTER TABLE goal_history ADD COLUMN repeats_told INTEGER NOT NULL DEFAULT 0;
