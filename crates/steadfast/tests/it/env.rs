//! The private environment of one test: home, store, project and Claude configuration in a temporary directory, and
//! clean variables for every process.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client;

pub(crate) struct Env {
    root: TempDir,
    /// Instead of the program under test; its directory comes first on PATH.
    program: Option<PathBuf>,
}

/// The output and exit code of a process.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Output {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Asserts the exit code, one error line after any notes, and one hint line.
    pub(crate) fn fails_with(&self, code: i32, about: &str) -> &Self {
        assert_eq!(self.code, code, "{self:?}");
        let (error, hint) = self.stderr.split_once("hint: ").unwrap_or_else(|| panic!("no hint: {self:?}"));
        let mut lines = error.lines().skip_while(|line| !line.starts_with("error: "));
        assert!(lines.next().is_some() && error.contains(about), "{self:?}");
        assert!(!hint.trim().is_empty() && !self.stderr.contains("panicked"), "{self:?}");
        self
    }

    pub(crate) fn succeeds(&self) -> &Self {
        assert_eq!(self.code, 0, "{self:?}");
        self
    }
}

impl Env {
    pub(crate) fn new() -> Self {
        let root = tempfile::Builder::new().prefix("steadfast-it-").tempdir().unwrap();
        for directory in ["project", "user/.claude"] {
            std::fs::create_dir_all(root.path().join(directory)).unwrap();
        }
        Self { root, program: None }
    }

    /// Runs the program at `path` from now on.
    pub(crate) fn use_program(&mut self, path: PathBuf) {
        self.program = Some(path);
    }

    fn search_path(&self) -> std::ffi::OsString {
        let search = std::env::var_os("PATH").unwrap_or_default();
        let first = self.program.iter().filter_map(|program| program.parent().map(Path::to_path_buf));
        std::env::join_paths(first.chain(std::env::split_paths(&search))).unwrap()
    }

    pub(crate) fn path(&self, part: &str) -> PathBuf {
        self.root.path().join(part)
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.path("home")
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.home().join("goals.db")
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.path("project")
    }

    pub(crate) fn claude_config(&self) -> PathBuf {
        self.path("user/.claude")
    }

    /// A command in the project. Runs trust what the test wrote there; see [`Env::command_as_typed`].
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut words = arguments.to_vec();
        if matches!(words.as_slice(), ["loop" | "pipeline", "run", ..]) && !words.contains(&"--trust") {
            words.insert(2, "--trust");
        }
        self.command_as_typed(&words)
    }

    /// A command in the project, without `--trust`.
    pub(crate) fn command_as_typed(&self, arguments: &[&str]) -> Command {
        let tested = Path::new(env!("CARGO_BIN_EXE_steadfast"));
        let mut command = Command::new(self.program.as_deref().unwrap_or(tested));
        command
            .env_clear()
            .env("HOME", self.path("user"))
            .env("PATH", self.search_path())
            .env("STEADFAST_HOME", self.home())
            .env("STEADFAST_NO_WATCH", "1")
            .env("TZ", "UTC")
            .current_dir(self.project())
            .args(arguments)
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        finish(&mut self.command(arguments), b"")
    }

    /// Runs a verb about the goal of session `s1`.
    pub(crate) fn goal(&self, arguments: &[&str]) -> Output {
        self.run(&[&["goal"], arguments, &["--session", "s1"]].concat())
    }

    /// Starts a goal in session `s1`, known to the hooks with a transcript.
    pub(crate) fn start(&self, arguments: &[&str]) -> Value {
        self.hook("s1", &json!({"hook_event_name": "SessionStart", "source": "startup"}));
        let output = self.run(&[&["goal", "start", "--session", "s1", "--json"], arguments].concat());
        let goal = output.succeeds().json()["goal"].clone();
        self.begin_turn();
        goal
    }

    /// A turn begins by a prompt that the client makes itself.
    pub(crate) fn begin_turn(&self) {
        self.hook("s1", &json!({"hook_event_name": "UserPromptSubmit", "prompt": "<task-notification>"}));
    }

    pub(crate) fn status(&self) -> Value {
        self.goal(&["status", "--json"]).json()["goal"].clone()
    }

    /// Calls the hook as the client does, with defaults for missing fields.
    pub(crate) fn hook(&self, session: &str, event: &Value) -> Value {
        let output = self.hook_output(session, event);
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
        if output.stdout.is_empty() { Value::Null } else { output.json() }
    }

    /// The same in the terminal interface of the client, which a background hook can wake.
    pub(crate) fn hook_in_terminal(&self, session: &str, event: &Value) -> Value {
        let mut command = self.command(&["hook", "claude"]);
        let output = finish(command.env("CLAUDE_CODE_ENTRYPOINT", "cli"), &self.hook_input(session, event));
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
        if output.stdout.is_empty() { Value::Null } else { output.json() }
    }

    pub(crate) fn hook_output(&self, session: &str, event: &Value) -> Output {
        finish(&mut self.command(&["hook", "claude"]), &self.hook_input(session, event))
    }

    fn hook_input(&self, session: &str, event: &Value) -> Vec<u8> {
        let mut input = json!({
            "session_id": session, "transcript_path": self.transcript(session), "cwd": self.project(),
        });
        for (name, value) in event.as_object().unwrap() {
            input[name] = value.clone();
        }
        input.to_string().into_bytes()
    }

    /// Calls the hook as Codex does, with a captured event; fields of `change` replace its own.
    pub(crate) fn codex(&self, thread: &str, sample: &str, change: &Value) -> Value {
        let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../steadfast-hosts/samples/codex/hooks");
        let captured = std::fs::read(samples.join(format!("{sample}.json"))).unwrap();
        let mut input: Value = serde_json::from_slice(&captured).unwrap();
        input["session_id"] = json!(thread);
        input["cwd"] = json!(self.project());
        input["transcript_path"] = json!(self.rollout(thread));
        for (name, value) in change.as_object().unwrap() {
            input[name] = value.clone();
        }
        let output = finish(&mut self.command(&["hook", "codex"]), input.to_string().as_bytes());
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
        if output.stdout.is_empty() { Value::Null } else { output.json() }
    }

    /// The path of a thread's file in Codex.
    pub(crate) fn rollout(&self, thread: &str) -> PathBuf {
        self.path(&format!("user/.codex/sessions/2026/11/15/rollout-2026-11-15T08-00-00-{thread}.jsonl"))
    }

    /// Appends an answer of the model to a thread's file, as Codex writes it.
    pub(crate) fn codex_says(&self, thread: &str, response: &str, text: &str, tokens: i64) {
        let file = self.rollout(thread);
        if !file.exists() {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            let meta = json!({"id": thread, "session_id": thread, "cwd": self.project(), "source": "exec"});
            self.append(&file, &json!({"timestamp": now(), "ordinal": 0, "type": "session_meta", "payload": meta}));
        }
        let said = json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]});
        self.append(&file, &json!({"timestamp": now(), "ordinal": 1, "type": "response_item", "payload": said}));
        let usage = json!({"input_tokens": tokens - 10, "cached_input_tokens": 0, "cache_write_input_tokens": 0,
                           "output_tokens": 10, "reasoning_output_tokens": 0, "total_tokens": tokens});
        let record = json!({"thread_id": thread, "turn_id": "t", "session_id": thread, "response_id": response,
                            "usage": usage});
        self.append(&file, &json!({"timestamp": now(), "ordinal": 2, "type": "token_usage_record", "payload": record}));
    }

    pub(crate) fn stop(&self, session: &str, last_message: &str, after_continuation: bool) -> Value {
        self.hook(
            session,
            &json!({"hook_event_name": "Stop", "stop_hook_active": after_continuation,
                    "last_assistant_message": last_message, "background_tasks": []}),
        )
    }

    pub(crate) fn transcript(&self, session: &str) -> PathBuf {
        self.path(&format!("{session}.jsonl"))
    }

    /// Appends an answer of the model to the session's file, as the client writes it.
    pub(crate) fn says(&self, session: &str, id: &str, text: &str, tokens: i64) {
        self.append(&self.transcript(session), &assistant(id, text, tokens));
    }

    #[expect(clippy::unused_self, reason = "reads like the other steps of a story")]
    pub(crate) fn append(&self, file: &Path, line: &Value) {
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(file).unwrap();
        writeln!(file, "{line}").unwrap();
    }

    pub(crate) fn sql(&self, sql: &str) -> Vec<Vec<String>> {
        let db = rusqlite::Connection::open(self.store()).unwrap();
        let mut statement = db.prepare(sql).unwrap();
        let columns = statement.column_count();
        let rows = statement.query_map([], |row| {
            (0..columns).map(|at| row.get::<_, rusqlite::types::Value>(at).map(|value| text_of(&value))).collect()
        });
        rows.unwrap().map(Result::unwrap).collect()
    }

    pub(crate) fn execute(&self, sql: &str) {
        rusqlite::Connection::open(self.store()).unwrap().execute_batch(sql).unwrap();
    }

    pub(crate) fn event_kinds(&self) -> Vec<String> {
        self.sql("SELECT kind FROM goal_events ORDER BY id").into_iter().flatten().collect()
    }
}

fn text_of(value: &rusqlite::types::Value) -> String {
    use rusqlite::types::Value as Sql;
    match value {
        Sql::Null => "NULL".into(),
        Sql::Integer(number) => number.to_string(),
        Sql::Real(number) => number.to_string(),
        Sql::Text(text) => text.clone(),
        Sql::Blob(bytes) => format!("{} bytes", bytes.len()),
    }
}

/// A line of the transcript: one answer with `tokens` counted tokens.
pub(crate) fn assistant(id: &str, text: &str, tokens: i64) -> Value {
    json!({
        "type": "assistant", "uuid": format!("uuid-{id}"), "timestamp": now(), "requestId": format!("req-{id}"),
        "message": {
            "id": id, "role": "assistant", "model": "claude-opus-4-8", "type": "message",
            "content": [{"type": "text", "text": text}],
            "usage": {"input_tokens": tokens - 3, "output_tokens": 2, "cache_creation_input_tokens": 1, "cache_read_input_tokens": 9},
        },
    })
}

pub(crate) fn now() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    steadfast_model::clock::to_rfc3339(i64::try_from(now.as_millis()).unwrap())
        .replace('Z', &format!(".{:03}Z", now.subsec_millis()))
}

/// Runs a command to its end: hooks and tool servers as the client, all else as a person.
pub(crate) fn finish(command: &mut Command, stdin: &[u8]) -> Output {
    if client::is_of_client(command) {
        return client::finish(command, stdin);
    }
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A process may end without reading its input.
    let _ = child.stdin.take().unwrap().write_all(stdin);
    let output = child.wait_with_output().unwrap();
    Output {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}
