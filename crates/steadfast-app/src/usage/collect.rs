//! Every response on this machine, once. Files that did not change since the last time are not opened, changed
//! ones are read from where they ended, and the sums are cached for the next time (`cache.rs`).

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::cache::{self, Cache};
use super::summary::{Summary, sum_up};
use steadfast_hosts::adapter;
use steadfast_hosts::tree::{self, TranscriptFile};
use steadfast_model::clock::Millis;
use steadfast_model::host::Host;
use steadfast_model::price::Table;
use steadfast_model::reading::{Position, Reading, Tier, Tokens};
use steadfast_model::text::Fingerprint;

#[derive(Debug, thiserror::Error)]
#[error("cannot read the session files of {host}: {source}")]
pub struct UsageError {
    host: Host,
    source: std::io::Error,
}

impl UsageError {
    pub fn hint(&self) -> String {
        let others = Host::ALL.iter().filter(|other| **other != self.host);
        let others: Vec<&str> = others.map(|other| other.name()).collect();
        format!(
            "check {} and the permissions of its `{}` directory, or leave it out with --host {}",
            self.host.capabilities().config_variable,
            self.host.capabilities().transcripts_dir,
            others.join(" or --host "),
        )
    }
}

/// One response as one file has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ResponseRecord {
    /// A 128-bit hash of the response's id. Two of a billion ids collide with a chance of about 10^-21, and
    /// ids come from the model's vendor, not from an attacker.
    #[serde(with = "postcard::fixint::le")]
    pub(super) id: u128,
    pub(super) at_ms: Millis,
    /// Index into `Details::models`.
    pub(super) model: u32,
    pub(super) tier: Tier,
    pub(super) tokens: Tokens,
    /// The skill or MCP server, and the kind of subagent: indexes into `Details::names`.
    pub(super) tool: u32,
    pub(super) agent: u32,
}

/// The responses of one file, and how far it was read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileRecords {
    /// Not a `PathBuf`: serde refuses one that is not UTF-8.
    pub(super) path: OsString,
    pub(super) size: u64,
    pub(super) modified: i64,
    pub(super) project: String,
    /// The session that a subagent's file belongs to, if only its lines say so.
    pub(super) parent: String,
    /// The kind of subagent, if it is told once for the whole file.
    pub(super) agent_type: String,
    pub(super) position: Position,
    /// A response was left out because a token field is not a number.
    pub(super) malformed: bool,
    pub(super) records: Vec<ResponseRecord>,
}

/// Everything that was read, file by file: needed only when a file changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Details {
    pub(super) models: Vec<String>,
    /// Of skills, MCP servers and kinds of subagents.
    pub(super) names: Vec<String>,
    pub(super) files: Vec<FileRecords>,
}

/// The type of a subagent that is not told.
const UNNAMED_SUBAGENT: &str = "subagent";

/// Called with the bytes read so far and the bytes to read.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64);

/// Sums up everything a host wrote. The cache is a speed-up only: without one, or with a broken one, all files are
/// read; a cache that cannot be written is not an error.
pub fn collect(
    host: Host,
    roots: &[PathBuf],
    cache: &Path,
    prices: &Table,
    progress: Progress<'_>,
) -> Result<Summary, UsageError> {
    let fail = |source| UsageError { host, source };
    let files = tree::transcripts(host, roots).map_err(fail)?;
    if files.is_empty() {
        return Ok(Summary::default());
    }
    let listing = listing_of(&files);
    let mut cached = Cache::open(cache);
    if let Some(summary) = cached.as_mut().and_then(Cache::summary)
        && (summary.listing, summary.prices) == (listing, prices.fingerprint())
    {
        return Ok(summary);
    }
    let known = cached.and_then(Cache::details).unwrap_or_default();
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

/// Reads what is new in the files.
fn read_changes(
    host: Host,
    files: &[TranscriptFile],
    known: Details,
    progress: Progress<'_>,
) -> std::io::Result<Details> {
    let mut details = Details { models: known.models, names: known.names, files: Vec::new() };
    let mut known: HashMap<OsString, FileRecords> =
        known.files.into_iter().map(|file| (file.path.clone(), file)).collect();
    let unchanged = |file: &TranscriptFile, old: &FileRecords| (old.size, old.modified) == (file.size, file.modified);
    let unread = |file: &TranscriptFile| match known.get(file.path.as_os_str()) {
        Some(old) if unchanged(file, old) => 0,
        Some(old) => file.size.saturating_sub(old.position.offset),
        None => file.size,
    };
    let total: u64 = files.iter().map(unread).sum();
    let mut read = 0;
    for file in files {
        let mut records = known.remove(file.path.as_os_str()).unwrap_or_default();
        if records.path.is_empty() || !unchanged(file, &records) {
            progress(read, total);
            let from = records.position.offset;
            let reading = (adapter(host).read_counts)(&file.path, &records.position)?;
            read += reading.position.offset.saturating_sub(from);
            records.extend(file, reading, &mut details.models, &mut details.names);
        }
        details.files.push(records);
    }
    Ok(details)
}

impl FileRecords {
    fn extend(&mut self, file: &TranscriptFile, reading: Reading, models: &mut Vec<String>, names: &mut Vec<String>) {
        if reading.rewritten {
            *self = Self::default();
        }
        self.path = file.path.clone().into();
        self.size = file.size;
        self.modified = file.modified;
        if let Some(cwd) = reading.cwd.filter(|_| self.project.is_empty()) {
            self.project = cwd;
        }
        self.parent = reading.parent.unwrap_or(std::mem::take(&mut self.parent));
        self.agent_type = reading.agent_type.unwrap_or(std::mem::take(&mut self.agent_type));
        self.malformed |= reading.invalid.is_some();
        self.position = reading.position;
        let mut by_id: HashMap<u128, usize> =
            self.records.iter().enumerate().map(|(at, record)| (record.id, at)).collect();
        self.records.reserve_exact(reading.responses.len());
        for response in &reading.responses {
            let unnamed = if file.is_subagent { UNNAMED_SUBAGENT } else { "" };
            let told = [&*response.agent_type, &*self.agent_type].into_iter().find(|told| !told.is_empty());
            let agent_type = told.unwrap_or(unnamed);
            let mut id = Fingerprint::default();
            id.add(response.id.as_bytes());
            let record = ResponseRecord {
                id: id.value(),
                at_ms: response.at_ms,
                model: index_of(models, &response.model),
                tier: response.tier,
                tokens: response.tokens,
                tool: index_of(names, &response.tool),
                agent: index_of(names, agent_type),
            };
            if let Some(known) = by_id.get(&record.id).and_then(|at| self.records.get_mut(*at)) {
                known.merge(&record);
            } else {
                by_id.insert(record.id, self.records.len());
                self.records.push(record);
            }
        }
    }
}

impl ResponseRecord {
    /// Of several records of one response, the last and largest counts, with the time of the first.
    pub(super) fn merge(&mut self, later: &Self) {
        if later.tokens.output >= self.tokens.output {
            self.model = later.model;
            self.tier = later.tier;
            self.tokens = later.tokens;
            if self.at_ms == 0 || (1..self.at_ms).contains(&later.at_ms) {
                self.at_ms = later.at_ms;
            }
        }
    }
}

/// The index of a name, which is added if it is new. There are few of them.
fn index_of(models: &mut Vec<String>, name: &str) -> u32 {
    let at = models.iter().position(|known| known == name).unwrap_or_else(|| {
        models.push(name.to_owned());
        models.len() - 1
    });
    u32::try_from(at).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
