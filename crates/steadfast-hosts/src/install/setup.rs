//! Planning: what each file contains now, without our part, and after setup, and the manifest of it.

use std::cell::Cell;
use std::path::{Path, PathBuf, absolute};

use serde_json::Value;

use super::apply::read;
use super::codex_config::parse;
use super::json::{JsonDocument, JsonEdit};
use super::manifest::{Manifest, ManifestContent, ManifestEntry, OptionalSetting};
use super::undo::{access, undo};
use super::{Access, Choice, Consent, FileChange, InstallError, InstallPlan, InstallRequest, Question, decide};
use steadfast_model::host::Host;

/// Below `$STEADFAST_HOME`.
const CONFIG: &str = "config.toml";
/// The key in it that names the store.
pub(super) const DB: &str = "db";

pub(crate) struct Setup {
    pub(crate) home: PathBuf,
    /// The name of the manifest.
    name: &'static str,
    pub(crate) config_dir: PathBuf,
    pub(crate) old: Manifest,
    old_text: Option<String>,
    pub(crate) new: Manifest,
    pub(crate) plan: InstallPlan,
}

/// An optional setting about which [`Setup::choose`] decides.
pub(crate) struct Wanted<'a, T> {
    pub(crate) setting: OptionalSetting,
    pub(crate) consent: Consent,
    pub(crate) value: T,
    /// The user has set it themselves.
    pub(crate) is_theirs: bool,
    pub(crate) question: Question<'a>,
    pub(crate) may_ask: bool,
}

/// A JSON file of the user's, as it is and as it would be without us.
pub(crate) struct UserFile {
    pub(crate) path: PathBuf,
    pub(crate) current: Option<String>,
    pub(crate) base_text: Option<String>,
    pub(crate) base: JsonDocument,
}

impl Setup {
    pub(crate) fn load(home: &Path, host: Host, config_dir: &Path) -> Result<Self, InstallError> {
        let (home, config_dir) = (absolute(home)?, absolute(config_dir)?);
        let (mut old, old_text) = Manifest::load(&home, host.name())?;
        let mut new = Manifest::new();
        new.dirs.clone_from(&old.dirs);
        new.refused.clone_from(&old.refused);
        for other in Manifest::load_others(&home, &[host])? {
            // What hosts share is in the manifest of each, so that removing the last one removes it.
            let shared = other.entry(&home.join(CONFIG)).filter(|entry| old.entry(&entry.path).is_none());
            old.files.extend(shared.cloned());
            let ours = [Manifest::path(&home, host.name()), config_dir.clone()];
            new.dirs.extend(other.dirs.into_iter().filter(|dir| ours.iter().any(|path| path.starts_with(dir))));
        }
        Ok(Self { home, name: host.name(), config_dir, old, old_text, new, plan: InstallPlan::default() })
    }

    /// Something that shares nothing with hosts.
    pub(crate) fn of_service(home: &Path, name: &'static str, config_dir: &Path) -> Result<Self, InstallError> {
        let (home, config_dir) = (absolute(home)?, absolute(config_dir)?);
        let (old, old_text) = Manifest::load(&home, name)?;
        let new = Manifest { dirs: old.dirs.clone(), ..Manifest::new() };
        Ok(Self { home, name, config_dir, old, old_text, new, plan: InstallPlan::default() })
    }

    /// What an earlier setup set at this key, if it is still there.
    pub(crate) fn earlier_edit(&self, file: &UserFile, keys: &[&str]) -> Option<JsonEdit> {
        let ManifestContent::Json { edits, .. } = &self.old.entry(&file.path)?.content else {
            return None;
        };
        let edit = edits.iter().find(|edit| edit.keys == keys)?;
        let present = JsonDocument::parse(&file.path, file.current.as_deref()).ok()?;
        let value = present.get(keys).filter(|value| edit.owns(value))?;
        Some(JsonEdit { written: value.clone(), ..edit.clone() })
    }

    /// Decides about an optional setting and remembers the answer. What the user refused earlier is not asked for again;
    /// only a flag sets it.
    pub(crate) fn choose<T>(
        &mut self,
        wanted: Wanted<'_, T>,
        request: &InstallRequest<'_>,
    ) -> Result<Choice<T>, InstallError> {
        let key = (self.config_dir.clone(), wanted.setting);
        let was_refused = self.old.refused.contains(&key);
        if was_refused && matches!(wanted.consent, Consent::Presumed | Consent::Open) {
            return Ok(Choice::Leave);
        }
        let said_no = Cell::new(false);
        let ask = request.ask.filter(|_| wanted.may_ask).map(|ask| {
            let (said_no, question) = (&said_no, &wanted.question);
            move || ask(question).inspect(|agreed| said_no.set(!agreed))
        });
        let choice = decide(wanted.consent, wanted.value, wanted.is_theirs, ask)?;
        match &choice {
            Choice::Set(_) => self.new.refused.remove(&key),
            Choice::Leave if !said_no.get() => false,
            Choice::Leave | Choice::Remove => self.new.refused.insert(key),
        };
        Ok(choice)
    }

    /// Applies the edits to the file without our part.
    pub(crate) fn edit(&mut self, file: UserFile, mut edits: Vec<JsonEdit>, empty: Value) -> Result<(), InstallError> {
        let mut document = file.base.clone();
        let present = JsonDocument::parse(&file.path, file.current.as_deref())?;
        for edit in &mut edits {
            edit.previous = file.base.get(&edit.keys).cloned();
            let value = edit.merged(&file.path, &present)?;
            document.set(&file.path, &edit.keys, &value)?;
        }
        let after = if present.root == document.root && file.current.is_some() {
            file.current.clone()
        } else {
            Some(document.render())
        };
        let entry = self.entry(file.path, file.base_text, after, ManifestContent::Json { edits, empty });
        self.record(file.current, entry);
        Ok(())
    }

    /// A file of this configuration directory.
    pub(crate) fn entry(
        &self,
        path: PathBuf,
        before: Option<String>,
        after: Option<String>,
        content: ManifestContent,
    ) -> ManifestEntry {
        ManifestEntry { path, config_dir: Some(self.config_dir.clone()), before, after, content }
    }

    /// Plans the change from the current content, and adds it to the manifest.
    pub(crate) fn record(&mut self, current: Option<String>, entry: ManifestEntry) {
        self.plan.push(FileChange {
            path: entry.path.clone(),
            before: current,
            after: entry.after.clone(),
            access: access(&entry),
        });
        self.new.files.push(entry);
    }

    /// Undoes what an older version set up and this one does not, and writes the manifest first.
    pub(crate) fn finish(mut self) -> Result<InstallPlan, InstallError> {
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
        let path = Manifest::path(&self.home, self.name);
        self.new.note_missing_dirs(&self.plan.changes, &path);
        let after = Some(self.new.render(&path)?);
        let manifest = FileChange { path, before: self.old_text, after, access: Access::Private };
        if manifest.before != manifest.after {
            self.plan.changes.insert(0, manifest);
        }
        Ok(self.plan)
    }

    /// The store that all hosts and the terminal share.
    pub(crate) fn config_toml(&mut self) -> Result<(), InstallError> {
        let path = self.home.join(CONFIG);
        let db = self.home.join("goals.db");
        let db = unicode(&db)?;
        let current = read(&path)?;
        let base = self.without_us(&path, current.clone())?;
        let mut document = parse(&path, base.as_deref())?;
        if let Some(theirs) = document.get(DB).and_then(|item| item.as_str()) {
            if theirs != db {
                self.note(format!("kept `db` in {}: it names {theirs}", path.display()));
            }
            return Ok(());
        }
        let present = parse(&path, current.as_deref())?;
        let after = if present.get(DB).and_then(|item| item.as_str()) == Some(db) {
            current.clone()
        } else {
            document.insert(DB, toml_edit::value(db));
            Some(document.to_string())
        };
        self.record(current, ManifestEntry::shared(path, base, after, ManifestContent::Toml { db: db.to_owned() }));
        Ok(())
    }

    /// A file of our own in the user's tree; one that the user wrote or changed stays as it is.
    pub(crate) fn own_file(&mut self, name: &str, text: &str, otherwise: &str) -> Result<(), InstallError> {
        let path = self.config_dir.join(name);
        let current = read(&path)?;
        let text = Some(text.to_owned());
        let before = match self.old.entry(&path) {
            Some(entry) if current.is_none() || current == entry.after || current == text => entry.before.clone(),
            None if current.is_none() => None,
            earlier => {
                if current != text {
                    // Keep an edited file of ours in the manifest, so that uninstall reports it.
                    self.new.files.extend(earlier.cloned());
                    self.note(format!("kept {}: it is yours; {otherwise}", path.display()));
                    let parts = path.iter().filter_map(|part| part.to_str()?.strip_suffix(".md").or(part.to_str()));
                    self.plan.kept.extend(parts.filter(|part| part.starts_with("goal-")).map(str::to_owned));
                }
                return Ok(());
            }
        };
        let entry = self.entry(path, before, text, ManifestContent::Whole);
        self.record(current, entry);
        Ok(())
    }

    pub(crate) fn file(&self, name: &str) -> Result<UserFile, InstallError> {
        let path = self.config_dir.join(name);
        let current = read(&path)?;
        let base_text = self.without_us(&path, current.clone())?;
        let base = JsonDocument::parse(&path, base_text.as_deref())?;
        Ok(UserFile { path, current, base_text, base })
    }

    pub(crate) fn without_us(&self, path: &Path, current: Option<String>) -> Result<Option<String>, InstallError> {
        match self.old.entry(path) {
            Some(entry) => Ok(undo(entry, current)?.text),
            None => Ok(current),
        }
    }

    pub(crate) fn note(&mut self, note: String) {
        self.plan.notes.push(note);
    }
}

pub(crate) fn unicode(path: &Path) -> Result<&str, InstallError> {
    path.to_str().ok_or_else(|| InstallError::PathNotUnicode { path: path.into() })
}
