//! JSON files that people and scripts edit while we write them: read only when they changed, replaced whole, and moved
//! aside when they are broken. The last content stays in memory and is trusted while inode, time and length of the file
//! stay the same, so that a long history is not read again.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use steadfast_system::{bounded, clock};

use super::FilesError;
use super::exchange::{self, Stamp};
use super::place::ProjectPlace;
use fs_err::os::unix::fs::OpenOptionsExt as _;

use crate::durable::{self, UNFINISHED, if_exists};
use crate::lock;

pub(super) const CLAUDE: &str = ".claude";
pub(super) const LOCK: &str = ".steadfast.lock";
/// The lock is held for a few writes at most.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);
/// Ten thousand iterations are about four megabytes.
const MAX_BYTES: u64 = 256 << 20;

/// Some editors empty a file before they write it; they are done after this many looks.
const EDITING_TRIES: u32 = 5;
const EDITING_PAUSE: Duration = Duration::from_millis(20);
/// A file that changes this often while we replace it is not being edited by hand.
const UPDATE_TRIES: u32 = 100;

/// Held while files are read, changed and replaced.
pub(super) struct Lock {
    file: File,
}

impl Lock {
    pub(super) fn take(place: &ProjectPlace) -> Result<Self, FilesError> {
        let path = place.file_to_write(&[CLAUDE, LOCK])?;
        loop {
            let options =
                fs_err::OpenOptions::new().create(true).truncate(false).read(true).write(true).mode(0o600).open(&path);
            let file = options?.into_parts().0;
            if !lock::lock_within(&file, LOCK_PATIENCE, || false)? {
                return Err(FilesError::Busy { path });
            }
            // `git clean` may have removed the file while this process waited for it.
            if lock::is_at(&file, &path)? {
                return Ok(Self { file });
            }
        }
    }

    /// Records that the registry was missing or broken, see [`registry_epoch`].
    pub(super) fn begin_registry_epoch(&self) -> Result<(), FilesError> {
        // After the clock was set back, the last epoch may lie ahead.
        let last = self.file.metadata()?.modified()?;
        Ok(self.file.set_modified(clock::wall_precisely().max(last + Duration::from_micros(1)))?)
    }
}

/// The time of the lock file, which changes whenever the registry had to be created anew. A run that remembers another
/// time knows that its entry was lost with the registry, not removed by hand.
pub(super) fn registry_epoch(place: &ProjectPlace) -> Result<Option<SystemTime>, FilesError> {
    let metadata = if_exists(fs_err::metadata(place.file(&[CLAUDE, LOCK])?))?;
    Ok(metadata.and_then(|metadata| metadata.modified().ok()))
}

/// The content of a file.
pub(super) enum FoundDocument {
    Missing,
    /// Not JSON of the right shape; moved to this path.
    Broken(PathBuf),
    Value(Value),
}

impl FoundDocument {
    /// The value, or a new one. Warns about a broken file.
    pub(super) fn value_or(self, new: Value, warnings: &mut Vec<String>) -> Value {
        match self {
            Self::Value(value) => return value,
            Self::Missing => {}
            Self::Broken(aside) => {
                warnings.push(format!("a broken file was moved to `{}` and replaced by a new one", aside.display()));
            }
        }
        new
    }
}

/// What to do with a file that was read.
pub(super) enum Edit {
    Write(Value),
    /// Leave the file as it is; the value is what it contains, if the caller still has it.
    Keep(Option<Value>),
}

impl Edit {
    pub(super) fn write_if(changed: bool, value: Value) -> Self {
        if changed { Self::Write(value) } else { Self::Keep(Some(value)) }
    }
}

/// One JSON file.
#[derive(Debug)]
pub(super) struct Document {
    parts: Vec<String>,
    /// Whether a value has the shape of this file; any other content is treated as broken.
    shape: fn(&Value) -> bool,
    /// The file when it was last read or written.
    stamp: Option<Stamp>,
    /// Its content then, except while `update` has handed it out.
    value: Option<Value>,
}

impl Document {
    pub(super) fn new(parts: &[&str], shape: fn(&Value) -> bool) -> Self {
        let parts = parts.iter().map(|part| (*part).to_owned()).collect();
        Self { parts, shape, stamp: None, value: None }
    }

    pub(super) fn path(&self, place: &ProjectPlace) -> Result<PathBuf, FilesError> {
        place.file(&self.parts)
    }

    /// Reads the file and does what `change` decides. If the file was edited meanwhile, it is read and changed again.
    pub(super) fn update<T>(
        &mut self,
        place: &ProjectPlace,
        lock: &Lock,
        mut change: impl FnMut(FoundDocument) -> Result<(Edit, T), FilesError>,
    ) -> Result<T, FilesError> {
        for _ in 0..UPDATE_TRIES {
            match change(self.take(place, lock)?)? {
                (Edit::Keep(value), result) => {
                    self.value = value;
                    return Ok(result);
                }
                (Edit::Write(value), result) => {
                    if self.replace(place, value)? {
                        return Ok(result);
                    }
                }
            }
        }
        Err(FilesError::Busy { path: self.path(place)? })
    }

    fn take(&mut self, place: &ProjectPlace, _lock: &Lock) -> Result<FoundDocument, FilesError> {
        let path = self.path(place)?;
        let mut content = self.read(&path)?;
        for _ in 0..EDITING_TRIES {
            if !matches!(content, Content::Broken) {
                break;
            }
            std::thread::sleep(EDITING_PAUSE);
            content = self.read(&path)?;
        }
        match content {
            Content::Missing => Ok(FoundDocument::Missing),
            Content::Valid => Ok(self.value.take().map_or(FoundDocument::Missing, FoundDocument::Value)),
            Content::Broken => Ok(FoundDocument::Broken(move_aside(&path, "broken")?)),
        }
    }

    /// Writes a value; false if the file is not the one that was read any more.
    fn replace(&mut self, place: &ProjectPlace, value: Value) -> Result<bool, FilesError> {
        let known = self.stamp.take();
        let path = place.file_to_write(&self.parts)?;
        let Some(stamp) = exchange::replace(&path, durable::json(&value).as_bytes(), known.as_ref())? else {
            return Ok(false);
        };
        self.stamp = Some(stamp);
        self.value = Some(value);
        Ok(true)
    }

    /// Whether the file is not the one that this process read or wrote last.
    pub(super) fn is_touched(&self, place: &ProjectPlace) -> bool {
        let found = self.path(place).and_then(|path| Ok(Stamp::at(&path)?));
        found.map_or(true, |stamp| stamp.is_none() || stamp != self.stamp)
    }

    /// Reads the file without the lock; `None` if it is missing, or broken at the moment.
    pub(super) fn peek(&mut self, place: &ProjectPlace) -> Result<Option<&Value>, FilesError> {
        let path = self.path(place)?;
        match self.read(&path)? {
            Content::Valid => Ok(self.value.as_ref()),
            Content::Missing | Content::Broken => Ok(None),
        }
    }

    /// Brings `self.value` up to date.
    fn read(&mut self, path: &Path) -> Result<Content, FilesError> {
        let before = self.stamp.take();
        let Some(file) = if_exists(bounded::open(path))? else {
            self.value = None;
            return Ok(Content::Missing);
        };
        let stamp = Stamp::of(&file.metadata()?);
        if before.as_ref() == Some(&stamp) && self.value.is_some() {
            self.stamp = before;
            return Ok(Content::Valid);
        }
        self.value = None;
        let mut text = Vec::new();
        if stamp.length <= MAX_BYTES {
            file.take(MAX_BYTES).read_to_end(&mut text)?;
        }
        match serde_json::from_slice::<Value>(&text) {
            Ok(value) if (self.shape)(&value) => {
                self.stamp = Some(stamp);
                self.value = Some(value);
                Ok(Content::Valid)
            }
            _ => Ok(Content::Broken),
        }
    }
}

enum Content {
    Missing,
    Valid,
    Broken,
}

/// Sets a field of an object; returns whether that changed anything.
pub(super) fn set(object: &mut serde_json::Map<String, Value>, name: &str, value: impl Into<Value>) -> bool {
    let value = value.into();
    if object.get(name) == Some(&value) {
        return false;
    }
    object.insert(name.to_owned(), value);
    true
}

/// The object; anything else is replaced by an empty one.
pub(super) fn object(value: &mut Value) -> Option<&mut serde_json::Map<String, Value>> {
    if !value.is_object() {
        *value = json!({});
    }
    value.as_object_mut()
}

/// The list; anything else is replaced by an empty one.
pub(super) fn list(value: &mut Value) -> Option<&mut Vec<Value>> {
    if !value.is_array() {
        *value = json!([]);
    }
    value.as_array_mut()
}

/// Renames a file or directory to the first free `NAME.WHY-N` beside it.
pub(super) fn move_aside(path: &Path, why: &str) -> Result<PathBuf, FilesError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for number in 1..=u32::MAX {
        let aside = path.with_file_name(format!("{name}.{why}-{number}"));
        if std::fs::symlink_metadata(&aside).is_err() {
            fs_err::rename(path, &aside)?;
            return Ok(aside);
        }
    }
    Err(FilesError::NotAFile { path: path.to_owned() })
}

/// Writes a file whole or not at all. What agents said is for its owner only, also where it was readable for others.
pub(super) fn replace(path: &Path, text: &[u8]) -> Result<(), FilesError> {
    Ok(durable::replace(path, text)?)
}

/// Creates a file with its content unless it exists.
pub(super) fn create(path: &Path, text: &[u8]) -> Result<(), FilesError> {
    // An agent may create it at the same moment, which `exchange` notices.
    if !path.exists() {
        exchange::replace(path, text, None)?;
    }
    Ok(())
}

/// Removes temporary files that a killed process left. The lock makes sure that none of them is in use.
pub(super) fn sweep(directory: &Path, _lock: &Lock) {
    for path in files_named(directory, UNFINISHED) {
        // Best effort: a leftover does no harm.
        let _ = fs_err::remove_file(path);
    }
}

/// The files of a directory with this prefix and suffix.
pub(super) fn files_named(directory: &Path, [prefix, suffix]: [&str; 2]) -> impl Iterator<Item = PathBuf> {
    fs_err::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).filter(move |path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(prefix) && name.ends_with(suffix)
    })
}
