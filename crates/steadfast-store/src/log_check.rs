//! Looks for damage inside the write-ahead log. SQLite reads the log up to the first frame that is not whole, and takes
//! all behind it for a transaction that a crash cut off. Frames that are whole behind the end of such a transaction show
//! that it was complete once: what they changed would be lost without a word.
//!
//! The end of the log cannot be judged: a damaged last transaction looks like one that was cut off.

use std::io::{self, BufReader, Read};
use std::path::Path;

use crate::disk::with_end;

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
/// Names the format; its last bit says in which order the bytes of a number are added up.
const MAGIC: u32 = 0x377f_0682;
const PAGE_SIZES: [u32; 8] = [512, 1_024, 2_048, 4_096, 8_192, 16_384, 32_768, 65_536];
/// The size of a page in every store of ours.
const USUAL_PAGE: u32 = 4_096;
/// Another process may write a frame, or begin the log anew, while it is read. What is damaged is so a second time.
const TRIES: usize = 4;

/// What is wrong with the log of a store; `None` without one or if it is whole.
pub fn log_damage(store: &Path) -> io::Result<Option<String>> {
    let log = with_end(store, "-wal");
    let mut seen = None;
    for _ in 0..TRIES {
        let mut file = match fs_err::File::open(&log) {
            Ok(file) => BufReader::new(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut begins = [0; HEADER];
        if !read_whole(&mut file, &mut begins)? {
            return Ok(None);
        }
        let Some(frame) = damaged_frame(&begins, &mut file)? else { return Ok(None) };
        if seen == Some((begins, frame)) {
            let log = log.display();
            return Ok(Some(format!("the log {log} is damaged at frame {frame}: the changes behind it are not read")));
        }
        seen = Some((begins, frame));
    }
    Ok(None)
}

/// The first frame that is not whole, counted from 1, if complete transactions follow; 0 for the header.
fn damaged_frame(begins: &[u8; HEADER], frames: &mut impl Read) -> io::Result<Option<u64>> {
    let magic = number(begins, 0);
    let is_big_endian = magic & 1 == 1;
    let page = Some(number(begins, 8)).filter(|size| PAGE_SIZES.contains(size)).unwrap_or(USUAL_PAGE);
    let mut sum = LogSum { is_big_endian, parts: (0, 0) };
    sum.add(begins.get(..24).unwrap_or_default());
    let is_header_whole = magic & !1 == MAGIC && sum.parts == (number(begins, 24), number(begins, 28));
    let salts = (number(begins, 16), number(begins, 20));
    let mut frame = vec![0; FRAME_HEADER + usize::try_from(page).unwrap_or(0)];
    let mut bad = (!is_header_whole).then_some(0);
    // How many transactions ended since, and the checksum that the frame before has.
    let (mut ended, mut before) = (u64::from(!is_header_whole), sum.parts);
    for at in 1.. {
        if !read_whole(frames, &mut frame)? {
            break;
        }
        let is_of_this_log = !is_header_whole || (number(&frame, 8), number(&frame, 12)) == salts;
        let mut sum = LogSum { is_big_endian, parts: before };
        sum.add(frame.get(..8).unwrap_or_default());
        sum.add(frame.get(FRAME_HEADER..).unwrap_or_default());
        before = (number(&frame, 16), number(&frame, 20));
        let is_whole = is_of_this_log && sum.parts == before;
        let ends = is_of_this_log && number(&frame, 4) != 0;
        if !is_whole && bad.is_none() {
            bad = Some(at);
        }
        if let Some(bad) = bad {
            ended += u64::from(ends);
            // The first of them may have been cut off; a second began after the first was on the disk.
            if ended >= 2 && is_whole && ends {
                return Ok(Some(bad));
            }
        }
    }
    Ok(None)
}

/// The checksum of a log.
struct LogSum {
    is_big_endian: bool,
    parts: (u32, u32),
}

impl LogSum {
    fn add(&mut self, bytes: &[u8]) {
        let (pairs, _) = bytes.as_chunks::<8>();
        for [a, b, c, d, e, f, g, h] in pairs.iter().copied() {
            let word = |bytes| if self.is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) };
            self.parts.0 = self.parts.0.wrapping_add(word([a, b, c, d])).wrapping_add(self.parts.1);
            self.parts.1 = self.parts.1.wrapping_add(word([e, f, g, h])).wrapping_add(self.parts.0);
        }
    }
}

/// The number at a place, 0 if there is none.
fn number(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_be_bytes)
}

/// Fills the buffer; returns whether there were enough bytes.
fn read_whole(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match from.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::testing::World;

    /// Writes transactions and returns the log, which a second connection keeps.
    fn log_of(world: &mut World, transactions: usize) -> std::path::PathBuf {
        for number in 0..transactions {
            let sql = format!("UPDATE clock SET aged_ms = aged_ms - {number} - 1");
            world.store.write(|db| db.execute(&sql, [])).unwrap();
        }
        with_end(world.store.path(), "-wal")
    }

    #[test]
    fn a_frame_that_is_damaged_before_others_is_named() {
        let mut world = World::new();
        let path = world.store.path().to_owned();
        let log = log_of(&mut world, 6);
        assert_eq!(log_damage(&path).unwrap(), None);
        let whole = fs_err::read(&log).unwrap();
        let frames = (whole.len() - HEADER) / (FRAME_HEADER + 4_096);
        assert!(frames >= 6);
        let mut named = 0;
        for frame in 0..frames {
            for at in [0, 5, 9, 17, FRAME_HEADER + 100] {
                let mut bytes = whole.clone();
                bytes[HEADER + frame * (FRAME_HEADER + 4_096) + at] ^= 1;
                fs_err::write(&log, &bytes).unwrap();
                let found = log_damage(&path).unwrap();
                let is_far = frame + 3 <= frames;
                assert!(found.is_some() || !is_far, "frame {frame} of {frames}, byte {at}");
                assert!(found.iter().all(|text| text.contains(&format!("frame {}", frame + 1))), "{found:?}");
                named += usize::from(found.is_some());
            }
        }
        assert!(named > 0);
        let mut bytes = whole.clone();
        bytes[20] ^= 1;
        fs_err::write(&log, &bytes).unwrap();
        assert!(log_damage(&path).unwrap().unwrap().contains("frame 0"));
        fs_err::write(&log, &whole).unwrap();
    }

    #[test]
    fn a_log_that_ends_anywhere_is_no_damage() {
        let mut world = World::new();
        let path = world.store.path().to_owned();
        let log = log_of(&mut world, 4);
        let whole = fs_err::read(&log).unwrap();
        for end in [0, 1, HEADER, HEADER + 9, HEADER + FRAME_HEADER + 4_096, whole.len() - 1] {
            fs_err::write(&log, &whole[..end]).unwrap();
            assert_eq!(log_damage(&path).unwrap(), None, "{end}");
        }
        // A page of the last transaction that never reached the disk.
        let mut bytes = whole.clone();
        let last = whole.len() - 4_096;
        bytes[last..].fill(0);
        fs_err::write(&log, &bytes).unwrap();
        assert_eq!(log_damage(&path).unwrap(), None);
        fs_err::write(&log, &whole).unwrap();
    }

    /// A frame of an earlier log that the writer replaces after it was read, and before those behind it are.
    #[test]
    fn a_log_that_grows_while_it_is_read_is_whole() {
        let mut world = World::new();
        let path = world.store.path().to_owned();
        log_of(&mut world, 300);
        world.store.db.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(())).unwrap();
        world.store.db.pragma_update(None, "synchronous", "off").unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let looks = scope.spawn(|| {
                let found: Vec<_> = (0..100).filter_map(|_| log_damage(&path).transpose()).collect();
                is_over.store(true, Ordering::Relaxed);
                found
            });
            while !is_over.load(Ordering::Relaxed) {
                log_of(&mut world, 20);
            }
            assert!(looks.join().unwrap().is_empty());
        });
    }

    #[test]
    fn a_log_that_was_begun_anew_is_whole() {
        let mut world = World::new();
        let path = world.store.path().to_owned();
        log_of(&mut world, 8);
        world.store.db.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(())).unwrap();
        log_of(&mut world, 2);
        assert_eq!(log_damage(&path).unwrap(), None);
    }
}
