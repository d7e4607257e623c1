//! Flags of `steadfast metrics`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "`steadfast ui` serves the same at /metrics.
Examples:
  steadfast metrics
  steadfast metrics --out /var/lib/node_exporter/steadfast.prom     For node_exporter's textfile collector
  steadfast metrics --otlp http://localhost:4318                    Send metrics and new traces once
  steadfast metrics --otlp https://otlp.example.com --header 'Authorization=Bearer TOKEN' --every 1m
Exit codes: 0 done or stopped, 1 usage, 4 the store or the collector cannot be reached, 130 interrupted")]
pub(crate) struct MetricsArgs {
    /// Write to this file, whole or not at all
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Send metrics and traces to this OpenTelemetry collector, by OTLP over HTTP with JSON
    #[arg(long, value_name = "URL", conflicts_with = "out")]
    pub(crate) otlp: Option<String>,
    /// Add a header to each request (repeatable)
    #[arg(long, value_name = "NAME=VALUE", requires = "otlp")]
    pub(crate) header: Vec<String>,
    /// Send again and again, until stopped: 30s, 1m
    #[arg(long, value_name = "DURATION", requires = "otlp")]
    pub(crate) every: Option<String>,
    /// Also send objectives and summaries
    #[arg(long, requires = "otlp")]
    pub(crate) with_text: bool,
}
