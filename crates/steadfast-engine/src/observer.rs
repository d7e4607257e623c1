//! The observers of a run, one ordered list. After each saved step every observer sees it, in the order of the list:
//! public files ([`crate::publish::Publisher`]), the goal ([`crate::goal_link::GoalLink`]), then the terminal. A step is
//! saved before it is shown, so whatever an observer does can be done again after a crash.

use std::path::{Path, PathBuf};

use steadfast_model::clock::Millis;
use steadfast_model::run::{AttemptId, Plan, Record, Run, Stopping};
use steadfast_store::Store;
use steadfast_system::bounded::{self, Part};

use crate::attempt::Attempt;
use crate::outage::PendingSignals;
use crate::run_folder::RunFolder;

/// A step that was saved.
#[derive(Clone, Copy)]
pub struct SavedStep<'a> {
    /// For what was saved earlier.
    pub store: &'a Store,
    pub run_id: &'a str,
    pub project: &'a Path,
    pub plan: &'a Plan,
    pub run: &'a Run,
    pub records: &'a [Record],
    pub now: Millis,
    pub(crate) home: &'a Path,
    /// Ends a wait for the store.
    pub(crate) pending: &'a PendingSignals,
}

impl SavedStep<'_> {
    /// The last message of an attempt's agent.
    pub fn answer(&self, id: AttemptId) -> Option<String> {
        Attempt::at(self.home, self.run_id, id).read_answer()
    }
}

/// What prompts are filled in with, as far as observers know it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PromptValues {
    pub output: Option<PathBuf>,
    pub progress: Option<PathBuf>,
    pub objective: String,
    /// The input of the first stage.
    pub inputs: String,
}

/// The output of an iteration, as far as it was read, and its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptOutput {
    pub text: String,
    pub file: PathBuf,
    /// Of the whole file.
    pub bytes: u64,
}

impl KeptOutput {
    /// Reads the beginning of a file; `None` if it is missing or has only white space.
    pub fn read(file: PathBuf) -> Option<Self> {
        let Part { bytes, size, .. } = bounded::start_of(&file, KEPT_OUTPUT_BYTES).ok()?;
        let text = String::from_utf8_lossy(&bytes).trim().to_owned();
        (!text.is_empty()).then_some(Self { text, file, bytes: size })
    }
}

/// How many bytes of an output are read: enough for the characters that prompts show, however wide they are.
pub(crate) const KEPT_OUTPUT_BYTES: u64 = 400_000;

/// Sees every saved step, contributes to prompts, and may request the end of the run. Messages for the user that an
/// observer adds to `notes` are logged and passed to every observer.
pub trait Observer {
    /// Called after each saved step, and once at the start with no records.
    fn saved(&mut self, _step: &SavedStep<'_>, _notes: &mut Vec<String>) {}

    /// Called a few times a second while agents work.
    fn idle(&mut self) {}

    /// A request to end the run that only this observer sees. Asked for a few times a second.
    fn stop_requested(&mut self, _notes: &mut Vec<String>) -> Option<Stopping> {
        None
    }

    /// Called before each attempt; an error keeps it from starting.
    fn starting(&mut self, _plan: &Plan, _run: &Run, _id: AttemptId, _notes: &mut Vec<String>) -> Result<(), String> {
        Ok(())
    }

    /// Adds what this observer knows for the prompt of an attempt.
    fn add_prompt_values(&self, _plan: &Plan, _run: &Run, _id: AttemptId, _values: &mut PromptValues) {}

    /// The output of an iteration, if this observer keeps outputs.
    fn output(&self, _plan: &Plan, _run: &Run, _id: AttemptId) -> Option<KeptOutput> {
        None
    }

    /// The file of that output, whether or not it exists.
    fn output_file(&self, _plan: &Plan, _run: &Run, _id: AttemptId) -> Option<PathBuf> {
        None
    }

    /// A message for the user.
    fn note(&mut self, _message: &str) {}
}

/// The observers of a run in their order.
pub(crate) struct Observers<'a, 'b> {
    list: &'a mut [&'b mut dyn Observer],
    folder: RunFolder,
}

impl<'a, 'b> Observers<'a, 'b> {
    pub(crate) fn new(list: &'a mut [&'b mut dyn Observer], folder: RunFolder) -> Self {
        Self { list, folder }
    }

    pub(crate) fn saved(&mut self, step: &SavedStep<'_>) {
        for index in 0..self.list.len() {
            let mut notes = Vec::new();
            if let Some(observer) = self.list.get_mut(index) {
                observer.saved(step, &mut notes);
            }
            // Before the next observer: the terminal shows the notes above the step.
            self.note_all(&notes);
        }
    }

    pub(crate) fn idle(&mut self) {
        self.list.iter_mut().for_each(|observer| observer.idle());
    }

    /// The first request to end the run. The last observer is asked first: the goal's request wins over a mark in the
    /// public files.
    pub(crate) fn stop_requested(&mut self) -> Option<Stopping> {
        let mut notes = Vec::new();
        let stopping = self.list.iter_mut().rev().find_map(|observer| observer.stop_requested(&mut notes));
        self.note_all(&notes);
        stopping
    }

    pub(crate) fn starting(&mut self, plan: &Plan, run: &Run, id: AttemptId) -> Result<(), String> {
        let mut notes = Vec::new();
        let started = self.list.iter_mut().try_for_each(|observer| observer.starting(plan, run, id, &mut notes));
        self.note_all(&notes);
        started
    }

    pub(crate) fn prompt_values(&self, plan: &Plan, run: &Run, id: AttemptId) -> PromptValues {
        let mut values = PromptValues::default();
        self.list.iter().for_each(|observer| observer.add_prompt_values(plan, run, id, &mut values));
        values
    }

    pub(crate) fn output(&self, plan: &Plan, run: &Run, id: AttemptId) -> Option<KeptOutput> {
        self.list.iter().find_map(|observer| observer.output(plan, run, id))
    }

    pub(crate) fn output_file(&self, plan: &Plan, run: &Run, id: AttemptId) -> Option<PathBuf> {
        self.list.iter().find_map(|observer| observer.output_file(plan, run, id))
    }

    fn note_all(&mut self, notes: &[String]) {
        for note in notes {
            self.note(note);
        }
    }

    /// Logs a message and passes it to every observer.
    pub(crate) fn note(&mut self, message: &str) {
        self.folder.log(message);
        self.list.iter_mut().for_each(|observer| observer.note(message));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast_model::run::RunStatus;

    /// Requests the end of the run and keeps the notes of all observers.
    struct Named(&'static str, Vec<String>);

    impl Observer for Named {
        fn stop_requested(&mut self, notes: &mut Vec<String>) -> Option<Stopping> {
            notes.push(format!("asked {}", self.0));
            (self.0 != "last").then(|| Stopping { status: RunStatus::Killed, reason: self.0.to_owned() })
        }

        fn note(&mut self, message: &str) {
            self.1.push(message.to_owned());
        }
    }

    #[test]
    fn observers_are_asked_for_the_end_from_the_last_and_share_their_notes() {
        let home = tempfile::tempdir().unwrap();
        RunFolder::create(home.path(), "1", None, None, false).unwrap();
        let folder = RunFolder::at(home.path(), "1");
        let [mut first, mut middle, mut last] = ["first", "middle", "last"].map(|name| Named(name, Vec::new()));
        let mut observers: [&mut dyn Observer; 3] = [&mut first, &mut middle, &mut last];
        let stopping = Observers::new(&mut observers, folder.clone()).stop_requested().unwrap();
        assert_eq!(stopping.reason, "middle");
        assert_eq!(first.1, ["asked last", "asked middle"]);
        assert_eq!((&middle.1, &last.1), (&first.1, &first.1));
        let log = fs_err::read_to_string(folder.engine_log()).unwrap();
        assert_eq!(log.lines().count(), 2, "{log}");
    }
}
