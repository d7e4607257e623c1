//! Why the system refuses a file, in words that a user can act on.

use std::io;

use rustix::io::Errno;

/// What is wrong with a disk, or with the limits of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DiskFault {
    #[error("disk full")]
    Full,
    #[error("disk quota exceeded")]
    OverQuota,
    #[error("read-only file system")]
    ReadOnly,
    #[error("permission denied")]
    Denied,
    #[error("too many open files in this process")]
    TooManyFiles,
    #[error("too many open files on this machine")]
    TooManyFilesOfMachine,
    #[error("no file locks available")]
    NoLocks,
    #[error("out of memory")]
    NoMemory,
    #[error("file size limit reached")]
    SizeLimit,
    #[error("file name too long")]
    LongName,
    #[error("is a directory, not a file")]
    Directory,
    #[error("a part of the path is not a directory")]
    NoDirectory,
    #[error("the disk reports an input or output error")]
    Device,
    /// Nothing else is known of it: the disk may be full, or report errors.
    #[error("the index of the log cannot be written")]
    LogIndex,
    /// Known only from the attempt to put a file on the disk for good.
    #[error("the disk does not take what is written")]
    Unsynced,
}

impl DiskFault {
    /// The fault behind an error; `None` if the error means something else.
    pub fn of(error: &io::Error) -> Option<Self> {
        Some(match Errno::from_raw_os_error(number_of(error)?) {
            Errno::NOSPC => Self::Full,
            Errno::DQUOT => Self::OverQuota,
            Errno::ROFS => Self::ReadOnly,
            Errno::ACCESS | Errno::PERM => Self::Denied,
            Errno::MFILE => Self::TooManyFiles,
            Errno::NFILE => Self::TooManyFilesOfMachine,
            Errno::NOLCK => Self::NoLocks,
            Errno::NOMEM => Self::NoMemory,
            Errno::FBIG => Self::SizeLimit,
            Errno::NAMETOOLONG => Self::LongName,
            Errno::ISDIR => Self::Directory,
            Errno::NOTDIR => Self::NoDirectory,
            Errno::IO => Self::Device,
            _ => return None,
        })
    }

    pub fn hint(self) -> &'static str {
        match self {
            Self::Full => "free some space there; nothing was half written",
            Self::OverQuota => {
                "delete files of yours on that disk, or ask for a larger quota; nothing was half written"
            }
            Self::ReadOnly => "mount it writable, or set STEADFAST_HOME to a directory on another disk",
            Self::Denied => "check that the file and its directory can be written by your user",
            Self::TooManyFiles => "raise the limit with `ulimit -n`, then try again",
            Self::TooManyFilesOfMachine => "close some programs, then try again",
            Self::NoLocks => "put it on a local disk, where files can be locked",
            Self::NoMemory => "close some programs or raise `ulimit -v`, then try again",
            Self::SizeLimit => "raise the limit with `ulimit -f`, then try again; nothing was half written",
            Self::LongName => "choose a shorter path",
            Self::Directory => "choose the path of a file",
            Self::NoDirectory => "check each part of the path",
            Self::LogIndex | Self::Unsynced => {
                "look at the free space and at errors of the disk; nothing was half written"
            }
            Self::Device => "look for errors of the disk in the system's log, and copy the file to another disk",
        }
    }

    /// Whether it may pass by itself or when the user makes room, and nothing is wrong with the store.
    pub fn is_lack_of_room(self) -> bool {
        matches!(self, Self::Full | Self::OverQuota | Self::LogIndex | Self::Unsynced)
    }
}

/// The system's number of an error. An error that names a path, before its text or behind it, has the number only in its
/// text, as all errors of the system do.
fn number_of(error: &io::Error) -> Option<i32> {
    if let Some(number) = error.raw_os_error() {
        return Some(number);
    }
    let text = error.get_ref()?.to_string();
    text.rsplit_once("(os error ")?.1.split_once(')')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_known_by_the_systems_number_also_behind_a_path() {
        let directory = tempfile::tempdir().unwrap();
        let long = directory.path().join("x".repeat(300));
        assert_eq!(DiskFault::of(&fs_err::write(&long, "").unwrap_err()), Some(DiskFault::LongName));
        assert_eq!(DiskFault::of(&fs_err::write(directory.path(), "").unwrap_err()), Some(DiskFault::Directory));
        let unfinished = tempfile::tempfile_in(directory.path().join("x".repeat(300))).unwrap_err();
        assert_eq!(DiskFault::of(&unfinished), Some(DiskFault::LongName));
        let unfinished = tempfile::Builder::new().tempfile_in(directory.path().join("x".repeat(300))).unwrap_err();
        assert!(unfinished.to_string().contains(" at path "), "{unfinished}");
        assert_eq!(DiskFault::of(&unfinished), Some(DiskFault::LongName));
        let quota = io::Error::from_raw_os_error(Errno::DQUOT.raw_os_error());
        assert_eq!(DiskFault::of(&quota), Some(DiskFault::OverQuota));
        let absent = fs_err::read(directory.path().join("absent")).unwrap_err();
        assert_eq!((DiskFault::of(&absent), DiskFault::of(&io::Error::other("x"))), (None, None));
    }
}
