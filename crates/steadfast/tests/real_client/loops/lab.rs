//! A project with both clients on its PATH and `steadfast` as a person calls it there.

use crate::client::Client;
use crate::codex::{Codex, ScriptedResponses};
use crate::model::ScriptedModel;
use crate::process::Output;
use crate::with_steadfast::binary;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use steadfast_model::price::Table;
use steadfast_model::reading::{Bill, Tier, Tokens};
use steadfast_store::Store;

pub(super) const PATIENCE: Duration = Duration::from_secs(30);

pub(super) struct Lab {
    client: Client,
    /// Its home is Codex's home here.
    codex: Codex,
}

impl Lab {
    pub(super) fn new(claude: &ScriptedModel, codex: &ScriptedResponses) -> Self {
        Self::with_codex(claude, Codex::new(codex))
    }

    pub(super) fn with_codex(claude: &ScriptedModel, codex: Codex) -> Self {
        let client = Client::new(claude);
        let home = client.root().join("steadfast");
        let store = home.join("goals.db");
        fs::create_dir(&home).expect("directory");
        // A real back-off would only slow the tests down.
        fs::write(home.join("config.toml"), "[runs]\nback_off_ms = 0\n[watch]\nstart = false\n").expect("config");
        let client = client
            .bin_dir(directory(&program("STEADFAST_CLAUDE")))
            .bin_dir(directory(&program("STEADFAST_CODEX")))
            .bin_dir(directory(&binary()))
            .env("CODEX_HOME", &codex.codex_home().to_string_lossy())
            .env("STEADFAST_HOME", &home.to_string_lossy())
            .env("STEADFAST_DB", &store.to_string_lossy())
            // Claude Code refuses full permissions to root, except in a declared sandbox.
            .env("IS_SANDBOX", "1");
        Self { client, codex }
    }

    pub(super) fn env(self, name: &str, value: &str) -> Self {
        Self { client: self.client.env(name, value), ..self }
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    pub(super) fn codex(&self) -> &Codex {
        &self.codex
    }

    pub(super) fn project(&self) -> PathBuf {
        self.client.project()
    }

    pub(super) fn store(&self) -> Store {
        Store::open_existing(&self.client.root().join("steadfast/goals.db")).expect("store")
    }

    /// A loop type of the project.
    pub(super) fn loop_type(&self, name: &str, definition: &str, prompt: &str) {
        let folder = self.project().join(".claude/loops").join(name);
        fs::create_dir_all(&folder).expect("folder");
        fs::write(folder.join("loop.yaml"), definition).expect("loop.yaml");
        fs::write(folder.join("prompt.md"), prompt).expect("prompt.md");
    }

    /// Runs a command and waits for its end.
    pub(super) fn steadfast(&self, arguments: &[&str]) -> Output {
        let arguments = with_trust(arguments);
        self.client.run_to_end(self.client.command(binary()).args(&arguments), &format!("steadfast {arguments:?}"))
    }

    /// Runs a command that must end with this exit code.
    pub(super) fn expect(&self, code: i32, arguments: &[&str]) -> Output {
        let output = self.steadfast(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {output:#?}\n{}", self.logs());
        output
    }

    pub(super) fn json(&self, arguments: &[&str]) -> Value {
        let output = self.steadfast(&[arguments, &["--json"]].concat());
        serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {output:?}"))
    }

    /// Starts a command in another terminal; its output goes to `NAME.txt`.
    pub(super) fn start(&self, name: &str, arguments: &[&str]) -> Child {
        let printed = fs::File::create(self.printed_path(name)).expect("file");
        let mut command = self.client.command(binary());
        command
            .args(with_trust(arguments))
            .stdout(printed.try_clone().expect("file"))
            .stderr(printed)
            .stdin(Stdio::null());
        command.spawn().expect("steadfast")
    }

    pub(super) fn printed(&self, name: &str) -> String {
        fs::read_to_string(self.printed_path(name)).unwrap_or_default()
    }

    fn printed_path(&self, name: &str) -> PathBuf {
        self.client.root().join(format!("{name}.txt"))
    }

    /// The directory of an attempt of the newest run of this name.
    pub(super) fn attempt_directory(&self, name: &str, attempt: &str) -> PathBuf {
        let status = self.json(&["loop", "status", name]);
        let run_id = status["run_id"].as_str().expect("run_id");
        self.client.root().join("steadfast/runs").join(run_id).join(attempt)
    }

    /// What agents and engines printed, for failure messages.
    fn logs(&self) -> String {
        let find = "for f in $(find \"$STEADFAST_HOME/runs\" -name '*.log' -o -name exit.json); do \
                    echo \"== $f\"; tail -c 1500 \"$f\"; done";
        let output = self.client.command("sh").args(["-c", find]).output().expect("sh");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

/// Runs trust what the test wrote.
fn with_trust<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let mut words = arguments.to_vec();
    if matches!(words.as_slice(), ["loop" | "pipeline", "run", ..]) {
        words.insert(2, "--trust");
    }
    words
}

/// Waits for a command of [`Lab::start`]; returns its exit code.
pub(super) fn wait(mut child: Child, what: &str) -> Option<i32> {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().expect("wait") {
            return status.code();
        }
        if Instant::now() > end {
            let _ = child.kill();
            let _ = child.wait();
            panic!("{what} did not end in {PATIENCE:?}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub(super) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "{what}: not in {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// For runs that do not use Claude Code.
pub(super) fn no_claude() -> ScriptedModel {
    ScriptedModel::start(|request| panic!("unexpected request to Claude: {request:?}"))
}

/// For runs that do not use Codex.
pub(super) fn no_codex() -> ScriptedResponses {
    ScriptedResponses::start(|request| panic!("unexpected request to Codex: {request:?}"))
}

/// The cost of a response by the shipped price table.
pub(super) fn cost_usd(model: &str, input: u64, output: u64, cache_creation: u64, cache_read: u64) -> f64 {
    let count = |tokens: u64| i64::try_from(tokens).expect("tokens");
    let tokens = Tokens {
        input: count(input),
        output: count(output),
        cache_creation: count(cache_creation),
        cache_read: count(cache_read),
        ..Tokens::default()
    };
    let bill = Bill { model, tier: Tier::Standard, tokens: &tokens };
    let micros = Table::shipped().cost_micros(&bill).unwrap_or_else(|| panic!("{model} has no price"));
    f64::from(i32::try_from(micros).expect("small")) / 1e6
}

/// The path of the result file in a prompt.
pub(super) fn result_file(prompt: &str) -> String {
    let (_, after) = prompt.split_once("write your result to this file:\n\n").expect("a place for the result");
    after.lines().next().unwrap_or_default().to_owned()
}

fn program(variable: &str) -> PathBuf {
    PathBuf::from(std::env::var_os(variable).unwrap_or_else(|| panic!("set {variable}")))
}

fn directory(program: &Path) -> &Path {
    program.parent().expect("directory of the program")
}

/// Blocks a script until the test releases it.
#[derive(Clone, Default)]
pub(super) struct Gate(Arc<AtomicBool>);

impl Gate {
    pub(super) fn open(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    pub(super) fn pass(&self) {
        eventually("the gate opens", || self.0.load(Ordering::SeqCst));
    }
}
