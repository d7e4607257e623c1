//! Every response on this machine, once. Files that did not change since the last time are not opened, changed
//! ones are read from where they ended, and the sums are kept ready for the next time (`cache.rs`).

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::cache;
use super::{Position, Reading, Response};
use crate::clock::Millis;
use crate::host::tree::{self, TranscriptFile};
use crate::host::{self, Host};
use crate::price::Table;
use crate::text::Fingerprint;

/// Sums are kept for quarters of an hour: days begin on one in every time zone, and blocks begin on an hour.
pub const SLOT_MS: Millis = 15 * 60 * 1000;
/// The slot of responses whose time is not known.
pub const UNDATED: i64 = i64::MIN;

#[derive(Debug, thiserror::Error)]
pub enum UsageError {
    #[error("cannot read the session files of {host}: {source}")]
    Tree {
        host: Host,
        #[source]
        source: std::io::Error,
    },
}

impl UsageError {
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Tree { host: Host::Claude, .. } => {
                "check CLAUDE_CONFIG_DIR and the rights on its `projects` directory, or leave it out with --host codex"
            }
            Self::Tree { host: Host::Codex, .. } => {
                "check CODEX_HOME and the rights on its `sessions` directory, or leave it out with --host claude"
            }
        }
    }
}

/// One response as one file tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record {
    /// A 128-bit hash of the response's id. Two of a billion ids collide with a chance of about 10^-21, and
    /// ids come from the model's vendor, not from somebody who wants them to collide.
    pub(super) id: u128,
    pub(super) at_ms: Millis,
    /// Index into `Details::models`.
    pub(super) model: u32,
    pub(super) tokens: Tokens,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tokens {
    pub input: i64,
    pub output: i64,
    pub cache_creation: i64,
    pub cache_creation_1h: i64,
    pub cache_read: i64,
}

impl Tokens {
    pub fn total(&self) -> i64 {
        self.input + self.output + self.cache_creation + self.cache_read
    }

    pub fn add(&mut self, other: &Self) {
        self.input += other.input;
        self.output += other.output;
        self.cache_creation += other.cache_creation;
        self.cache_creation_1h += other.cache_creation_1h;
        self.cache_read += other.cache_read;
    }
}

/// What one file says, and how far it was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FileRecords {
    pub(super) path: PathBuf,
    pub(super) size: u64,
    pub(super) modified: i64,
    pub(super) project: String,
    pub(super) position: Position,
    /// A response with a token field that is no number was left out.
    pub(super) malformed: bool,
    pub(super) records: Vec<Record>,
}

/// Everything that was read, file by file: needed only when a file changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Details {
    pub(super) models: Vec<String>,
    pub(super) files: Vec<FileRecords>,
}

/// A session and the directory it worked in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionOf {
    pub id: String,
    pub project: String,
}

/// The sum over the responses of one session and model in one slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sum {
    pub slot: i64,
    pub session: u32,
    pub model: u32,
    pub responses: i64,
    pub tokens: Tokens,
    /// Millionths of a dollar; `None` when the model has no known price.
    pub cost_micros: Option<i64>,
}

/// All responses of a host, summed up as finely as any view needs it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Which files, of which sizes and times, this is about.
    pub(super) listing: u128,
    /// Which prices were used.
    pub(super) prices: u64,
    pub models: Vec<String>,
    pub sessions: Vec<SessionOf>,
    pub sums: Vec<Sum>,
    /// Files with responses that were left out, since a token field is no number.
    pub malformed_files: u64,
    pub files: u64,
}

/// Called with the bytes read and the bytes to read.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64);

/// Sums up everything a host wrote. The cache is a speed-up only: without one, or with a broken one, all files
/// are read, and if none can be written the next run takes as long.
pub fn collect(
    host: Host,
    roots: &[PathBuf],
    cache: &Path,
    prices: &Table,
    progress: Progress<'_>,
) -> Result<Summary, UsageError> {
    let fail = |source| UsageError::Tree { host, source };
    let files = tree::transcripts(host, roots).map_err(fail)?;
    if files.is_empty() {
        return Ok(Summary::default());
    }
    let listing = listing_of(&files);
    let mut kept = cache::open(cache);
    if let Some(summary) = kept.as_mut().and_then(cache::Kept::summary)
        && (summary.listing, summary.prices) == (listing, prices.fingerprint())
    {
        return Ok(summary);
    }
    let known = kept.and_then(cache::Kept::details).unwrap_or_default();
    let details = read_changes(host, &files, known, progress).map_err(fail)?;
    let mut summary = sum_up(&files, &details, prices);
    summary.listing = listing;
    cache::write(cache, &summary, &details).ok();
    Ok(summary)
}

fn listing_of(files: &[TranscriptFile]) -> u128 {
    let mut fingerprint = Fingerprint::default();
    for file in files {
        fingerprint.add(file.path.as_os_str().as_encoded_bytes());
        for number in [file.size.cast_signed(), file.modified, file.created] {
            fingerprint.add(&number.to_le_bytes());
        }
    }
    fingerprint.value()
}

/// Brings what is known up to date with the files there are.
fn read_changes(
    host: Host,
    files: &[TranscriptFile],
    known: Details,
    progress: Progress<'_>,
) -> std::io::Result<Details> {
    let mut models = Models::new(known.models);
    let mut known: HashMap<PathBuf, FileRecords> =
        known.files.into_iter().map(|file| (file.path.clone(), file)).collect();
    let unchanged = |file: &TranscriptFile, old: &FileRecords| (old.size, old.modified) == (file.size, file.modified);
    let unread = |file: &TranscriptFile| match known.get(&file.path) {
        Some(old) if unchanged(file, old) => 0,
        Some(old) => file.size.saturating_sub(old.position.offset),
        None => file.size,
    };
    let total: u64 = files.iter().map(unread).sum();
    let mut read = 0;
    let mut details = Details::default();
    for file in files {
        let mut records = known.remove(&file.path).unwrap_or_default();
        if records.path.as_os_str().is_empty() || !unchanged(file, &records) {
            progress(read, total);
            let from = records.position.offset;
            let reading = host::read_counts(host, &file.path, &records.position)?;
            read += reading.position.offset.saturating_sub(from);
            records.take_in(file, reading, &mut models);
        }
        details.files.push(records);
    }
    details.models = models.names;
    Ok(details)
}

impl FileRecords {
    fn take_in(&mut self, file: &TranscriptFile, reading: Reading, models: &mut Models) {
        if reading.rewritten {
            *self = Self::default();
        }
        self.path.clone_from(&file.path);
        self.size = file.size;
        self.modified = file.modified;
        if let Some(cwd) = reading.cwd.filter(|_| self.project.is_empty()) {
            self.project = cwd;
        }
        self.malformed |= reading.invalid.is_some();
        self.position = reading.position;
        let mut by_id: HashMap<u128, usize> = self
            .records
            .iter()
            .enumerate()
            .map(|(at, record)| (record.id, at))
            .collect();
        self.records.reserve_exact(reading.responses.len());
        for response in &reading.responses {
            let record = Record::new(response, models);
            if let Some(known) = by_id.get(&record.id).and_then(|at| self.records.get_mut(*at)) {
                known.join(&record);
            } else {
                by_id.insert(record.id, self.records.len());
                self.records.push(record);
            }
        }
    }
}

impl Record {
    fn new(response: &Response, models: &mut Models) -> Self {
        let mut id = Fingerprint::default();
        id.add(response.id.as_bytes());
        Self {
            id: id.value(),
            at_ms: response.at_ms,
            model: models.index(&response.model),
            tokens: Tokens {
                input: response.input,
                output: response.output,
                cache_creation: response.cache_creation,
                cache_creation_1h: response.cache_creation_1h,
                cache_read: response.cache_read,
            },
        }
    }

    /// Of several records of one response, the last and largest counts, at the time of the first.
    fn join(&mut self, later: &Self) {
        if later.tokens.output >= self.tokens.output {
            self.model = later.model;
            self.tokens = later.tokens;
            if self.at_ms == 0 || (1..self.at_ms).contains(&later.at_ms) {
                self.at_ms = later.at_ms;
            }
        }
    }
}

/// The names of models, each once.
struct Models {
    names: Vec<String>,
    by_name: HashMap<String, u32>,
}

impl Models {
    fn new(names: Vec<String>) -> Self {
        let by_name = (0..).zip(&names).map(|(at, name)| (name.clone(), at)).collect();
        Self { names, by_name }
    }

    fn index(&mut self, name: &str) -> u32 {
        if let Some(at) = self.by_name.get(name) {
            return *at;
        }
        let at = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        self.names.push(name.to_owned());
        self.by_name.insert(name.to_owned(), at);
        at
    }
}

/// Takes each response once, however many files tell of it, and adds up.
fn sum_up(files: &[TranscriptFile], details: &Details, prices: &Table) -> Summary {
    let mut sessions = Vec::new();
    let mut by_session: HashMap<&str, u32> = HashMap::new();
    let mut responses: Vec<(u32, Record)> = Vec::new();
    let mut by_id: HashMap<u128, usize> = HashMap::new();
    for (file, found) in files.iter().zip(&details.files) {
        if found.records.is_empty() {
            continue;
        }
        let session = *by_session.entry(&file.session_id).or_insert_with(|| {
            sessions.push(SessionOf::default());
            u32::try_from(sessions.len() - 1).unwrap_or(u32::MAX)
        });
        if let Some(known) = sessions.get_mut(session as usize) {
            // A subagent may work elsewhere than its session.
            if known.id.is_empty() || !file.is_subagent {
                let project = if found.project.is_empty() {
                    &file.folder
                } else {
                    &found.project
                };
                known.project.clone_from(project);
            }
            known.id.clone_from(&file.session_id);
        }
        for record in &found.records {
            let next = responses.len();
            match responses.get_mut(*by_id.entry(record.id).or_insert(next)) {
                Some((_, known)) => known.join(record),
                None => responses.push((session, *record)),
            }
        }
    }
    Summary {
        prices: prices.fingerprint(),
        models: details.models.clone(),
        sessions,
        sums: add_up(&responses, &details.models, prices),
        malformed_files: details.files.iter().map(|file| u64::from(file.malformed)).sum(),
        files: files.len() as u64,
        ..Summary::default()
    }
}

fn add_up(responses: &[(u32, Record)], models: &[String], prices: &Table) -> Vec<Sum> {
    let mut sums: HashMap<(i64, u32, u32), Sum> = HashMap::new();
    let mut response = Response::default();
    for (session, record) in responses {
        let slot = match record.at_ms {
            0 => UNDATED,
            at_ms => at_ms.div_euclid(SLOT_MS),
        };
        let tokens = record.tokens;
        response.model.clear();
        response
            .model
            .push_str(models.get(record.model as usize).map_or("", String::as_str));
        response.input = tokens.input;
        response.output = tokens.output;
        response.cache_creation = tokens.cache_creation;
        response.cache_creation_1h = tokens.cache_creation_1h;
        response.cache_read = tokens.cache_read;
        let cost = prices.cost_micros(&response);
        let sum = sums.entry((slot, *session, record.model)).or_insert_with(|| Sum {
            slot,
            session: *session,
            model: record.model,
            responses: 0,
            tokens: Tokens::default(),
            cost_micros: Some(0),
        });
        sum.responses += 1;
        sum.tokens.add(&tokens);
        sum.cost_micros = sum.cost_micros.zip(cost).map(|(sum, cost)| sum + cost);
    }
    let mut sums: Vec<Sum> = sums.into_values().collect();
    sums.sort_unstable_by_key(|sum| (sum.slot, sum.session, sum.model));
    sums
}

#[cfg(test)]
mod tests;
