//! Waking an idle session of a client that runs, from outside of it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Copy)]
pub struct WakeRequest<'a> {
    /// The host's executable.
    pub program: &'a Path,
    pub session_id: &'a str,
    /// The session's file, which shows which configuration its client uses.
    pub transcript: Option<&'a Path>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WakeCommand {
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    /// Variables to set.
    pub environment: Vec<(&'static str, OsString)>,
}
