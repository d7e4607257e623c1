//! Finds out why SQLite cannot use its files. SQLite reports most faults of the system as "disk I/O error" or "unable to
//! open", so the same is tried here, in a file of its own: to open and close the store would drop SQLite's locks on it.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use rustix::process::{Resource, getrlimit};
#[cfg(target_os = "linux")]
use steadfast_system::bounded;
use steadfast_system::disk::DiskFault;

use crate::{Store, StoreError, connect_read_only, migrate};

/// As many files as SQLite has open at once, and one more.
const FILES: usize = 4;
/// As large as the smallest index of the log.
const BYTES: usize = 64 * 1024;
/// The most bytes of the list of mounts that are read.
#[cfg(target_os = "linux")]
const MOUNTS_READ: u64 = 4 << 20;

/// What keeps a database at `path` from being written; `None` if all works here.
pub(crate) fn probe(path: &Path) -> Option<DiskFault> {
    if path.is_dir() {
        return Some(DiskFault::Directory);
    }
    let limit = getrlimit(Resource::Fsize).current;
    let length = |end: &str| fs_err::metadata(with_end(path, end)).map_or(0, |found| found.len());
    let longest = length("").max(length("-wal")).saturating_add(BYTES as u64);
    if limit.is_some_and(|limit| limit < longest) {
        return Some(DiskFault::SizeLimit);
    }
    try_file(&directory_of(path)).err().and_then(|error| DiskFault::of(&error))
}

fn try_file(directory: &Path) -> std::io::Result<()> {
    let _files: Vec<std::fs::File> =
        (0..FILES).map(|_| std::fs::File::open(directory)).collect::<std::io::Result<_>>()?;
    let mut file = tempfile::tempfile_in(directory)?;
    file.write_all(&vec![0; BYTES])?;
    rustix::fs::fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive)?;
    // Some file systems find out only now that there is no room.
    file.sync_all()
}

/// Whether files cannot be locked at all; SQLite reports that as a lock of another process.
pub(crate) fn has_no_locks(path: &Path) -> bool {
    try_file(&directory_of(path)).is_err_and(|error| DiskFault::of(&error) == Some(DiskFault::NoLocks))
}

/// The directory of the file that a path leads to.
fn directory_of(path: &Path) -> PathBuf {
    let real = fs_err::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    real.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned()
}

/// `goals.db` and `-wal` give `goals.db-wal`.
pub(crate) fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

impl StoreError {
    pub(crate) fn of_disk(path: &Path, fault: DiskFault) -> Self {
        let path = path.to_owned();
        match fault {
            DiskFault::Full => Self::Full(path),
            DiskFault::ReadOnly => Self::ReadOnly(path),
            fault => Self::Disk { path, fault },
        }
    }

    /// An error of the system about a file, with its path.
    pub(crate) fn of_file(path: &Path, error: &std::io::Error) -> Self {
        match DiskFault::of(error) {
            Some(fault) => Self::of_disk(path, fault),
            None => Self::Io(std::io::Error::new(error.kind(), format!("{error}: {}", path.display()))),
        }
    }

    /// The fault of the disk behind an error, if there is one.
    pub fn disk_fault(&self) -> Option<DiskFault> {
        match self {
            Self::Full(_) => Some(DiskFault::Full),
            Self::ReadOnly(_) => Some(DiskFault::ReadOnly),
            Self::Disk { fault, .. } => Some(*fault),
            Self::Io(error) => DiskFault::of(error),
            _ => None,
        }
    }
}

impl Store {
    /// Opens a store that cannot be written for its readers: a status or a goal is not lost because the disk is full.
    /// Its writes report `fault`. `None` if it cannot be read either, or would have to be migrated first.
    pub(crate) fn open_to_read(path: &Path, fault: DiskFault) -> Option<Self> {
        let db = connect_read_only(path).ok()?;
        let is_current = migrate::version(&db).is_ok_and(|version| version == crate::SCHEMA_VERSION)
            && migrate::is_complete(&db).unwrap_or_default();
        is_current.then(|| Self { blocked: Some(fault), ..Self::of(db, path, None) })
    }

    /// What keeps the store from being written now, found out by a file of its own beside it.
    pub fn write_fault(&self) -> Option<StoreError> {
        self.blocked().or_else(|| probe(&self.path).map(|fault| StoreError::of_disk(&self.path, fault)))
    }

    /// Why nothing can be written, if the store was opened only to be read.
    pub fn blocked(&self) -> Option<StoreError> {
        self.blocked.map(|fault| StoreError::of_disk(&self.path, fault))
    }

    /// Opens a store again that could only be read: the disk may have room now.
    pub(crate) fn unblock(&mut self) -> Result<(), StoreError> {
        if self.blocked.is_none() {
            return Ok(());
        }
        let fresh = Self::open_until(&self.path, self.deadline, true)?;
        if let Some(error) = fresh.blocked() {
            return Err(error);
        }
        fresh.added_message.set(self.added_message.get());
        *self = fresh;
        Ok(())
    }
}

#[cfg(target_os = "linux")]
pub(crate) fn refuse_network_file_system(path: &Path) -> Result<(), StoreError> {
    // Accept a file system of unknown type.
    let Ok(info) = rustix::fs::statfs(path) else {
        return Ok(());
    };
    #[expect(clippy::cast_sign_loss, clippy::cast_possible_truncation, reason = "magic numbers are 32 bit")]
    let magic = info.f_type as u32;
    let is_remote = is_network_file_system(magic) || (magic == FUSE && is_remote_fuse(path));
    if is_remote { Err(StoreError::NetworkFileSystem(path.to_owned())) } else { Ok(()) }
}

#[cfg(not(target_os = "linux"))]
#[expect(clippy::unnecessary_wraps, reason = "same signature on all systems")]
pub(crate) fn refuse_network_file_system(_path: &Path) -> Result<(), StoreError> {
    Ok(())
}

/// File systems of programs, local or not.
#[cfg(target_os = "linux")]
const FUSE: u32 = 0x6573_5546;

/// Whether the program behind a FUSE file system reaches another machine. One that is not known here is local.
#[cfg(target_os = "linux")]
fn is_remote_fuse(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let device = fs_err::metadata(path).map(|file| file.dev());
    let mounts = bounded::whole(Path::new("/proc/self/mountinfo"), MOUNTS_READ).unwrap_or_default();
    device.is_ok_and(|device| is_remote_device(&String::from_utf8_lossy(&mounts), device))
}

/// Looks for the type of a device in a text such as `36 35 0:52 / /mnt rw - fuse.sshfs host:/srv rw`.
#[cfg(target_os = "linux")]
pub(crate) fn is_remote_device(mounts: &str, device: u64) -> bool {
    const REMOTE: [&str; 18] = [
        "afpfs",
        "ceph",
        "ceph-fuse",
        "curlftpfs",
        "davfs",
        "davfs2",
        "gcsfuse",
        "glusterfs",
        "goofys",
        "gvfsd-fuse",
        "httpfs",
        "juicefs",
        "mfs",
        "rclone",
        "s3fs",
        "seaweedfs",
        "smbnetfs",
        "sshfs",
    ];
    let number = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    let of_device = mounts.lines().filter(|line| line.split(' ').nth(2) == Some(number.as_str()));
    let kinds = of_device.filter_map(|line| line.split_once(" - ")?.1.split(' ').next()?.strip_prefix("fuse."));
    kinds.into_iter().any(|kind| REMOTE.contains(&kind))
}

/// NFS, SMB (three generations), AFS, Ceph, 9p (also the Windows drives of WSL), Coda and Lustre.
#[cfg(target_os = "linux")]
pub(crate) fn is_network_file_system(magic: u32) -> bool {
    const NETWORK: &[u32] =
        &[0x6969, 0x517B, 0xFF53_4D42, 0xFE53_4D42, 0x5346_414F, 0x00C3_6400, 0x0102_1997, 0x7375_7245, 0x0BD0_0BD0];
    NETWORK.contains(&magic)
}
