//! Writes a report whole or not at all, readable by its owner only.

use std::io;
use std::path::{Path, PathBuf};

use steadfast_engine::durable::{self, Readers};

#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("`{}` is a directory", .0.display())]
    Directory(PathBuf),
    #[error("`{}` is not a regular file", .0.display())]
    NoFile(PathBuf),
    #[error("cannot write the report: {0}")]
    Io(#[from] io::Error),
}

impl FileError {
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Directory(_) => "name a file in it, such as report.html",
            Self::NoFile(_) => "name a file, or leave FILE out to print the report",
            Self::Io(_) => "check that the directory exists, is yours and has room",
        }
    }
}

/// Writes the report and returns its full path. A link is followed, so that what it leads to is replaced.
pub fn write(path: &Path, html: &str) -> Result<PathBuf, FileError> {
    let path = match fs_err::metadata(path) {
        Ok(found) if found.is_dir() => return Err(FileError::Directory(path.to_owned())),
        Ok(found) if !found.is_file() => return Err(FileError::NoFile(path.to_owned())),
        Ok(_) => fs_err::canonicalize(path)?,
        Err(_) => std::path::absolute(path)?,
    };
    durable::replace_output(Readers::Owner, &path, html.as_bytes())?;
    Ok(path)
}
