//! A private home, a server process in it, and the hook notes of a real client.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};
use steadfast_model::clock;
use steadfast_model::goal::{Actor, Goal};
use steadfast_model::host::Host;
use steadfast_store::{Db, EventFilter, Origin, Session, Store, ToolCall};
use steadfast_system::env_vars;

use crate::client::{self, ClientChild};

const PATIENCE: Duration = Duration::from_mins(1);
pub(super) const USER: Origin = Origin { actor: Actor::User, place: "test" };

pub(super) struct World {
    home: tempfile::TempDir,
    calls: AtomicU64,
}

impl World {
    pub(super) fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        fs_err::create_dir_all(home.path().join("claude/sessions")).unwrap();
        fs_err::create_dir_all(home.path().join("project")).unwrap();
        Self { home, calls: AtomicU64::new(0) }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub(super) fn store(&self) -> Store {
        Store::open(&self.path("goals.db")).unwrap()
    }

    pub(super) fn goal(&self, session_id: &str) -> Goal {
        self.store().read().goal(session_id).unwrap().unwrap()
    }

    pub(super) fn event_kinds(&self, session_id: &str) -> Vec<String> {
        let events = self.store().read().events(EventFilter::Session(session_id), 100).unwrap();
        events.into_iter().map(|event| event.kind).collect()
    }

    /// A session as the hooks register it; its user has typed a prompt at `prompted`.
    pub(super) fn register(&self, session_id: &str, prompted: Option<i64>, ended: Option<i64>) {
        let session = Session {
            session_id: session_id.into(),
            host: Host::Claude,
            cwd: String::new(),
            project_dir: self.path("project").to_string_lossy().into_owned(),
            transcript_path: String::new(),
            client: None,
            parent_session_id: None,
            parent_link: None,
            last_prompt_ms: prompted,
            user_prompt_ms: prompted,
            started_at_ms: clock::now(),
            last_seen_ms: clock::now(),
            ended_at_ms: ended,
            end_reason: None,
            ..Session::default()
        };
        self.store().write(|db| db.put_session(&session)).unwrap();
    }

    /// The user types a prompt after all that happened so far, and it begins a turn.
    pub(super) fn prompt(&self, session_id: &str) {
        let now = clock::now() + 1;
        self.register(session_id, Some(now), None);
        let begin =
            |db: Db<'_>| db.end_turn(session_id, false, now).and_then(|()| db.begin_turn(session_id, None, now));
        self.store().write(begin).unwrap();
    }

    /// Writes the note of the `PreToolUse` hook of a call; returns the call's id.
    pub(super) fn note(&self, session_id: &str, agent_type: &str) -> String {
        let id = format!("toolu_{}", self.calls.fetch_add(1, Ordering::Relaxed));
        self.note_as(&id, session_id, agent_type);
        id
    }

    pub(super) fn note_as(&self, id: &str, session_id: &str, agent_type: &str) {
        let call = ToolCall {
            tool_use_id: id.into(),
            session_id: session_id.into(),
            agent_id: if agent_type.is_empty() { "" } else { "a1" }.into(),
            agent_type: agent_type.into(),
            tool_name: "record_verdict".into(),
        };
        self.store().write(|db| db.note_tool_call(&call, clock::now())).unwrap();
    }

    /// A server that knows its session only from the notes.
    pub(super) fn server(&self) -> Server<'_> {
        self.server_with(&[])
    }

    pub(super) fn server_with(&self, variables: &[(&str, &str)]) -> Server<'_> {
        self.initialized(self.silent_server_with(variables))
    }

    /// A server of another copy of the program.
    pub(super) fn server_of(&self, program: &Path, variables: &[(&str, &str)]) -> Server<'_> {
        let mut command = Command::new(program);
        self.prepare(&mut command, variables);
        self.initialized(self.silent_server(&command))
    }

    #[expect(clippy::unused_self, reason = "reads like the other steps of a story")]
    fn initialized<'w>(&'w self, mut server: Server<'w>) -> Server<'w> {
        let hello = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"roots": {}, "elicitation": {}},
            "clientInfo": {"name": "claude-code", "title": "Claude Code", "version": "2.1.197"},
        });
        server.hello = server.request("initialize", &hello);
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        server
    }

    /// The process of the client that starts the servers.
    pub(super) fn client_pid(&self) -> u32 {
        client::pid_of(&self.command(&[]))
    }

    /// A server of a client that a run started.
    pub(super) fn server_below_supervisor(&self) -> Server<'_> {
        self.initialized(self.silent_server(&client::below_supervisor(&self.command(&[]))))
    }

    /// A server before the handshake.
    pub(super) fn silent_server_with(&self, variables: &[(&str, &str)]) -> Server<'_> {
        self.silent_server(&self.command(variables))
    }

    fn command(&self, variables: &[(&str, &str)]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_steadfast"));
        self.prepare(&mut command, variables);
        command
    }

    fn prepare(&self, command: &mut Command, variables: &[(&str, &str)]) {
        command
            .arg("mcp")
            .current_dir(self.path("project"))
            .env_clear()
            .env("PATH", env_vars::path("PATH").unwrap())
            .env("HOME", self.home.path())
            .env("STEADFAST_HOME", self.home.path())
            .env("STEADFAST_NO_WATCH", "1")
            .env("CLAUDE_CONFIG_DIR", self.path("claude"))
            .envs(variables.iter().copied());
    }

    fn silent_server(&self, command: &Command) -> Server<'_> {
        let mut child = client::spawn(command);
        let stdout = BufReader::new(child.take_stdout());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Server { world: self, child, lines, next_id: 0, hello: Value::Null }
    }
}

pub(super) struct Server<'w> {
    world: &'w World,
    child: ClientChild,
    lines: Receiver<String>,
    next_id: i64,
    pub(super) hello: Value,
}

impl Server<'_> {
    pub(super) fn send_line(&mut self, line: &str) {
        self.child.write(format!("{line}\n").as_bytes());
    }

    pub(super) fn send(&mut self, message: &Value) {
        self.send_line(&message.to_string());
    }

    /// Sends a request without waiting; returns its id.
    pub(super) fn ask(&mut self, method: &str, params: &Value) -> i64 {
        let id = self.next_id;
        self.next_id += 1;
        self.send(&json!({"method": method, "params": params, "jsonrpc": "2.0", "id": id}));
        id
    }

    /// The next message; every line of stdout must be a message.
    pub(super) fn receive(&mut self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("the server answers");
        let message: Value = serde_json::from_str(&line).expect("stdout belongs to JSON-RPC");
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
        message
    }

    pub(super) fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.ask(method, params);
        let answer = self.receive();
        assert_eq!(answer["id"], json!(id), "{answer}");
        answer
    }

    /// Makes a tool call, with or without a note; returns the whole answer.
    pub(super) fn call_with_id(&mut self, tool: &str, arguments: &Value, tool_use_id: Option<&str>) -> Value {
        let mut params = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": 3}});
        if let Some(id) = tool_use_id {
            params["_meta"]["claudecode/toolUseId"] = json!(id);
        }
        self.request("tools/call", &params)
    }

    /// Makes a worker's call that must succeed; returns its structured result, which its text repeats.
    pub(super) fn call(&mut self, session_id: &str, tool: &str, arguments: &Value) -> Value {
        let id = self.world.note(session_id, "");
        let answer = self.call_with_id(tool, arguments, Some(&id));
        success(&answer)
    }

    /// Makes a worker's call that must be refused; returns the message and the hint.
    pub(super) fn refused(&mut self, session_id: &str, tool: &str, arguments: &Value) -> String {
        let id = self.world.note(session_id, "");
        let answer = self.call_with_id(tool, arguments, Some(&id));
        refusal(&answer)
    }

    pub(super) fn judge(&mut self, session_id: &str, arguments: &Value) -> Value {
        let id = self.world.note(session_id, "steadfast:goal-evaluator");
        self.call_with_id("record_verdict", arguments, Some(&id))
    }

    pub(super) fn close_stdin(&mut self) {
        self.child.close_stdin();
    }

    /// Closes stdin and waits for the process to end.
    pub(super) fn end(&mut self) -> (i32, String) {
        self.close_stdin();
        let code = self.child.wait();
        let stderr = std::io::read_to_string(self.child.take_stderr()).unwrap();
        (code, stderr)
    }
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        self.child.kill();
        self.child.wait();
    }
}

pub(super) fn success(answer: &Value) -> Value {
    let result = &answer["result"];
    assert_ne!(result["isError"], true, "{answer}");
    let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, result["structuredContent"]);
    text
}

pub(super) fn refusal(answer: &Value) -> String {
    assert_eq!(answer["error"], Value::Null, "never a protocol error: {answer}");
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    let (sentence, hint) = text.rsplit_once("\nhint: ").expect("a sentence and a hint");
    assert!(!sentence.is_empty() && !hint.is_empty(), "{text}");
    text.to_owned()
}
