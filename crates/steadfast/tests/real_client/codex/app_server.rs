//! Requests to Codex's own `app-server`, for facts that no command prints.

use super::client::Codex;
use crate::process::kill_group;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;

const LIMIT: Duration = Duration::from_mins(1);

impl Codex {
    /// The hooks the client sees in the project, with `key`, `currentHash` and `trustStatus`.
    pub(crate) fn hooks_list(&self) -> Vec<Value> {
        let answer = self.ask("hooks/list", &json!({"cwds": [self.project()]}));
        answer["data"][0]["hooks"].as_array().cloned().unwrap_or_else(|| panic!("no hooks: {answer:#}"))
    }

    /// One request to a new `codex app-server`; the result.
    pub(crate) fn ask(&self, method: &str, params: &Value) -> Value {
        let mut command = self.command(self.program());
        command.arg("app-server").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut server = command.process_group(0).spawn().expect("start the app-server");
        let mut input = server.stdin.take().expect("stdin");
        let output = BufReader::new(server.stdout.take().expect("stdout"));
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let client = json!({"clientInfo": {"name": "steadfast-tests", "version": "1"}});
        for message in [
            json!({"id": 1, "method": "initialize", "params": client}),
            json!({"method": "initialized"}),
            json!({"id": 2, "method": method, "params": params}),
        ] {
            writeln!(input, "{message}").expect("write to the app-server");
        }
        let answer = std::iter::from_fn(|| lines.recv_timeout(LIMIT).ok())
            .filter_map(|line| serde_json::from_str::<Value>(&line).ok())
            .find(|message| message["id"] == 2);
        kill_group(server.id());
        let _ = server.wait();
        let mut answer = answer.unwrap_or_else(|| panic!("no answer to {method}"));
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].take()
    }
}
