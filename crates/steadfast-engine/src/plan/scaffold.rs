//! Templates for new loop types and pipelines: small, commented, valid as they are. Existing files are not overwritten.
//! Files in the user's home are readable by the owner only; files in a project follow the umask.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use fs_err::os::unix::fs::OpenOptionsExt as _;
use steadfast_model::run::name::RunName;
use steadfast_system::paths;

use super::PlanError;
pub use crate::durable::Readers;

const LOOP: &str = include_str!("scaffold/loop.yaml");
const PROMPT: &str = include_str!("scaffold/prompt.md");
const PIPELINE: &str = include_str!("scaffold/pipeline.yaml");

/// Creates the folder `NAME` in `dir` with a loop type, and returns its files.
pub fn new_loop(dir: &Path, name: &str, readers: Readers) -> Result<Vec<PathBuf>, PlanError> {
    let name: RunName = name.parse()?;
    let folder = dir.join(name.as_str());
    let files = [(folder.join("loop.yaml"), LOOP), (folder.join("prompt.md"), PROMPT)];
    if folder.symlink_metadata().is_ok() {
        return Err(PlanError::Exists { path: folder });
    }
    create_dir_all(dir, readers)?;
    // Files that another process creates at the same time are not overwritten.
    create_dir_all(&folder, readers)?;
    for (path, text) in &files {
        write_new(path, readers, &text.replace("{{name}}", name.as_str()))?;
    }
    Ok(files.map(|(path, _)| path).to_vec())
}

/// Writes a pipeline to `path`.
pub fn new_pipeline(path: &Path, name: &str, readers: Readers) -> Result<(), PlanError> {
    let name: RunName = name.parse()?;
    if path.symlink_metadata().is_ok() {
        return Err(PlanError::Exists { path: path.to_owned() });
    }
    if let Some(dir) = path.parent() {
        create_dir_all(dir, readers)?;
    }
    write_new(path, readers, &PIPELINE.replace("{{name}}", name.as_str()))
}

fn create_dir_all(path: &Path, readers: Readers) -> io::Result<()> {
    match readers {
        Readers::Owner => paths::create_private_dir(path),
        Readers::Project => fs_err::create_dir_all(path),
    }
}

fn write_new(path: &Path, readers: Readers, text: &str) -> Result<(), PlanError> {
    let mode = match readers {
        Readers::Owner => 0o600,
        Readers::Project => 0o666,
    };
    let mut file = fs_err::OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(text.as_bytes())?;
    Ok(())
}
