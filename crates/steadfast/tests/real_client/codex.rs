//! Tests with the real Codex CLI and a scripted model, offline. `STEADFAST_CODEX` names the client; run under
//! `scripts/netless`.

mod announcing;
mod app_server;
mod basics;
mod client;
mod commands;
mod evaluator;
mod exactly_once;
pub(crate) mod goals;
mod in_terminal;
mod lab_hooks;
mod memory;
mod missing_program;
mod model;
mod output;
mod plugin;
mod plugins;
mod remembering;
mod reply;
mod request;
mod rollout;
mod trust;
mod tui;
mod turn_limits;

pub(crate) use self::client::Codex;
pub(crate) use self::lab_hooks::LabHooks;
pub(crate) use self::model::ScriptedResponses;
pub(crate) use self::reply::{Reply, Tool, Usage};
pub(crate) use self::request::Request;
