-- Questions to a person before a stage starts. `approved` is NULL until a person answers, `taken_at_ms` until an engine
-- has read the answer.
CREATE TABLE run_approvals (
  run_id         TEXT    NOT NULL REFERENCES runs(run_id) ON DELETE CASCADE,
  stage          INTEGER NOT NULL,
  question       TEXT    NOT NULL,
  asked_at_ms    INTEGER NOT NULL,
  approved       INTEGER,
  note           TEXT,
  answered_at_ms INTEGER,
  taken_at_ms    INTEGER,
  PRIMARY KEY (run_id, stage)
) WITHOUT ROWID;

-- What people say to a run. The next iteration that starts takes it.
CREATE TABLE run_notes (
  note_id     INTEGER PRIMARY KEY,
  run_id      TEXT    NOT NULL REFERENCES runs(run_id) ON DELETE CASCADE,
  text        TEXT    NOT NULL,
  added_at_ms INTEGER NOT NULL,
  stage       INTEGER,
  iteration   INTEGER
);
CREATE INDEX idx_run_notes_run ON run_notes(run_id);

-- Runs to start later, once or again and again. `arguments_json` is the command line, without the program, as it was
-- given in `directory`; the series of times begins at `first_at_ms`.
CREATE TABLE appointments (
  appointment_id TEXT    PRIMARY KEY,
  kind           TEXT    NOT NULL,
  name           TEXT    NOT NULL,
  project_dir    TEXT    NOT NULL,
  directory      TEXT    NOT NULL,
  arguments_json TEXT    NOT NULL,
  every_ms       INTEGER,
  first_at_ms    INTEGER NOT NULL,
  next_at_ms     INTEGER,
  made_at_ms     INTEGER NOT NULL,
  last_at_ms     INTEGER,
  last_run_id    TEXT,
  last_error     TEXT,
  claimed_at_ms  INTEGER
) WITHOUT ROWID;
CREATE INDEX idx_appointments_time ON appointments(next_at_ms) WHERE next_at_ms IS NOT NULL;

ALTER TABLE runs ADD COLUMN tokens_unknown INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run_attempts ADD COLUMN tokens_unknown INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run_iterations ADD COLUMN tokens_unknown INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run_iterations ADD COLUMN report_json TEXT;
