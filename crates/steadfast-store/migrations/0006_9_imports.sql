-- Goals that came from other stores. One that was deleted here is not imported again by itself.
CREATE TABLE imported_goals (
  goal_id TEXT PRIMARY KEY NOT NULL
) WITHOUT ROWID;
