//! The folder of a run, `$STEADFAST_HOME/runs/ID`: what it needs besides its row in the store, its log and its attempts.
//! The id is one of ours, so it is a plain file name.

use std::io;
use std::path::{Path, PathBuf};

use steadfast_model::clock::Millis;
use steadfast_model::redact::{MARK, redact};
use steadfast_model::run::restart::Restarts;
use steadfast_model::run::sealed::{self, SealedTexts};
use steadfast_model::run::{AttemptId, Plan};
use steadfast_store::RunRow;
use steadfast_system::{log, paths};

use crate::durable;

/// Written when the run is created, read by every engine that drives it.
const DEFINITION: &str = "pipeline.yaml";
const INPUTS: &str = "inputs.md";
const INPUT_FILES: &str = "inputs.json";
/// Where the run works, if not in the project.
const WORKPLACE: &str = "place";
const IN_WORKTREE: &str = "worktree";
/// Exists while the user wants the run to work in the background.
const DETACHED: &str = "detached";
const RESTARTS: &str = "restarts.json";
/// The texts of the plan that have secrets, whole.
const SEALED: &str = "sealed.json";
/// The words of a run that starts later.
const WORDS: &str = "words.json";
/// The scripts of the repository that its definitions name.
const SCRIPTS: &str = "scripts.json";
/// Exists once the public files show the run; contains the time of the end that they show completely.
const PUBLISHED: &str = "published";

/// The attempt whose directory has this name.
pub fn attempt_of(name: &str) -> Option<AttemptId> {
    let mut numbers = name.split('-').map(|number| number.parse::<u32>().ok());
    let id = AttemptId { stage: numbers.next()??, iteration: numbers.next()??, attempt: numbers.next()?? };
    numbers.next().is_none().then_some(id)
}

/// Why a plan cannot be put together.
#[derive(Debug, thiserror::Error)]
#[error("a prompt of this run had a secret, which was kept only in {}, and is not there", path.display())]
pub struct SealedTextGone {
    path: PathBuf,
}

impl SealedTextGone {
    pub fn hint(&self) -> &'static str {
        "start the run again from its definition"
    }
}

/// The folder of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    pub fn at(home: &Path, run_id: &str) -> Self {
        Self { path: home.join("runs").join(run_id) }
    }

    /// Creates the folder with what the run needs besides its plan: the text of a pipeline, the input of its first
    /// stage, and whether all iterations work in one worktree.
    pub fn create(
        home: &Path,
        run_id: &str,
        definition: Option<&str>,
        inputs: Option<&str>,
        in_worktree: bool,
    ) -> io::Result<()> {
        let folder = Self::at(home, run_id);
        for private in [home, &home.join("runs"), &folder.path] {
            paths::create_private_dir(private)?;
        }
        let place = in_worktree.then(|| format!("{IN_WORKTREE}\n"));
        for (name, text) in [(DEFINITION, definition), (INPUTS, inputs), (WORKPLACE, place.as_deref())] {
            if let Some(text) = text {
                durable::replace(&folder.path.join(name), text.as_bytes())?;
            }
        }
        Ok(())
    }

    /// Keeps the texts of a plan that have secrets. Called before the row is written, which has them redacted.
    pub fn seal(&self, plan: &Plan) -> io::Result<()> {
        let (_, texts) = sealed::seal(plan)?;
        if texts.is_empty() {
            return Ok(());
        }
        let mut kept = self.sealed_texts();
        for (place, whole) in texts {
            let known = kept.entry(place).or_default();
            known.retain(|text| !whole.contains(text));
            known.extend(whole);
        }
        for private in [self.path.parent().unwrap_or(&self.path), &self.path] {
            paths::create_private_dir(private)?;
        }
        durable::replace(&self.path.join(SEALED), &serde_json::to_vec(&kept)?)
    }

    /// The plan of a run with its whole texts.
    pub fn unseal(&self, row: &RunRow) -> Result<Plan, SealedTextGone> {
        if row.sealed.is_empty() {
            return Ok(row.plan.clone());
        }
        sealed::unseal(&row.plan, &row.sealed, &self.sealed_texts())
            .ok_or_else(|| SealedTextGone { path: self.path.join(SEALED) })
    }

    /// Keeps the words of runs that start later if they have secrets. Returns them as they are stored.
    pub fn seal_words(&self, words: &[String]) -> io::Result<Vec<String>> {
        let clean: Vec<String> = words.iter().map(|word| redact(word).into_owned()).collect();
        if clean != words {
            for private in [self.path.parent().unwrap_or(&self.path), &self.path] {
                paths::create_private_dir(private)?;
            }
            durable::replace(&self.path.join(WORDS), &serde_json::to_vec(words)?)?;
        }
        Ok(clean)
    }

    /// The whole words of runs that start later.
    pub fn unseal_words(&self, stored: &[String]) -> Result<Vec<String>, SealedTextGone> {
        let path = self.path.join(WORDS);
        let whole = fs_err::read(&path).ok().and_then(|text| serde_json::from_slice(&text).ok());
        let lacks = || stored.iter().any(|word| word.contains(MARK));
        match whole {
            Some(words) => Ok(words),
            None if lacks() => Err(SealedTextGone { path }),
            None => Ok(stored.to_vec()),
        }
    }

    /// Removes the words of runs that start later.
    pub fn forget_words(&self) {
        // Best effort: the folder is private, and most appointments have none.
        let _ = fs_err::remove_file(self.path.join(WORDS));
        let _ = fs_err::remove_dir(&self.path);
    }

    fn sealed_texts(&self) -> SealedTexts {
        let text = fs_err::read(self.path.join(SEALED)).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn engine_log(&self) -> PathBuf {
        self.path.join("engine.log")
    }

    /// Adds a line to the engine's log.
    pub(crate) fn log(&self, message: &str) {
        log::line(&self.engine_log(), message);
    }

    pub(crate) fn attempt(&self, id: AttemptId) -> PathBuf {
        self.path.join(format!("{}-{}-{}", id.stage, id.iteration, id.attempt))
    }

    /// The directories of the run's attempts and of their judges.
    pub fn attempts(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs_err::read_dir(&self.path) else { return Vec::new() };
        let is_of_attempt = |name: &str| {
            let end = name.match_indices('-').nth(2).map_or(name.len(), |(end, _)| end);
            name.get(..end).and_then(attempt_of).is_some()
        };
        let directories = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        directories
            .filter(|entry| entry.file_name().to_str().is_some_and(is_of_attempt))
            .map(|entry| entry.path())
            .collect()
    }

    /// The fingerprint of the files before the first attempt of a stage.
    pub(crate) fn tree_before(&self, stage: u32) -> PathBuf {
        self.path.join(format!("before-{stage}"))
    }

    /// What a stage merges now.
    pub(crate) fn merge_record(&self, stage: u32) -> PathBuf {
        self.path.join(format!("merge-{stage}.json"))
    }

    /// The text of the pipeline that the run was started with.
    pub(crate) fn definition(&self) -> Option<String> {
        fs_err::read_to_string(self.path.join(DEFINITION)).ok()
    }

    /// The input of the first stage.
    pub(crate) fn inputs(&self) -> Option<String> {
        fs_err::read_to_string(self.path.join(INPUTS)).ok()
    }

    /// Where a copy of the progress file of a stage is kept.
    pub(crate) fn progress(&self, stage: u32) -> PathBuf {
        self.path.join(format!("progress-{stage}.md"))
    }

    /// Records that the public files show the run, and its end if it has one.
    pub(crate) fn set_published(&self, end: Option<Millis>) -> io::Result<()> {
        let text = end.map(|end| format!("{end}\n")).unwrap_or_default();
        let mark = self.path.join(PUBLISHED);
        if fs_err::read_to_string(&mark).is_ok_and(|written| written == text) {
            return Ok(());
        }
        durable::replace(&mark, text.as_bytes())
    }

    /// Whether the public files showed the run at some time.
    pub(crate) fn was_published(&self) -> bool {
        self.path.join(PUBLISHED).exists()
    }

    /// Whether the public files showed this end completely, with all outputs. A run without a folder has nothing to show.
    pub fn is_end_published(&self, end: Option<Millis>) -> bool {
        let written = fs_err::read_to_string(self.path.join(PUBLISHED)).ok();
        !self.path.is_dir() || (end.is_some() && written.and_then(|text| text.trim().parse().ok()) == end)
    }

    /// Records the files that the user gave to the run.
    pub fn set_input_files(&self, files: &[PathBuf]) -> io::Result<()> {
        if files.is_empty() {
            return Ok(());
        }
        let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        durable::replace(&self.path.join(INPUT_FILES), &serde_json::to_vec(&files)?)
    }

    pub(crate) fn input_files(&self) -> Vec<PathBuf> {
        let text = fs_err::read_to_string(self.path.join(INPUT_FILES)).unwrap_or_default();
        serde_json::from_slice(text.as_bytes()).unwrap_or_default()
    }

    /// Records whether the user wants the run to work in the background, so that its engine may be started again there.
    pub fn set_detached(&self, is_detached: bool) -> io::Result<()> {
        let mark = self.path.join(DETACHED);
        if !is_detached {
            return durable::if_exists(fs_err::remove_file(mark)).map(|_| ());
        }
        // A run of another home has no folder here yet.
        paths::create_private_dir(&self.path)?;
        durable::replace(&mark, b"")
    }

    pub fn is_detached(&self) -> bool {
        self.path.join(DETACHED).exists()
    }

    /// Records the scripts of the repository that the definitions of the run name.
    pub fn set_scripts(&self, files: &[PathBuf]) -> io::Result<()> {
        if files.is_empty() {
            return Ok(());
        }
        durable::replace(&self.path.join(SCRIPTS), &serde_json::to_vec(files)?)
    }

    pub fn scripts(&self) -> Vec<PathBuf> {
        let text = fs_err::read_to_string(self.path.join(SCRIPTS)).unwrap_or_default();
        serde_json::from_slice(text.as_bytes()).unwrap_or_default()
    }

    /// How often `steadfast watch` started the engine again; nothing if the file cannot be read.
    pub fn restarts(&self) -> Restarts {
        let text = fs_err::read_to_string(self.path.join(RESTARTS)).unwrap_or_default();
        serde_json::from_slice(text.as_bytes()).unwrap_or_default()
    }

    pub fn set_restarts(&self, restarts: &Restarts) -> io::Result<()> {
        durable::replace(&self.path.join(RESTARTS), &serde_json::to_vec(restarts)?)
    }

    pub(crate) fn is_in_worktree(&self) -> io::Result<bool> {
        let place = durable::if_exists(fs_err::read_to_string(self.path.join(WORKPLACE)))?;
        Ok(place.is_some_and(|text| text.trim() == IN_WORKTREE))
    }
}
