//! Reads the store for the screen, on a thread of its own: keys never wait for a disk.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender};

use jiff::tz::TimeZone;
use steadfast_app::overview::now::Subject;
use steadfast_app::overview::{find, goal_page};
use steadfast_app::usage::{charts, machine};
use steadfast_engine::attempt::Attempt;
use steadfast_model::clock::{self, Millis};
use steadfast_model::host::Host;
use steadfast_model::price::Table;
use steadfast_store::{Db, RunRow, Store, StoreError};
use steadfast_system::paths::Paths;

use super::state::Detail;
use super::update::{Ask, ReadAnswer};
use super::words;
use crate::{facts, log};

const FOUND_MOST: usize = 100;
const ITERATIONS: usize = 15;
const LOG_LINES: usize = 200;
const USAGE_DAYS: usize = 14;

/// Reads what is asked for until the screen is gone.
pub(super) fn work(paths: &Paths, asks: &Receiver<Ask>, answers: &Sender<ReadAnswer>) {
    let mut reader = TopReader::new(paths);
    while let Ok(first) = asks.recv() {
        // Of the same question twice, one answer is enough; of several details, the last.
        let mut waiting = vec![first];
        waiting.extend(asks.try_iter());
        let newest = waiting.iter().rposition(|ask| matches!(ask, Ask::Detail(_)));
        let mut done: Vec<&Ask> = Vec::new();
        for (at, ask) in waiting.iter().enumerate() {
            let is_old = matches!(ask, Ask::Detail(_)) && Some(at) != newest;
            if is_old || done.contains(&ask) {
                continue;
            }
            done.push(ask);
            if answers.send(reader.answer(ask)).is_err() {
                return;
            }
        }
    }
}

/// Holds the store open from one look to the next.
pub(super) struct TopReader<'a> {
    paths: &'a Paths,
    /// The store, and the file that it was.
    open: Option<(Store, u64)>,
}

fn inode(path: &Path) -> u64 {
    fs_err::metadata(path).map_or(0, |found| found.ino())
}

impl<'a> TopReader<'a> {
    pub(super) fn new(paths: &'a Paths) -> Self {
        Self { paths, open: None }
    }

    /// What the store says, or what is wrong with it.
    pub(super) fn answer(&mut self, ask: &Ask) -> ReadAnswer {
        match self.read(ask) {
            Ok(Some(answer)) => answer,
            Ok(None) => ReadAnswer::Missing,
            Err(error) => {
                // The next look opens it anew.
                self.open = None;
                ReadAnswer::Trouble { message: error.to_string(), hint: error.hint().to_owned() }
            }
        }
    }

    fn read(&mut self, ask: &Ask) -> Result<Option<ReadAnswer>, StoreError> {
        let paths = self.paths;
        // Recovery and restoring put another file in its place.
        let file = inode(&paths.store);
        if self.open.as_ref().is_some_and(|(_, opened)| *opened != file) {
            self.open = None;
        }
        if self.open.is_none() {
            self.open = Store::open_if_there(&paths.store)?.map(|store| (store, inode(&paths.store)));
        }
        let Some((store, _)) = &self.open else { return Ok(None) };
        let (db, now) = (store.read(), clock::now());
        Ok(Some(match ask {
            Ask::Now => ReadAnswer::Now(Box::new(facts::now(db, paths, now)?)),
            Ask::Detail(subject) => ReadAnswer::Detail(subject.clone(), Box::new(detail(db, paths, subject, now)?)),
            Ask::Usage => usage(paths),
            Ask::Find(words) => ReadAnswer::Found(words.clone(), find::find(db, words, FOUND_MOST)?),
        }))
    }
}

fn detail(db: Db<'_>, paths: &Paths, subject: &Subject, now: Millis) -> Result<Detail, StoreError> {
    Ok(match subject {
        Subject::Goal { goal_id, .. } => match db.goal_with_id(goal_id)? {
            Some(goal) => Detail::Goal(Box::new(goal_page::goal_page(db, &goal, paths, now)?)),
            None => Detail::None,
        },
        Subject::Run { run_id, .. } => match db.run(run_id)? {
            Some(row) => {
                let run = Box::new(facts::run_detail(db, &row, paths, Some(ITERATIONS), now)?);
                Detail::Run { run, log: log_of(paths, &row) }
            }
            None => Detail::None,
        },
        Subject::Appointment { .. } => Detail::None,
    })
}

/// The last lines of the newest attempt's output, as a person reads them.
fn log_of(paths: &Paths, row: &RunRow) -> Vec<String> {
    let Some(newest) = log::attempts(&paths.home, &row.run_id).pop() else { return Vec::new() };
    let output = Attempt::at(&paths.home, &row.run_id, newest).output();
    let host = log::host_of(&row.plan, newest);
    let (lines, _) = log::last_lines(&output, LOG_LINES, host, false);
    lines.iter().flat_map(|text| words::plain_lines(text).collect::<Vec<_>>()).collect()
}

/// What all sessions on this machine used in the last days.
pub(super) fn usage(paths: &Paths) -> ReadAnswer {
    let summaries = machine::summaries(Host::ALL, &paths.home, Table::shipped(), &mut |_, _| {});
    // Transcripts are stamped by the wall clock.
    let charts = summaries.map(|all| charts::charts(&all, USAGE_DAYS, &TimeZone::system(), clock::wall()));
    ReadAnswer::Usage(charts.map(Box::new).map_err(|error| format!("{error}; {}", error.hint())))
}
