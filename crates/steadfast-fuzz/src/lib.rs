//! What must hold for any bytes that come from outside. Each target is one function, called by two drivers: libFuzzer
//! (`fuzz/`, started by `scripts/fuzz`) and a short run with fixed seeds in `tests/short.rs`. A target panics when the
//! product breaks a promise.
#![expect(clippy::expect_used, reason = "a fuzz target reports by a panic")]

mod amounts;
mod definitions;
mod hooks;
pub mod mutate;
mod records;
mod requests;
mod scratch;
mod sessions;
mod settings;
mod snapshots;
mod state_files;
mod tools;
mod whole_hook;
mod words;

/// A function that takes any bytes, by its name.
pub struct Target {
    pub name: &'static str,
    pub run: fn(&[u8]),
}

pub const TARGETS: &[Target] = &[
    Target { name: "claude_hook", run: hooks::claude },
    Target { name: "codex_hook", run: hooks::codex },
    Target { name: "tool_call", run: hooks::tool_call },
    Target { name: "tool_arguments", run: tools::arguments },
    Target { name: "http_request", run: requests::run },
    Target { name: "statusline", run: hooks::statusline },
    Target { name: "whole_hook", run: whole_hook::run },
    Target { name: "claude_transcript", run: sessions::claude_transcript },
    Target { name: "codex_rollout", run: sessions::codex_rollout },
    Target { name: "agent_stream", run: sessions::agent_stream },
    Target { name: "pipeline", run: definitions::pipeline },
    Target { name: "loop_type", run: definitions::loop_type },
    Target { name: "condition", run: definitions::condition },
    Target { name: "template", run: definitions::template },
    Target { name: "state_files", run: state_files::run },
    Target { name: "attempt", run: records::attempt },
    Target { name: "agent_result", run: records::agent_result },
    Target { name: "config", run: settings::config },
    Target { name: "prices", run: settings::prices },
    Target { name: "redact", run: words::redaction },
    Target { name: "text", run: words::text },
    Target { name: "prompt", run: words::prompt },
    Target { name: "error_message", run: words::error_message },
    Target { name: "amounts", run: amounts::run },
    Target { name: "snapshot", run: snapshots::run },
];

/// Runs the target of this name.
pub fn run(name: &str, data: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("a target of this name");
    (target.run)(data);
}
