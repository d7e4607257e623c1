//! New loop types and pipelines to begin from: small, commented, valid as they are. Nothing is ever overwritten.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use steadfast_core::run::name::RunName;

use super::PlanError;

const LOOP: &str = include_str!("scaffold/loop.yaml");
const PROMPT: &str = include_str!("scaffold/prompt.md");
const PIPELINE: &str = include_str!("scaffold/pipeline.yaml");

/// Makes the folder `NAME` in `dir` with a loop type; returns its files.
pub fn new_loop(dir: &Path, name: &str) -> Result<Vec<PathBuf>, PlanError> {
    let name: RunName = name.parse()?;
    let folder = dir.join(name.as_str());
    let files = [(folder.join("loop.yaml"), LOOP), (folder.join("prompt.md"), PROMPT)];
    if folder.symlink_metadata().is_ok() {
        return Err(PlanError::Exists { path: folder });
    }
    fs_err::create_dir_all(dir)?;
    // Fails if somebody else made it in between.
    fs_err::create_dir(&folder)?;
    for (path, text) in &files {
        write_new(path, &text.replace("{{name}}", name.as_str()))?;
    }
    Ok(files.map(|(path, _)| path).to_vec())
}

/// Writes a pipeline to `path`.
pub fn new_pipeline(path: &Path, name: &str) -> Result<(), PlanError> {
    let name: RunName = name.parse()?;
    if path.symlink_metadata().is_ok() {
        return Err(PlanError::Exists { path: path.to_owned() });
    }
    if let Some(dir) = path.parent() {
        fs_err::create_dir_all(dir)?;
    }
    write_new(path, &PIPELINE.replace("{{name}}", name.as_str()))
}

fn write_new(path: &Path, text: &str) -> Result<(), PlanError> {
    let mut file = fs_err::OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(text.as_bytes())?;
    Ok(())
}
