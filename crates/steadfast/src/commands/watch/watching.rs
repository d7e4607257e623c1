//! The loop of `steadfast watch`. It looks at the sizes and times of the store's files every second, and opens the store
//! only when they changed, when something is due, or every few seconds, because the end of a process changes no file. It
//! compares moments of the wall clock each time, so that a suspended machine or a clock that jumps delays nothing.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use steadfast_engine::interrupt::EndRequest;
use steadfast_model::clock::{self, Millis};
use steadfast_store::{Store, StoreError, StoreStamp};
use steadfast_system::config::Config;
use steadfast_system::paths::Paths;
use steadfast_system::watch_lock::WatchLock;

use super::children::Children;
use super::report::{ReportSubject, WatchReport};
use super::{appointments, engines, goals};
use crate::backups;
use crate::error::{CliError, code};
use crate::outbox::{self, Audience};
use crate::{output, upkeep};

/// The longest nap.
const NAP: Millis = 1_000;
/// The longest time between two looks into the store.
const LOOK_EVERY: Millis = 5_000;

/// The shortest time between two looks whether a backup is due.
const BACKUP_EVERY: Duration = Duration::from_hours(1);

/// One look at everything.
pub(super) struct Round<'a> {
    pub(super) paths: &'a Paths,
    pub(super) store: &'a mut Store,
    pub(super) report: &'a WatchReport,
    pub(super) children: &'a mut Children,
    pub(super) outlook: Outlook,
}

/// What is to come after a look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Outlook {
    /// The next moment at which something is due.
    pub(super) at: Option<Millis>,
    /// Something is waited for that has no known moment.
    pub(super) waits: bool,
}

impl Outlook {
    pub(super) fn look_at(&mut self, at: Millis) {
        self.at = Some(self.at.map_or(at, |earlier| earlier.min(at)));
    }

    fn is_idle(self) -> bool {
        self.at.is_none() && !self.waits
    }
}

pub(super) struct Watch {
    paths: Paths,
    report: WatchReport,
    requests: Receiver<EndRequest>,
    children: Children,
    /// Why the store could not be used, while that lasts.
    trouble: Option<String>,
    /// When it last looked whether a backup is due.
    backup_tried: Option<Instant>,
}

impl Watch {
    pub(super) fn new(paths: Paths, report: WatchReport, requests: Receiver<EndRequest>) -> Self {
        Self { paths, report, requests, children: Children::default(), trouble: None, backup_tried: None }
    }

    pub(super) fn introduce(&self) {
        let pid = std::process::id();
        output::note(&format!("watching {} (pid {pid}); Ctrl-C stops", self.paths.store.display()));
    }

    /// Looks once; what is not due yet is left to a later call.
    pub(super) fn once(&mut self) -> Result<(), CliError> {
        self.round().map(|_| ())
    }

    /// Works until it is asked to end, its home is gone or, in the background, there is nothing left to wait for. Returns
    /// the exit code.
    pub(super) fn work(&mut self, lock: WatchLock, in_background: bool) -> Result<u8, CliError> {
        let mut lock = lock;
        let mut seen = StoreStamp::default();
        let mut outlook = Outlook::default();
        let mut looked_at = Millis::MIN;
        let mut idle_since = Instant::now();
        loop {
            let now = clock::now();
            let stamp = StoreStamp::of(&self.paths.store);
            let is_due = outlook.at.is_some_and(|at| at <= now);
            let is_long_ago = now < looked_at || now.saturating_sub(looked_at) >= LOOK_EVERY;
            if stamp != seen || is_due || is_long_ago {
                outlook = self.look()?;
                (seen, looked_at) = (stamp, now);
            }
            if !outlook.is_idle() {
                idle_since = Instant::now();
            }
            let patience = Duration::from_secs(self.paths.config.watch.idle_seconds);
            if in_background && outlook.is_idle() && idle_since.elapsed() >= patience {
                // A process that finds the lock held relies on this one: look once more after it is free.
                drop(lock);
                if self.look()?.is_idle() {
                    return Ok(0);
                }
                match WatchLock::try_take(&self.paths.home)? {
                    Some(again) => lock = again,
                    None => return Ok(0),
                }
                idle_since = Instant::now();
            }
            // An upgrade replaced this program: the next one that is needed starts the new version.
            let is_replaced = std::env::current_exe().is_ok_and(|program| !program.exists());
            if !lock.is_in_place() || (in_background && is_replaced) {
                return Ok(0);
            }
            // What is still due after a look could not be done, and is tried again after a while.
            let left = outlook.at.map(|at| at - clock::now()).filter(|left| *left > 0);
            let nap = left.unwrap_or(NAP).min(NAP);
            match self.requests.recv_timeout(Duration::from_millis(u64::try_from(nap).unwrap_or(0))) {
                Ok(EndRequest::Interrupt) => return Ok(code::INTERRUPTED),
                Ok(EndRequest::Terminate) => return Ok(0),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(Duration::from_millis(200)),
            }
        }
    }

    /// Looks at everything, and again soon if something failed: the store may be busy or the disk full for now.
    fn look(&mut self) -> Result<Outlook, CliError> {
        let done = self.round();
        match &done {
            Ok(_) => {
                if self.trouble.take().is_some() {
                    self.report.line("continued", ReportSubject::Store, "the store can be used again");
                }
            }
            Err(error) if !self.is_hopeless() => {
                if self.trouble.as_ref() != Some(&error.message) {
                    self.report.line("waits", ReportSubject::Store, &error.message);
                    self.trouble = Some(error.message.clone());
                }
                return Ok(Outlook { at: Some(clock::now() + NAP), waits: true });
            }
            Err(error) => self.report.line("failed", ReportSubject::Store, &error.message),
        }
        done
    }

    /// Whether waiting does not help: the store is damaged, from the future or in a place where it is not safe.
    fn is_hopeless(&self) -> bool {
        matches!(
            Store::open_existing(&self.paths.store),
            Err(StoreError::Corrupt { .. } | StoreError::FromTheFuture { .. } | StoreError::NetworkFileSystem(_))
        )
    }

    /// One look at each kind of thing that must not be forgotten.
    fn round(&mut self) -> Result<Outlook, CliError> {
        // A configuration that cannot be read leaves everything as it was.
        if let Ok(config) = Config::load(&self.paths.config_file()) {
            self.paths.config = config;
        }
        let Some(mut store) = Store::open_if_there(&self.paths.store)? else { return Ok(Outlook::default()) };
        let mut round = Round {
            paths: &self.paths,
            store: &mut store,
            report: &self.report,
            children: &mut self.children,
            outlook: Outlook::default(),
        };
        let outcome = goals::look(&mut round);
        let outcome = outcome.and(engines::look(&mut round));
        let outcome = outcome.and(appointments::look(&mut round));
        if self.backup_tried.is_none_or(|tried| tried.elapsed() >= BACKUP_EVERY) {
            self.backup_tried = Some(Instant::now());
            if let Some(child) = backups::ensure(round.paths) {
                round.children.add_engine(child);
            }
        }
        let mut outlook = round.outlook;
        let now = clock::now();
        upkeep::remove_old_rows(&mut store, &self.paths, now);
        upkeep::remove_old_runs(&mut store, &self.paths, now);
        outbox::send(&self.paths, &mut store, Audience::Away);
        if let Some(at) = outbox::next_delivery(&self.paths, &store)? {
            outlook.look_at(at);
        }
        outcome.map(|()| outlook)
    }
}
