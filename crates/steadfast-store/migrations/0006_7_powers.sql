-- When a person last typed a prompt that is more than commands of ours: `last_prompt_ms` counts those too. It decides
-- what the worker may do to a goal.
ALTER TABLE sessions ADD COLUMN user_prompt_ms INTEGER;
