//! The cache of `usage`: one file for each host, with a summary that answers when nothing changed and details that
//! are read only when something did. It is replaced by renaming, so two processes at once leave one good file. A file
//! that cannot be read or decoded is ignored; deleting it is safe.

use std::io::{Read, Write as _};
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::collect::Details;
use super::summary::Summary;
use steadfast_model::text::checksum;
use steadfast_system::{bounded, paths};

/// Change it whenever the stored types, or the way transcripts are read, change.
const MAGIC: [u8; 8] = *b"sf-use05";
const HEADER_BYTES: usize = 40;

#[derive(Serialize, Deserialize)]
struct CacheHeader {
    magic: [u8; 8],
    summary: CachePart,
    details: CachePart,
}

/// Length and checksum of a part of the file.
#[derive(Serialize, Deserialize)]
struct CachePart {
    #[serde(with = "postcard::fixint::le")]
    length: u64,
    #[serde(with = "postcard::fixint::le")]
    checksum: u64,
}

/// The cache file of an earlier run.
pub(super) struct Cache {
    file: fs_err::File,
    header: CacheHeader,
}

impl Cache {
    pub(super) fn open(path: &Path) -> Option<Self> {
        let mut file = bounded::open(path).ok()?;
        let mut bytes = [0; HEADER_BYTES];
        file.read_exact(&mut bytes).ok()?;
        let header: CacheHeader = postcard::from_bytes(&bytes).ok()?;
        (header.magic == MAGIC).then_some(Self { file, header })
    }

    /// Call it before [`Cache::details`]: the parts are read in order.
    pub(super) fn summary(&mut self) -> Option<Summary> {
        read_part(&mut self.file, &self.header.summary)
    }

    pub(super) fn details(mut self) -> Option<Details> {
        read_part(&mut self.file, &self.header.details)
    }
}

fn read_part<T: DeserializeOwned>(file: &mut fs_err::File, part: &CachePart) -> Option<T> {
    let available = file.metadata().ok()?.len();
    let mut bytes = Vec::with_capacity(usize::try_from(part.length.min(available)).ok()?);
    file.take(part.length).read_to_end(&mut bytes).ok()?;
    let is_intact = bytes.len() as u64 == part.length && checksum(&bytes) == part.checksum;
    is_intact.then(|| postcard::from_bytes(&bytes).ok()).flatten()
}

/// Replaces the file.
pub(super) fn write(path: &Path, summary: &Summary, details: &Details) -> std::io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    if let Some(home) = directory.parent() {
        paths::create_private_dir(home)?;
    }
    paths::create_private_dir(directory)?;
    let summary = encode(summary)?;
    let details = encode(details)?;
    let part = |bytes: &[u8]| CachePart { length: bytes.len() as u64, checksum: checksum(bytes) };
    let header = encode(&CacheHeader { magic: MAGIC, summary: part(&summary), details: part(&details) })?;
    // One name, so that the next process replaces what a killed one left. Renaming keeps the mode.
    let unfinished = path.with_extension("new");
    let mut file = bounded::append(&unfinished)?;
    if file.file().try_lock().is_err() {
        // Another process writes the same.
        return Ok(());
    }
    file.set_len(0)?;
    for bytes in [&header, &summary, &details] {
        file.write_all(bytes)?;
    }
    fs_err::rename(unfinished, path)
}

fn encode(value: &impl Serialize) -> std::io::Result<Vec<u8>> {
    postcard::to_stdvec(value).map_err(std::io::Error::other)
}
