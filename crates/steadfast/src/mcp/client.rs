//! A client of `steadfast mcp`, for `doctor` and the demo: JSON-RPC with one message per line.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

pub(crate) struct McpClient {
    server: Child,
    requests: ChildStdin,
    replies: BufReader<ChildStdout>,
    last_id: i64,
}

impl McpClient {
    /// Starts a server and initializes the connection; returns what the server reports about itself, too.
    pub(crate) fn start(command: &mut Command) -> io::Result<(Self, Value)> {
        let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let (Some(requests), Some(replies)) = (server.stdin.take(), server.stdout.take()) else {
            return Err(io::Error::other("the server has no pipes"));
        };
        let mut client = Self { server, requests, replies: BufReader::new(replies), last_id: 0 };
        let info = json!({"name": "steadfast", "version": env!("CARGO_PKG_VERSION")});
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info});
        let mut reply = client.request("initialize", &hello)?;
        writeln!(client.requests, "{}", json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok((client, reply["serverInfo"].take()))
    }

    /// Sends a request and returns its result.
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> io::Result<Value> {
        self.last_id += 1;
        let request = json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params});
        writeln!(self.requests, "{request}")?;
        loop {
            let mut line = String::new();
            if self.replies.read_line(&mut line)? == 0 {
                return Err(io::Error::other(format!("the server closed its stdout instead of answering {method}")));
            }
            let mut reply: Value = serde_json::from_slice(line.as_bytes())?;
            if !reply["error"].is_null() {
                return Err(io::Error::other(format!("the server refused {method}: {}", reply["error"])));
            }
            // Notifications may arrive before the reply.
            if reply["id"] == json!(self.last_id) {
                return Ok(reply["result"].take());
            }
        }
    }
}

impl Drop for McpClient {
    fn drop(&mut self) {
        // The server exits when its stdin closes; kill one that hangs.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
