//! The client's side of `steadfast mcp`: JSON-RPC, one message a line.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use anyhow::{Context as _, bail};
use serde_json::{Value, json};

use super::stage::Stage;

/// The protocol Claude Code 2.1 speaks.
const PROTOCOL: &str = "2025-06-18";

pub(super) struct ToolServer {
    process: Child,
    /// `None` once the server was told to end.
    requests: Option<ChildStdin>,
    replies: BufReader<ChildStdout>,
    last_id: i64,
}

/// What a tool answered.
pub(super) struct ToolResult {
    pub(super) text: String,
    pub(super) is_error: bool,
    pub(super) structured: Value,
}

impl ToolServer {
    pub(super) fn start(stage: &Stage) -> anyhow::Result<Self> {
        let mut process =
            stage.steadfast(&["mcp"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("steadfast mcp")?;
        let requests = process.stdin.take();
        let replies = process.stdout.take().context("steadfast mcp has no stdout")?;
        let mut server = Self { process, requests, replies: BufReader::new(replies), last_id: 0 };
        let client = json!({"name": "steadfast-demo", "version": env!("CARGO_PKG_VERSION")});
        let hello = json!({"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client});
        server.request("initialize", &hello)?;
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(server)
    }

    /// Calls a tool, with the id by which the `PreToolUse` hook saw the same call.
    pub(super) fn call(&mut self, tool: &str, arguments: &Value, tool_use_id: &str) -> anyhow::Result<ToolResult> {
        let meta = json!({"claudecode/toolUseId": tool_use_id});
        let result = self.request("tools/call", &json!({"name": tool, "arguments": arguments, "_meta": meta}))?;
        let texts: Vec<&str> =
            result["content"].as_array().into_iter().flatten().filter_map(|block| block["text"].as_str()).collect();
        Ok(ToolResult {
            text: texts.join("\n"),
            is_error: result["isError"] == json!(true),
            structured: result["structuredContent"].clone(),
        })
    }

    /// Closes the server's stdin, as a client does when it quits, and waits for it.
    pub(super) fn stop(mut self) -> anyhow::Result<()> {
        self.requests = None;
        let status = self.process.wait()?;
        if !status.success() {
            bail!("steadfast mcp ended with {status}");
        }
        Ok(())
    }

    fn request(&mut self, method: &str, params: &Value) -> anyhow::Result<Value> {
        self.last_id += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}))?;
        loop {
            let mut line = String::new();
            if self.replies.read_line(&mut line)? == 0 {
                bail!("steadfast mcp closed its end instead of answering {method}");
            }
            let mut reply: Value = serde_json::from_str(&line).with_context(|| format!("reply to {method}"))?;
            // Notifications and logs may come in between.
            if reply["id"] != json!(self.last_id) {
                continue;
            }
            if !reply["error"].is_null() {
                bail!("steadfast mcp refused {method}: {}", reply["error"]);
            }
            return Ok(reply["result"].take());
        }
    }

    fn send(&mut self, message: &Value) -> anyhow::Result<()> {
        let requests = self.requests.as_mut().context("steadfast mcp was stopped")?;
        writeln!(requests, "{message}")?;
        requests.flush()?;
        Ok(())
    }
}
