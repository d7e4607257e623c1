//! Migrates a store while it is opened. A process with a deadline, such as a hook, does what fits into its time and gives
//! up with [`StoreError::Migrating`]; the next one continues. Terminal commands, servers and background processes have
//! no deadline and migrate all of it.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::{SCHEMA_VERSION, Store, StoreError, migrate, schema, strays};

/// When the migrations of this process end.
static LIMIT: OnceLock<Instant> = OnceLock::new();

/// Limits the time that this process spends on migrations, whichever part of it opens a store. A hook opens it several
/// times, and the client waits for all of them. The first limit counts.
pub fn limit_migrations(limit: Duration) {
    let _ = LIMIT.set(Instant::now() + limit);
}

impl Store {
    /// Whether the schema is the one of this binary.
    pub(crate) fn is_current(&self, version: i64) -> Result<bool, StoreError> {
        Ok(version == SCHEMA_VERSION && migrate::is_complete(&self.db)?)
    }

    /// Brings a store of an earlier version up to ours.
    pub(crate) fn migrate(&self, version: i64) -> Result<(), StoreError> {
        // Held until the migration is over, so that no other process makes another copy.
        let mut _lock = None;
        let is_kept = !strays::is_copy(&self.path);
        if !is_kept {
            // An import only reads the store behind its copy.
        } else if version == SCHEMA_VERSION {
            _lock = self.keep_before_additions(steadfast_model::clock::now())?;
        } else if version > 0 {
            self.keep_old_version(version)?;
        }
        self.copy_large_table().map_err(|error| self.explain_migration(error))?;
        if is_kept && (1..SCHEMA_VERSION).contains(&version) {
            self.keep_latest_state(version)?;
        }
        while !migrate::step(self.begin()?).map_err(|error| self.explain_migration(error))? {}
        if version > 0 {
            // Upkeep continues; the store can be used already.
            let _ = self.redact_first_rows();
        }
        Ok(())
    }

    /// A migration fails on a file whose version or schema is damaged.
    fn explain_migration(&self, error: StoreError) -> StoreError {
        let fault = match error {
            StoreError::Query(_) => schema::schema_faults(&self.db).unwrap_or_default().into_iter().next(),
            _ => None,
        };
        fault.map_or(error, |message| StoreError::Corrupt { path: self.path.clone(), message })
    }

    /// When a migration has to end; `None` if it may take as long as it needs.
    pub(crate) fn end_of_migration(&self) -> Option<Instant> {
        self.deadline.into_iter().chain(LIMIT.get().copied()).min()
    }

    /// Ends the migration of a process whose time is over.
    pub(crate) fn stop_late_migration(&self) -> Result<(), StoreError> {
        match self.end_of_migration() {
            Some(end) if Instant::now() >= end => Err(StoreError::Migrating(self.path.clone())),
            _ => Ok(()),
        }
    }
}
