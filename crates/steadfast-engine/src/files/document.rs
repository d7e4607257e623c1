//! JSON files that others read and change while we do: read only when they changed, replaced whole or not at all, and
//! put aside when they are broken. What was last written stays in memory and is trusted as long as inode, time and
//! length of the file say that nobody touched it, so that a long history costs no reading.

use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use steadfast_model::clock;
use steadfast_system::bounded;

use super::FilesError;
use super::exchange::{self, Stamp};
use super::layout::Layout;
use super::place::Place;
use crate::durable::{self, Readers, UNFINISHED};
use crate::lock;

pub(super) const CLAUDE: &str = ".claude";
const LOCK: &str = ".steadfast.lock";
/// Nobody holds the lock for longer than a few writes.
const LOCK_TRIES: u32 = 200;
const LOCK_PAUSE: Duration = Duration::from_millis(50);
/// Ten thousand iterations are about four megabytes.
const MOST_BYTES: u64 = 256 << 20;

/// Somebody who empties a file to write it anew is done by then.
const EDITING_TRIES: u32 = 5;
const EDITING_PAUSE: Duration = Duration::from_millis(20);
/// A file that is replaced this often while we want to is not being edited.
pub(super) const MOST_TRIES: u32 = 100;

/// Held while files are read, changed and replaced. What its file says is when the registry as a whole was last lost.
pub(super) struct Lock {
    file: File,
}

impl Lock {
    pub(super) fn take(place: &Place) -> Result<Self, FilesError> {
        let path = place.file_to_write(&[CLAUDE, LOCK])?;
        let file =
            fs_err::OpenOptions::new().create(true).truncate(false).read(true).write(true).open(&path)?.into_parts().0;
        for _ in 0..LOCK_TRIES {
            if lock::try_lock(&file)? {
                return Ok(Self { file });
            }
            std::thread::sleep(LOCK_PAUSE);
        }
        Err(FilesError::Busy { path })
    }

    /// A number that changes whenever the registry as a whole was lost: who remembers another one knows that nobody
    /// removed its entry.
    pub(super) fn losses(&self) -> Result<u64, FilesError> {
        (&self.file).rewind()?;
        Ok(read_losses(&self.file)?)
    }

    pub(super) fn count_loss(&self) -> Result<(), FilesError> {
        // The count itself may have been lost with all the rest: it must not come to a number that it had before.
        let now = u64::try_from(clock::now()).unwrap_or(0);
        let losses = self.losses()?.wrapping_add(1).max(now);
        self.file.set_len(0)?;
        (&self.file).rewind()?;
        (&self.file).write_all(format!("{losses}\n").as_bytes())?;
        Ok(())
    }
}

/// The same without the lock, for those who only look.
pub(super) fn losses(place: &Place) -> Result<u64, FilesError> {
    match bounded::open(&place.file(&[CLAUDE, LOCK])?) {
        Ok(file) => Ok(read_losses(file.file())?),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error.into()),
    }
}

fn read_losses(file: &File) -> std::io::Result<u64> {
    let mut text = Vec::new();
    file.take(32).read_to_end(&mut text)?;
    Ok(std::str::from_utf8(&text).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0))
}

/// Whether the lock can be taken as far as its path is concerned.
pub(super) fn check_lock(place: &Place) -> Result<(), FilesError> {
    place.file(&[CLAUDE, LOCK]).map(|_| ())
}

/// What a file has to be to be taken as ours.
pub(super) type Shape = fn(&Value) -> bool;

/// What was found where the file belongs.
pub(super) enum Found {
    Missing,
    /// It was there and no JSON of the right shape; put aside under this path.
    Broken(PathBuf),
    Value(Value),
}

/// What became of a file that was to be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(super) enum Put {
    Done,
    /// Somebody changed it meanwhile, and their file is there now: take it again.
    Overtaken,
}

/// One JSON file.
#[derive(Debug)]
pub(super) struct Document {
    parts: Vec<String>,
    shape: Shape,
    /// The file as it was when last read or written, and what it said, unless a caller has taken that.
    stamp: Option<Stamp>,
    known: Option<Value>,
    layout: Layout,
}

impl Document {
    pub(super) fn new(parts: &[&str], shape: Shape) -> Self {
        let parts = parts.iter().map(|part| (*part).to_owned()).collect();
        Self { parts, shape, stamp: None, known: None, layout: Layout::default() }
    }

    fn parts(&self) -> Vec<&str> {
        self.parts.iter().map(String::as_str).collect()
    }

    pub(super) fn path(&self, place: &Place) -> Result<PathBuf, FilesError> {
        place.file(&self.parts())
    }

    /// Takes the value out of memory, or reads the file; the caller gives it back with [`Document::put`].
    pub(super) fn take(&mut self, place: &Place, _lock: &Lock) -> Result<Found, FilesError> {
        let path = self.path(place)?;
        let mut look = self.look(&path)?;
        for _ in 0..EDITING_TRIES {
            if !matches!(look, Look::Broken) {
                break;
            }
            std::thread::sleep(EDITING_PAUSE);
            look = self.look(&path)?;
        }
        match look {
            Look::Missing => Ok(Found::Missing),
            Look::Read => Ok(self.known.take().map_or(Found::Missing, Found::Value)),
            Look::Broken => Ok(Found::Broken(put_aside(&path, "broken")?)),
        }
    }

    /// Gives a value back; the file is replaced only if it `changed`, and only if it still is what was taken.
    pub(super) fn put(&mut self, place: &Place, _lock: &Lock, value: Value, changed: bool) -> Result<Put, FilesError> {
        if !changed && self.stamp.is_some() {
            self.known = Some(value);
            return Ok(Put::Done);
        }
        let known = self.stamp.take();
        let text = self.layout.text(&value)?;
        let path = place.file_to_write(&self.parts())?;
        let Some(stamp) = exchange::replace(&path, &text, known.as_ref())? else { return Ok(Put::Overtaken) };
        self.stamp = Some(stamp);
        self.known = Some(value);
        Ok(Put::Done)
    }

    /// What to say if it was overtaken again and again.
    pub(super) fn busy(&self, place: &Place) -> FilesError {
        self.path(place).map_or_else(|error| error, |path| FilesError::Busy { path })
    }

    /// Looks at the file without the lock: what it says now, or nothing if it is missing or unreadable at the moment.
    pub(super) fn peek(&mut self, place: &Place) -> Result<Option<&Value>, FilesError> {
        let path = self.path(place)?;
        match self.look(&path)? {
            Look::Read => Ok(self.known.as_ref()),
            Look::Missing | Look::Broken => Ok(None),
        }
    }

    fn look(&mut self, path: &Path) -> Result<Look, FilesError> {
        let before = self.stamp.take();
        let file = match bounded::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.known = None;
                self.layout = Layout::default();
                return Ok(Look::Missing);
            }
            Err(error) => return Err(error.into()),
        };
        let stamp = Stamp::of(&file.metadata()?);
        if before.as_ref() == Some(&stamp) && self.known.is_some() {
            self.stamp = before;
            return Ok(Look::Read);
        }
        self.known = None;
        self.layout = Layout::default();
        let mut text = Vec::new();
        if stamp.length <= MOST_BYTES {
            file.take(MOST_BYTES).read_to_end(&mut text)?;
        }
        match serde_json::from_slice::<Value>(&text) {
            Ok(value) if (self.shape)(&value) => {
                self.stamp = Some(stamp);
                self.known = Some(value);
                Ok(Look::Read)
            }
            _ => Ok(Look::Broken),
        }
    }
}

enum Look {
    Missing,
    /// It is in memory now.
    Read,
    Broken,
}

/// Sets a field of an object; tells whether that changed anything.
pub(super) fn set(object: &mut serde_json::Map<String, Value>, name: &str, value: impl Into<Value>) -> bool {
    let value = value.into();
    if object.get(name) == Some(&value) {
        return false;
    }
    object.insert(name.to_owned(), value);
    true
}

/// Renames a file or directory to the first free `NAME.WHY-N` beside it.
pub(super) fn put_aside(path: &Path, why: &str) -> Result<PathBuf, FilesError> {
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

/// Writes a file whole or not at all, for everybody who works on the project.
pub(super) fn replace(path: &Path, text: &[u8]) -> Result<Metadata, FilesError> {
    Ok(durable::replace_for(Readers::Project, path, text)?)
}

/// Creates a file that is not there yet, with its content; one that is there stays as it is.
pub(super) fn create(path: &Path, text: &[u8]) -> Result<bool, FilesError> {
    if path.exists() {
        return Ok(false);
    }
    replace(path, text)?;
    Ok(true)
}

/// Removes what a writer that was killed left unfinished. Only with the lock, since nobody else writes then.
pub(super) fn sweep(directory: &Path, _lock: &Lock) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    let [prefix, suffix] = UNFINISHED;
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(prefix) && name.ends_with(suffix) {
            // Best effort: a leftover harms nobody.
            let _ = fs_err::remove_file(entry.path());
        }
    }
}
