//! Reading a session file forward in large blocks. No line is copied: a block ends with a whole line, and the rest stays
//! in the buffer for the next block.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use serde_json::Value;
use steadfast_model::reading::{Anchor, Position, Reading};
use steadfast_system::bounded;

/// How many bytes before the cursor are compared to notice that a file was rewritten: enough to reach the unique ids of
/// the last line, because all lines of a session end alike.
pub(super) const ANCHOR_BYTES: u64 = 512;

/// Small enough to stay in the processor's cache between reading and searching.
const BUFFER_BYTES: usize = 128 * 1024;
/// Far longer than any line of a client. A longer one is skipped, so that it does not fill the memory.
const LONGEST_LINE: usize = 64 * 1024 * 1024;
/// How much of such a line one pass skips: a file can pretend to have any length.
const MOST_DROPPED: usize = 1024 * 1024 * 1024;

/// Reads complete lines from `from` on and passes each to `line`. A last line without its newline is left for the next
/// time. A file that does not exist is empty.
pub fn read_file(
    path: &Path,
    from: &Position,
    mut line: impl FnMut(&[u8], u64, &mut Reading),
) -> std::io::Result<Reading> {
    read_blocks(path, from, |block, offset, reading| {
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', block) {
            line(block.get(start..=end).unwrap_or_default(), offset + start as u64, reading);
            start = end + 1;
        }
    })
}

/// Like [`read_file`], but passes many complete lines at once, for readers that need few of them.
pub fn read_blocks(
    path: &Path,
    from: &Position,
    mut block: impl FnMut(&[u8], u64, &mut Reading),
) -> std::io::Result<Reading> {
    let mut reading = Reading::nothing_new(from.clone());
    let Some(mut file) = bounded::open_if_exists(path)? else {
        return Ok(reading);
    };
    let size = file.metadata()?.len();
    let mut offset = from.offset;
    if !anchor_holds(&mut file, from)? {
        reading.rewritten = true;
        offset = 0;
    }
    file.seek(SeekFrom::Start(offset))?;
    let start = offset;
    // One byte more than the file has, so that a small file is read to its end without growing the buffer.
    let expected = usize::try_from(size.saturating_sub(offset) + 1).unwrap_or(BUFFER_BYTES);
    let mut buffer = vec![0; expected.min(BUFFER_BYTES)];
    let mut filled = 0;
    // How much of an overlong line was dropped so far.
    let mut dropped = 0;
    loop {
        if filled == LONGEST_LINE || (dropped > 0 && filled > 0) {
            dropped += filled;
            offset += filled as u64;
            filled = 0;
            buffer.truncate(BUFFER_BYTES);
        } else if filled == buffer.len() {
            // One line is longer than the buffer.
            buffer.resize(LONGEST_LINE.min(buffer.len() * 2), 0);
        }
        if dropped > MOST_DROPPED {
            break;
        }
        let read = match file.read(buffer.get_mut(filled..).unwrap_or_default()) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let mut searched = filled;
        filled += read;
        if dropped > 0 {
            let Some(end) = memchr::memchr(b'\n', buffer.get(..filled).unwrap_or_default()) else { continue };
            offset += end as u64 + 1;
            buffer.copy_within(end + 1..filled, 0);
            filled -= end + 1;
            searched = 0;
            dropped = 0;
            reading.broken_lines += 1;
        }
        let last = buffer.get(searched..filled).and_then(|new| memchr::memrchr(b'\n', new));
        let Some(end) = last.map(|last| searched + last + 1) else { continue };
        block(buffer.get(..end).unwrap_or_default(), offset, &mut reading);
        offset += end as u64;
        buffer.copy_within(end..filled, 0);
        filled -= end;
    }
    // The end of an overlong line is read as a broken line of its own, so that no pass has to read all of it again.
    if dropped > 0 {
        offset += filled as u64;
        reading.broken_lines += 1;
    }
    if offset != start || reading.rewritten {
        reading.position = position_at(&mut file, offset)?;
    }
    Ok(reading)
}

/// A token count of a usage object, else the name of the field. Absent and null count as zero; anything but a whole
/// number that a counter can hold is malformed.
pub(crate) fn token_count(usage: &Value, field: &'static str) -> Result<i64, &'static str> {
    const MOST: i64 = 1 << 53;
    match &usage[field] {
        Value::Null => Ok(0),
        value => value.as_i64().filter(|number| (0..=MOST).contains(number)).ok_or(field),
    }
}

/// The end of the file's last complete line.
pub fn end_of_file(path: &Path) -> std::io::Result<Position> {
    const WIDEST: u64 = 8 * 1024 * 1024;
    let Some(mut file) = bounded::open_if_exists(path)? else {
        return Ok(Position::default());
    };
    let size = file.metadata()?.len();
    // The last line may be incomplete: search backwards for the end of the one before.
    let mut end = size;
    let mut window = 64 * 1024;
    while end > 0 {
        if size - end > MOST_DROPPED as u64 {
            return position_at(&mut file, size);
        }
        let from = end.saturating_sub(window);
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.by_ref().take(end - from).read_to_end(&mut bytes)?;
        if let Some(at) = memchr::memrchr(b'\n', &bytes) {
            return position_at(&mut file, from + at as u64 + 1);
        }
        end = from;
        window = WIDEST.min(window * 2);
    }
    Ok(Position::default())
}

fn anchor_holds(file: &mut fs_err::File, position: &Position) -> std::io::Result<bool> {
    if position.offset == 0 {
        return Ok(true);
    }
    let length = position.anchor.length();
    file.seek(SeekFrom::Start(position.offset.saturating_sub(length)))?;
    let mut bytes = Vec::new();
    file.by_ref().take(length).read_to_end(&mut bytes)?;
    Ok(position.anchor.holds(&bytes))
}

fn position_at(file: &mut fs_err::File, offset: u64) -> std::io::Result<Position> {
    let from = offset.saturating_sub(ANCHOR_BYTES);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.by_ref().take(offset - from).read_to_end(&mut bytes)?;
    Ok(Position { offset, anchor: Anchor::of(&bytes), carry: String::new() })
}
