//! Tests with the real Claude Code client and a scripted model, offline. `./test` installs the client, names it in
//! `STEADFAST_CLAUDE` and runs these in a network namespace of their own (`scripts/netless`).
#![expect(clippy::disallowed_methods, clippy::expect_used, reason = "tests look at the world from outside")]

mod basics;
mod client;
mod facts;
mod goals;
mod goals_accounting;
mod goals_in_terminal;
mod lab_plugin;
mod model;
mod reply;
mod request;
mod support;
mod transcript;
mod tui;
mod with_steadfast;
