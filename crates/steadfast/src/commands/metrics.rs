//! `steadfast metrics`: prints the metrics for Prometheus, writes them to a file, or sends them with traces to an
//! OpenTelemetry collector.

mod collector;
mod export;

use std::path::Path;

use serde_json::{Value, json};
use steadfast_engine::durable::{self, Readers};
use steadfast_model::clock;
use steadfast_store::Store;
use steadfast_views::metrics::{self, Family};

use super::own_paths;
use crate::cli::MetricsArgs;
use crate::error::CliError;
use crate::output::{CommandOutput, CommandResult};

pub(crate) fn run(db: Option<&Path>, arguments: &MetricsArgs) -> CommandResult {
    let paths = own_paths::find_to_read(db)?;
    if let Some(url) = &arguments.otlp {
        return export::run(&paths, url, arguments);
    }
    let store = Store::open_existing(&paths.store)?;
    let now = clock::now();
    if let Some(file) = &arguments.out {
        let page = metrics::prometheus(store.read(), &paths, now)?;
        durable::replace_output(Readers::Project, file, page.as_bytes()).map_err(|error| unwritten(file, &error))?;
        return Ok(CommandOutput::default());
    }
    let families = metrics::collect(store.read(), &paths, now)?;
    let json = json!({"metrics": families.iter().map(Family::json).collect::<Vec<Value>>()});
    Ok(CommandOutput { text: metrics::prometheus_of(&families), json, code: 0 })
}

fn unwritten(file: &Path, error: &std::io::Error) -> CliError {
    let message = format!("cannot write `{}`: {error}", file.display());
    CliError { message, ..CliError::from(std::io::Error::new(error.kind(), "")) }
}
