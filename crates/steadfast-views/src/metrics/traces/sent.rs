//! What was sent. It is kept in a small file: a goal or run is in it while it is live, and for a while after its end.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use steadfast_model::clock::{DAY, HOUR, Millis};

use super::{PendingTrace, Trace};

/// A row may be written a moment later than its time says.
const LATE: Millis = HOUR;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// What ended before was sent, or is too old to be sent.
    pub since_ms: Millis,
    #[serde(default)]
    marks: BTreeMap<String, SentMark>,
}

/// How far a trace was sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SentMark {
    /// Turns or iterations up to this end were sent.
    pub(super) until_ms: Option<Millis>,
    /// When the goal or run ended, once its root was sent.
    pub(super) ended_at_ms: Option<Millis>,
}

impl Sent {
    /// Before the first export: what ended in the last day is sent.
    pub fn nothing(now: Millis) -> Self {
        Self { since_ms: now - DAY, marks: BTreeMap::new() }
    }

    pub(super) fn mark(&self, key: &str) -> SentMark {
        self.marks.get(key).copied().unwrap_or_default()
    }

    /// Remembers that the spans of a trace were sent.
    pub fn note(&mut self, trace: &Trace) {
        self.marks.insert(trace.subject.key(), trace.mark);
    }

    /// Everything that was pending at `now` is sent: what ended long before needs not be remembered, and neither does
    /// a live goal or run that is gone.
    pub fn finish(&mut self, pending: &PendingTrace, now: Millis) {
        self.since_ms = self.since_ms.max(now - LATE);
        let since = self.since_ms;
        self.marks.retain(|key, mark| match mark.ended_at_ms {
            Some(ended) => ended >= since,
            None => pending.live.contains(key),
        });
    }
}
