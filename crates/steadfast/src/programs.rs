//! Finds programs on PATH.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use steadfast_system::env_vars;

/// The first executable file of that name on PATH.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    let search = env_vars::path(env_vars::PATH)?;
    std::env::split_paths(&search).map(|folder| folder.join(name)).find(|candidate| is_executable(candidate))
}

pub(crate) fn is_executable(path: &Path) -> bool {
    fs_err::metadata(path).is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}
