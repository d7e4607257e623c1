//! Who watches a run: the public files, a terminal, a test. An observer sees every step after it was saved, so whatever
//! it does can be done again after a crash, and it may say that somebody wants the run to end.

use std::path::{Path, PathBuf};

use steadfast_model::clock::Millis;
use steadfast_model::run::{AttemptId, Plan, Record, Run, Stopping};
use steadfast_store::Store;
use steadfast_system::bounded;
use steadfast_system::bounded::Part;

use crate::attempt::Attempt;

/// What was saved, for those who show it.
#[derive(Clone, Copy)]
pub struct Saved<'a> {
    /// For what was committed earlier.
    pub store: &'a Store,
    pub run_id: &'a str,
    pub project: &'a Path,
    pub plan: &'a Plan,
    pub run: &'a Run,
    pub records: &'a [Record],
    pub now: Millis,
    pub(super) home: &'a Path,
}

impl Saved<'_> {
    /// The last words of an attempt's agent.
    pub fn answer(&self, id: AttemptId) -> Option<String> {
        Attempt::at(self.home, self.run_id, id).read_answer()
    }
}

/// The files that prompts name, as far as there are any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    pub output: Option<PathBuf>,
    pub progress: Option<PathBuf>,
    pub objective: String,
    /// What the first stage gets as its input.
    pub inputs: String,
}

/// What an iteration put out, as far as it was read, and the file it is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptOutput {
    pub text: String,
    pub file: PathBuf,
    /// Of the whole file.
    pub bytes: u64,
}

impl KeptOutput {
    /// Stands for an output that is not there.
    pub(crate) fn nothing() -> Self {
        Self { text: "(no output)".to_owned(), file: PathBuf::new(), bytes: 0 }
    }

    /// Reads the beginning of a file; nothing if there is only white space, or no file.
    pub(crate) fn read(file: PathBuf, most: u64) -> Option<Self> {
        let Part { bytes, size, .. } = bounded::start_of(&file, most).ok()?;
        let text = String::from_utf8_lossy(&bytes).trim().to_owned();
        (!text.is_empty()).then_some(Self { text, file, bytes: size })
    }
}

/// Sees every saved step, knows the public files, and may want the run to end.
pub trait Observer {
    /// Called after each saved step, and once at the start with no records.
    fn saved(&mut self, _saved: &Saved<'_>) {}

    /// Whether somebody wants the run to end, in a way that only the observer sees.
    fn stop_requested(&mut self) -> Option<Stopping> {
        None
    }

    /// Called before each attempt, to make room for what it leaves; an error keeps it from starting.
    fn starting(&mut self, _plan: &Plan, _run: &Run, _id: AttemptId) -> Result<(), String> {
        Ok(())
    }

    fn places(&self, _plan: &Plan, _run: &Run, _id: AttemptId) -> Places {
        Places::default()
    }

    /// The output of an iteration, where it is kept elsewhere than in the agent's last words.
    fn output(&self, _plan: &Plan, _run: &Run, _id: AttemptId) -> Option<KeptOutput> {
        None
    }

    /// Something that people should know and that changes nothing.
    fn note(&mut self, _message: &str) {}
}

/// Nobody looks.
impl Observer for () {}
