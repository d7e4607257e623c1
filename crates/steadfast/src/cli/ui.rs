//! The command line of `ui`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(
    after_help = "Prints a link that works once; press Enter for another one. Serves on 127.0.0.1 only, until Ctrl-C.
To look from a phone, use a tunnel of your own (ssh -L, tailscale serve) and name its host with --allow-host.
Examples:
  steadfast ui --open                            Show the page in the browser
  steadfast ui --read-only --port 7070           Show without buttons, at a fixed port
  steadfast ui --allow-host laptop.example.ts.net
  steadfast ui --metrics-token ~/.steadfast-metrics    Let Prometheus read /metrics
Exit codes: 0 stopped, 3 inside an agent, 4 the port is in use, 130 interrupted"
)]
pub(crate) struct UiArgs {
    /// Port to listen on [default: a free one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), overrides_with = "port")]
    pub(crate) port: Option<u16>,
    /// Open the page in the browser
    #[arg(long, overrides_with = "no_open")]
    open: bool,
    /// Only print the link (the default)
    #[arg(long, overrides_with = "open")]
    no_open: bool,
    /// Show everything, change nothing
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Also answer under this name, for a tunnel of your own (repeatable)
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_host: Vec<String>,
    /// File with a token of at least 32 characters that opens /metrics as `Authorization: Bearer`
    #[arg(long, value_name = "FILE")]
    pub(crate) metrics_token: Option<PathBuf>,
    /// How often a panic has restarted it
    #[arg(long, hide = true, default_value_t = 0)]
    pub(crate) restarts: u32,
    /// Where a restarted server reads the secrets of the one before
    #[arg(long, hide = true)]
    pub(crate) secrets: Option<PathBuf>,
}

impl UiArgs {
    /// The last of `--open` and `--no-open` counts.
    pub(crate) fn opens_browser(&self) -> bool {
        self.open && !self.no_open
    }
}
