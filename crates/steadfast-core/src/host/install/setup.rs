//! Planning as such: what each file holds now, what it would hold without us, what it shall hold, and the books about it.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::apply::read;
use super::json::{Document, Edit};
use super::manifest::{Content, Entry, Manifest};
use super::undo::{access, undo};
use super::{Access, Change, InstallError, Plan};

pub(super) struct Setup {
    pub(super) home: PathBuf,
    pub(super) config_dir: PathBuf,
    pub(super) old: Manifest,
    old_text: Option<String>,
    pub(super) new: Manifest,
    pub(super) plan: Plan,
}

/// A JSON file of the user's, as it is and as it would be without us.
pub(super) struct UserFile {
    pub(super) path: PathBuf,
    pub(super) current: Option<String>,
    pub(super) base_text: Option<String>,
    pub(super) base: Document,
}

impl Setup {
    pub(super) fn load(home: &Path, config_dir: &Path) -> Result<Self, InstallError> {
        let (old, old_text) = Manifest::load(home)?;
        let mut new = Manifest::new();
        new.dirs.clone_from(&old.dirs);
        Ok(Self {
            home: home.to_path_buf(),
            config_dir: config_dir.to_path_buf(),
            old,
            old_text,
            new,
            plan: Plan::default(),
        })
    }

    /// What an earlier setup set at this key, if it is still there.
    pub(super) fn earlier_edit(&self, file: &UserFile, keys: &[&str]) -> Option<Edit> {
        let Content::Json { edits, .. } = &self.old.entry(&file.path)?.content else {
            return None;
        };
        let edit = edits.iter().find(|edit| edit.keys == keys)?;
        let present = Document::parse(&file.path, file.current.as_deref()).ok()?;
        let value = present.get(keys).filter(|value| edit.owns(value))?;
        Some(Edit { written: value.clone(), ..edit.clone() })
    }

    /// Puts the edits into the file, on top of what it holds without us.
    pub(super) fn edit(&mut self, file: UserFile, mut edits: Vec<Edit>, empty: Value) -> Result<(), InstallError> {
        let mut document = file.base.clone();
        for edit in &mut edits {
            edit.previous = file.base.get(&edit.keys).cloned();
            document.set(&file.path, &edit.keys, &edit.written)?;
        }
        let present = Document::parse(&file.path, file.current.as_deref())?;
        let after = if present.root == document.root && file.current.is_some() {
            file.current.clone()
        } else {
            Some(document.render())
        };
        let content = Content::Json { edits, empty };
        let entry = Entry {
            path: file.path,
            config_dir: Some(self.config_dir.clone()),
            before: file.base_text,
            after,
            content,
        };
        self.record(file.current, entry);
        Ok(())
    }

    /// Plans the change from what the file holds now, and enters it in the books.
    pub(super) fn record(&mut self, current: Option<String>, entry: Entry) {
        self.plan.push(Change {
            path: entry.path.clone(),
            before: current,
            after: entry.after.clone(),
            access: access(&entry),
        });
        self.new.files.push(entry);
    }

    /// Takes back what an older version set up and this one does not, and writes the manifest before everything else.
    pub(super) fn finish(mut self) -> Result<Plan, InstallError> {
        for entry in &self.old.files {
            if self.new.entry(&entry.path).is_some() {
                continue;
            }
            if entry.config_dir.as_ref().is_none_or(|dir| *dir == self.config_dir) {
                self.plan.undo(entry)?;
            } else {
                self.new.files.push(entry.clone());
            }
        }
        let path = Manifest::path(&self.home);
        self.new.note_missing_dirs(&self.plan.changes, &path);
        let manifest =
            Change { path, before: self.old_text, after: Some(self.new.render(&self.home)?), access: Access::Private };
        if manifest.before != manifest.after {
            self.plan.changes.insert(0, manifest);
        }
        Ok(self.plan)
    }

    pub(super) fn file(&self, name: &str) -> Result<UserFile, InstallError> {
        let path = self.config_dir.join(name);
        let current = read(&path)?;
        let base_text = self.without_us(&path, current.clone())?;
        let base = Document::parse(&path, base_text.as_deref())?;
        Ok(UserFile { path, current, base_text, base })
    }

    pub(super) fn without_us(&self, path: &Path, current: Option<String>) -> Result<Option<String>, InstallError> {
        match self.old.entry(path) {
            Some(entry) => Ok(undo(entry, current)?.text),
            None => Ok(current),
        }
    }

    pub(super) fn note(&mut self, note: String) {
        self.plan.notes.push(note);
    }
}
