//! What `usage` remembers between runs: one file for each host, made of a summary that answers when nothing
//! changed and the details that are read only when something did. It is replaced as a whole by renaming, so two
//! processes at once leave one good file; whatever cannot be understood counts as absent. It is safe to delete.

use std::ffi::OsStr;
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::collect::{Details, FileRecords, Record};
use super::summary::{SessionOf, Sum, Summary, Tokens};
use steadfast_model::reading::Position;
use steadfast_model::text::checksum;
use steadfast_system::paths;

/// Changes whenever what is stored, or how it is found in transcripts, changes.
const MAGIC: &[u8; 8] = b"sf-use02";

/// The cache file of an earlier run.
pub(super) struct Kept {
    file: fs_err::File,
    summary: (u64, u64),
    details: (u64, u64),
}

pub(super) fn open(path: &Path) -> Option<Kept> {
    let mut file = fs_err::File::open(path).ok()?;
    let mut header = [0; 40];
    file.read_exact(&mut header).ok()?;
    let mut input = Input(&header);
    if input.take(MAGIC.len())? != MAGIC {
        return None;
    }
    Some(Kept { file, summary: (input.number()?, input.number()?), details: (input.number()?, input.number()?) })
}

impl Kept {
    /// Must be asked for before the details.
    pub(super) fn summary(&mut self) -> Option<Summary> {
        let bytes = self.part(self.summary)?;
        let mut input = Input(&bytes);
        let summary = Summary {
            listing: input.wide()?,
            prices: input.number()?,
            models: input.list(Input::string)?,
            sessions: input.list(|input| Some(SessionOf { id: input.string()?, project: input.string()? }))?,
            sums: input.list(Input::sum)?,
            malformed_files: input.number()?,
            files: input.number()?,
        };
        let in_range =
            |sum: &Sum| (sum.model as usize) < summary.models.len() && (sum.session as usize) < summary.sessions.len();
        (input.0.is_empty() && summary.sums.iter().all(in_range)).then_some(summary)
    }

    pub(super) fn details(mut self) -> Option<Details> {
        let bytes = self.part(self.details)?;
        let mut input = Input(&bytes);
        let details = Details { models: input.list(Input::string)?, files: input.list(Input::file)? };
        let in_range = |record: &Record| (record.model as usize) < details.models.len();
        let whole = details.files.iter().flat_map(|file| &file.records).all(in_range);
        (input.0.is_empty() && whole).then_some(details)
    }

    /// The next bytes of the file, if they are what was written.
    fn part(&mut self, (length, sum): (u64, u64)) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let left = self.file.metadata().ok()?.len();
        bytes.reserve_exact(usize::try_from(length.min(left)).ok()?);
        std::io::Read::by_ref(&mut self.file).take(length).read_to_end(&mut bytes).ok()?;
        (bytes.len() as u64 == length && checksum(&bytes) == sum).then_some(bytes)
    }
}

/// Replaces the file.
pub(super) fn write(path: &Path, summary: &Summary, details: &Details) -> std::io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    if let Some(home) = directory.parent() {
        paths::create_private_dir(home)?;
    }
    paths::create_private_dir(directory)?;
    let summary = summary_bytes(summary);
    let details = details_bytes(details);
    let mut header = MAGIC.to_vec();
    for part in [&summary, &details] {
        header.extend((part.len() as u64).to_le_bytes());
        header.extend(checksum(part).to_le_bytes());
    }
    // Only its owner can read a temporary file, and renaming keeps that.
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    for part in [&header, &summary, &details] {
        file.write_all(part)?;
    }
    file.persist(path)?;
    Ok(())
}

fn summary_bytes(summary: &Summary) -> Vec<u8> {
    let mut output = Output::default();
    output.bytes(&summary.listing.to_le_bytes());
    output.number(summary.prices);
    output.list(&summary.models, |output, name| output.string(name.as_bytes()));
    output.list(&summary.sessions, |output, session| {
        output.string(session.id.as_bytes());
        output.string(session.project.as_bytes());
    });
    output.list(&summary.sums, |output, sum| {
        output.signed(sum.slot);
        output.number(sum.session.into());
        output.number(sum.model.into());
        output.signed(sum.responses);
        output.tokens(&sum.tokens);
        // A cost is never negative, so that a negative one can stand for an unknown one.
        output.signed(sum.cost_micros.unwrap_or(-1));
    });
    output.number(summary.malformed_files);
    output.number(summary.files);
    output.0
}

fn details_bytes(details: &Details) -> Vec<u8> {
    let mut output = Output::default();
    output.list(&details.models, |output, name| output.string(name.as_bytes()));
    output.list(&details.files, |output, file| {
        output.string(file.path.as_os_str().as_bytes());
        output.number(file.size);
        output.signed(file.modified);
        output.string(file.project.as_bytes());
        output.number(file.position.offset);
        output.string(&file.position.anchor);
        output.string(file.position.carry.as_bytes());
        output.number(file.malformed.into());
        output.list(&file.records, |output, record| {
            output.bytes(&record.id.to_le_bytes());
            output.signed(record.at_ms);
            output.number(record.model.into());
            output.tokens(&record.tokens);
        });
    });
    output.0
}

#[derive(Default)]
struct Output(Vec<u8>);

impl Output {
    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn number(&mut self, number: u64) {
        self.bytes(&number.to_le_bytes());
    }

    fn signed(&mut self, number: i64) {
        self.bytes(&number.to_le_bytes());
    }

    fn string(&mut self, text: &[u8]) {
        self.number(text.len() as u64);
        self.bytes(text);
    }

    fn tokens(&mut self, tokens: &Tokens) {
        for number in [tokens.input, tokens.output, tokens.cache_creation, tokens.cache_creation_1h, tokens.cache_read]
        {
            self.signed(number);
        }
    }

    fn list<T>(&mut self, items: &[T], write: impl Fn(&mut Self, &T)) {
        self.number(items.len() as u64);
        for item in items {
            write(self, item);
        }
    }
}

/// What is left to read.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u64> {
        self.take(8)?.try_into().ok().map(u64::from_le_bytes)
    }

    fn signed(&mut self) -> Option<i64> {
        self.number().map(u64::cast_signed)
    }

    fn index(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

    fn wide(&mut self) -> Option<u128> {
        self.take(16)?.try_into().ok().map(u128::from_le_bytes)
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?.try_into().ok()?;
        self.take(length)
    }

    fn string(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?.to_vec()).ok()
    }

    fn tokens(&mut self) -> Option<Tokens> {
        Some(Tokens {
            input: self.signed()?,
            output: self.signed()?,
            cache_creation: self.signed()?,
            cache_creation_1h: self.signed()?,
            cache_read: self.signed()?,
        })
    }

    fn list<T>(&mut self, read: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let length = self.number()?;
        // Every item takes a byte at least; a wrong length must not reserve the machine's memory.
        let mut items = Vec::with_capacity(usize::try_from(length).ok()?.min(self.0.len() / 8));
        for _ in 0..length {
            items.push(read(self)?);
        }
        Some(items)
    }

    fn sum(&mut self) -> Option<Sum> {
        Some(Sum {
            slot: self.signed()?,
            session: self.index()?,
            model: self.index()?,
            responses: self.signed()?,
            tokens: self.tokens()?,
            cost_micros: self.signed().map(|cost| (cost >= 0).then_some(cost))?,
        })
    }

    fn file(&mut self) -> Option<FileRecords> {
        Some(FileRecords {
            path: PathBuf::from(OsStr::from_bytes(self.bytes()?)),
            size: self.number()?,
            modified: self.signed()?,
            project: self.string()?,
            position: Position { offset: self.number()?, anchor: self.bytes()?.to_vec(), carry: self.string()? },
            malformed: self.number()? != 0,
            records: self.list(|input| {
                Some(Record {
                    id: input.wide()?,
                    at_ms: input.signed()?,
                    model: input.index()?,
                    tokens: input.tokens()?,
                })
            })?,
        })
    }
}
