//! Metrics: what Prometheus scrapes (`prometheus`) and what `steadfast metrics --otlp` sends (`otlp`, `traces`). All are
//! forms of the families that `collect` builds. The number of series is bounded whatever the store holds, and no text
//! that people or models write becomes a label, except the base names of projects and the names of runs.

mod collect;
mod family;
pub mod otlp;
mod text;
pub mod traces;

use steadfast_model::clock::Millis;
use steadfast_store::{Db, StoreError};
use steadfast_system::paths::Paths;

pub use collect::collect;
pub use family::{Family, METRICS, MetricKind, Sample, Spec};

/// The content type of [`prometheus`].
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// All metrics in the text format of Prometheus.
pub fn prometheus(db: Db<'_>, paths: &Paths, now: Millis) -> Result<String, StoreError> {
    Ok(prometheus_of(&collect(db, paths, now)?))
}

/// The same from families that were collected before.
pub fn prometheus_of(families: &[Family]) -> String {
    text::render(families)
}

#[cfg(test)]
mod tests;
