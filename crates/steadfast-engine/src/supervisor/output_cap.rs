//! Keeps what an agent prints within a cap: the beginning and the end of its output stay, the middle is given back to the
//! disk. The agent writes to the file itself, so it never waits and never ends because of the cap, even if this process
//! is killed. Offsets stay, and readers find the hole (`bounded::hole_of`). Where the file system cannot do this, the
//! output stays whole.

use std::fs::File;
use std::path::PathBuf;

use steadfast_system::log;

/// Holes are made of whole blocks, and not for every few bytes.
const STEP: u64 = 1 << 20;

/// One output of the agent. The file stays open: its path could lead to another file by now.
pub(super) struct CappedOutput {
    file: File,
    /// Kept of the beginning and of the end.
    part: u64,
    /// Where the hole ends.
    until: u64,
    log: PathBuf,
}

impl CappedOutput {
    /// `most` bytes are kept; 0 for all.
    pub(super) fn new(file: File, most: u64, log: PathBuf) -> Option<Self> {
        let part = (most / 2).next_multiple_of(STEP);
        (most > 0).then_some(Self { file, part, until: part, log })
    }

    /// Gives back what is too far from both ends. Returns whether the cap works here.
    pub(super) fn trim(&mut self) -> bool {
        let size = self.file.metadata().map_or(0, |metadata| metadata.len());
        let until = size.saturating_sub(self.part) / STEP * STEP;
        if until <= self.until {
            return true;
        }
        match punch(&self.file, self.until, until - self.until) {
            Ok(()) => {
                self.until = until;
                true
            }
            Err(error) => {
                log::line(&self.log, &format!("the agent's output cannot be capped: {error}"));
                false
            }
        }
    }
}

#[cfg(target_os = "linux")]
fn punch(file: &File, from: u64, length: u64) -> std::io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    Ok(fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, from, length)?)
}

#[cfg(not(target_os = "linux"))]
fn punch(_: &File, _: u64, _: u64) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::MetadataExt as _;

    use steadfast_system::bounded;

    use super::*;
    use crate::durable;

    #[test]
    fn the_beginning_and_the_end_stay_and_the_middle_is_given_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out.log");
        let log = directory.path().join("log");
        let mut file = durable::open_to_append(&path).unwrap().into_parts().0;
        let mut capped = CappedOutput::new(file.try_clone().unwrap(), 2 << 20, log.clone()).unwrap();
        assert!(capped.trim());
        for _ in 0..6 {
            file.write_all(&vec![b'x'; 2 << 20]).unwrap();
            if !capped.trim() {
                assert!(fs_err::read_to_string(&log).unwrap().contains("cannot be capped"));
                return;
            }
        }
        file.write_all(b"end").unwrap();
        let whole = bounded::open(&path).unwrap();
        assert_eq!(whole.metadata().unwrap().len(), (12 << 20) + 3);
        assert!(whole.metadata().unwrap().blocks() * 512 <= 3 << 20);
        assert_eq!(bounded::hole_of(&whole), Some(1 << 20..11 << 20));
        assert_eq!(bounded::end_of(&path, 4).unwrap().bytes, b"xend");
        assert!(CappedOutput::new(file, 0, log).is_none());
    }
}
