//! `trust.json` in the home: the digests that the user said yes to, by repository and file.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use steadfast_system::{bounded, paths};

use super::{Repository, TrustItem};
use crate::{durable, lock};

const LONGEST: u64 = 64 * 1024 * 1024;
/// How long a change waits for another one, which takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// Absent in files of earlier versions, which did not look at prompts and scripts.
    #[serde(default)]
    projects: BTreeMap<PathBuf, BTreeMap<PathBuf, String>>,
}

/// What the user said about an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Trusted,
    /// Its content is not the one that the user trusted.
    Changed,
    New,
}

impl Ledger {
    pub fn path(home: &Path) -> PathBuf {
        home.join("trust.json")
    }

    pub fn read(home: &Path) -> io::Result<Self> {
        let path = Self::path(home);
        let Some(text) = bounded::text_if_exists(&path, LONGEST)? else { return Ok(Self::default()) };
        serde_json::from_slice(text.as_bytes()).map_err(|error| {
            io::Error::new(io::ErrorKind::InvalidData, format!("cannot parse {}: {error}", path.display()))
        })
    }

    /// Reads the ledger, changes it and writes it back. Changes of other processes wait, so that none is lost.
    pub fn update<T>(home: &Path, change: impl FnOnce(&mut Self) -> T) -> io::Result<T> {
        paths::create_private_dir(home)?;
        let lock = lock::open(&home.join("trust.lock"))?;
        if !lock::lock_within(&lock, PATIENCE, || false)? {
            let message = format!("{} is in use by another process", Self::path(home).display());
            return Err(io::Error::new(io::ErrorKind::TimedOut, message));
        }
        let mut ledger = Self::read(home)?;
        let changed = change(&mut ledger);
        let mut text = serde_json::to_vec_pretty(&ledger)?;
        text.push(b'\n');
        durable::replace(&Self::path(home), &text)?;
        Ok(changed)
    }

    pub fn state(&self, repository: &Repository, item: &TrustItem) -> State {
        match self.projects.get(&repository.root).and_then(|files| files.get(&item.file)) {
            Some(known) if *known == item.sha256 => State::Trusted,
            Some(_) => State::Changed,
            None => State::New,
        }
    }

    pub fn trust(&mut self, repository: &Repository, items: &[TrustItem]) {
        let files = self.projects.entry(repository.root.clone()).or_default();
        files.extend(items.iter().map(|item| (item.file.clone(), item.sha256.clone())));
    }

    /// Forgets these items; `None` forgets the whole repository. Returns how many files are no longer trusted.
    pub fn revoke(&mut self, repository: &Repository, items: Option<&[TrustItem]>) -> usize {
        let Some(items) = items else {
            return self.projects.remove(&repository.root).map_or(0, |files| files.len());
        };
        let Some(files) = self.projects.get_mut(&repository.root) else { return 0 };
        items.iter().filter(|item| files.remove(&item.file).is_some()).count()
    }
}
