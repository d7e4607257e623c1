//! Reads what a client writes to stdin, bounded in length and in time: a client waits for us, and must not wait because
//! we wait for it.

use std::io;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Clients write at once and close the pipe.
const LONGEST: Duration = Duration::from_secs(10);
const PIECE: usize = 64 * 1024;

/// All of stdin; an error if it is longer than `most` bytes or does not end.
pub(super) fn read(most: usize) -> io::Result<Vec<u8>> {
    let stdin = io::stdin();
    let end = Instant::now() + LONGEST;
    let mut bytes = Vec::new();
    let mut piece = vec![0; PIECE];
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let left = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&left)) {
            Ok(0) => return Err(io::Error::new(io::ErrorKind::TimedOut, "stdin does not end")),
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        let read = match rustix::io::read(&stdin, &mut piece) {
            Ok(read) => read,
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        };
        if read == 0 {
            return Ok(bytes);
        }
        bytes.extend_from_slice(piece.get(..read).unwrap_or_default());
        if bytes.len() > most {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("stdin has more than {most} bytes")));
        }
    }
}
