//! Secrets that agents, checks and people wrote are removed from an event before a run takes it in. So they are in no
//! state, record, public file or later prompt. The raw output stays in the private folder of the attempt.

use crate::redact::redact;

use super::{AgentResult, Outcome, RunEvent};

impl RunEvent {
    /// The same event without secrets.
    #[must_use]
    pub fn without_secrets(mut self) -> Self {
        match &mut self {
            Self::Ended { outcome: Outcome::Failed(failed), .. } => clean(&mut failed.message),
            Self::Ended { outcome: Outcome::Succeeded(success), .. } => clean_result(&mut success.result),
            Self::Checked { facts, .. } => facts.iter_mut().for_each(|fact| clean(&mut fact.detail)),
            Self::Decided { detail, .. } => clean(detail),
            Self::Answered { note: Some(note), .. } => clean(note),
            Self::StopRequested(stopping) => clean(&mut stopping.reason),
            _ => {}
        }
        self
    }
}

/// Files and branches are names that are looked up later; they stay.
fn clean_result(result: &mut AgentResult) {
    result.summary.iter_mut().chain(&mut result.reasoning).for_each(clean);
    result.fields.iter_mut().for_each(|(_, value)| clean(value));
    result.items.iter_mut().chain(&mut result.errors).for_each(clean);
}

fn clean(text: &mut String) {
    if let std::borrow::Cow::Owned(clean) = redact(text) {
        *text = clean;
    }
}
