//! Test support for runs: user loop types, shell scripts as agents, and engines that can be killed.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::attempts::eventually;
use crate::env::{Env, Output, finish};

/// Appends a line to `tries` at each call and prints the number of lines.
pub(crate) const COUNTING: &str = "cat > prompt; echo x >> tries; echo \"done $STEADFAST_ITERATION\"";

pub(crate) struct World {
    pub(crate) env: Env,
}

impl World {
    pub(crate) fn new() -> Self {
        let world = Self { env: Env::new() };
        std::fs::create_dir_all(world.env.home()).unwrap();
        let config = "[runs]\nback_off_ms = 10\ngrace_ms = 300\n[notify]\ndesktop = false\n";
        std::fs::write(world.env.home().join("config.toml"), config).unwrap();
        world
    }

    pub(crate) fn in_project(&self, part: &str) -> PathBuf {
        self.env.project().join(part)
    }

    pub(crate) fn claude(&self, part: &str) -> PathBuf {
        self.in_project(".claude").join(part)
    }

    #[expect(clippy::unused_self, reason = "reads like the other steps of a story")]
    pub(crate) fn write(&self, path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// A user loop type, which needs no trust, without delay between iterations.
    pub(crate) fn loop_type(&self, name: &str, yaml: &str) -> &Self {
        self.loop_type_in(&self.env.home().join("loops"), name, yaml)
    }

    pub(crate) fn loop_type_in(&self, folder: &Path, name: &str, yaml: &str) -> &Self {
        self.write(&folder.join(name).join("loop.yaml"), &format!("name: {name}\ndelay: 0\n{yaml}\n"));
        self.write(&folder.join(name).join("prompt.md"), "${SESSION} ${ITERATION} ${ITEM}[${INPUTS}]\n");
        self
    }

    /// Creates an agent from a shell script; returns the value for `--agent`.
    pub(crate) fn agent(&self, script: &str) -> String {
        let mut number = 0;
        let path = loop {
            let path = self.env.path(&format!("agent-{number}.sh"));
            if !path.exists() {
                break path;
            }
            number += 1;
        };
        self.write(&path, &format!("#!/bin/sh\n{script}\n"));
        format!("sh {}", path.display())
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.env.run(arguments)
    }

    /// `loop run TYPE NAME --agent SCRIPT` and more.
    pub(crate) fn loop_run(&self, type_and_name: &[&str], script: &str, more: &[&str]) -> Output {
        let agent = self.agent(script);
        self.run(&[&["loop", "run"], type_and_name, &["--agent", &agent], more].concat())
    }

    pub(crate) fn status(&self, kind: &str, name: &str) -> Value {
        self.run(&[kind, "status", name, "--json"]).succeeds().json()
    }

    pub(crate) fn json(&self, file: &str) -> Value {
        let text = std::fs::read_to_string(self.claude(file)).unwrap();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    pub(crate) fn entry(&self, key: &str) -> Value {
        self.json("loop-sessions.json")["sessions"][key].clone()
    }

    pub(crate) fn lines(&self, file: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.in_project(file)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Starts a command and leaves it running.
    pub(crate) fn spawn(&self, arguments: &[&str]) -> Child {
        let mut command = self.env.command(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Starts a command whose output can be read while it runs.
    pub(crate) fn watch(&self, arguments: &[&str]) -> Watched {
        let stdout = self.env.path(&format!("watched-{}.out", arguments.join("-")));
        let mut command = self.env.command(arguments);
        command.stdout(std::fs::File::create(&stdout).unwrap()).stderr(Stdio::piped());
        Watched { child: command.spawn().unwrap(), stdout }
    }

    /// The engine of a run, once it has one.
    pub(crate) fn engine(&self, kind: &str, name: &str) -> Pid {
        let pid = eventually(|| self.status(kind, name)["pid"].as_i64());
        Pid::from_raw(i32::try_from(pid).unwrap()).unwrap()
    }

    pub(crate) fn ends(&self, kind: &str, name: &str) -> Value {
        let is_over = |status: &Value| status["status"] != "running" && status["engine_gone"] == false;
        eventually(|| Some(self.status(kind, name)).filter(is_over))
    }

    /// Runs the user's own `jq` recipe on the registry.
    pub(crate) fn jq(&self, filter: &str) {
        let script = format!(
            "jq '{filter}' .claude/loop-sessions.json > .claude/edited && mv .claude/edited .claude/loop-sessions.json"
        );
        let mut command = Command::new("bash");
        let output = finish(command.current_dir(self.env.project()).args(["-c", &script]), b"");
        assert_eq!(output.code, 0, "{output:?}");
    }

    #[expect(clippy::unused_self, reason = "reads like the other steps of a story")]
    pub(crate) fn make_executable(&self, path: &Path) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Makes the project a repository with one commit of all files.
    pub(crate) fn commit_all(&self) {
        for arguments in [&["init", "-q", "-b", "main"][..], &["add", "-A"], &["commit", "-q", "-m", "first"]] {
            self.git(arguments);
        }
    }

    pub(crate) fn repository(&self) {
        for arguments in [&["init", "-q", "-b", "main"][..], &["commit", "-q", "--allow-empty", "-m", "first"]] {
            self.git(arguments);
        }
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("git");
        let identity = ["-c", "user.name=T", "-c", "user.email=t@example.org"];
        let output = finish(command.current_dir(self.env.project()).args(identity).args(arguments), b"");
        assert_eq!(output.code, 0, "{output:?}");
        output.stdout
    }
}

/// A running command and its output file.
pub(crate) struct Watched {
    pub(crate) child: Child,
    stdout: PathBuf,
}

impl Watched {
    fn said(&self) -> String {
        std::fs::read_to_string(&self.stdout).unwrap()
    }

    /// Waits until it has printed something.
    pub(crate) fn says(&self, words: &str) {
        eventually(|| self.said().contains(words).then_some(()));
    }

    /// Waits until its handler for Ctrl-C is installed.
    pub(crate) fn listens(&self) {
        let status = format!("/proc/{}/status", self.child.id());
        eventually(|| {
            let status = std::fs::read_to_string(&status).unwrap_or_default();
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
            let bits = caught.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0);
            (bits & (1 << (Signal::INT.as_raw() - 1)) != 0).then_some(())
        });
    }

    pub(crate) fn wait(self) -> Output {
        let output = wait(self.child);
        Output { stdout: std::fs::read_to_string(self.stdout).unwrap(), ..output }
    }
}

pub(crate) fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap(), signal).unwrap();
}

pub(crate) fn wait(child: Child) -> Output {
    let output = child.wait_with_output().unwrap();
    Output {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}
