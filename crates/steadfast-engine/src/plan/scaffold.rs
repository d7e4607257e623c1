//! Templates for new loop types and pipelines: small, commented, valid as they are. Existing files are not overwritten.
//! Files in the user's home are readable by the owner only; files in a project follow the umask.

use std::path::{Path, PathBuf};

use steadfast_model::run::name::RunName;
use steadfast_system::paths;

use super::PlanError;
use crate::durable;
pub use crate::durable::Readers;

const LOOP: &str = include_str!("scaffold/loop.yaml");
const PROMPT: &str = include_str!("scaffold/prompt.md");
const PIPELINE: &str = include_str!("scaffold/pipeline.yaml");

/// Creates the folder `NAME` in `dir` with a loop type, and returns its files.
pub fn new_loop(dir: &Path, name: &str, readers: Readers) -> Result<Vec<PathBuf>, PlanError> {
    let name: RunName = name.parse()?;
    let folder = dir.join(name.as_str());
    let (definition, prompt) = (folder.join("loop.yaml"), folder.join("prompt.md"));
    // The definition is written last: a folder without it was left by a call that died.
    let is_folder = folder.symlink_metadata().map(|found| found.is_dir()).ok();
    if is_folder == Some(false) || definition.symlink_metadata().is_ok() {
        return Err(PlanError::Exists { path: folder });
    }
    if prompt.symlink_metadata().is_err() {
        write_new(&prompt, readers, PROMPT, &name)?;
    }
    write_new(&definition, readers, LOOP, &name)?;
    Ok(vec![definition, prompt])
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
    match readers {
        Readers::Owner => paths::create_private_dir(dir)?,
        Readers::Project => fs_err::create_dir_all(dir)?,
    }
    durable::replace_output(readers, path, template.replace("{{name}}", name.as_str()).as_bytes())?;
    Ok(())
}
