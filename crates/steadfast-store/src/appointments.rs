//! Runs to start later, once or again and again. A process claims an appointment before it starts the run, and moves the
//! time to the next one in the same transaction, so that of any number of processes one starts it. The claim names the
//! id of the new run: a process that finds a claim of one that died sees by it whether the run was created.

use rusqlite::{Row, params};
use steadfast_model::clock::Millis;
use steadfast_model::outbox;
use steadfast_model::run::RunKind;

use crate::column::{from_json, to_json, word};
use crate::{Db, StoreError};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appointment {
    pub appointment_id: String,
    pub kind: RunKind,
    /// Of every run that it starts.
    pub name: String,
    pub project_dir: String,
    /// Where the command was given, which may be below the project.
    pub directory: String,
    /// The command line, without the program and without secrets; the folder of the appointment has it whole.
    pub arguments: Vec<String>,
    pub every_ms: Option<Millis>,
    /// The series begins here.
    pub first_at_ms: Millis,
    /// `None` if there is no further time.
    pub next_at_ms: Option<Millis>,
    pub made_at_ms: Millis,
    pub last_at_ms: Option<Millis>,
    pub last_run_id: Option<String>,
    /// Why the last time did not start a run.
    pub last_error: Option<String>,
    /// Set while a process starts the run.
    pub claimed_at_ms: Option<Millis>,
}

impl Appointment {
    /// Whether something is still to come.
    pub fn is_open(&self) -> bool {
        self.next_at_ms.is_some() || self.claimed_at_ms.is_some()
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<Appointment> {
    Ok(Appointment {
        appointment_id: row.get("appointment_id")?,
        kind: word(row, "kind")?,
        name: row.get("name")?,
        project_dir: row.get("project_dir")?,
        directory: row.get("directory")?,
        arguments: from_json(row, "arguments_json")?,
        every_ms: row.get("every_ms")?,
        first_at_ms: row.get("first_at_ms")?,
        next_at_ms: row.get("next_at_ms")?,
        made_at_ms: row.get("made_at_ms")?,
        last_at_ms: row.get("last_at_ms")?,
        last_run_id: row.get("last_run_id")?,
        last_error: row.get("last_error")?,
        claimed_at_ms: row.get("claimed_at_ms")?,
    })
}

impl Db<'_> {
    /// Adds an appointment, or returns the open one of the same kind and name in the project. One that is over is
    /// replaced.
    pub fn add_appointment(self, new: &Appointment) -> Result<Option<Appointment>, StoreError> {
        let same = self.appointments(Some(&new.project_dir), Some(new.kind))?;
        if let Some(open) = same.into_iter().find(|row| row.name == new.name && row.is_open()) {
            return Ok(Some(open));
        }
        self.remove_appointment(&new.project_dir, new.kind, &new.name)?;
        self.execute(
            "INSERT INTO appointments (appointment_id, kind, name, project_dir, directory, arguments_json, every_ms,
               first_at_ms, next_at_ms, made_at_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            params![
                new.appointment_id,
                <&str>::from(new.kind),
                new.name,
                new.project_dir,
                new.directory,
                to_json(&new.arguments)?,
                new.every_ms,
                new.first_at_ms,
                new.next_at_ms,
                new.made_at_ms
            ],
        )?;
        Ok(None)
    }

    /// Appointments, the next one first; `None` matches all.
    pub fn appointments(
        self,
        project_dir: Option<&str>,
        kind: Option<RunKind>,
    ) -> Result<Vec<Appointment>, StoreError> {
        let sql = "SELECT * FROM appointments WHERE (?1 IS NULL OR project_dir = ?1) AND (?2 IS NULL OR kind = ?2)
                   ORDER BY next_at_ms IS NULL, next_at_ms, name";
        self.all(sql, params![project_dir, kind.map(<&str>::from)], read)
    }

    /// Whether any appointment is still to come. Hooks ask this.
    pub fn has_appointments(self) -> Result<bool, StoreError> {
        let sql = "SELECT EXISTS (SELECT 1 FROM appointments WHERE next_at_ms IS NOT NULL)
                     OR EXISTS (SELECT 1 FROM appointments WHERE claimed_at_ms IS NOT NULL)";
        Ok(self.first(sql, [], |row| row.get(0))?.unwrap_or_default())
    }

    /// Claims a due appointment for the run `run_id`, and sets its next time. Returns whether this process has it.
    pub fn claim_appointment(
        self,
        row: &Appointment,
        next: Option<Millis>,
        run_id: &str,
        now: Millis,
    ) -> Result<bool, StoreError> {
        let sql = "UPDATE appointments SET claimed_at_ms = ?4, last_at_ms = ?4, next_at_ms = ?3, last_run_id = ?5,
                     last_error = NULL
                   WHERE appointment_id = ?1 AND next_at_ms = ?2 AND claimed_at_ms IS NULL";
        Ok(self.execute(sql, params![row.appointment_id, row.next_at_ms, next, now, run_id])? == 1)
    }

    /// Takes over the claim of a process that died. Returns whether this process has it.
    pub fn take_over_appointment(self, row: &Appointment, now: Millis) -> Result<bool, StoreError> {
        let sql = "UPDATE appointments SET claimed_at_ms = ?3 WHERE appointment_id = ?1 AND claimed_at_ms = ?2";
        Ok(self.execute(sql, params![row.appointment_id, row.claimed_at_ms, now])? == 1)
    }

    /// Records that the run was started. An appointment without a further time is over.
    pub fn keep_appointment(self, row: &Appointment) -> Result<(), StoreError> {
        let sql = "UPDATE appointments SET claimed_at_ms = NULL WHERE appointment_id = ?1";
        self.execute(sql, [&row.appointment_id])?;
        let sql = "DELETE FROM appointments WHERE appointment_id = ?1 AND next_at_ms IS NULL";
        self.execute(sql, [&row.appointment_id])?;
        Ok(())
    }

    /// Records why this time started no run. Returns whether the appointment was not cancelled meanwhile.
    pub fn skip_appointment(self, row: &Appointment, error: &str) -> Result<bool, StoreError> {
        let sql = "UPDATE appointments SET claimed_at_ms = NULL, last_run_id = NULL, last_error = ?2
                   WHERE appointment_id = ?1";
        Ok(self.execute(sql, params![row.appointment_id, error])? == 1)
    }

    /// The same, with a message to the user.
    pub fn miss_appointment(self, row: &Appointment, error: &str, now: Millis) -> Result<(), StoreError> {
        if self.skip_appointment(row, error)? {
            let project = &row.project_dir;
            self.add_message(&outbox::about_missed_run(&row.appointment_id, row.kind, &row.name, project, error, now))?;
        }
        Ok(())
    }

    /// Returns whether there was one.
    pub fn remove_appointment(self, project_dir: &str, kind: RunKind, name: &str) -> Result<bool, StoreError> {
        let sql = "DELETE FROM appointments WHERE project_dir = ?1 AND kind = ?2 AND name = ?3";
        Ok(self.execute(sql, params![project_dir, <&str>::from(kind), name])? > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{START, World};

    fn nightly(next: Millis, every: Option<Millis>) -> Appointment {
        Appointment {
            appointment_id: "a-1".into(),
            kind: RunKind::Loop,
            name: "nightly".into(),
            project_dir: "/home/ada/shop".into(),
            directory: "/home/ada/shop/web".into(),
            arguments: vec!["loop".into(), "run".into(), "work".into(), "nightly".into()],
            every_ms: every,
            first_at_ms: next,
            next_at_ms: Some(next),
            made_at_ms: START,
            last_at_ms: None,
            last_run_id: None,
            last_error: None,
            claimed_at_ms: None,
        }
    }

    fn only(world: &World) -> Appointment {
        let [only] = <[_; 1]>::try_from(world.store.read().appointments(None, None).unwrap()).unwrap();
        only
    }

    #[test]
    fn one_of_two_processes_claims_an_appointment() {
        let mut world = World::new();
        let new = nightly(START + 10, Some(100));
        assert_eq!(world.store.write(|db| db.add_appointment(&new)).unwrap(), None);
        assert_eq!(only(&world), new);
        let again = world.store.write(|db| db.add_appointment(&new)).unwrap();
        assert_eq!(again.as_ref(), Some(&new), "the name has one");
        let mut claim =
            |run: &str| world.store.write(|db| db.claim_appointment(&new, Some(START + 110), run, START + 20)).unwrap();
        assert_eq!([claim("run-1"), claim("run-2")], [true, false]);
        let claimed = only(&world);
        assert_eq!((claimed.last_run_id.as_deref(), claimed.next_at_ms), (Some("run-1"), Some(START + 110)));
        let mut take_over = || world.store.write(|db| db.take_over_appointment(&claimed, START + 30)).unwrap();
        assert_eq!([take_over(), take_over()], [true, false]);
        world.store.write(|db| db.keep_appointment(&claimed)).unwrap();
        assert_eq!((only(&world).claimed_at_ms, only(&world).is_open()), (None, true));
        assert!(world.store.read().has_appointments().unwrap());
    }

    #[test]
    fn one_that_is_over_goes_away_unless_it_failed() {
        let mut world = World::new();
        let new = nightly(START, None);
        let claim = |world: &mut World| {
            world.store.write(|db| db.add_appointment(&new)).unwrap();
            assert!(world.store.write(|db| db.claim_appointment(&new, None, "run-1", START)).unwrap());
        };
        claim(&mut world);
        world.store.write(|db| db.miss_appointment(&new, "no claude", START)).unwrap();
        assert_eq!(only(&world).last_error.as_deref(), Some("no claude"));
        assert!(!world.store.read().has_appointments().unwrap());
        // The name is free again.
        claim(&mut world);
        world.store.write(|db| db.keep_appointment(&new)).unwrap();
        assert_eq!(world.store.read().appointments(None, None).unwrap(), []);
        assert!(!world.store.write(|db| db.remove_appointment(&new.project_dir, new.kind, &new.name)).unwrap());
    }
}
