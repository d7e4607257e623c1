//! Tests with the real Claude Code client and a scripted model, offline. `./test` installs the client, names it in
//! `STEADFAST_CLAUDE` and runs these in a network namespace of their own (`scripts/netless`).
#![allow(clippy::pedantic, reason = "test support, read more than reused")]
#![allow(
    clippy::disallowed_methods,
    clippy::allow_attributes,
    clippy::unwrap_used,
    clippy::expect_used
)]

mod basics;
mod client;
mod facts;
mod goals;
mod lab_plugin;
mod model;
mod reply;
mod request;
mod support;
mod transcript;
mod tui;
mod with_steadfast;
