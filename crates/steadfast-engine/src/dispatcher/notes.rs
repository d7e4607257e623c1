//! What people said to the run, at the end of the prompt of the iteration that took it.

use steadfast_model::prompt;
use steadfast_model::run::AttemptId;

use super::Dispatcher;

impl Dispatcher<'_, '_> {
    /// The prompt of an attempt with the notes that its iteration took.
    pub(super) fn with_notes(&mut self, prompt: String, id: AttemptId) -> Result<String, String> {
        let run_id = self.run_id.clone();
        let notes = self.with_store(|store| store.read().notes_for(&run_id, id)).map_err(|error| error.to_string())?;
        if notes.is_empty() {
            return Ok(prompt);
        }
        let said = prompt::user_notes(&notes).map_err(|error| error.to_string())?;
        Ok(format!("{}\n\n{said}\n", prompt.trim_end()))
    }
}
