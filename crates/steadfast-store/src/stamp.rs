//! Whether a process wrote to the store. Comparing stamps costs far less than opening the store.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Inode, size and time of the database and of its log.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct StoreStamp([Option<(u64, u64, i64, i64)>; 2]);

impl StoreStamp {
    pub fn of(store: &Path) -> Self {
        let mut log = store.as_os_str().to_owned();
        log.push("-wal");
        Self([store.to_owned(), PathBuf::from(log)].map(|path| {
            let meta = fs_err::metadata(path).ok()?;
            Some((meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec()))
        }))
    }
}
