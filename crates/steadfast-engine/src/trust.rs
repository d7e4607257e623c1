//! What a repository makes the engine and its agents run or say, file by file, each with the digest of its content. The
//! user says yes to these digests; `trust/ledger.rs` keeps the answers.

mod ledger;
mod scripts;

use std::ffi::OsString;
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use steadfast_hosts::adapter;
use steadfast_model::host::Host;
use steadfast_model::text;
use steadfast_system::{bounded, env_vars};

use crate::plan::{DefinitionOrigin, UsedDefinition};

pub use ledger::{Ledger, State};

/// No script is longer.
const LONGEST: u64 = 256 * 1024 * 1024;
/// A longer `package.json` counts whole.
const LONGEST_PACKAGE: u64 = 16 * 1024 * 1024;
/// The kernel follows no more links in one path.
const MOST_LINKS: usize = 40;

/// A project directory and the repository that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    project: PathBuf,
    /// The top of the outermost git repository around the project, else the project itself.
    root: PathBuf,
    /// The project and the directories above it that are not the user's home or above that.
    directories: Vec<PathBuf>,
}

/// A file of a repository that makes something run or tells an agent something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TrustItem {
    pub what: &'static str,
    pub file: PathBuf,
    pub sha256: String,
    /// Whether it takes the place of a definition of the user or of a built-in one.
    pub shadows: bool,
    /// What it runs.
    pub commands: Vec<String>,
    /// What else it sets.
    pub settings: Vec<String>,
}

impl Repository {
    /// `project` has no symbolic links.
    pub fn of(project: &Path) -> Self {
        let home = env_vars::path(env_vars::USER_HOME).and_then(|home| fs_err::canonicalize(home).ok());
        let is_above_home = |directory: &Path| home.as_ref().is_some_and(|home| home.starts_with(directory));
        let directories: Vec<PathBuf> =
            project.ancestors().take_while(|directory| !is_above_home(directory)).map(Path::to_owned).collect();
        let root = directories.iter().rfind(|directory| directory.join(".git").exists());
        let root = root.map_or_else(|| project.to_owned(), Clone::clone);
        Self { project: project.to_owned(), root, directories }
    }

    /// Whether a file is in the repository, or is found through one of its links.
    pub fn has(&self, file: &Path) -> bool {
        let parts = |path: &Path| path.components().rev().map(|part| part.as_os_str().to_owned()).collect();
        let mut open: Vec<OsString> = parts(&self.project.join(file));
        let (mut at, mut links) = (PathBuf::new(), 0);
        while let Some(part) = open.pop() {
            match Path::new(&part).components().next() {
                Some(Component::ParentDir) => {
                    at.pop();
                }
                Some(Component::CurDir) | None => {}
                Some(_) => at.push(&part),
            }
            let Ok(target) = std::fs::read_link(&at) else { continue };
            links += 1;
            if at.starts_with(&self.root) || links > MOST_LINKS {
                return true;
            }
            at.pop();
            open.extend(parts(&target) as Vec<OsString>);
        }
        at.starts_with(&self.root)
    }

    /// The path of a file as people read it.
    pub fn shown(&self, file: &Path) -> String {
        let shown = file.strip_prefix(&self.project).or_else(|_| file.strip_prefix(&self.root)).unwrap_or(file);
        text::one_line(&shown.to_string_lossy())
    }

    /// What a plan brings from the repository: its definitions, their prompts, and the scripts that they name.
    pub fn items_of_definitions(&self, used: &[UsedDefinition]) -> io::Result<Vec<TrustItem>> {
        // What a pipeline of the repository names by path was not chosen by the user.
        let is_chosen = !used.first().is_some_and(|own| self.brings(own, true));
        let mut items = Vec::new();
        for used in used.iter().filter(|used| self.brings(used, is_chosen)) {
            add(
                &mut items,
                TrustItem {
                    shadows: used.shadows,
                    commands: used.commands.clone(),
                    ..TrustItem::new(used.kind.into(), self.place(Path::new(&used.file)), used.sha256.clone())
                },
            );
            if let Some((file, sha256)) = &used.prompt {
                add(&mut items, TrustItem::new("prompt", self.place(Path::new(file)), sha256.clone()));
            }
        }
        self.add_scripts(&mut items)?;
        Ok(items)
    }

    fn brings(&self, used: &UsedDefinition, is_chosen: bool) -> bool {
        match used.origin {
            DefinitionOrigin::Project => true,
            DefinitionOrigin::Path => !is_chosen || self.has(Path::new(&used.file)),
            DefinitionOrigin::User | DefinitionOrigin::BuiltIn => false,
        }
    }

    /// What the client of a host loads from the project by itself, and the scripts that this names.
    pub fn items_of_client(&self, host: Host) -> io::Result<Vec<TrustItem>> {
        let mut items = Vec::new();
        for found in (adapter(host).project_files)(&self.directories)? {
            let sha256 = digest(&found.file)?;
            let (commands, settings) = (found.commands, found.settings);
            add(
                &mut items,
                TrustItem { commands, settings, ..TrustItem::new(found.what, self.place(&found.file), sha256) },
            );
        }
        self.add_scripts(&mut items)?;
        Ok(items)
    }

    /// These files as scripts, as they are now; those that no longer exist are left out.
    pub fn scripts(&self, files: &[PathBuf]) -> io::Result<Vec<TrustItem>> {
        let there = files.iter().filter(|file| file.exists());
        there.map(|file| Ok(TrustItem::new(SCRIPT, file.clone(), digest(file)?))).collect()
    }

    fn add_scripts(&self, items: &mut Vec<TrustItem>) -> io::Result<()> {
        let commands: Vec<String> = items.iter().flat_map(|item| item.commands.clone()).collect();
        for command in commands {
            for file in scripts::named_in(&command, &self.project, &self.root)? {
                let sha256 = digest(&file)?;
                add(items, TrustItem::new(SCRIPT, self.place(&file), sha256));
            }
        }
        Ok(())
    }

    /// One name for a file, however it is reached. The last part stays, so that a link that replaces a file is noticed.
    fn place(&self, file: &Path) -> PathBuf {
        let file = self.project.join(file);
        let folder = file.parent().and_then(|folder| fs_err::canonicalize(folder).ok());
        folder.zip(file.file_name()).map(|(folder, name)| folder.join(name)).unwrap_or(file)
    }
}

/// The word for items that commands name.
pub const SCRIPT: &str = "script";

impl TrustItem {
    fn new(what: &'static str, file: PathBuf, sha256: String) -> Self {
        Self { what, file, sha256, shadows: false, commands: Vec::new(), settings: Vec::new() }
    }
}

fn add(items: &mut Vec<TrustItem>, item: TrustItem) {
    if items.iter().all(|other| other.file != item.file) {
        items.push(item);
    }
}

/// What `npm run` and the like take from a `package.json`. Agents change the rest of it with every dependency.
fn package_scripts(file: &Path) -> Option<Vec<u8>> {
    if file.file_name()? != scripts::PACKAGE {
        return None;
    }
    let package: Value = serde_json::from_slice(&bounded::whole(file, LONGEST_PACKAGE).ok()?).ok()?;
    serde_json::to_vec(&json!([package.get("scripts"), package.get("packageManager")])).ok()
}

/// The digest of a file's content. A link has another digest than a file of the same content.
fn digest(file: &Path) -> io::Result<String> {
    let mut digest = Sha256::new();
    if let Ok(target) = std::fs::read_link(file) {
        digest.update(b"link to ");
        digest.update(target.as_os_str().as_encoded_bytes());
        digest.update(b"\n");
    }
    if let Some(scripts) = package_scripts(file) {
        digest.update(scripts);
        return Ok(text::hex(&digest.finalize()));
    }
    let (mut content, mut buffer, mut length) = (bounded::open(file)?, vec![0; 64 * 1024], 0);
    loop {
        let read = content.read(&mut buffer)?;
        length += read as u64;
        if length > LONGEST {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("`{}` is too large", file.display())));
        }
        match buffer.get(..read) {
            Some(bytes) if read > 0 => digest.update(bytes),
            _ => return Ok(text::hex(&digest.finalize())),
        }
    }
}

#[cfg(test)]
mod tests;
