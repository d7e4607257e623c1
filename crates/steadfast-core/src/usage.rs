//! What the hosts' session files say: which responses the model gave and what they cost, and a few facts that
//! decide whether a goal goes on. Files are read forward from a cursor; the ledger in the store makes reading
//! a line twice harmless.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use crate::clock::Millis;

/// How many bytes before the cursor are kept to notice that a file was rewritten: enough to reach the unique ids
/// of the last line, since lines of one session all end alike.
const ANCHOR_BYTES: u64 = 512;

/// One response of the model, however many lines told of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Response {
    pub id: String,
    pub model: String,
    pub input: i64,
    pub output: i64,
    pub cache_creation: i64,
    /// The part of `cache_creation` that is kept for an hour, which costs more.
    pub cache_creation_1h: i64,
    pub cache_read: i64,
    /// 0 when the line tells no time.
    pub at_ms: Millis,
}

impl Response {
    /// The tokens a budget is charged with. Cache reads are shown, not charged.
    pub fn counted(&self) -> i64 {
        self.input + self.cache_creation + self.output
    }

    /// Whether this record of a response is later than another one of the same response.
    pub fn supersedes(&self, other: &Self) -> bool {
        self.output >= other.output
    }
}

/// A token field of a real response that is no whole number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidField {
    pub field: &'static str,
    pub response_id: String,
    pub offset: u64,
}

/// The client's own goal feature, as the transcript shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NativeGoal {
    Active(String),
    Over,
}

/// A turn that failed because the account's usage limit was reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageLimit {
    pub at_ms: Millis,
    /// The client's words, which tell when to try again.
    pub message: String,
}

/// What a pass over new bytes found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    pub responses: Vec<Response>,
    by_id: HashMap<String, usize>,
    pub broken_lines: i64,
    pub invalid: Option<InvalidField>,
    pub tool_calls: i64,
    pub last_text: Option<String>,
    pub last_uuid: Option<String>,
    /// Prompts the user typed ahead, minus those the client took up.
    pub queued: i64,
    /// The client gave all typed-ahead prompts back, so that `queued` counts from zero.
    pub queue_emptied: bool,
    pub native_goal: Option<NativeGoal>,
    pub interrupted_at: Option<Millis>,
    /// The newest failure of its kind in these bytes, where the host's file tells it.
    pub usage_limit: Option<UsageLimit>,
    /// The bytes read before are no longer there, so the file was read from its start.
    pub rewritten: bool,
    pub position: Position,
}

/// How far a file was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Position {
    pub offset: u64,
    pub anchor: Vec<u8>,
    /// What the host's reader must remember between two readings; empty if nothing.
    pub carry: String,
}

impl Reading {
    /// A reading that found nothing.
    pub fn nothing_new(position: Position) -> Self {
        Self { position, ..Self::default() }
    }

    /// Adds one record of a response; of several of one response, the last and largest counts, at the time of
    /// the first.
    pub fn add(&mut self, response: Response) {
        let Some(&at) = self.by_id.get(&response.id) else {
            self.by_id.insert(response.id.clone(), self.responses.len());
            self.responses.push(response);
            return;
        };
        let known = &mut self.responses[at];
        if response.supersedes(known) {
            let at_ms = known.at_ms.min(response.at_ms);
            *known = Response { at_ms, ..response };
        }
    }

    /// Whether what was queued before this reading no longer matters.
    pub fn counts_queue_anew(&self) -> bool {
        self.rewritten || self.queue_emptied
    }

    /// Joins a later reading of the same file to this one.
    pub fn extend(&mut self, later: Self) {
        if later.counts_queue_anew() {
            self.queued = 0;
        }
        self.rewritten |= later.rewritten;
        self.queue_emptied |= later.queue_emptied;
        for response in later.responses {
            self.add(response);
        }
        self.broken_lines += later.broken_lines;
        self.tool_calls += later.tool_calls;
        self.queued += later.queued;
        self.invalid = self.invalid.take().or(later.invalid);
        self.last_text = later.last_text.or(self.last_text.take());
        self.last_uuid = later.last_uuid.or(self.last_uuid.take());
        self.native_goal = later.native_goal.or(self.native_goal.take());
        self.interrupted_at = later.interrupted_at.or(self.interrupted_at);
        self.usage_limit = later.usage_limit.or(self.usage_limit.take());
        self.position = later.position;
    }
}

/// Reads complete lines from `from` on and gives each to `line`. A last line without its newline is left for
/// the next time. A file that does not exist has nothing to say.
pub fn read_file(
    path: &Path,
    from: &Position,
    mut line: impl FnMut(&[u8], u64, &mut Reading),
) -> std::io::Result<Reading> {
    let mut reading = Reading::nothing_new(from.clone());
    let mut file = match fs_err::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(reading),
        Err(error) => return Err(error),
    };
    let mut offset = from.offset;
    if !anchor_holds(&mut file, from)? {
        reading.rewritten = true;
        offset = 0;
    }
    file.seek(SeekFrom::Start(offset))?;
    let mut reader = BufReader::with_capacity(256 * 1024, file);
    let mut bytes = Vec::new();
    let start = offset;
    loop {
        bytes.clear();
        let read = reader.read_until(b'\n', &mut bytes)?;
        if read == 0 || bytes.last() != Some(&b'\n') {
            break;
        }
        line(&bytes, offset, &mut reading);
        offset += read as u64;
    }
    if offset != start || reading.rewritten {
        reading.position = position_at(path, offset)?;
    }
    Ok(reading)
}

/// The end of the file's last complete line, as a position to read on from.
pub fn end_of_file(path: &Path) -> std::io::Result<Position> {
    let mut file = match fs_err::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Position::default()),
        Err(error) => return Err(error),
    };
    let size = file.metadata()?.len();
    // Step back from a line that is being written.
    let mut end = size;
    let mut window = 64 * 1024;
    while end > 0 {
        let from = end.saturating_sub(window);
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.by_ref().take(end - from).read_to_end(&mut bytes)?;
        if let Some(at) = memchr::memrchr(b'\n', &bytes) {
            return position_at(path, from + at as u64 + 1);
        }
        end = from;
        window *= 2;
    }
    Ok(Position::default())
}

fn anchor_holds(file: &mut fs_err::File, position: &Position) -> std::io::Result<bool> {
    if position.offset == 0 {
        return Ok(true);
    }
    let length = position.anchor.len() as u64;
    file.seek(SeekFrom::Start(position.offset.saturating_sub(length)))?;
    let mut bytes = Vec::with_capacity(position.anchor.len());
    file.by_ref().take(length).read_to_end(&mut bytes)?;
    Ok(bytes == position.anchor)
}

fn position_at(path: &Path, offset: u64) -> std::io::Result<Position> {
    let from = offset.saturating_sub(ANCHOR_BYTES);
    let mut file = fs_err::File::open(path)?;
    file.seek(SeekFrom::Start(from))?;
    let mut anchor = Vec::new();
    file.take(offset - from).read_to_end(&mut anchor)?;
    Ok(Position { offset, anchor, carry: String::new() })
}

#[cfg(test)]
mod tests;
