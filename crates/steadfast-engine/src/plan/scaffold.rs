//! Templates for new loop types and pipelines: small, commented, valid as they are. Existing files are not overwritten.
//! Files in the user's home are readable by the owner only; files in a project follow the umask.

use std::io::Write as _;
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
    if folder.symlink_metadata().is_ok() {
        return Err(PlanError::Exists { path: folder });
    }
    let files = [(folder.join("loop.yaml"), LOOP), (folder.join("prompt.md"), PROMPT)];
    for (path, template) in &files {
        write_new(path, readers, template, &name)?;
    }
    Ok(files.map(|(path, _)| path).to_vec())
}

pub fn new_pipeline(path: &Path, name: &str, readers: Readers) -> Result<(), PlanError> {
    let name: RunName = name.parse()?;
    if path.symlink_metadata().is_ok() {
        return Err(PlanError::Exists { path: path.to_owned() });
    }
    write_new(path, readers, PIPELINE, &name)
}

fn write_new(path: &Path, readers: Readers, template: &str, name: &RunName) -> Result<(), PlanError> {
    let dir = path.parent().unwrap_or(path);
    let mode = match readers {
        Readers::Owner => {
            paths::create_private_dir(dir)?;
            0o600
        }
        Readers::Project => {
            fs_err::create_dir_all(dir)?;
            0o666
        }
    };
    let mut file = fs_err::OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(template.replace("{{name}}", name.as_str()).as_bytes())?;
    Ok(())
}
