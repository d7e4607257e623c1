//! The MCP server as a client sees it: raw JSON-RPC lines over the pipes of the built binary, so that an upgrade
//! of the SDK cannot change the wire unnoticed.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests may panic as tests do")]

mod any_lines;
mod completion;
mod evaluator;
mod goals;
mod protocol;
mod recall;
mod sessions;
mod store;
mod verdicts;
mod verification;
mod world;
