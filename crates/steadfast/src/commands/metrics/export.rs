//! Sends metrics and traces, once or again and again. What was sent of each trace is kept in a file, after each request
//! that succeeded, so that an export that fails or is killed continues where it was.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use steadfast_engine::durable;
use steadfast_engine::interrupt::{self, EndRequest};
use steadfast_model::clock::{self, DAY, Millis};
use steadfast_model::text;
use steadfast_store::{Store, StoreError};
use steadfast_system::bounded;
use steadfast_system::paths::Paths;
use steadfast_views::metrics;
use steadfast_views::metrics::otlp::{self, Sender};
use steadfast_views::metrics::traces::{self, Sent, Trace, TraceOptions};

use super::collector::{Collector, CollectorError};
use crate::cli::MetricsArgs;
use crate::error::{CliError, code};
use crate::output::{self, CommandOutput, CommandResult};

/// Below `$STEADFAST_HOME`.
const SENT_FILE: &str = "otlp-sent.json";
const LARGEST_FILE: u64 = 16 * 1024 * 1024;
/// A collector that got nothing for so long is forgotten.
const FORGOTTEN_AFTER: Millis = 30 * DAY;
/// Spans in one request; collectors refuse large bodies.
const SPANS_AT_ONCE: usize = 500;
const SHORTEST_PERIOD: Millis = 1_000;
/// The rest after a failure doubles from one to the other.
const FIRST_REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_mins(5);

/// What was sent to each collector, by its fingerprint.
#[derive(Debug, Default, Serialize, Deserialize)]
struct SentFile {
    collectors: BTreeMap<String, Sent>,
}

struct Exporter<'a> {
    paths: &'a Paths,
    collector: Collector,
    sender: Sender,
    options: TraceOptions,
}

/// What one export sent.
#[derive(Debug, Default)]
struct Exported {
    metrics: usize,
    spans: usize,
}

#[derive(Debug, thiserror::Error)]
enum ExportError {
    #[error(transparent)]
    Collector(#[from] CollectorError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    File(#[from] std::io::Error),
}

impl From<ExportError> for CliError {
    fn from(error: ExportError) -> Self {
        match error {
            ExportError::Collector(error) => error.into(),
            ExportError::Store(error) => error.into(),
            ExportError::File(error) => error.into(),
        }
    }
}

impl ExportError {
    fn can_pass(&self) -> bool {
        match self {
            Self::Collector(error) => error.can_pass(),
            Self::Store(error) => {
                matches!(error, StoreError::Busy(_) | StoreError::Migrating(_) | StoreError::Missing(_))
            }
            Self::File(_) => false,
        }
    }
}

pub(super) fn run(paths: &Paths, url: &str, arguments: &MetricsArgs) -> CommandResult {
    let every = arguments.every.as_deref().map(period).transpose()?;
    let exporter = Exporter {
        paths,
        collector: Collector::new(url, &arguments.header)?,
        sender: Sender { machine: machine() },
        options: TraceOptions { with_text: arguments.with_text },
    };
    if let Some(period) = every {
        return exporter.repeat(period);
    }
    let Exported { metrics, spans } = exporter.once()?;
    let counts = format!("{} and {}", text::count(count(metrics), "metric"), text::count(count(spans), "span"));
    let text = format!("sent {counts} to {}", exporter.collector.shown);
    Ok(CommandOutput { text, json: json!({"metrics": metrics, "spans": spans}), code: 0 })
}

/// The name of this machine.
fn machine() -> Option<String> {
    let output = Command::new("uname").arg("-n").output().ok()?;
    let name = text::headline(String::from_utf8(output.stdout).ok()?.trim(), 100);
    Some(name).filter(|name| !name.is_empty())
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn period(text: &str) -> Result<Duration, CliError> {
    let period = clock::parse_duration(text).filter(|period| *period >= SHORTEST_PERIOD);
    let wrong = || CliError::new(code::USAGE, "--every needs a duration of at least 1s", "use for example --every 30s");
    period.and_then(|period| u64::try_from(period).ok()).map(Duration::from_millis).ok_or_else(wrong)
}

impl Exporter<'_> {
    fn repeat(&self, period: Duration) -> CommandResult {
        let requests = interrupt::requests()?;
        let shown = &self.collector.shown;
        output::note(&format!("sending to {shown} every {} (stop with Ctrl-C)", seconds(period)));
        let mut rest = FIRST_REST;
        loop {
            let wait = match self.once() {
                Ok(_) => {
                    rest = FIRST_REST;
                    period
                }
                Err(error) if error.can_pass() => {
                    let wait = rest;
                    rest = (rest * 2).min(LONGEST_REST);
                    output::note(&format!("warning: {error}; trying again in {}", seconds(wait)));
                    wait
                }
                Err(error) => return Err(error.into()),
            };
            match requests.recv_timeout(wait) {
                Ok(EndRequest::Interrupt) => return Ok(ended(code::INTERRUPTED)),
                Ok(EndRequest::Terminate) => return Ok(ended(0)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(wait),
            }
        }
    }

    fn once(&self) -> Result<Exported, ExportError> {
        let store = Store::open_existing(&self.paths.store)?;
        let now = clock::now();
        let families = metrics::collect(store.read(), self.paths, now)?;
        self.post("/v1/metrics", &otlp::metrics(&families, &self.sender, now))?;
        let metrics = families.iter().filter(|family| !family.samples.is_empty()).count();

        let mut file = self.load()?;
        let key = self.collector.fingerprint();
        let mut sent = file.collectors.remove(&key).unwrap_or_else(|| Sent::nothing(now));
        let pending = traces::pending(store.read(), &sent, self.options, now)?;
        // The store is not needed while requests wait.
        drop(store);
        let mut spans = 0;
        for group in groups(&pending.traces) {
            let all: Vec<Value> = group.iter().flat_map(|trace| trace.spans.iter().cloned()).collect();
            for part in all.chunks(SPANS_AT_ONCE) {
                self.post("/v1/traces", &traces::document(part, &self.sender))?;
            }
            spans += all.len();
            for trace in group {
                sent.note(trace);
            }
            file.collectors.insert(key.clone(), sent.clone());
            self.save(&file)?;
        }
        sent.finish(&pending, now);
        file.collectors.insert(key, sent);
        file.collectors.retain(|_, sent| sent.since_ms > now - FORGOTTEN_AFTER);
        self.save(&file)?;
        Ok(Exported { metrics, spans })
    }

    fn post(&self, path: &'static str, body: &Value) -> Result<(), ExportError> {
        if let Some(left_out) = self.collector.post(path, body)? {
            output::note(&format!("warning: {left_out}"));
        }
        Ok(())
    }

    fn file(&self) -> PathBuf {
        self.paths.home.join(SENT_FILE)
    }

    /// A file that cannot be read as ours counts as none: at worst something is sent again.
    fn load(&self) -> Result<SentFile, ExportError> {
        let text = bounded::text_if_exists(&self.file(), LARGEST_FILE)?.unwrap_or_default();
        Ok(serde_json::from_slice(text.as_bytes()).unwrap_or_default())
    }

    fn save(&self, file: &SentFile) -> Result<(), ExportError> {
        Ok(durable::replace(&self.file(), json!(file).to_string().as_bytes())?)
    }
}

/// Traces that are sent together, at most [`SPANS_AT_ONCE`] spans unless one trace has more.
fn groups(traces: &[Trace]) -> Vec<&[Trace]> {
    let (mut groups, mut start, mut size) = (Vec::new(), 0, 0);
    for (at, trace) in traces.iter().enumerate() {
        if at > start && size + trace.spans.len() > SPANS_AT_ONCE {
            groups.extend(traces.get(start..at));
            (start, size) = (at, 0);
        }
        size += trace.spans.len();
    }
    groups.extend(traces.get(start..).filter(|rest| !rest.is_empty()));
    groups
}

fn ended(code: u8) -> CommandOutput {
    CommandOutput { code, ..CommandOutput::default() }
}

fn seconds(time: Duration) -> String {
    text::duration(i64::try_from(time.as_secs()).unwrap_or(i64::MAX))
}
