//! Tests with the real Claude Code and the real Codex and scripted models, offline. `./test` installs the clients, names
//! them in `STEADFAST_CLAUDE`, `STEADFAST_CODEX` and `STEADFAST_OLD_CLAUDE`, and runs these in a network namespace of their
//! own (`scripts/netless`).
#![expect(clippy::disallowed_methods, clippy::expect_used, reason = "tests look at the world from outside")]

mod announcing;
mod basics;
mod callers;
mod caps;
mod client;
mod codex;
mod exactly_once;
mod facts;
mod goals;
mod goals_accounting;
mod goals_in_terminal;
mod lab_plugin;
mod liveness;
mod loops;
mod memory;
mod missing_program;
mod model;
mod observing;
mod overhead;
mod own_commands;
mod process;
mod remembering;
mod reply;
mod request;
mod runs;
mod scripted;
mod support;
mod terminal;
mod transcript;
mod tui;
mod turn_limits;
mod with_steadfast;
mod workspace;
