//! One trace for each goal and each run. Turns and iterations are sent when they end, and the span above them when the
//! goal or run ends, so that nothing is sent twice. Ids follow from the id of the goal or run.

mod goal;
mod run;
mod sent;
mod span;

use std::collections::BTreeSet;

use serde_json::{Value, json};
use steadfast_model::clock::Millis;
use steadfast_model::run::RunStatus;
use steadfast_store::{Db, RunFilter, StoreError};

use super::otlp::{Sender, scope};
pub use sent::Sent;
use sent::SentMark;

/// Live goals and runs that one export looks at; as many as have metrics of their own.
const LIVE_MOST: usize = 100;

/// What a trace contains.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TraceOptions {
    /// Objectives and summaries, which may be confidential.
    pub with_text: bool,
}

/// The new spans of one goal or run, and what to remember once they are sent.
#[derive(Debug, Clone)]
pub struct Trace {
    subject: TraceSubject,
    mark: SentMark,
    pub spans: Vec<Value>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum TraceSubject {
    Goal(String),
    Run(String),
}

impl TraceSubject {
    /// The key in [`Sent`].
    fn key(&self) -> String {
        match self {
            Self::Goal(id) => format!("goal {id}"),
            Self::Run(id) => format!("run {id}"),
        }
    }
}

/// What an export has to send.
#[derive(Debug, Clone, Default)]
pub struct PendingTrace {
    pub traces: Vec<Trace>,
    /// The keys of what is live.
    live: BTreeSet<String>,
}

/// All traces with spans that were not sent.
pub fn pending(db: Db<'_>, sent: &Sent, options: TraceOptions, now: Millis) -> Result<PendingTrace, StoreError> {
    let mut traces = Vec::new();
    for at in db.oldest_live_goals()?.iter().take(LIVE_MOST) {
        if let Some(goal) = db.goal_at_row(at)?.filter(|goal| goal.status.is_live()) {
            traces.push(goal::trace(db, &goal, false, sent, options)?);
        }
    }
    let live = db.runs(RunFilter { status: Some(RunStatus::Running), ..RunFilter::default() }, LIVE_MOST)?;
    for run in live {
        traces.extend(db.run(&run.run_id)?.map(|row| run::trace(db, &row, sent, options, now)).transpose()?);
    }
    let live = traces.iter().map(|trace| trace.subject.key()).collect();
    for goal in db.goals_over_since(sent.since_ms)? {
        traces.push(goal::trace(db, &goal, true, sent, options)?);
    }
    for run_id in db.run_ids_over_since(sent.since_ms)? {
        traces.extend(db.run(&run_id)?.map(|row| run::trace(db, &row, sent, options, now)).transpose()?);
    }
    traces.retain(|trace| !trace.spans.is_empty());
    Ok(PendingTrace { traces, live })
}

/// The body of a request to `/v1/traces`.
pub fn document(spans: &[Value], sender: &Sender) -> Value {
    json!({"resourceSpans": [{
        "resource": sender.resource(),
        "scopeSpans": [{"scope": scope(), "spans": spans}],
    }]})
}

#[cfg(test)]
mod tests;
