//! What `steadfast watch` prints: one line for each thing it does, as text, as JSON, or to its log.

use std::path::PathBuf;

use serde_json::json;
use steadfast_model::{clock, text};
use steadfast_system::log;
use steadfast_system::paths::Paths;

use crate::output;

#[derive(Debug)]
pub(super) enum WatchReport {
    Text,
    Json,
    Log(PathBuf),
}

/// What a line is about.
#[derive(Debug, Clone, Copy)]
pub(super) enum ReportSubject<'a> {
    Goal(&'a str),
    Run(&'a str),
    Store,
}

impl WatchReport {
    pub(super) fn to_log(paths: &Paths) -> Self {
        Self::Log(paths.watch_log())
    }

    /// `what` is one word that scripts can rely on; `detail` is for people.
    pub(super) fn line(&self, what: &'static str, subject: ReportSubject<'_>, detail: &str) {
        let (kind, id) = match subject {
            ReportSubject::Goal(id) => ("goal", id),
            ReportSubject::Run(id) => ("run", id),
            ReportSubject::Store => ("store", ""),
        };
        let detail = text::headline(detail, 200);
        let about = format!("{what} {kind} {}", text::head(id, 8));
        let sentence = format!("{}: {detail}", about.trim_end());
        match self {
            Self::Log(file) => log::line(file, &sentence),
            Self::Text => output::line(&format!("{}  {sentence}", clock::to_rfc3339(clock::now()))),
            Self::Json => {
                let at = clock::to_rfc3339(clock::now());
                let id = Some(id).filter(|id| !id.is_empty());
                output::line(&json!({"at": at, "did": what, "subject": kind, "id": id, "detail": detail}).to_string());
            }
        }
    }
}
