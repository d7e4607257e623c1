//! Reading a session file from its end, line by line, newest first. What a model still has in its context is near the
//! end, however large the file is; how far back a reader goes is bounded.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::ops::ControlFlow;
use std::path::Path;

use steadfast_system::bounded;

/// The most bytes that are read: a few milliseconds, and more than fits into most contexts.
const MOST_BYTES: u64 = 8 * 1024 * 1024;
/// Fits into a processor's cache.
const PIECE: u64 = 128 * 1024;

/// Gives the lines before `end` (else the end of the file) to `line`, newest first, each with its offset, until it says
/// that it has seen enough, the file is through or the bound is reached.
pub(super) fn read(
    path: &Path,
    end: Option<u64>,
    mut line: impl FnMut(&[u8], u64) -> ControlFlow<()>,
) -> std::io::Result<()> {
    let mut file = bounded::open(path)?;
    let size = file.metadata()?.len();
    let mut from = end.map_or(size, |end| end.min(size));
    let lowest = from.saturating_sub(MOST_BYTES);
    // Two buffers are used again and again: new memory costs more than reading into it.
    let (mut bytes, mut rest): (Vec<u8>, Vec<u8>) = (Vec::new(), Vec::new());
    while from > lowest {
        // A line longer than a piece is read in pieces as long as what is there of it, or its length would be squared.
        let length = PIECE.max(rest.len() as u64).min(from - lowest);
        from -= length;
        file.seek(SeekFrom::Start(from))?;
        bytes.clear();
        bytes.resize(usize::try_from(length).unwrap_or_default(), 0);
        file.read_exact(&mut bytes)?;
        // The bytes before `rest`, whose line begins earlier.
        bytes.extend_from_slice(&rest);
        let mut until = bytes.len();
        while let Some(newline) = newline_before(&bytes, until) {
            if let Some(found) = bytes.get(newline + 1..until)
                && line(found, from + newline as u64 + 1).is_break()
            {
                return Ok(());
            }
            until = newline + 1;
        }
        bytes.truncate(until);
        std::mem::swap(&mut bytes, &mut rest);
    }
    if from == 0 && !rest.is_empty() {
        let _ = line(&rest, 0);
    }
    Ok(())
}

/// The newline before the line that ends at `until`, with or without a newline of its own.
fn newline_before(bytes: &[u8], until: usize) -> Option<usize> {
    let line = bytes.get(..until)?;
    memchr::memrchr(b'\n', line.strip_suffix(b"\n").unwrap_or(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8], end: Option<u64>) -> Vec<(u64, Vec<u8>)> {
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join("file.jsonl");
        fs_err::write(&path, text).expect("file");
        let mut found = Vec::new();
        read(&path, end, |line, offset| {
            found.push((offset, line.to_vec()));
            ControlFlow::Continue(())
        })
        .expect("read");
        found
    }

    #[test]
    fn lines_come_newest_first_with_their_offsets() {
        let all = lines(b"one\n\nthree\nhalf", None);
        let wanted: Vec<(u64, Vec<u8>)> =
            vec![(11, b"half".into()), (5, b"three\n".into()), (4, b"\n".into()), (0, b"one\n".into())];
        assert_eq!(all, wanted);
        assert_eq!(lines(b"one\n\nthree\nhalf", Some(5)), wanted[2..]);
        assert_eq!(lines(b"", None), vec![]);
    }

    #[test]
    fn lines_longer_than_a_piece_are_whole_and_the_bound_holds() {
        let mut text = Vec::new();
        let mut wanted = Vec::new();
        for (at, length) in [10_usize, 200_000, 3, 700_000, 65_536, 0, 131_072].into_iter().enumerate() {
            let line = [vec![b'a' + u8::try_from(at).expect("small"); length], vec![b'\n']].concat();
            wanted.insert(0, (text.len() as u64, line.clone()));
            text.extend(line);
        }
        assert_eq!(lines(&text, None), wanted);

        let mut large = vec![b'x'; usize::try_from(MOST_BYTES).expect("small")];
        large.splice(0..0, *b"old\n");
        large.extend(*b"\nnew\n");
        let found = lines(&large, None);
        assert_eq!(found.len(), 1, "a line that begins beyond the bound is not reported");
        assert_eq!(found[0].1, b"new\n");
    }
}
